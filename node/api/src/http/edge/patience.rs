//! How long work for a request goes on.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::world::Clock;

/// Until a time, and as long as a client waits.
#[derive(Clone)]
pub(crate) struct Patience {
    clock: Arc<dyn Clock>,
    until: Duration,
    /// Of the request's future, which is dropped when its client is gone; `None`: no client waits
    /// for it.
    client: Option<Weak<dyn Any + Send + Sync>>,
}

impl Patience {
    /// So long after a time of the monotonic clock.
    pub(crate) fn after(begun: Duration, limit: Duration, clock: &Arc<dyn Clock>) -> Self {
        Self {
            clock: clock.clone(),
            until: begun.saturating_add(limit),
            client: None,
        }
    }

    /// Not longer than the future of a request, which keeps this.
    pub(crate) fn with_client<T: Any + Send + Sync>(mut self, kept: &Arc<T>) -> Self {
        self.client = Some(Arc::<T>::downgrade(kept));
        self
    }

    /// The same, so long from now on.
    pub(crate) fn renewed(&self, limit: Duration) -> Self {
        Self {
            until: self.now().saturating_add(limit),
            ..self.clone()
        }
    }

    /// How long that is from now on.
    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_sub(self.now())
    }

    /// The monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Whether to go on.
    pub(crate) fn look(&self) -> ControlFlow<()> {
        let is_gone = |client: &Weak<_>| client.strong_count() == 0;
        match self.now() > self.until || self.client.as_ref().is_some_and(is_gone) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
