//! Inventory sums and consumers of each partition, by resource class and by consumer type. Counting
//! visits all inventories, so it runs on another thread, and not for each scrape.

use std::cmp::Reverse;

use placement_model::cluster::Cluster;
use placement_model::query::capacity::{CapacityBy, CapacitySums};
use placement_model::state::State;
use placement_model::types::{ConsumerTypeName, PartitionName};

/// Maximum number of classes and of types shown per partition: clients choose their names.
const SHOWN_MAX: usize = 64;
/// Name of the sum of the others.
const OTHER: &str = "other";
/// The API's name for consumers without a type.
const NO_TYPE: &str = "unknown";

/// Rows by partition and name.
pub(super) type Rows<T> = Vec<([String; 2], T)>;

/// Inventory sums and consumers of all partitions.
#[derive(Default)]
pub(super) struct Holdings {
    pub(super) classes: Rows<CapacitySums>,
    /// Number of consumers by type.
    pub(super) consumers: Rows<u64>,
}

impl Holdings {
    pub(super) fn from_cluster(cluster: &Cluster) -> Self {
        let mut all = Self::default();
        for (partition, state) in partitions(cluster) {
            let report = state.capacity(None, CapacityBy::Class, usize::MAX);
            let mut rows = report.map_or_else(Vec::new, |report| report.capacity);
            rows.sort_by_key(|row| state.resource_class_id(&row.class));
            let rows = rows
                .into_iter()
                .map(|row| (row.class.to_string(), row.sums));
            (all.classes).extend(shown(partition, rows, |sum, row| sum.add(&row)));
            let mut types: Vec<_> = state.consumers_by_type().into_iter().collect();
            types.sort_by_key(|(_, count)| Reverse(*count));
            let name = |of: Option<_>| of.map_or(NO_TYPE, ConsumerTypeName::as_str).to_owned();
            let types = types.into_iter().map(|(of, count)| (name(of), count));
            (all.consumers).extend(shown(partition, types, |sum, count| *sum += count));
        }
        all
    }
}

/// The first rows of a partition, and the sum of the others.
fn shown<T>(
    partition: &str,
    mut rows: impl Iterator<Item = (String, T)>,
    add: fn(&mut T, T),
) -> Rows<T> {
    let mut shown: Vec<_> = rows.by_ref().take(SHOWN_MAX).collect();
    let others = rows.map(|(_, row)| row).reduce(|mut sum, row| {
        add(&mut sum, row);
        sum
    });
    shown.extend(others.map(|sum| (OTHER.to_owned(), sum)));
    let labeled = |(name, row)| ([partition.to_owned(), name], row);
    shown.into_iter().map(labeled).collect()
}

/// The partitions with their names, the default one first.
pub(super) fn partitions(cluster: &Cluster) -> impl Iterator<Item = (&str, &State)> {
    let others = (cluster.partitions()).map(|(_, row, state)| (row.name.as_str(), state));
    std::iter::once((PartitionName::DEFAULT, cluster.default_partition())).chain(others)
}
