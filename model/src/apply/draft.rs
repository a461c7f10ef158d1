//! Support for commands of several steps. Each step is decided on the state after the previous
//! steps.

use crate::outcome::Refusal;
use crate::state::change::Changes;
use crate::state::{Commit, State};

/// Applies the steps to a scratch state in a single commit, so that each tree is copied at most
/// once. The commit is never finished, since only the changes are used and not the indexes.
pub(super) struct Draft<'a> {
    commit: Commit<'a>,
    changes: Changes,
}

impl<'a> Draft<'a> {
    /// Starts on `scratch`, which must be a copy of the state.
    pub(super) fn new(scratch: &'a mut State) -> Self {
        Self {
            commit: Commit::new(scratch),
            changes: Changes::new(),
        }
    }

    pub(super) fn step(
        &mut self,
        step: impl FnOnce(&State, &mut Changes) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut changes = Changes::new();
        step(self.commit.state(), &mut changes)?;
        self.commit.carry_out(&changes);
        self.changes.extend(changes);
        Ok(())
    }

    /// The changes of all steps.
    pub(super) fn into_changes(self) -> Changes {
        self.changes
    }
}
