//! Applies committed commands to the state.

use placement_model::cluster::ClusterChanges;
use placement_model::{Cluster, Outcome, Stamped};

/// Decides the outcome of a committed command. The state machine calls it for each command in log
/// order and commits the changes it returns.
///
/// The product has one implementation, [`Rules`]. Simulations wrap it to record every command with
/// its log index on each node, and to prove that a broken rule is detected.
pub trait Applier: Send + Sync + 'static {
    /// `index` is the log index of `stamped`; `cluster` is the state before it.
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges);
}

/// The rules of the placement model.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules;

impl Applier for Rules {
    fn apply(
        &self,
        _index: u64,
        cluster: &Cluster,
        stamped: &Stamped,
    ) -> (Outcome, ClusterChanges) {
        cluster.apply(stamped)
    }
}
