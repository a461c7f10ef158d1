//! Creation, deletion and routing of partitions; selection of the partition that a command
//! concerns.
//!
//! Most commands concern one partition and are decided on its state alone. The default partition
//! contains the rows of the whole cluster, such as outcomes and partitions.

use super::remember::remember;
use super::{Decide, Decision, Outcome, answered, decide, ensure, names};
use crate::cluster::{Cluster, ClusterChanges};
use crate::command::{Command, CreatePartition, DeletePartition, RoutePartition, Stamped};
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, Changes, PartitionRow, Routing};
use crate::types::{PartitionId, PartitionName, Route, Routes, Timestamp};

impl Cluster {
    /// Computes the outcome and the changed rows of a command.
    ///
    /// Pure and total, like [`apply`](super::apply).
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
                refused(Refusal::PartitionInUse(delete.name.clone()))
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
            command => {
                let id = stamped.partition;
                let Some(state) = self.partition(id) else {
                    return refused(Refusal::PartitionGone(id));
                };
                if self.is_misrouted(stamped) {
                    return refused(Refusal::RoutesChanged(id));
                }
                if matches!(command, Command::FillPartition(_)) && self.is_routed_to(id) {
                    return refused(Refusal::PartitionRouted(id));
                }
                let (outcome, changes) = decide(state, *at, command);
                (outcome, vec![(id, changes)])
            }
        }
    }

    /// Decides a command for every partition. The default partition determines whether the command
    /// is refused. Another partition that cannot apply it, because its ids are used up, is left
    /// unchanged and does not block the others.
    fn decide_for_each(&self, at: Timestamp, command: &Command) -> (Outcome, ClusterChanges) {
        let mut changes = ClusterChanges::new();
        for (id, state) in self.states() {
            match decide(state, at, command) {
                (Outcome::Done(_), own) => changes.push((id, own)),
                (refused, _) if id.is_default() => return (refused, ClusterChanges::new()),
                _ => {}
            }
        }
        (Outcome::Done(Reply::Done), changes)
    }

    /// Whether the routes of the partition changed after the write was routed. The routing node
    /// cannot know this, and the request may now belong to another partition.
    fn is_misrouted(&self, stamped: &Stamped) -> bool {
        !stamped.command.is_cluster_wide()
            && stamped.routes != self.routing(stamped.partition).changes
    }

    /// Whether routes lead to a partition, so that clients can use it.
    pub fn is_routed_to(&self, id: PartitionId) -> bool {
        id.is_default() || !self.routing(id).routes.is_empty()
    }

    fn keeps(&self, delete: &DeletePartition) -> bool {
        let found = self.partition_named(delete.name.as_str());
        !delete.force
            && found
                .is_some_and(|(id, state)| !id.is_default() && state.consumers.hold_allocations())
    }
}

fn refused(refusal: Refusal) -> (Outcome, ClusterChanges) {
    (Outcome::Refused(refusal), ClusterChanges::new())
}

/// The initial rows of a partition: the standard names of the default partition, and the level.
fn beginning(default: &State, at: Timestamp) -> Changes {
    let mut counters = State::default().counters();
    let mut changes = vec![Change::PutLevel(default.level())];
    let classes = default.resource_classes.rows().map(|(_, row)| &row.name);
    for name in classes.filter(|name| !name.is_custom()) {
        names::make(name, at, &mut counters, &mut changes).expect("the first ids are unused");
    }
    let traits = default.traits.by_name().map(|(_, row)| &row.name);
    for name in traits.filter(|name| !name.is_custom()) {
        names::make(name, at, &mut counters, &mut changes).expect("the first ids are unused");
    }
    changes.push(Change::PutCounters(counters));
    changes
}

/// Maximum number of partitions in addition to the default one. Each partition takes memory for the
/// standard names and time whenever a digest is computed.
const PARTITIONS_MAX: usize = 256;

