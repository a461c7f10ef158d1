//! Commands on nodes: join tokens, replacement, removal; and the feature level.

use super::{Decide, Decision};
use crate::command::{
    IssueJoinToken, RaiseLevel, RedeemJoinToken, RetireNode, RevokeJoinToken, SetReplacement,
};
use crate::outcome::Reply;
use crate::state::State;
use crate::state::change::{Change, Changes, JoinRow, RowKey, SessionRow};
use crate::types::Timestamp;

/// After this entry, every write of the node counts as a late duplicate and is not applied. The
/// node's stored outcomes are deleted, since no retry needs them.
impl Decide for RetireNode {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let mut changes: Changes = state
            .sessions
            .sequences(self.node)
            .map(|sequence| Change::Delete(RowKey::Outcome(self.node, sequence)))
            .collect();
        if state.session(self.node) != Some(&SessionRow::RETIRED) {
            changes.push(Change::PutSession(self.node, SessionRow::RETIRED));
        }
        Ok((Reply::Done, changes))
    }
}

/// Maximum number of pending joins. At this limit no further node number is reserved.
const WAITING_MAX: usize = 1000;

/// The reserved number is higher than all known ones, so no node has ever used it. Rows that are no
/// longer needed are deleted. The row with the highest number can be among them, since the new row
/// has a higher number.
impl Decide for IssueJoinToken {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let is_known = |row: &JoinRow| row.token == self.token;
        let (mut over, mut left) = (Changes::new(), 0);
        for (node, row) in state.joins() {
            if row.is_over(at) {
                over.push(Change::Delete(RowKey::Join(node)))
            } else {
                left += 1
            }
        }
        let last = state.last_node().max(self.above);
        let Some(node) = last.checked_add(1).filter(|_| left < WAITING_MAX) else {
            return done(None);
        };
        if state.joins().any(|(_, row)| is_known(row)) {
            return done(None);
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

/// Makes the token expire, so no node can join with its number. A redeemed token cannot be revoked.
impl Decide for RevokeJoinToken {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let unused = state.join(self.node).filter(|row| row.nonce.is_none());
        done(unused.map(|row| {
            let row = JoinRow {
                token: String::new(),
                until: Timestamp(at.0.saturating_sub(1)).min(row.until),
                ..row.clone()
            };
            Change::PutJoin(self.node, row)
        }))
    }
}

/// A token can be redeemed once: a second node with the same token finds the first node's nonce in
/// the row instead of its own.
impl Decide for RedeemJoinToken {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let good = |row: &&JoinRow| {
            row.nonce.is_none()
                && !row.is_too_late(at)
                && !row.token.is_empty()
                && row.token == self.token
        };
        done(state.join(self.node).filter(good).map(|row| {
            let nonce = Some(self.nonce.clone());
            let row = row.clone();
            Change::PutJoin(self.node, JoinRow { nonce, ..row })
        }))
    }
}

/// A node cannot be replaced by two nodes at once, and cannot replace two nodes.
impl Decide for SetReplacement {
    fn decide(&self, state: &State, at: Timestamp) -> Decision {
        let known = state.join(self.by);
        let row = match &self.replaces {
            None => {
                let under_way = known.filter(|row| row.replaces.is_some());
                under_way.map(|row| JoinRow {
                    replaces: None,
                    // A node that has not joined by now can no longer join.
                    nonce: row.nonce.clone().or(Some(String::new())),
                    ..row.clone()
                })
            }
            Some(replaced) => {
                let is_free = known.is_none_or(|row| {
                    row.replaces.is_none() && row.nonce.is_some() || row.is_over(at)
                });
                let mut others = state.joins().filter(|(_, row)| !row.is_over(at));
                let is_taken = others.any(|(_, row)| {
                    let other = row.replaces.as_ref();
                    other.is_some_and(|other| other.node == replaced.node)
                });
                (is_free && !is_taken).then(|| JoinRow {
                    token: String::new(),
                    until: at,
                    nonce: Some(String::new()),
                    replaces: Some(replaced.clone()),
                    expires_at: at,
                })
            }
        };
        done(row.map(|row| Change::PutJoin(self.by, row)))
    }
}

/// From the next log entry on, all nodes apply the rules of the new level. The command has no
/// effect if the cluster already has this level or a higher one.
impl Decide for RaiseLevel {
    fn decide(&self, state: &State, _at: Timestamp) -> Decision {
        let rises = self.to > state.level();
        done(rises.then_some(Change::PutLevel(self.to)))
    }
}

/// Returns a decision that is never a refusal. A request that cannot be fulfilled changes nothing.
fn done(change: Option<Change>) -> Decision {
    Ok((Reply::Done, change.into_iter().collect()))
}
