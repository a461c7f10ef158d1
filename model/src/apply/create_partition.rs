//! A partition comes to be

use super::route_partition::may_be_routed;
use super::{Decide, Decision};
use crate::command::CreatePartition;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, PartitionRow, Routing};
use crate::types::{PartitionId, Timestamp};

/// Most partitions beside the default one. Each has the standard names, and is a part of each digest.
const PARTITIONS_MAX: usize = 256;

/// The row of the partition. What it begins with is [`super::partitions`]' affair.
impl Decide for CreatePartition {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let known = state.partitions();
        let living = || {
            let others = known.values().filter(|row| !row.name.is_default());
            others.filter(|row| row.deleted_at.is_none())
        };
        if self.name.is_default() || living().any(|row| row.name == self.name) {
            return Err(Refusal::PartitionExists(self.name.clone()).into());
        }
        let last = known.get_max().map_or(PartitionId::DEFAULT, |(id, _)| *id);
        // Keys begin with the id, and end before the last there could be.
        let next = last.0.checked_add(1).filter(|id| *id < u16::MAX);
        let (Some(next), None) = (next, living().nth(PARTITIONS_MAX - 1)) else {
            return Err(Refusal::PartitionsExhausted.into());
        };
        may_be_routed(state, &self.name, &self.routes)?;
        let id = PartitionId(next);
        let row = PartitionRow {
            name: self.name.clone(),
            created_at: at,
            deleted_at: None,
            routing: Routing {
                routes: self.routes.clone(),
                changes: 0,
            },
        };
        Ok((Reply::Partition(id), vec![Change::PutPartition(id, row)]))
    }
}
