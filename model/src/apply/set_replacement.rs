//! A member is to take the place of another one, or has

use super::{Decide, Decision};
use crate::command::SetReplacement;
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes, JoinRow};
use crate::types::Timestamp;

/// Nobody is replaced twice at once, and nobody takes two places.
impl Decide for SetReplacement {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let known = state.join(self.by);
        let row = match (&self.replaces, known) {
            (None, Some(row)) if row.replaces.is_some() => JoinRow {
                replaces: None,
                // Whoever has not come by now takes no place any more.
                nonce: row.nonce.clone().or(Some(String::new())),
                ..row.clone()
            },
            (Some(replaced), known)
                if known.is_none_or(|row| {
                    row.replaces.is_none() && row.nonce.is_some() || row.is_over(at)
                }) && !state.joins().any(|(_, row)| {
                    let other = row.replaces.as_ref();
                    other.is_some_and(|other| other.node == replaced.node) && !row.is_over(at)
                }) =>
            {
                JoinRow {
                    token: String::new(),
                    until: at,
                    nonce: Some(String::new()),
                    replaces: Some(replaced.clone()),
                    expires_at: at,
                }
            }
            _ => return Ok((Reply::Done, Changes::new())),
        };
        Ok((Reply::Done, vec![Change::PutJoin(self.by, row)]))
    }
}
