//! The search for allocation candidates.
//!
//! Apart from sharing providers, a candidate never mixes two trees, so the search proceeds tree by
//! tree:
//!
//! 1. `plan` resolves names and turns groups into *variables*: one for each named group, one for
//!    each class of the unnumbered group. Variables with equal conditions are of one *kind*.
//! 2. `filter` finds the trees worth searching, with the bitmaps of [`crate::state::indexes`].
//! 3. `instance` prepares one such tree, the *anchor*: for each kind, the providers of the tree and
//!    the sharing providers that could serve it.
//! 4. `tree_search` places one variable after another in that instance, depth first. It yields one
//!    candidate at a time. `fit`, `subtree` and `symmetry` detect dead ends early.
//! 5. `search` goes from anchor to anchor in the order of the strategy, skips candidates that
//!    another anchor has already yielded, and stops at the limit.
//! 6. `answer` lists the amounts that a candidate takes from each provider.
//!
//! `unknown_names` runs first: an unknown name is an error only if the groups before it have an
//! answer. `budget` counts the steps of all parts.

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
    /// Starts a search, which produces candidates one at a time, on demand. The watch is called
    /// regularly with the number of steps so far, and may stop the search; [`Search::interrupted`]
    /// then returns true.
    ///
    /// # Errors
    /// The request contains an unknown resource class or trait, unless upstream would not evaluate
    /// it because an earlier group alone has no answer.
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
