//! Verifies this node's state against its rows, and reports findings for operators.

use std::collections::BTreeMap;
use std::iter::once;

use placement_model::Cluster;
use placement_model::state::audit::{self, Audit};
use placement_wire::{CheckReport, Finding};
use tokio::sync::OwnedMutexGuard;

use placement_base::world::{Offload, compute};
use placement_cluster::replica::Replica;

/// Number of recent digests that are reported, besides the digest of the checked state.
const DIGESTS: usize = 64;

/// Checks the current state, off the threads that serve requests. `None` if the check panicked. The
/// lock `turn` is held until the check has ended, even if the client disconnects.
pub(super) async fn report(
    replica: &Replica,
    offload: &dyn Offload,
    turn: OwnedMutexGuard<()>,
) -> Option<CheckReport> {
    let applied = replica.views.current();
    let checkpoints = replica.views.checkpoints().clone();
    let node_id = replica.me;
    let work = move || {
        let _turn = turn;
        let (wrong, noticed) = look_over(&applied.cluster);
        let states = applied.cluster.states();
        let sizes: Vec<_> = states.map(|(_, state)| state.sizes()).collect();
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
            providers: sizes.iter().map(|sizes| sizes.providers as u64).sum(),
            consumers: sizes.iter().map(|sizes| sizes.consumers as u64).sum(),
            wrong,
            noticed,
        }
    };
    compute(|work| offload.run(work), work).await
}

/// Errors and notable findings of each partition. Audits one partition at a time, because an audit
/// takes as much memory as the partition's state.
fn look_over(cluster: &Cluster) -> (Vec<Finding>, Vec<Finding>) {
    let (mut wrong, mut noticed) = (Vec::new(), Vec::new());
    let others = (cluster.partitions())
        .map(|(_, row, state)| (format!("in partition {}: ", row.name), state));
    let default = (String::new(), cluster.default_partition());
    for (place, state) in once(default).chain(others) {
        let audit = Audit::run(state);
        let report = |found: audit::Finding| Finding {
            what: found.what.to_owned(),
            count: found.count,
            examples: (found.examples.iter())
                .map(|example| format!("{place}{example}"))
                .collect(),
        };
        wrong.extend(audit.wrong.into_iter().map(report));
        noticed.extend(audit.noticed.into_iter().map(report));
    }
    (wrong, noticed)
}
