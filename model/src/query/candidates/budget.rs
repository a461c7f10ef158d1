//! Counts the steps of a search, so that somebody with a clock can end it.

use std::ops::ControlFlow;

/// Is told every thousand steps or so how many were taken from the start (a step is well below a
/// microsecond, mostly), and says whether to go on.
pub type Watch<'a> = Box<dyn FnMut(u64) -> ControlFlow<()> + Send + 'a>;

const STEPS_BETWEEN_CALLS: u64 = 1024;

/// Steps taken, and whoever watches them.
pub(super) struct Clock<'a> {
    steps: u64,
    next_call: u64,
    watch: Option<Watch<'a>>,
    stopped: bool,
}

impl<'a> Clock<'a> {
    pub(super) fn new(watch: Option<Watch<'a>>) -> Self {
        Self {
            steps: 0,
            next_call: STEPS_BETWEEN_CALLS,
            watch,
            stopped: false,
        }
    }

    /// Counts steps; false when the search has to end.
    pub(super) fn tick(&mut self, steps: u64) -> bool {
        self.steps += steps;
        if self.steps >= self.next_call {
            self.next_call = self.steps + STEPS_BETWEEN_CALLS;
            if let Some(watch) = &mut self.watch {
                self.stopped |= watch(self.steps).is_break();
            }
        }
        !self.stopped
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }
}
