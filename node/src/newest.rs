//! Connections of which so many are kept, the newest: those who only hold a place lose it to those who
//! come and use theirs.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;

/// So many connections, the oldest first.
pub(crate) struct Newest {
    max: usize,
    places: VecDeque<Weak<CancellationToken>>,
}

impl Newest {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            places: VecDeque::new(),
        }
    }

    /// A place for the connection that comes, which has to end when the token says so. It is held as
    /// long as the token.
    pub(crate) fn place(&mut self) -> Arc<CancellationToken> {
        if self.places.len() >= self.max {
            self.places.retain(|place| place.strong_count() > 0);
        }
        if self.places.len() >= self.max
            && let Some(oldest) = self.places.pop_front().and_then(|place| place.upgrade())
        {
            oldest.cancel();
        }
        let place = Arc::new(CancellationToken::new());
        self.places.push_back(Arc::downgrade(&place));
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut newest = Newest::new(3);
        let all: Vec<_> = (0..5).map(|_| newest.place()).collect();
        let ended: Vec<_> = all.iter().map(|place| place.is_cancelled()).collect();
        assert_eq!(ended, [true, true, false, false, false]);
    }

    #[test]
    fn who_has_gone_takes_no_place() {
        let mut newest = Newest::new(2);
        let first = newest.place();
        for _ in 0..5 {
            drop(newest.place());
        }
        assert!(!first.is_cancelled());
    }
}
