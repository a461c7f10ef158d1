//! `placementctl members`: lists the members of the cluster, and changes the membership.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use placement_client::{Admin, MemberRole};
use placement_words::{Health, Survey};

use crate::named::Named;
use crate::render::{Output, print};
use crate::status;
use crate::survey::survey;

#[derive(Subcommand)]
pub(crate) enum MembersAction {
    /// List the members with their sites and roles.
    List(Output),
    /// Make a learner a voter.
    ///
    /// The learner must have caught up.
    Promote(Change),
    /// Make a voter a learner.
    ///
    /// A learner serves reads but does not count towards the majority.
    Demote(Change),
    /// Remove a node from the cluster.
    ///
    /// Its number is never used again.
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

pub(crate) async fn run(
    admin: &Admin,
    action: MembersAction,
    timeout: Duration,
) -> anyhow::Result<()> {
    match action {
        MembersAction::List(output) => {
            print(&status::members(&survey(admin, timeout).await?, &output)?)?;
        }
        MembersAction::Promote(Change { node, force }) => {
            let id = node.number(admin).await?;
            admin.promote_member(id, force).await?;
            println!("node {id} is a voter");
        }
        MembersAction::Demote(Change { node, force }) => {
            let id = node.number(admin).await?;
            admin.demote_member(id, force).await?;
            println!("node {id} is a learner");
        }
        MembersAction::Remove { yes, change } => {
            let id = change.node.number(admin).await?;
            remove(admin, id, yes, change.force, timeout).await?;
        }
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
    let tolerates = match left {
        Some(0) => ": the cluster tolerates no further failure".to_owned(),
        Some(1) => ": the cluster tolerates the failure of 1 more node".to_owned(),
        Some(left) => format!(": the cluster tolerates the failure of {left} more nodes"),
        None => String::new(),
    };
    println!("node {id} is removed{tolerates}");
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
