//! `placementctl members`: who belongs to the cluster.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use placement_client::{Admin, Error, Member, MemberRole, NewMember};
use tokio::time::{Instant, sleep};

use crate::named::Named;
use crate::survey::{Survey, survey};
use crate::topology::is_as_wanted;

#[derive(Subcommand)]
pub(crate) enum MembersAction {
    /// Adds a fresh, running node as learner. It receives the log but does not vote yet.
    Add(AddMember),
    /// Makes a learner that has caught up a voter.
    Promote {
        /// The learner, by its number or its name.
        #[arg(value_name = "NODE")]
        node: Named,
        /// Although a loss is not survived then that `[cluster] survive` names.
        #[arg(long)]
        force: bool,
    },
    /// Makes a voter a learner, which goes on serving reads and counts for no majority.
    Demote {
        /// The voter, by its number or its name.
        #[arg(value_name = "NODE")]
        node: Named,
        /// Although a loss is not survived then that `[cluster] survive` names.
        #[arg(long)]
        force: bool,
    },
    /// Rebuilds a node from the others, under a new id: adds the new one, waits until it has caught up,
    /// removes the old one, and gives the new one its vote. Can be repeated after an interruption.
    #[command(
        after_help = "The old node may be dead, or unfit to start: its data directory was lost, damaged \
                      or put back from an older copy. The new one has to run, with an empty data \
                      directory and the new id; it may have the old one's addresses."
    )]
    Replace(ReplaceMember),
    /// Removes a node. Its id must never be used again.
    Remove {
        /// The node to go, by its number or its name.
        #[arg(value_name = "NODE")]
        node: Named,
        /// Does not ask, although the cluster survives no loss afterwards.
        #[arg(long)]
        yes: bool,
        /// Although a loss is not survived then that `[cluster] survive` names.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Args)]
pub(crate) struct AddMember {
    /// An id that no node of this cluster has ever had.
    id: u64,
    /// Where the other nodes reach it, `host:port`.
    #[arg(long, value_name = "HOST:PORT")]
    peer: String,
    /// Where clients reach its REST API, `host:port`; by default as the node says itself.
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    api: String,
    /// Where operators reach its admin listener, `host:port`; by default as the node says itself.
    #[arg(long, value_name = "HOST:PORT", default_value = "")]
    admin: String,
}

#[derive(Args)]
pub(crate) struct ReplaceMember {
    /// The node to go, by its number or its name. Its number must never be used again.
    #[arg(value_name = "NODE")]
    node: Named,
    /// The id of the node that comes, which no node of this cluster has ever had.
    #[arg(long, value_name = "NODE_ID")]
    by: u64,
    /// Where the other nodes reach it, `host:port`.
    #[arg(long, value_name = "HOST:PORT")]
    peer: String,
    /// How long it may take to catch up, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    catch_up: u64,
}

/// How often it is looked whether a node has caught up.
const PAUSE: Duration = Duration::from_millis(500);

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
        MembersAction::Promote { node, force } => {
            let id = node.number(admin).await?;
            admin.promote_member(id, force).await?;
            println!("node {id} is a voter");
        }
        MembersAction::Demote { node, force } => {
            let id = node.number(admin).await?;
            admin.demote_member(id, force).await?;
            println!("node {id} is a learner");
        }
        MembersAction::Replace(action) => replace(admin, action, timeout).await?,
        MembersAction::Remove { node, yes, force } => {
            let id = node.number(admin).await?;
            remove(admin, id, yes, force, timeout).await?;
        }
    }
    Ok(())
}

/// Each step is left out if it was done before.
async fn replace(admin: &Admin, action: ReplaceMember, timeout: Duration) -> anyhow::Result<()> {
    let ReplaceMember {
        node: old,
        by: new,
        peer,
        catch_up,
    } = action;
    let old = old.number(admin).await?;
    if old == new {
        bail!("a node that has lost its data comes back under an id that was never used");
    }
    let before = survey(admin, timeout).await?;
    let member = |id| move |(member, _): &&(Member, _)| member.id == id;
    let is_old_there = before.members.iter().any(|one| member(old)(&one));
    match before.members.iter().find(member(new)) {
        Some((there, _)) if there.peer != peer => {
            bail!("node {new} is a member already, at {}", there.peer)
        }
        Some(_) => println!("node {new} is a member already"),
        None if !is_old_there => bail!("node {old} is not a member; nothing was changed"),
        None => {
            let added = NewMember {
                id: new,
                peer,
                api: String::new(),
                admin: String::new(),
            };
            admin.add_member(&added).await?;
            println!("node {new} added as learner; it catches up");
        }
    }
    let give_up = Instant::now() + Duration::from_secs(catch_up);
    wait_until_ready(admin, new, timeout, give_up).await?;
    if is_old_there {
        // Its vote is lost in any case; the next step brings another.
        admin.remove_member(old, true).await?;
        println!("node {old} removed");
    }
    loop {
        match admin.promote_member(new, false).await {
            Ok(()) => break,
            Err(Error::Refused(refused)) if Instant::now() >= give_up => {
                return Err(Error::Refused(refused))
                    .context("it has no vote yet: repeat the command");
            }
            Err(Error::Refused(_)) => sleep(PAUSE).await,
            Err(error) => return Err(error).context("it has no vote yet: repeat the command"),
        }
    }
    println!("node {new} is a voter, in the place of node {old}");
    if let Ok(topology) = admin.topology().await
        && !is_as_wanted(&topology)
    {
        let wanted = &topology.survive;
        println!(
            "the loss of any {wanted} is to be survived, and is not: see `placementctl topology`"
        );
    }
    Ok(())
}

/// Waits until a node says that it is ready: it has what the leader has.
async fn wait_until_ready(
    admin: &Admin,
    id: u64,
    timeout: Duration,
    give_up: Instant,
) -> anyhow::Result<()> {
    loop {
        let survey = survey(admin, timeout).await?;
        let mut members = survey.members.into_iter();
        let status = members.find(|(member, _)| member.id == id);
        let status = status.and_then(|(_, status)| status);
        if status.as_ref().is_some_and(|status| status.ready) {
            return Ok(());
        }
        if Instant::now() >= give_up {
            let why = match status {
                Some(status) => status.not_ready.unwrap_or_default(),
                None => "it does not answer".to_owned(),
            };
            bail!("node {id} has not caught up ({why}); nothing was removed. Repeat the command");
        }
        sleep(PAUSE).await;
    }
}

async fn remove(
    admin: &Admin,
    id: u64,
    yes: bool,
    force: bool,
    timeout: Duration,
) -> anyhow::Result<()> {
    let before = survey(admin, timeout).await?;
    let left = losses_left(&before, id);
    if left == Some(0) && !yes {
        confirm(id)?;
    }
    admin.remove_member(id, force).await?;
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
