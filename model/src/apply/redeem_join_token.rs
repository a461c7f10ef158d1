//! A node comes with its token

use super::{Decide, Decision};
use crate::command::RedeemJoinToken;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes, JoinRow};
use crate::types::Timestamp;

/// Once: whoever comes later with the same token has another nonce, and finds that of the first.
impl Decide for RedeemJoinToken {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let mut changes = Changes::new();
        let row = state.join(self.node);
        let good = |row: &&JoinRow| {
            row.nonce.is_none()
                && !row.is_too_late(at)
                && !row.token.is_empty()
                && row.token == self.token
        };
        if let Some(row) = row.filter(good) {
            let nonce = Some(self.nonce.clone());
            changes.push(Change::PutJoin(
                self.node,
                JoinRow {
                    nonce,
                    ..row.clone()
                },
            ));
        }
        Ok((Reply::Done, changes))
    }
}
