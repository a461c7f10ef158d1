//! Every committed command passes through here into the state.

use placement_model::cluster::ClusterChanges;
use placement_model::{Cluster, Outcome, Stamped};

/// Decides what a committed command does. The state machine asks it for each command, in the order
/// of the log, and has it carry out what it answers.
///
/// The product has one implementation, [`Rules`]. Simulations put theirs around it, to see every
/// command with its place in the log on each node, and to prove that a broken rule is noticed.
pub trait Applier: Send + Sync + 'static {
    /// `index` is the place of `stamped` in the log; `cluster` is the state before it.
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
