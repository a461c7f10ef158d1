//! The time limit of work for a request.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use placement_base::world::Clock;

/// A deadline, and the client that waits for the result.
#[derive(Clone)]
pub(crate) struct Patience {
    clock: Arc<dyn Clock>,
    until: Duration,
    /// Alive as long as the future of the request, which is dropped when its client disconnects;
    /// `None` if the work does not depend on a client.
    client: Option<Weak<dyn Any + Send + Sync>>,
}

impl Patience {
    /// A deadline of `limit` after `begun`, a time of the monotonic clock.
    pub(crate) fn after(begun: Duration, limit: Duration, clock: &Arc<dyn Clock>) -> Self {
        Self {
            clock: clock.clone(),
            until: begun.saturating_add(limit),
            client: None,
        }
    }

    /// Also ends the work when the client disconnects: then the future of the request drops `kept`.
    pub(crate) fn with_client<T: Any + Send + Sync>(mut self, kept: &Arc<T>) -> Self {
        self.client = Some(Arc::<T>::downgrade(kept));
        self
    }

    /// Returns a copy whose deadline is `limit` from now.
    pub(crate) fn renewed(&self, limit: Duration) -> Self {
        Self {
            until: self.now().saturating_add(limit),
            ..self.clone()
        }
    }

    /// Time remaining until the deadline.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_sub(self.now())
    }

    /// The current time of the monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// `Break` if the deadline has passed or the client has disconnected.
    pub(crate) fn check(&self) -> ControlFlow<()> {
        let is_gone = |client: &Weak<_>| client.strong_count() == 0;
        if self.now() > self.until || self.client.as_ref().is_some_and(is_gone) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
