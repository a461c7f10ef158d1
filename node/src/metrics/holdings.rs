//! What each partition holds, by resource class and by consumer type. Counting goes over all inventories: it is done on
//! another thread, and not for each scrape.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use placement_model::cluster::Cluster;
use placement_model::query::capacity::{CapacityBy, CapacitySums};
use placement_model::state::State;
use placement_model::types::{ConsumerTypeName, PartitionName};
use placement_raft_store::{Views, runtime};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How old the numbers may be, if the state has changed since.
const AGE_MAX: Duration = Duration::from_secs(5);
/// Classes and types that a partition shows. Clients name them as they like.
const SHOWN_MAX: usize = 64;
/// The others.
const OTHER: &str = "other";
/// What the API calls consumers without a type.
const NO_TYPE: &str = "unknown";

/// What a partition holds.
pub(crate) struct Holdings {
    pub(super) partition: String,
    pub(super) classes: Vec<(String, CapacitySums)>,
    /// Consumers, by type.
    pub(super) consumers: Vec<(String, u64)>,
}

impl Holdings {
    fn of(partition: &str, state: &State) -> Self {
        let all = state.capacity(None, CapacityBy::Class, usize::MAX);
        let mut all = all.map_or_else(Vec::new, |report| report.capacity);
        all.sort_by_key(|row| state.resource_class_id(&row.class));
        let others = all.split_off(SHOWN_MAX.min(all.len()));
        let mut classes: Vec<_> = (all.iter())
            .map(|row| (row.class.to_string(), row.sums.clone()))
            .collect();
        let sum = others
            .into_iter()
            .map(|row| row.sums)
            .reduce(|mut sum, row| {
                sum.add(&row);
                sum
            });
        classes.extend(sum.map(|sum| (OTHER.to_owned(), sum)));

        let mut all: Vec<_> = state.consumers_by_type().into_iter().collect();
        all.sort_by_key(|(_, count)| Reverse(*count));
        let others = all.split_off(SHOWN_MAX.min(all.len()));
        let name = |of: Option<&ConsumerTypeName>| {
            let known = of.map(ConsumerTypeName::as_str);
            known.unwrap_or(NO_TYPE).to_owned()
        };
        let mut consumers: Vec<_> = (all.iter())
            .map(|(of, count)| (name(*of), *count))
            .collect();
        if !others.is_empty() {
            let sum = others.iter().map(|(_, count)| count).sum();
            consumers.push((OTHER.to_owned(), sum));
        }
        Self {
            partition: partition.to_owned(),
            classes,
            consumers,
        }
    }
}

/// The partitions with their names, the default one first.
pub(super) fn partitions(cluster: &Cluster) -> impl Iterator<Item = (&str, &State)> {
    let others = (cluster.partitions()).map(|(_, row, state)| (row.name.as_str(), state));
    std::iter::once((PartitionName::DEFAULT, cluster.default_partition())).chain(others)
}

/// The last count, which scrapes share.
#[derive(Default)]
pub(super) struct LastCount(Mutex<Option<Count>>);

struct Count {
    /// Of the state after this entry.
    index: Option<u64>,
    at: Instant,
    holdings: Arc<[Holdings]>,
}

impl LastCount {
    /// Of the state now, or of one of the last seconds.
    pub(super) async fn get(&self, views: &Views) -> Arc<[Holdings]> {
        let mut last = self.0.lock().await;
        let (applied, at) = (views.current(), Instant::now());
        let index = applied.index();
        if let Some(known) = &*last
            && (known.index == index || at - known.at < AGE_MAX)
        {
            return known.holdings.clone();
        }
        let holdings: Arc<[_]> = runtime::blocking(move || {
            let partitions = partitions(&applied.cluster);
            let counted = partitions.map(|(name, state)| Holdings::of(name, state));
            counted.collect()
        })
        .await;
        let kept = holdings.clone();
        *last = Some(Count {
            index,
            at,
            holdings: kept,
        });
        holdings
    }
}
