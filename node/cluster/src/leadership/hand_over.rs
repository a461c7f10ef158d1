//! Hands leadership to another voter.

use std::collections::BTreeSet;
use std::time::Duration;

use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use tokio::time::{Instant, sleep_until};

use crate::replica::Replica;

/// Pause before a failed attempt is repeated.
const PAUSE: Duration = Duration::from_millis(200);

/// If this node leads, hands leadership to `to` or, if `to` is `None`, to the voter that has the
/// most log entries, as soon as that voter is reachable and has caught up. Returns the new leader.
/// Gives up after `patience`.
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
            // A new leader does not know yet how much of the log the other nodes have.
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

/// Like `hand_over`, but only logs a failure: this node then remains the leader.
pub(crate) async fn try_to_hand_over(replica: &Replica, to: Option<u64>, patience: Duration) {
    if let Err(reason) = hand_over(replica, to, patience).await {
        log!(LEADERSHIP_KEPT, reason, "leadership was not handed over");
    }
}

/// Why no voter can take over.
fn unfit(replica: &Replica, to: Option<u64>) -> String {
    let of = |id: u64| match (replica.is_reachable(id), replica.lag(id)) {
        (false, _) => format!("node {id} does not answer"),
        (true, None) => format!("the log position of node {id} is unknown"),
        (true, Some(lag)) => format!("node {id} lacks {lag} log entries"),
    };
    let mut others = replica.voters();
    others.remove(&replica.me);
    let others = to.map_or(others, |to| BTreeSet::from([to]));
    let reasons: Vec<String> = others.into_iter().map(of).collect();
    format!(
        "no voter can take over: {}; node {} remains the leader",
        reasons.join(", "),
        replica.me
    )
}
