//! Whether this node's state is what its rows say, and what in it an operator may want to know of.

use std::collections::BTreeMap;

use placement_model::Cluster;
use placement_model::state::audit::{Audit, Finding};
use serde::Serialize;

use crate::cluster::replica::Replica;
use crate::world::{Offload, compute};

/// How many of the latest digests are told, beside that of the state that was looked at.
const DIGESTS: usize = 64;

/// What a check of one node has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// This node.
    pub node_id: u64,
    /// The last entry of the state that was looked at.
    pub applied: Option<u64>,
    /// By their entries: digests of this node's states, to be held against those of the others.
    pub digests: BTreeMap<u64, String>,
    /// Providers, in all partitions.
    pub providers: usize,
    /// Consumer records, those without allocations included.
    pub consumers: usize,
    /// What no command leads to: memory or disk has lied, or there is a bug.
    pub wrong: Vec<Found>,
    /// What commands may lead to, and few clouds want.
    pub noticed: Vec<Found>,
}

/// One kind of finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What it is.
    pub what: &'static str,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<String>,
}

impl From<Finding> for Found {
    fn from(finding: Finding) -> Self {
        Self {
            what: finding.what,
            count: finding.count,
            examples: finding.examples,
        }
    }
}

impl Report {
    /// Looks at the state as it is now, beside the threads that serve. `None` if that panicked.
    pub(super) async fn of(replica: &Replica, offload: &dyn Offload) -> Option<Self> {
        let applied = replica.views.current();
        let checkpoints = replica.views.checkpoints().clone();
        let node_id = replica.me;
        let work = move || {
            let (wrong, noticed) = look_over(&applied.cluster);
            let sizes = applied.cluster.states().map(|(_, state)| state.sizes());
            let (providers, consumers) = sizes.fold((0, 0), |(providers, consumers), sizes| {
                (providers + sizes.providers, consumers + sizes.consumers)
            });
            let mut digests: BTreeMap<u64, String> = (checkpoints.newest(DIGESTS).into_iter())
                .map(|(index, digest)| (index, digest.to_string()))
                .collect();
            if let Some(index) = applied.index() {
                digests.insert(index, applied.digest().to_string());
            }
            Self {
                node_id,
                applied: applied.index(),
                digests,
                providers,
                consumers,
                wrong,
                noticed,
            }
        };
        compute(offload, work).await
    }
}

/// What is wrong with, and what was noticed in each partition, one after the other: a look at one takes as much memory
/// again as it.
fn look_over(cluster: &Cluster) -> (Vec<Found>, Vec<Found>) {
    let (mut wrong, mut noticed) = (Vec::new(), Vec::new());
    let audit = Audit::of(cluster.default_partition());
    wrong.extend(audit.wrong.into_iter().map(Found::from));
    noticed.extend(audit.noticed.into_iter().map(Found::from));
    for (_, row, state) in cluster.partitions() {
        let audit = Audit::of(state);
        let within = |finding: Finding| {
            let examples = finding.examples.iter();
            let named = examples.map(|example| format!("in partition {}: {example}", row.name));
            Found {
                what: finding.what,
                count: finding.count,
                examples: named.collect(),
            }
        };
        wrong.extend(audit.wrong.into_iter().map(within));
        noticed.extend(audit.noticed.into_iter().map(within));
    }
    (wrong, noticed)
}
