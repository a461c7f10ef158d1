//! A partition goes

use super::{Decide, Decision};
use crate::command::DeletePartition;
use crate::outcome::{Refusal, Reply};
use crate::state::State;
use crate::state::change::{Change, PartitionRow, Routing};
use crate::types::Timestamp;

/// The row of the partition says that it is gone, and all that was in it goes with that.
/// Whether anybody holds something in it is [`super::partitions`]' affair.
impl Decide for DeletePartition {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        if self.name.is_default() {
            return Err(Refusal::PartitionDefault.into());
        }
        let named = |row: &PartitionRow| row.deleted_at.is_none() && row.name == self.name;
        let Some((id, row)) = state.partitions().iter().find(|(_, row)| named(row)) else {
            return Err(Refusal::PartitionNotFound(self.name.clone()).into());
        };
        let row = PartitionRow {
            deleted_at: Some(at),
            routing: Routing::default(),
            ..row.clone()
        };
        Ok((Reply::Done, vec![Change::PutPartition(*id, row)]))
    }
}
