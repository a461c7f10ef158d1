//! Whether this node's state is what its rows say, and what in it an operator may want to know of.

use std::collections::BTreeMap;

use placement_model::Cluster;
use placement_model::state::audit::{self, Audit};
use placement_wire::{CheckReport, Finding};

use crate::cluster::replica::Replica;
use placement_api::world::{Offload, compute};

/// How many of the latest digests are told, beside that of the state that was looked at.
const DIGESTS: usize = 64;

/// Looks at the state as it is now, beside the threads that serve. `None` if that panicked.
pub(super) async fn report(replica: &Replica, offload: &dyn Offload) -> Option<CheckReport> {
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
        CheckReport {
            node_id,
            applied: applied.index(),
            digests,
            providers: providers as u64,
            consumers: consumers as u64,
            wrong,
            noticed,
        }
    };
    compute(offload, work).await
}

/// What is wrong with, and what was noticed in each partition, one after the other: a look at one takes as much memory
/// again as it.
fn look_over(cluster: &Cluster) -> (Vec<Finding>, Vec<Finding>) {
    let (mut wrong, mut noticed) = (Vec::new(), Vec::new());
    let told = |found: audit::Finding| Finding {
        what: found.what.to_owned(),
        count: found.count,
        examples: found.examples,
    };
    let audit = Audit::of(cluster.default_partition());
    wrong.extend(audit.wrong.into_iter().map(told));
    noticed.extend(audit.noticed.into_iter().map(told));
    for (_, row, state) in cluster.partitions() {
        let audit = Audit::of(state);
        let within = |found: audit::Finding| {
            let examples = found.examples.iter();
            let named = examples.map(|example| format!("in partition {}: {example}", row.name));
            Finding {
                examples: named.collect(),
                ..told(found)
            }
        };
        wrong.extend(audit.wrong.into_iter().map(within));
        noticed.extend(audit.noticed.into_iter().map(within));
    }
    (wrong, noticed)
}
