//! What still fits, and which hosts could be lost, in each partition. Both are counted in idle
//! time, and not for each scrape.

use std::ops::ControlFlow;
use std::time::Duration;

use placement_api::http::{FitSection, count_fit, enabled_trees};
use placement_model::cluster::Cluster;
use placement_model::state::State;
use tokio::time::Instant;

use super::holdings::{Rows, partitions};

/// Time limit of a count, in equal shares for its rows.
const DEADLINE: Duration = Duration::from_secs(10);
/// Minimum time between two counts.
const PAUSE_MIN: Duration = Duration::from_secs(60);
/// Maximum time between two counts.
const PAUSE_MAX: Duration = Duration::from_secs(240);
/// A count takes at most one part in so many of the time, unless it waits for a busy processor.
const SHARE: u32 = 20;

/// Counts by partition and name.
#[derive(Default)]
pub(super) struct Outlook {
    pub(super) rows: Rows<u64>,
    took: Duration,
}

impl Outlook {
    /// How often each named query fits. A count that takes too long is left out.
    pub(super) fn of_fits(cluster: &Cluster, sections: &[FitSection]) -> Self {
        let all = || partitions(cluster).flat_map(|one| sections.iter().map(move |of| (one, of)));
        let begun = Instant::now();
        let share = share_of(all().count());
        let rows = all().filter_map(|((partition, state), section)| {
            let count = count_fit(section, state, until(share))?;
            Some(([partition.to_owned(), section.name.clone()], count))
        });
        Self {
            rows: rows.collect(),
            took: begun.elapsed(),
        }
    }

    /// The number of trees by what their loss would mean.
    pub(super) fn of_trees(cluster: &Cluster) -> Self {
        let begun = Instant::now();
        let share = share_of(partitions(cluster).count());
        let rows = partitions(cluster).flat_map(|(partition, state)| {
            trees(state, until(share))
                .map(|(outcome, count)| ([partition.to_owned(), outcome.to_owned()], count))
        });
        Self {
            rows: rows.collect(),
            took: begun.elapsed(),
        }
    }

    /// Whether it is too early to count again after `age`.
    pub(super) fn is_fresh(&self, age: Duration) -> bool {
        age < (self.took * SHARE).clamp(PAUSE_MIN, PAUSE_MAX)
    }
}

fn share_of(count: usize) -> Duration {
    DEADLINE / u32::try_from(count.max(1)).unwrap_or(u32::MAX)
}

/// A watch that ends after `limit`.
fn until(limit: Duration) -> impl Fn() -> ControlFlow<()> + Send + Sync {
    let begun = Instant::now();
    move || {
        if begun.elapsed() > limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The number of trees by outcome.
fn trees(
    state: &State,
    watch: impl Fn() -> ControlFlow<()> + Send + Sync,
) -> [(&'static str, u64); 3] {
    let found = state.refuge_of_each(&enabled_trees(state), Box::new(|_steps| watch()));
    // Names that come from the state are known.
    let each = found.unwrap_or_default();
    [
        ("empties", each.trees - each.stuck),
        ("stuck", each.stuck),
        ("undecided", each.undecided),
    ]
    .map(|(outcome, count)| (outcome, count as u64))
}
