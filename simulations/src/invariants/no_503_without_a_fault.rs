//! No request is refused while nothing fails (the architecture: 503 says that there is no quorum):
//! from the moment on when, after all faults have ended, every client got its writes through and
//! every node has applied them. In a run without faults that is true from its beginning. A request
//! that is under way while an operator changes routes may be another partition's by then, and is
//! sent again.

use std::time::Duration;

use crate::history::{End, History};

/// Its name in complaints.
pub const NAME: &str = "no 503 without a fault";

/// The code of what met a change of routes.
const MISDIRECTED: &str = "placement.partition.misdirected";

/// Looks at what was asked from `healthy_since` on.
pub fn check(history: &History, healthy_since: Option<Duration>) -> Vec<String> {
    let Some(healthy_since) = healthy_since else {
        return Vec::new();
    };
    let asked = history
        .events
        .iter()
        .filter(|event| event.sent >= healthy_since);
    let turned_away = asked.filter(|event| match &event.end {
        End::Answer(answer) => answer.status == 503 && !answer.body.contains(MISDIRECTED),
        End::Lost(_) | End::NotSent(_) | End::Open => false,
    });
    turned_away
        .map(|event| format!("{NAME}\n    {}", event.line()))
        .collect()
}
