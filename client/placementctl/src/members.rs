//! `placementctl members`: changes the membership of the cluster.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use placement_client::{Admin, MemberRole};
use placement_words::{Health, Survey};

use crate::named::Named;
use crate::survey::survey;

#[derive(Subcommand)]
pub(crate) enum MembersAction {
    /// Make a learner a voter. The learner must be caught up.
    Promote(Change),
    /// Make a voter a learner. A learner serves reads but does not count towards the majority.
    Demote(Change),
    /// Remove a node from the cluster. Its number is never used again.
    Remove {
        /// Do not ask for confirmation even if the cluster tolerates no further failure afterwards.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        change: Change,
    },
}

#[derive(Args)]
pub(crate) struct Change {
    /// Node, by number or name.
    #[arg(value_name = "NODE")]
    node: Named,
    /// Make the change even if the cluster then does not tolerate the failure (node, zone or
    /// region) that `[cluster] survive` requires it to tolerate.
    #[arg(long)]
    force: bool,
}

pub(crate) async fn change(
    admin: &Admin,
    action: MembersAction,
    timeout: Duration,
) -> anyhow::Result<()> {
    use MembersAction::{Demote, Promote, Remove};
    let (Promote(change) | Demote(change) | Remove { change, .. }) = &action;
    let (id, force) = (change.node.number(admin).await?, change.force);
    match action {
        Promote(_) => {
            admin.promote_member(id, force).await?;
            println!("node {id} is a voter");
        }
        Demote(_) => {
            admin.demote_member(id, force).await?;
            println!("node {id} is a learner");
        }
        Remove { yes, .. } => remove(admin, id, yes, force, timeout).await?,
    }
    Ok(())
}

async fn remove(
    admin: &Admin,
    id: u64,
    yes: bool,
    force: bool,
    timeout: Duration,
) -> anyhow::Result<()> {
    let before = survey(admin, timeout).await?;
    let left = losses_left(before, id);
    if left == Some(0) && !yes {
        confirm(id)?;
    }
    admin.remove_member(id, force).await?;
    println!("node {id} removed");
    match left {
        Some(0) => println!("the cluster tolerates no further failure"),
        Some(1) => println!("the cluster tolerates the failure of 1 more node"),
        Some(left) => println!("the cluster tolerates the failure of {left} more nodes"),
        None => {}
    }
    Ok(())
}

/// Number of voters that may still fail after the removal of `id`; `None` if the node has no vote,
/// so that its removal changes nothing.
fn losses_left(mut survey: Survey, id: u64) -> Option<usize> {
    let gone: Vec<_> = survey
        .members
        .extract_if(.., |(member, _)| member.id == id)
        .collect();
    let had_vote = gone
        .iter()
        .any(|(member, _)| member.role == MemberRole::Voter);
    had_vote.then(|| Health::from_survey(&survey).can_lose)
}

/// Asks for confirmation on the terminal. Fails if standard input is not a terminal.
fn confirm(id: u64) -> anyhow::Result<()> {
    let warning = format!(
        "without node {id} the cluster tolerates no further failure: the loss of one more voter stops \
         writes and linearizable reads"
    );
    let mut input = std::io::stdin().lock();
    if !input.is_terminal() {
        bail!("{warning}. Nothing was changed; use --yes to confirm");
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
