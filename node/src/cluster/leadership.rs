//! What a node does because it leads, and when it may not lead any longer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use placement_raft_store::coverage::RarePath;
use tokio::time::{Instant, sleep_until};

use super::replica::Replica;
use crate::rpc::peers::Peers;
use crate::tasks::Tasks;

/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Tells the log whenever another node leads.
pub(crate) async fn watch(replica: Arc<Replica>) {
    let mut changes = replica.leadership_changes();
    let mut known = None;
    loop {
        let leader = replica.leader().map(|leader| leader.id);
        if leader != known {
            known = leader;
            replica.leader_changes.fetch_add(1, Ordering::Relaxed);
            match leader {
                Some(leader) => tracing::info!(node = replica.me, leader, "a node leads"),
                None => tracing::warn!(node = replica.me, "no leader is known"),
            }
        }
        changes.next().await;
    }
}

/// Follows members that move: openraft does not, once it has a way to one of them.
pub(super) async fn follow_members(replica: Arc<Replica>, peers: Arc<Peers>) {
    let mut changes = replica.leadership_changes();
    loop {
        let members = replica.members().into_iter();
        peers.note_addresses(members.map(|(id, member)| (id, member.peer)).collect());
        changes.next().await;
    }
}

/// When a task has ended that a node cannot be without: this one must not lead, and says why.
pub(super) async fn leave_without(replica: Arc<Replica>, tasks: Tasks) {
    let name = tasks.until_one_ended().await;
    replica.health.report(&format!(
        "its task of {name} has ended, which is a bug; restart it"
    ));
}

/// When the store fails, or cannot read what it is given: stops taking part in the cluster, so that another node leads. What is in
/// memory can still be read.
pub(crate) async fn leave_on_failure(replica: Arc<Replica>) {
    let failure = replica.health.clone().failed().await;
    tracing::error!(%failure, "this node stops taking part in the cluster; restart it when the cause is removed");
    if let Err(error) = replica.raft.shutdown().await {
        tracing::error!(%error, "replication did not stop cleanly");
    }
}

/// Has a leader send entries to a peer as soon as it is found again, by a heartbeat mostly: else they wait until
/// openraft's next attempt, a second later.
pub(super) async fn send_to_those_found(replica: Arc<Replica>, peers: Arc<Peers>) {
    let mut changes = peers.lost();
    let mut lost = changes.borrow_and_update().clone();
    while changes.changed().await.is_ok() {
        let now = changes.borrow_and_update().clone();
        let found: Vec<u64> = lost.difference(&now).copied().collect();
        lost = now;
        // None would be all of them. It is refused only once Raft has ended.
        if !found.is_empty() && replica.raft.trigger().reset_backoff(found).await.is_err() {
            return;
        }
    }
}

/// Hands leadership to a voter, or to the one that has most of the log, if this node leads and the voter answers and has
/// caught up; waits for that, and until another node leads, `patience` at most.
pub(crate) async fn hand_over(
    replica: &Replica,
    to: Option<u64>,
    patience: Duration,
) -> Result<u64, String> {
    if !replica.leads() {
        return Err("this node does not lead".to_owned());
    }
    if replica.voters().iter().all(|voter| *voter == replica.me) {
        return Err("there is no other voter".to_owned());
    }
    let deadline = Instant::now() + patience;
    loop {
        let fit = match to {
            Some(to) => replica.may_take_over(to).then_some(to),
            None => replica.best_successor(),
        };
        match fit {
            Some(to) => {
                let trigger = replica.raft.trigger();
                let begun = trigger.transfer_leader(to).await;
                begun.map_err(|error| error.to_string())?;
                let attempt = (Instant::now() + PAUSE * 5).min(deadline);
                replica.other_leader(Some(replica.me), attempt).await;
            }
            // A leader that is new does not know yet how far the others are.
            None => sleep_until((Instant::now() + PAUSE).min(deadline)).await,
        }
        match replica.leader() {
            Some(leader) if leader.id != replica.me => {
                RarePath::HandedOver.ran();
                return Ok(leader.id);
            }
            _ if Instant::now() >= deadline => {
                return Err(match fit {
                    Some(to) => format!("node {to} did not take over within {patience:?}"),
                    None => unfit(replica, to),
                });
            }
            _ => {}
        }
    }
}

/// Why leadership stays here.
fn unfit(replica: &Replica, to: Option<u64>) -> String {
    let of = |id: u64| match (replica.is_heard(id), replica.lag(id)) {
        (false, _) => format!("node {id} does not answer"),
        (true, None) => format!("it is not known how much of the log node {id} has"),
        (true, Some(lag)) => format!("node {id} lacks {lag} log entries"),
    };
    let mut others = replica.voters();
    others.remove(&replica.me);
    let others = to.map_or(others, |to| BTreeSet::from([to]));
    let reasons: Vec<String> = others.into_iter().map(of).collect();
    format!(
        "no voter can take over: {}; node {} goes on leading",
        reasons.join(", "),
        replica.me
    )
}
