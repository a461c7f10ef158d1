//! Choices for a claim: assignments of one candidate of a request to each consumer.

use std::collections::{BTreeMap, BTreeSet};

use super::UnknownName;
pub use super::ranked::Order;
use super::ranked::{CANDIDATES_MAX, Ranked};
use crate::command::{
    Claim, Claimant, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, Group, GroupRule,
    ProviderAmounts,
};
use crate::query::candidates::{CandidateRequest, Watch};
use crate::state::State;
use crate::state::tree::TreeNumber;
use crate::state::tree_set::TreeSet;
use crate::types::ConsumerUuid;

/// Maximum number of choices.
pub const CHOICES_MAX: usize = 16;
/// Maximum number of choices of a single claimant that takes any candidate: random choices rarely
/// collide with those of others, and each choice takes space in the log.
pub const ANY_CHOICES_MAX: usize = 2;
/// Maximum number of searches for all choices, unless a single choice needs more.
const SEARCHES_MAX: usize = 64;

/// Choices for a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignments {
    /// For each choice and each claimant the allocations, as in [`Claim::choices`].
    pub choices: Vec<Vec<Vec<ProviderAmounts>>>,
    /// Number of claimants for which the best incomplete assignment has candidates; all of them if
    /// there is a choice.
    pub served: usize,
    /// Number of candidates for the first claimant.
    pub candidates: usize,
    /// Whether the search for the first claimant reached its limit.
    pub limited: bool,
    /// Whether each choice breaks a group.
    pub breaks_groups: bool,
    /// Whether the watch ended a search, so that there may be more choices.
    pub interrupted: bool,
}

impl State {
    /// Searches for candidates of `request` for the claimants of a claim, whose current allocations
    /// count as free, as do the holds that are kept for them. With several claimants, each takes
    /// the best candidate that remains after those before it. The candidates keep the groups of the
    /// claim; if there are none, they ignore the groups, so that the claim is refused because of
    /// them. The trees that a group excludes are left out with their sharing providers, although
    /// these do not count. `seed` selects among equal candidates.
    ///
    /// # Errors
    /// The request contains an unknown resource class or trait.
    pub fn assignments(
        &self,
        claim: &Claim,
        request: &CandidateRequest,
        (order, seed): (Order, u64),
        mut watch: Watch<'_>,
    ) -> Result<Assignments, UnknownName> {
        let mut search = Searcher {
            request: request.clone(),
            order,
            watch: &mut watch,
            breaks_groups: false,
            found: Assignments::default(),
        };
        search.request.seed = Some(seed);
        let claimants = claim.claimants.iter().map(|claimant| &claimant.consumer);
        let held = claimants
            .clone()
            .filter(|consumer| self.consumers.row(consumer).is_some());
        let ended = claimants.flat_map(|consumer| self.consumers.holds().for_consumer(consumer));
        let released: BTreeSet<_> = held.chain(ended).collect();
        let placed = Placed::before(self, claim, &released);
        let state = self.without(released.into_iter());
        let [first, others @ ..] = &claim.claimants[..] else {
            return Ok(search.found);
        };
        let most = match order {
            Order::Any if others.is_empty() => ANY_CHOICES_MAX,
            // The first candidates may leave no room for the other claimants.
            _ => CANDIDATES_MAX,
        };
        let mut firsts = search.best(&state, &placed, (&first.consumer, most))?;
        search.found.served = usize::from(!firsts.is_empty());
        let searches = SEARCHES_MAX / claim.claimants.len();
        firsts.truncate(CHOICES_MAX.min(searches.max(1)));
        let first_breaks = search.breaks_groups;
        let (mut keeping, mut breaking) = (Vec::new(), Vec::new());
        for one in firsts {
            if search.found.interrupted && !(keeping.is_empty() && breaking.is_empty()) {
                break;
            }
            search.breaks_groups = first_breaks;
            if let Some(choice) = search.complete(&state, &placed, (first, one), others)? {
                if search.breaks_groups {
                    breaking.push(choice);
                } else {
                    keeping.push(choice);
                }
            }
        }
        search.found.breaks_groups = keeping.is_empty() && !breaking.is_empty();
        search.found.choices = if search.found.breaks_groups {
            breaking
        } else {
            keeping
        };
        Ok(search.found)
    }

    /// This state after an allocation; `None` if it is refused, for example because the ids are
    /// exhausted.
    fn with(&self, claimant: &Claimant, allocations: Vec<ProviderAmounts>) -> Option<Self> {
        let consumers = vec![ConsumerAllocations {
            consumer: claimant.consumer.clone(),
            allocations,
            project: claimant.project.clone(),
            user: claimant.user.clone(),
            generation: ConsumerGeneration::Unchecked,
            consumer_type: ConsumerTypeUpdate::Keep,
        }];
        let changes = self.changes_of(consumers)?;
        let mut state = self.clone();
        state.commit(&changes);
        Some(state)
    }
}

