//! Limits the number of connections: if there are too many, a new connection replaces the oldest
//! one, so that idle connections cannot block new ones.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// A limited number of permits for connections.
pub struct NewestConnections {
    max: usize,
    /// The permits, the oldest first.
    permits: Mutex<VecDeque<Weak<CancellationToken>>>,
}

impl NewestConnections {
    /// `max` is the maximum number of connections.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            permits: Mutex::default(),
        }
    }

    /// A permit for a new connection. The connection must hold the token, and must end when it is
    /// cancelled. Dropping the token releases the permit.
    pub fn permit(&self) -> Arc<CancellationToken> {
        let mut permits = self.permits.lock();
        if permits.len() >= self.max {
            permits.retain(|permit| permit.strong_count() > 0);
        }
        if permits.len() >= self.max
            && let Some(oldest) = permits.pop_front().and_then(|permit| permit.upgrade())
        {
            oldest.cancel();
        }
        let permit = Arc::new(CancellationToken::new());
        permits.push_back(Arc::downgrade(&permit));
        permit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_connection_makes_room() {
        let newest = NewestConnections::new(3);
        let all: Vec<_> = (0..5).map(|_| newest.permit()).collect();
        let ended: Vec<_> = all.iter().map(|permit| permit.is_cancelled()).collect();
        assert_eq!(ended, [true, true, false, false, false]);
    }

    #[test]
    fn ended_connection_holds_no_permit() {
        let newest = NewestConnections::new(2);
        let first = newest.permit();
        for _ in 0..5 {
            drop(newest.permit());
        }
        assert!(!first.is_cancelled());
    }
}
