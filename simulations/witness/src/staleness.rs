//! `Placement-Staleness` is the truth: an answer's state has all that was acknowledged to anybody
//! so long before the answer was made (README: provably at most). The node measures it on its own
//! monotonic clock, so wrong wall clocks change nothing. When exactly the answer was made the
//! client does not know; it was not before the request was sent.

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