/// Creates the row of the partition. [`Cluster::apply`] adds its initial rows.
impl Decide for CreatePartition {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let known = &state.partitions;
        let living = || {
            let others = known.values().filter(|row| !row.name.is_default());
            others.filter(|row| row.deleted_at.is_none())
        };
        let is_new = !self.name.is_default() && named(state, &self.name).is_none();
        ensure(is_new, || Refusal::PartitionExists(self.name.clone()))?;
        let last = known.get_max().map_or(PartitionId::DEFAULT, |(id, _)| *id);
        // Keys begin with the id; the largest id is reserved as the upper bound of key ranges.
        let next = last.0.checked_add(1).filter(|id| *id < u16::MAX);
        let (Some(next), None) = (next, living().nth(PARTITIONS_MAX - 1)) else {
            return Err(Refusal::PartitionsExhausted.into());
        };
        may_be_routed(state, &self.name, &self.routes)?;
        let id = PartitionId(next);
        let routes = self.routes.clone();
        let row = new_row(&self.name, at, Routing { routes, changes: 0 });
        Ok((Reply::Partition(id), vec![Change::PutPartition(id, row)]))
    }
}

fn new_row(name: &PartitionName, at: Timestamp, routing: Routing) -> PartitionRow {
    PartitionRow {
        name: name.clone(),
        created_at: at,
        deleted_at: None,
        routing,
    }
}

/// The live partition with this name, if it has a row.
fn named<'a>(state: &'a State, name: &PartitionName) -> Option<(PartitionId, &'a PartitionRow)> {
    let mut rows = state.partitions.iter();
    let found = rows.find(|(_, row)| row.deleted_at.is_none() && row.name == *name);
    found.map(|(id, row)| (*id, row))
}

/// Marks the row as deleted, which deletes the partition's content. Before this, [`Cluster::apply`]
/// checks that no consumer holds allocations.
impl Decide for DeletePartition {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        ensure(!self.name.is_default(), || Refusal::PartitionDefault)?;
        let known = named(state, &self.name);
        let (id, row) = known.ok_or_else(|| Refusal::PartitionNotFound(self.name.clone()))?;
        let row = PartitionRow {
            deleted_at: Some(at),
            routing: Routing::default(),
            ..row.clone()
        };
        Ok((Reply::Done, vec![Change::PutPartition(id, row)]))
    }
}

/// Setting the current routes again does not count as a change, so that writes already routed are
/// still applied.
impl Decide for RoutePartition {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let (id, row) = match named(state, &self.name) {
            Some((id, row)) => (id, row.clone()),
            None if self.name.is_default() => {
                let row = new_row(&self.name, at, Routing::default());
                (PartitionId::DEFAULT, row)
            }
            None => return Err(Refusal::PartitionNotFound(self.name.clone()).into()),
        };
        if row.routing.routes == self.routes {
            return Ok((Reply::Done, Vec::new()));
        }
        may_be_routed(state, &self.name, &self.routes)?;
        let routing = Routing {
            routes: self.routes.clone(),
            changes: row.routing.changes.saturating_add(1),
        };
        let row = PartitionRow { routing, ..row };
        Ok((Reply::Done, vec![Change::PutPartition(id, row)]))
    }
}

/// A request must not belong to two partitions. If any partition has a host, the default partition
/// needs one too; otherwise no request would be routed to it.
fn may_be_routed(state: &State, name: &PartitionName, routes: &Routes) -> Result<(), Refusal> {
    let others = || {
        let rows = state.partitions.values();
        rows.filter(|row| row.deleted_at.is_none() && row.name != *name)
    };
    if name.is_default() {
        let has_prefix = routes.iter().any(|route| matches!(route, Route::Prefix(_)));
        ensure(!has_prefix, || Refusal::DefaultPrefix)?;
        let needs_host = others().any(|row| row.routing.routes.hosts().next().is_some());
        ensure(!needs_host || !routes.is_empty(), || {
            Refusal::DefaultWithoutHost
        })?;
    } else if routes.hosts().next().is_some() {
        let mut default = others().filter(|row| row.name.is_default());
        let has_host = default.any(|row| !row.routing.routes.is_empty());
        ensure(has_host, || Refusal::DefaultWithoutHost)?;
    }
    for route in routes.iter() {
        let meets = |row: &&PartitionRow| row.routing.routes.iter().any(|one| one.meets(route));
        if let Some(row) = others().find(meets) {
            return Err(Refusal::RouteTaken(route.clone(), row.name.clone()));
        }
    }
    Ok(())
}
