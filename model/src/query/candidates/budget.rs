//! Counts the steps of a search, so that a caller with a deadline can stop it.

use std::ops::ControlFlow;

/// Called about every 1,000 steps with the number of steps so far; the result says whether to
/// continue. A step usually takes well below a microsecond.
pub type Watch<'a> = Box<dyn FnMut(u64) -> ControlFlow<()> + Send + 'a>;

const STEPS_BETWEEN_CALLS: u64 = 1024;

/// The number of steps taken, and the watch that may stop the search.
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

    /// A budget of at most `most` steps for a part of the search. The caller must also spend the
    /// part's steps on `self`.
    pub(in crate::query) fn part(&mut self, most: u64) -> StepBudget<'_> {
        let (before, watch) = (self.steps, &mut self.watch);
        StepBudget::new(Some(Box::new(move |steps| match watch {
            _ if steps > most => ControlFlow::Break(()),
            Some(watch) => watch(before + steps),
            None => ControlFlow::Continue(()),
        })))
    }

    /// Counts steps; returns false if the search must stop.
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
