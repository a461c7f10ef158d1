//! `Placement-Staleness` is an upper bound (docs/api.md: provably at most): the state of an answer
//! contains every write that was acknowledged that long before the answer was made. The node
//! measures it on its own monotonic clock, so wrong wall clocks change nothing. The client does not
//! know when exactly the answer was made; it was not before the request was sent.

use std::time::Duration;

use crate::history::History;

/// Its name in complaints.
pub const NAME: &str = "staleness is the truth";

/// Clocks may run unequally fast by so much.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Holds every answer against the places in the log that were named to clients before.
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
                "{NAME}: {age:?} before it was asked, {least} was shown already\n    {}",
                event.line()
            )
        })
    });
    stale.collect()
}
