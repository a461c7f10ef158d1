//! A partition is given routes

use super::{Decide, Decision};
use crate::command::RoutePartition;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, PartitionRow, Routing};
use crate::types::{PartitionId, PartitionName, Route, Routes, Timestamp};

/// The same routes again change nothing, so that what was routed by them is carried out.
impl Decide for RoutePartition {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let named = |row: &PartitionRow| row.deleted_at.is_none() && row.name == self.name;
        let found = state.partitions().iter().find(|(_, row)| named(row));
        let (id, row) = match found {
            Some((id, row)) => (*id, row.clone()),
            None if self.name.is_default() => {
                let row = PartitionRow {
                    name: self.name.clone(),
                    created_at: at,
                    deleted_at: None,
                    routing: Routing::default(),
                };
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

/// No request may be two partitions'. Hosts tell requests apart only if the default partition has some, too: without,
/// a request for another host would be the default partition's.
pub(super) fn may_be_routed(
    state: &State,
    name: &PartitionName,
    routes: &Routes,
) -> Result<(), Refusal> {
    let others = || {
        let rows = state.partitions().values();
        rows.filter(|row| row.deleted_at.is_none() && row.name != *name)
    };
    if name.is_default() {
        if routes.iter().any(|route| matches!(route, Route::Prefix(_))) {
            return Err(Refusal::DefaultPrefix);
        }
        let needs_host = others().any(|row| row.routing.routes.hosts().next().is_some());
        if needs_host && routes.is_empty() {
            return Err(Refusal::DefaultWithoutHost);
        }
    } else if routes.hosts().next().is_some() {
        let mut default = others().filter(|row| row.name.is_default());
        if !default.any(|row| !row.routing.routes.is_empty()) {
            return Err(Refusal::DefaultWithoutHost);
        }
    }
    for route in routes.iter() {
        let meets = |row: &&PartitionRow| row.routing.routes.iter().any(|one| one.meets(route));
        if let Some(row) = others().find(meets) {
            return Err(Refusal::RouteTaken {
                route: route.clone(),
                partition: row.name.clone(),
            });
        }
    }
    Ok(())
}
