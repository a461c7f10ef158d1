//! Every committed command passes through here into the state.

use placement_model::{Changes, Outcome, Stamped, State};

/// Decides what a committed command does. The state machine asks it for each command, in the order
/// of the log, and has it carry out what it answers.
///
/// The product has one implementation, [`Rules`]. Simulations put theirs around it, to see every
/// command with its place in the log on each node, and to prove that a broken rule is noticed.
pub trait Applier: Send + Sync + 'static {
    /// `index` is the place of `stamped` in the log; `state` is the state before it.
    fn apply(&self, index: u64, state: &State, stamped: &Stamped) -> (Outcome, Changes);

    /// Carries out what it answered.
    fn commit(&self, state: &mut State, changes: &Changes) {
        state.commit(changes);
    }
}

/// The rules of the placement model, as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules;

impl Applier for Rules {
    fn apply(&self, _index: u64, state: &State, stamped: &Stamped) -> (Outcome, Changes) {
        placement_model::apply(state, stamped)
    }
}
