//! A healthy cluster refuses no request (architecture: 503 means that there is no quorum). The
//! cluster counts as healthy once all faults have ended, every client's writes have succeeded and
//! every node has applied them; in a run without faults, from the start. A request in flight while
//! an operator changes routes may belong to another partition afterwards; it is sent again. A node
//! may be removed late, by an order whose answer was lost: it says so from then on.

use std::time::Duration;

use crate::history::{End, History};

/// Name of the invariant in violations.
pub const NAME: &str = "no 503 without a fault";

/// Error code of a request that a change of routes redirected.
const MISDIRECTED: &str = "placement.partition.misdirected";

/// Part of the answer of a removed node.
const REMOVED: &str = "this node was removed from its cluster";

/// Checks the requests sent since `healthy_since`.
pub fn check(history: &History, healthy_since: Option<Duration>) -> Vec<String> {
    let Some(healthy_since) = healthy_since else {
        return Vec::new();
    };
    let asked = history
        .events
        .iter()
        .filter(|event| event.sent >= healthy_since);
    let turned_away = asked.filter(|event| match &event.end {
        End::Answer(answer) => {
            let is_ordered = [MISDIRECTED, REMOVED]
                .iter()
                .any(|part| answer.body.contains(part));
            answer.status == 503 && !is_ordered
        }
        End::Lost(_) | End::NotSent(_) | End::Open => false,
    });
    turned_away
        .map(|event| format!("{NAME}\n    {}", event.line()))
        .collect()
}
