//! Counts the steps of a search, so that a caller with a deadline can end it.

use std::ops::ControlFlow;

/// Is called every thousand steps or so with how many were taken from the start (a step is well
/// below a microsecond, mostly), and says whether to go on.
pub type Watch<'a> = Box<dyn FnMut(u64) -> ControlFlow<()> + Send + 'a>;

const STEPS_BETWEEN_CALLS: u64 = 1024;

/// Steps taken, and the watch that may end the search after some of them.
pub(in crate::query) struct StepBudget<'a> {
    steps: u64,
    next_call: u64,
    watch: Option<Watch<'a>>,
    stopped: bool,
}

impl<'a> StepBudget<'a> {
    pub(in crate::query) fn new(watch: Option<Watch<'a>>) -> Self {
        Self {
            steps: 0,
            next_call: STEPS_BETWEEN_CALLS,
            watch,
            stopped: false,
        }
    }

    /// For a part that may take so many steps. Its steps are to be spent here, too.
    pub(in crate::query) fn part(&mut self, most: u64) -> StepBudget<'_> {
        let (before, watch) = (self.steps, &mut self.watch);
        StepBudget::new(Some(Box::new(move |steps| match watch {
            _ if steps > most => ControlFlow::Break(()),
            Some(watch) => watch(before + steps),
            None => ControlFlow::Continue(()),
        })))
    }

    /// Counts steps; false if the search has to end.
    pub(in crate::query) fn spend(&mut self, steps: u64) -> bool {
        self.steps += steps;
        if self.steps >= self.next_call {
            self.next_call = self.steps + STEPS_BETWEEN_CALLS;
            if let Some(watch) = &mut self.watch {
                self.stopped |= watch(self.steps).is_break();
            }
        }
        !self.stopped
    }

    pub(in crate::query) fn steps(&self) -> u64 {
        self.steps
    }

    pub(in crate::query) fn stopped(&self) -> bool {
        self.stopped
    }
}
