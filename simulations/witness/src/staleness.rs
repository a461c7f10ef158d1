//! Checks `Placement-Staleness`: the state of an answer contains every write that was acknowledged
//! to any client at least that long before the answer was created (README: provably at most). The
//! node measures it on its own monotonic clock, so wrong wall clocks do not matter. The client only
//! knows that the answer was not created before the request was sent.

use std::time::Duration;

use crate::history::History;

/// Name of the invariant in violations.
pub const NAME: &str = "staleness is the truth";

/// Tolerated difference between the rates of clocks.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Compares every answer with the log indexes that clients were shown before.
pub fn check(history: &History) -> Vec<String> {
    let mut known: Vec<(Duration, u64)> = history
        .events
        .iter()
        .filter_map(|event| {
            let answer = event.answer().filter(|answer| answer.status < 500)?;
            Some((event.ended?, answer.index?.index))
        })
        .collect();
    known.sort_unstable();
    let mut highest = 0;
    for (_, place) in &mut known {
        highest = highest.max(*place);
        *place = highest;
    }
    let before = |moment: Duration| {
        let position = known.partition_point(|(ended, _)| *ended < moment);
        position.checked_sub(1).map(|position| known[position].1)
    };
    let stale = history.events.iter().filter_map(|event| {
        let answer = event.answer()?;
        let age = answer.staleness? + TOLERANCE;
        let least = before(event.sent.checked_sub(age)?)?;
        let place = answer.index?.index;
        (place < least).then(|| {
            format!(
                "{NAME}: index {least} was already shown {age:?} before the request\n    {}",
                event.line()
            )
        })
    });
    stale.collect()
}