/// The trees of the members of each group, claimants so far included.
#[derive(Clone)]
struct Placed<'a>(Vec<(&'a Group, BTreeMap<TreeNumber, u32>)>);

impl<'a> Placed<'a> {
    /// The members that the claim does not release: it releases what claimants have, and the holds
    /// that are kept for them.
    fn before(state: &State, claim: &'a Claim, released: &BTreeSet<&ConsumerUuid>) -> Self {
        let counted = claim.groups.iter().map(|group| {
            let mut members = BTreeMap::new();
            let others = group.members.iter().filter(|one| !released.contains(one));
            for tree in others.flat_map(|member| state.trees_of_consumer(member)) {
                *members.entry(tree).or_default() += 1;
            }
            (group, members)
        });
        Self(counted.collect())
    }

    fn add(&mut self, consumer: &ConsumerUuid, trees: &BTreeSet<TreeNumber>) {
        let groups = self.0.iter_mut();
        for (_, members) in groups.filter(|(group, _)| group.members.contains(consumer)) {
            for tree in trees {
                *members.entry(*tree).or_default() += 1;
            }
        }
    }

    /// Restricts a request to the trees that the groups permit for a consumer. Returns whether
    /// there is a restriction.
    fn restrict(&self, consumer: &ConsumerUuid, request: &mut CandidateRequest) -> bool {
        (request.only_trees, request.not_trees) = (None, TreeSet::default());
        let groups = self.0.iter();
        for (group, members) in groups.filter(|(group, _)| group.members.contains(consumer)) {
            match group.rule {
                GroupRule::Apart { most } => {
                    let full = members.iter().filter(|(_, count)| **count >= most);
                    full.for_each(|(tree, _)| request.not_trees.insert(tree.0));
                }
                GroupRule::Together if members.is_empty() => {}
                GroupRule::Together => {
                    let mut trees: BTreeSet<_> = members.keys().map(|tree| tree.0).collect();
                    if let Some(only) = &request.only_trees {
                        trees.retain(|tree| only.contains(*tree));
                    }
                    request.only_trees = Some(TreeSet::from_iter(trees));
                }
            }
        }
        request.only_trees.is_some() || !request.not_trees.is_empty()
    }
}

/// The searches for one claim.
struct Searcher<'w, 'a> {
    request: CandidateRequest,
    order: Order,
    watch: &'w mut Watch<'a>,
    /// Whether a claimant of the current choice has candidates only if they ignore the groups.
    breaks_groups: bool,
    found: Assignments,
}

impl Searcher<'_, '_> {
    /// Completes a choice whose first claimant takes `one`; `None` if a further claimant finds no
    /// candidate.
    fn complete(
        &mut self,
        state: &State,
        placed: &Placed<'_>,
        (first, one): (&Claimant, Ranked),
        others: &[Claimant],
    ) -> Result<Option<Vec<Vec<ProviderAmounts>>>, UnknownName> {
        let mut choice = vec![one.amounts];
        if others.is_empty() {
            return Ok(Some(choice));
        }
        let (mut state, mut placed) = (state.clone(), placed.clone());
        let (mut before, mut trees) = (first, one.trees);
        for claimant in others {
            let taken = choice.last().cloned().unwrap_or_default();
            let Some(next) = state.with(before, taken) else {
                return Ok(None);
            };
            state = next;
            placed.add(&before.consumer, &trees);
            let most = match self.order {
                Order::Any => 1,
                Order::Pack | Order::Spread => CANDIDATES_MAX,
            };
            let mut best = self.best(&state, &placed, (&claimant.consumer, most))?;
            if best.is_empty() {
                return Ok(None);
            }
            let best = best.swap_remove(0);
            choice.push(best.amounts);
            self.found.served = self.found.served.max(choice.len());
            (before, trees) = (claimant, best.trees);
        }
        Ok(Some(choice))
    }

    /// At most `most` candidates for a consumer, the preferred one first.
    fn best(
        &mut self,
        state: &State,
        placed: &Placed<'_>,
        (consumer, most): (&ConsumerUuid, usize),
    ) -> Result<Vec<Ranked>, UnknownName> {
        let is_restricted = placed.restrict(consumer, &mut self.request);
        let mut found = self.search(state, most)?;
        if found.is_empty() && is_restricted && !self.found.interrupted {
            (self.request.only_trees, self.request.not_trees) = (None, TreeSet::default());
            found = self.search(state, most)?;
            self.breaks_groups |= !found.is_empty();
        }
        Ok(found)
    }

    fn search(&mut self, state: &State, most: usize) -> Result<Vec<Ranked>, UnknownName> {
        let watch: Watch<'_> = Box::new(&mut *self.watch);
        let found = state.ranked(&self.request, (self.order, most), watch)?;
        self.found.interrupted |= found.interrupted;
        // The first search that finds candidates counts.
        if self.found.candidates == 0 {
            self.found.candidates = found.candidates;
            self.found.limited = found.limited;
        }
        Ok(found.list)
    }
}
