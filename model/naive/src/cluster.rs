//! A cluster with a naive model per partition. The model of the default partition also contains the
//! list of partitions and the outcomes of all partitions.

use std::collections::BTreeMap;

use placement_model::command::{Command, DeletePartition, Stamped};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::types::PartitionId;
use placement_model::{Cluster, State};

use crate::model::Naive;

/// The naive models of all partitions.
#[derive(Debug, Clone, Default)]
pub struct NaiveCluster {
    default: Naive,
    others: BTreeMap<PartitionId, Naive>,
}

impl NaiveCluster {
    /// Loads the content of the product's cluster.
    pub fn from_cluster(cluster: &Cluster) -> Self {
        let load = |state: &State| Naive::load(state.rows());
        let others = cluster.partitions();
        Self {
            default: load(cluster.default_partition()),
            others: others.map(|(id, _, state)| (id, load(state))).collect(),
        }
    }

    /// Applies a log entry, or returns its earlier outcome.
    pub fn apply(&mut self, stamped: &Stamped) -> Outcome {
        let others = &mut self.others;
        (self.default).once(stamped, |default| decide(default, others, stamped))
    }

    /// Every row as text, by partition and name.
    pub fn rows(&self) -> BTreeMap<(PartitionId, String), String> {
        let default = (&PartitionId::DEFAULT, &self.default);
        let all = std::iter::once(default).chain(&self.others);
        let rows = all.flat_map(|(id, naive)| naive.rows().into_iter().map(move |row| (*id, row)));
        rows.map(|(id, (name, row))| ((id, name), row)).collect()
    }
}

fn decide(
    default: &mut Naive,
    others: &mut BTreeMap<PartitionId, Naive>,
    stamped: &Stamped,
) -> Outcome {
    let Stamped { at, command, .. } = stamped;
    match command {
        Command::SyncStandards(_) | Command::RaiseLevel(_) => {
            let outcome = default.run(*at, command);
            if let Outcome::Done(_) = outcome {
                for other in others.values_mut() {
                    other.run(*at, command);
                }
            }
            outcome
        }
        Command::CreatePartition(_) => {
            let outcome = default.run(*at, command);
            if let Outcome::Done(Reply::Partition(id)) = outcome {
                others.insert(id, default.beginning(*at));
            }
            outcome
        }
        Command::DeletePartition(DeletePartition { name, force }) => {
            let id = default.partition_id(name);
            let holds = |id| others.get(id).is_some_and(|it| !it.allocations.is_empty());
            if !force && id.as_ref().is_some_and(holds) {
                return Outcome::Refused(Refusal::PartitionInUse(name.clone()));
            }
            let outcome = default.run(*at, command);
            if let (Outcome::Done(_), Some(id)) = (&outcome, id) {
                others.remove(&id);
            }
            outcome
        }
        command if command.is_cluster_wide() => default.run(*at, command),
        command => {
            let id = stamped.partition;
            let routes = default.route_changes(id);
            let is_routed_to = default.is_routed_to(id);
            let partition = match id {
                PartitionId::DEFAULT => Some(default),
                id => others.get_mut(&id),
            };
            match partition {
                None => Outcome::Refused(Refusal::PartitionGone(id)),
                Some(_) if routes != stamped.routes => Outcome::Refused(Refusal::RoutesChanged(id)),
                Some(_) if is_routed_to && matches!(command, Command::FillPartition(_)) => {
                    Outcome::Refused(Refusal::PartitionRouted(id))
                }
                Some(partition) => partition.run(*at, command),
            }
        }
    }
}
