//! How a node learns that it was removed from its cluster.
//!
//! The others send a removed node nothing any more, so its own log does not tell it. It would wait
//! for a leader for ever, and say so. Instead it asks the members that it knows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::group::Group;
use crate::rpc::channel::Lane;
use crate::rpc::message::{Method, ReadIndexReply};

/// How often a node that hears of no leader asks the others.
const EVERY: Duration = Duration::from_secs(2);
/// How long one of them may take to answer.
const CALL: Duration = Duration::from_secs(1);

/// What a removed node says of itself.
pub(crate) const REMOVED: &str = "this node was removed from its cluster. Stop it; to bring the \
                                  machine back, empty its data directory and have it added under \
                                  a number that was never used";

impl Group {
    /// Whether the others have said that this node was removed.
    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    /// Whether a node was removed, as far as this node knows: its writes are shut out for ever, or
    /// this node leads and it is no member.
    pub(crate) fn has_removed(&self, id: u64) -> bool {
        if self.is_member(id) {
            return false;
        }
        let applied = self.views.current();
        let shut_out = applied
            .state
            .session(id)
            .is_some_and(|row| row.boot == u64::MAX);
        shut_out || self.leads()
    }

    /// Notes what another member says.
    pub(super) fn note_removed(&self, removed: bool) {
        if self.removed.swap(removed, Ordering::Relaxed) != removed && removed {
            tracing::error!(node = self.me, "{REMOVED}");
        }
    }

    /// Asks the members that this node knows, until one of them can tell.
    async fn ask_whether_removed(&self) {
        for (id, member) in self.members() {
            if id == self.me {
                continue;
            }
            let to = (id, member.peer.as_str());
            let answer = self
                .peers
                .call(to, Lane::Control, Method::ReadIndex, &(), CALL)
                .await;
            match answer {
                Ok(ReadIndexReply::Removed) => return self.note_removed(true),
                Ok(ReadIndexReply::At { .. }) => return self.note_removed(false),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// Asks whenever no leader has confirmed anything for a while.
pub(crate) async fn watch(group: Arc<Group>) {
    loop {
        sleep(EVERY).await;
        let age = group.freshness.staleness();
        if age.is_none_or(|age| age >= EVERY) && group.failure().is_none() {
            group.ask_whether_removed().await;
        }
    }
}
