//! Handing leadership to another voter.

use std::collections::BTreeSet;
use std::time::Duration;

use placement_raft_store::coverage::RarePath;
use tokio::time::{Instant, sleep_until};

use crate::cluster::replica::Replica;

/// How long to wait before something that failed is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Hands leadership to a voter, or to the one that has most of the log, if this node leads and the
/// voter answers and has caught up; waits for that, and until another node leads, `patience` at
/// most.
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

/// The same for a leader that goes on if that fails: the log has the reason.
pub(crate) async fn try_to_hand_over(replica: &Replica, to: Option<u64>, patience: Duration) {
    if let Err(reason) = hand_over(replica, to, patience).await {
        tracing::warn!(reason, "leadership was not handed over");
    }
}

/// Why leadership stays here.
fn unfit(replica: &Replica, to: Option<u64>) -> String {
    let of = |id: u64| match (replica.is_reachable(id), replica.lag(id)) {
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
