//! Counts frames that arrived damaged.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::Damaged;
use super::log_throttle::LogThrottle;
use placement_base::log_messages::log;

/// The number of damaged frames that this node has received, from any node, on connections that
/// either side has opened.
#[derive(Default)]
pub struct Damage {
    frames: AtomicU64,
    logged: LogThrottle,
}

impl Damage {
    /// Number of damaged frames since this node started.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Counts and logs the error if it is damage; `peer` 0 is an unidentified node.
    pub(super) fn note(&self, peer: u64, error: &io::Error) {
        if !Damaged::is_cause_of(error) {
            return;
        }
        self.frames.fetch_add(1, Ordering::Relaxed);
        if self.logged.is_due(peer, "") {
            log!(
                FRAME_DAMAGED,
                peer,
                %error,
                "closed a connection because of a damaged frame; unanswered calls are sent again. If \
                this continues, check the network between the two nodes"
            );
        }
    }
}
