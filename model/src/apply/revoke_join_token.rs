//! A token is taken back

use super::{Decide, Decision};
use crate::command::RevokeJoinToken;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes, JoinRow};
use crate::types::Timestamp;

/// As if its time were up, and its number is not kept for anybody. A token that somebody has come with is spent, and nothing is taken back.
impl Decide for RevokeJoinToken {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let mut changes = Changes::new();
        if let Some(row) = state.join(self.node).filter(|row| row.nonce.is_none()) {
            let until = Timestamp(at.0.saturating_sub(1)).min(row.until);
            let token = String::new();
            changes.push(Change::PutJoin(
                self.node,
                JoinRow {
                    token,
                    until,
                    ..row.clone()
                },
            ));
        }
        Ok((Reply::Done, changes))
    }
}
