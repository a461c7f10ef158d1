//! `placementctl members`: who belongs to the cluster.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use placement_client::{Admin, MemberRole, NewMember};

use crate::survey::{Survey, survey};

#[derive(Subcommand)]
pub(crate) enum MembersAction {
    /// Adds a fresh, running node as learner. It receives the log but does not vote yet.
    Add(AddMember),
    /// Makes a learner that has caught up a voter.
    Promote {
        /// The learner.
        id: u64,
    },
    /// Removes a node. Its id must never be used again.
    Remove {
        /// The node to go.
        id: u64,
        /// Does not ask, although the cluster survives no loss afterwards.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct AddMember {
    /// An id that no node of this cluster has ever had.
    id: u64,
    /// Where the other nodes reach it, `host:port`.
    #[arg(long, alias = "rpc", value_name = "HOST:PORT")]
    peer: String,
    /// Where clients reach its REST API, `host:port`; by default as the node says itself.
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    api: String,
    /// Where operators reach its admin listener, `host:port`; by default as the node says itself.
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    admin: String,
}

pub(crate) async fn change(
    admin: &Admin,
    action: MembersAction,
    timeout: Duration,
) -> anyhow::Result<()> {
    match action {
        MembersAction::Add(AddMember {
            id,
            peer,
            api,
            admin: listener,
        }) => {
            let member = NewMember {
                id,
                peer,
                api,
                admin: listener,
            };
            admin.add_member(&member).await?;
            println!(
                "node {id} added as learner; `placementctl members promote {id}` gives it a vote"
            );
        }
        MembersAction::Promote { id } => {
            admin.promote_member(id).await?;
            println!("node {id} is a voter");
        }
        MembersAction::Remove { id, yes } => remove(admin, id, yes, timeout).await?,
    }
    Ok(())
}

async fn remove(admin: &Admin, id: u64, yes: bool, timeout: Duration) -> anyhow::Result<()> {
    let before = survey(admin, timeout).await?;
    let left = losses_left(&before, id);
    if left == Some(0) && !yes {
        confirm(id)?;
    }
    admin.remove_member(id).await?;
    println!("node {id} removed");
    match left {
        Some(0) => println!("the cluster survives no further loss now"),
        Some(1) => println!("the cluster survives the loss of 1 more node"),
        Some(left) => println!("the cluster survives the loss of {left} more nodes"),
        None => {}
    }
    Ok(())
}

/// How many voters may still be lost once `id` is gone; `None` if it has no vote, so that nothing
/// changes.
fn losses_left(survey: &Survey, id: u64) -> Option<usize> {
    let voters = survey
        .members
        .iter()
        .filter(|(member, _)| member.role == MemberRole::Voter);
    let (gone, left): (Vec<_>, Vec<_>) = voters.partition(|(member, _)| member.id == id);
    if gone.is_empty() {
        return None;
    }
    let healthy = left
        .iter()
        .filter(|(_, status)| status.as_ref().is_some_and(|status| status.ready))
        .count();
    Some(healthy.saturating_sub(left.len() / 2 + 1))
}

/// Asks at the terminal, if there is one.
fn confirm(id: u64) -> anyhow::Result<()> {
    let warning = format!(
        "without node {id} the cluster survives no further loss: one more failing node stops all \
         writes and reads"
    );
    let mut input = std::io::stdin().lock();
    if !input.is_terminal() {
        bail!("{warning}. Nothing was changed; say --yes if that is what you want");
    }
    eprint!("{warning}.\nRemove it? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    input.read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("nothing was changed"),
    }
}
