//! Commands in a cluster of several partitions: which of them a command concerns.
//!
//! Most are for one, and are decided on its state alone. The default partition has the rows of the whole
//! cluster: what was answered, and which partitions there are.

use super::{Outcome, answered, decide, names, remember};
use crate::cluster::{Cluster, ClusterChanges};
use crate::command::{Command, DeletePartition, Stamped};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes};
use crate::types::{PartitionId, Timestamp};

impl Cluster {
    /// Decides what a command does: the answer, and the rows that change.
    ///
    /// Pure and total, as [`apply`](super::apply) is.
    pub fn apply(&self, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let whole = self.default_partition();
        if let Some(outcome) = answered(whole, stamped) {
            return (outcome, ClusterChanges::new());
        }
        let (outcome, mut changes) = self.decide(stamped);
        let mut remembered = Changes::new();
        remember(whole, stamped, &outcome, &mut remembered);
        match changes.first_mut() {
            Some((PartitionId::DEFAULT, own)) => own.append(&mut remembered),
            _ if remembered.is_empty() => {}
            _ => changes.push((PartitionId::DEFAULT, remembered)),
        }
        (outcome, changes)
    }

    fn decide(&self, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let Stamped { at, command, .. } = stamped;
        match command {
            Command::SyncStandards(_) | Command::RaiseLevel(_) => {
                self.decide_for_each(*at, command)
            }
            Command::DeletePartition(delete) if self.keeps(delete) => {
                let in_use = Refusal::PartitionInUse(delete.name.clone());
                (Outcome::Refused(in_use), ClusterChanges::new())
            }
            Command::CreatePartition(_) => {
                let (outcome, own) = decide(self.default_partition(), *at, command);
                let mut changes = vec![(PartitionId::DEFAULT, own)];
                if let Outcome::Done(Reply::Partition(id)) = outcome {
                    changes.push((id, beginning(self.default_partition(), *at)));
                }
                (outcome, changes)
            }
            Command::DeletePartition(_) | Command::RoutePartition(_) | Command::RetireNode(_) => {
                let (outcome, changes) = decide(self.default_partition(), *at, command);
                (outcome, vec![(PartitionId::DEFAULT, changes)])
            }
            command => match self.partition(stamped.partition) {
                Some(_) if self.is_misrouted(stamped) => {
                    let changed = Refusal::RoutesChanged(stamped.partition);
                    (Outcome::Refused(changed), ClusterChanges::new())
                }
                Some(state) => {
                    let (outcome, changes) = decide(state, *at, command);
                    (outcome, vec![(stamped.partition, changes)])
                }
                None => {
                    let gone = Refusal::PartitionGone(stamped.partition);
                    (Outcome::Refused(gone), ClusterChanges::new())
                }
            },
        }
    }

    /// What concerns all partitions alike. Of several reasons to refuse, the first stands, and nothing changes.
    fn decide_for_each(&self, at: Timestamp, command: &Command) -> (Outcome, ClusterChanges) {
        let mut changes = ClusterChanges::new();
        for (id, state) in self.states() {
            match decide(state, at, command) {
                (Outcome::Done(_), own) => changes.push((id, own)),
                (refused, _) => return (refused, ClusterChanges::new()),
            }
        }
        (Outcome::Done(Reply::Done), changes)
    }

    /// Whether the partition was given other routes after the write was routed to it. The node cannot know, and the
    /// request may be another partition's now.
    fn is_misrouted(&self, stamped: &Stamped) -> bool {
        !stamped.command.is_of_the_cluster()
            && stamped.routes != self.routing(stamped.partition).changes
    }

    fn keeps(&self, delete: &DeletePartition) -> bool {
        let found = self.partition_named(delete.name.as_str());
        !delete.force
            && found.is_some_and(|(id, state)| !id.is_default() && state.has_allocations())
    }
}

/// The rows that a new partition begins with: the standard names as the default partition has them, and the level.
fn beginning(default: &State, at: Timestamp) -> Changes {
    let mut counters = State::default().counters();
    let mut changes = vec![Change::PutLevel(default.level())];
    let classes = default.resource_class_rows().map(|(_, row)| &row.name);
    for name in classes.filter(|name| !name.is_custom()) {
        names::make(name, at, &mut counters, &mut changes).expect("the first ids are free");
    }
    let traits = default.traits_by_name().map(|(_, row)| &row.name);
    for name in traits.filter(|name| !name.is_custom()) {
        names::make(name, at, &mut counters, &mut changes).expect("the first ids are free");
    }
    changes.push(Change::PutCounters(counters));
    changes
}
