//! Numbers that were given to nodes that are to join, with what lets them in and whom they replace.

use imbl::OrdMap;

use super::change::JoinRow;
use crate::types::Timestamp;

/// A row for each number that was given to a node and is still of use. The highest number that was ever given stays:
/// the next one is above it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Joins {
    rows: OrdMap<u64, JoinRow>,
}

impl Joins {
    pub(crate) fn row(&self, node: u64) -> Option<&JoinRow> {
        self.rows.get(&node)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, &JoinRow)> {
        self.rows.iter().map(|(node, row)| (*node, row))
    }

    /// The highest number that was given.
    pub(crate) fn last(&self) -> u64 {
        self.rows.get_max().map_or(0, |(node, _)| *node)
    }

    pub(crate) fn put(&mut self, node: u64, row: JoinRow) -> Option<JoinRow> {
        self.rows.insert(node, row)
    }

    pub(crate) fn delete(&mut self, node: u64) -> JoinRow {
        let old = self.rows.remove(&node);
        old.expect("a row that goes is there")
    }
}

impl JoinRow {
    /// Whether nothing follows from it any more. Who has come may ask again for as long as the token is good.
    pub fn is_over(&self, at: Timestamp) -> bool {
        match self.nonce {
            Some(_) => self.replaces.is_none() && at > self.until,
            None => at > self.until,
        }
    }

    /// Whether its time is up, and nobody came.
    pub fn is_too_late(&self, at: Timestamp) -> bool {
        self.nonce.is_none() && at > self.until
    }
}
