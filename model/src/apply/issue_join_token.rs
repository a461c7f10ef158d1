//! A number and a token for a node that is to join

use super::{Decide, Decision};
use crate::command::IssueJoinToken;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes, JoinRow};
use crate::types::Timestamp;

/// The most nodes that are to join at once; further ones are given no number.
const WAITING_MAX: usize = 1000;

/// The number is above all that were ever heard of, so it was never used. What is over goes: the new row has the highest
/// number from here on.
impl Decide for IssueJoinToken {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let is_known = |row: &JoinRow| row.token == self.token;
        let (mut over, mut left) = (Changes::new(), 0);
        for (node, row) in state.joins() {
            match row.is_over(at) {
                true => over.push(Change::DeleteJoin(node)),
                false => left += 1,
            }
        }
        let last = state.last_node().max(self.above);
        let Some(node) = last.checked_add(1).filter(|_| left < WAITING_MAX) else {
            return Ok((Reply::Done, Changes::new()));
        };
        if state.joins().any(|(_, row)| is_known(row)) {
            return Ok((Reply::Done, Changes::new()));
        }
        let micros = i64::try_from(self.seconds.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        let row = JoinRow {
            token: self.token.clone(),
            until: Timestamp(at.0.saturating_add(micros)),
            nonce: None,
            replaces: self.replaces.clone(),
            expires_at: self.expires_at,
        };
        over.push(Change::PutJoin(node, row));
        Ok((Reply::Done, over))
    }
}
