//! The allocation-candidate search: which ways are there to meet a request?
//!
//! An answer never mixes two trees, but for sharing providers, so the tree is the unit:
//!
//! 1. `plan` resolves names and turns groups into *variables*: one for each named group, one for
//!    each class of the unnumbered group. Variables that ask the same are of one *kind*.
//! 2. `filter` finds the trees worth opening, with the bitmaps of [`crate::state::indexes`].
//! 3. `instance` lays out one such tree, the *anchor*: for each kind the providers of the tree, and
//!    the sharing providers that reach it, which could serve it.
//! 4. `tree_search` places one variable after another in that instance, depth first. It yields
//!    one candidate and waits to be asked for the next. `fit`, `subtree` and `symmetry` see dead
//!    ends early.
//! 5. `search` goes from anchor to anchor in the order of the strategy, leaves out what another
//!    anchor has given already, and stops at the limit.
//! 6. `answer` says what a candidate takes of whom.
//!
//! `unknown_names` stands above all of these: what a request names and does not exist is an error
//! only if the groups before it have an answer. `budget` counts steps for all.

mod answer;
mod budget;
mod filter;
mod fit;
mod instance;
mod plan;
mod probe;
mod request;
mod search;
mod sharing;
mod subtree;
mod symmetry;
mod tree_search;
mod unknown_names;

pub use answer::{Amount, Candidate, Outline, Summaries};
pub(super) use budget::StepBudget;
pub use budget::Watch;
pub(super) use probe::Probe;
pub use request::{CandidateRequest, GenerationStrategy, GroupPolicy, RequestGroup};
pub use search::Search;
pub(super) use sharing::SharingProviders;

use crate::query::UnknownName;
use crate::state::State;

impl State {
    /// Starts a search, which makes candidates one at a time, as they are asked for. A watch is
    /// called now and then with the steps that were taken, and may end the search:
    /// [`Search::interrupted`] returns whether it has.
    ///
    /// # Errors
    /// A request that names unknown resource classes or traits, unless upstream would not have
    /// looked at them because a group before has no answer of its own.
    pub fn candidates<'a>(
        &'a self,
        request: &'a CandidateRequest,
        watch: Option<Watch<'a>>,
    ) -> Result<Search<'a>, UnknownName> {
        let mut budget = StepBudget::new(watch);
        let plan = unknown_names::resolve(self, request, &mut budget)?;
        Ok(Search::over(plan, request, budget))
    }
}
