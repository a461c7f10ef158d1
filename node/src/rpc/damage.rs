//! Frames that arrived damaged: how many, and from where.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::frame::Damaged;
use super::log_throttle::LogThrottle;

/// Damaged frames, from whichever node and in either direction.
#[derive(Default)]
pub(crate) struct Damage {
    frames: AtomicU64,
    logged: LogThrottle,
}

impl Damage {
    /// How many frames arrived damaged since this node started.
    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Counts and logs it if this is why a connection with a node ends; 0 is a node that is not
    /// known yet.
    pub(super) fn note(&self, peer: u64, error: &io::Error) {
        if !Damaged::is_cause_of(error) {
            return;
        }
        self.frames.fetch_add(1, Ordering::Relaxed);
        if self.logged.is_due(peer, "") {
            tracing::warn!(
                peer,
                %error,
                "the connection is dropped, and what was not answered is sent again; if this goes on, look at the \
                 network between the two nodes"
            );
        }
    }
}
