//! Visits the anchors in the order of the strategy.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use super::answer::{Candidate, Outline, Summaries};
use super::budget::StepBudget;
use super::filter::anchors;
use super::instance::SlotIndex;
use super::plan::Plan;
use super::request::{CandidateRequest, GenerationStrategy};
use super::sharing::SharingProviders;
use super::tree_search::{Step, TreeSearch};
use crate::query::tree_filter::TreeFilter;
use crate::state::tree_set::TreeSet;
use crate::state::{NodePlace, State, TreeCursor};

/// A running search over one state. It produces candidates on demand, at most `limit` of them.
pub struct Search<'a> {
    outline: Arc<Outline<'a>>,
    /// `None` once no further candidate can exist.
    explorer: Option<Explorer<'a>>,
    budget: StepBudget<'a>,
    left: usize,
    /// Number of candidates that may be examined beyond the limit.
    beyond: usize,
}

impl<'a> Search<'a> {
    /// Starts a search over the plan of a request; without a plan it yields nothing.
    pub(super) fn over(
        plan: Option<Plan<'a>>,
        request: &'a CandidateRequest,
        mut budget: StepBudget<'a>,
    ) -> Self {
        let outline = plan.as_ref().map(|plan| Outline::new(plan, request));
        let explorer = plan.map(|plan| Explorer::new(plan, request.strategy, &mut budget));
        let most = request.search_max.unwrap_or(usize::MAX);
        let left = request.limit.unwrap_or(usize::MAX).min(most);
        Self {
            outline: outline.map_or_else(Arc::default, Arc::new),
            explorer,
            budget,
            left,
            beyond: most - left,
        }
    }

    /// The next candidate, borrowed until the next call.
    pub fn advance(&mut self) -> Option<&Candidate<'a>> {
        if self.left == 0 || self.budget.stopped() {
            return None;
        }
        let explorer = self.explorer.as_mut()?;
        if !explorer.next(&mut self.budget) {
            self.explorer = None;
            return None;
        }
        self.left -= 1;
        self.explorer.as_ref().map(|explorer| &explorer.found)
    }

    /// The next candidate as an owned value.
    pub fn next_candidate(&mut self) -> Option<Candidate<'a>> {
        self.advance().cloned()
    }

    /// Estimates the number of candidates before the first one is produced: the number of trees
    /// that may have one, among the first few thousand trees.
    pub fn likely(&mut self) -> usize {
        let explorer = self.explorer.as_mut();
        let ahead = explorer.map_or(0, |explorer| explorer.anchors.next_chunk_len());
        self.left.min(ahead)
    }

    /// The data that all candidates share.
    pub fn outline(&self) -> Arc<Outline<'a>> {
        self.outline.clone()
    }

    /// Whether the watch stopped the search, so that further candidates may exist.
    pub fn interrupted(&self) -> bool {
        self.budget.stopped()
    }

    /// Memory use in bytes of the suspended searches of anchors (breadth first), partly estimated.
    pub fn waiting_bytes(&self) -> usize {
        let explorer = self.explorer.as_ref();
        explorer.map_or(0, |explorer| explorer.waiting_bytes)
    }

    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.budget.steps()
    }

    /// Ends the search and completes the summaries. Before microversion 1.29, these also include
    /// providers that only candidates beyond the limit use. Only candidates that could use such a
    /// provider are examined.
    pub fn complete(&mut self, summaries: &mut Summaries<'a>) {
        summaries.settle();
        let Some(explorer) = self.explorer.take().filter(|one| one.plan.one_per_tree) else {
            return;
        };
        let unused = summaries.unused();
        let mut wanted: BTreeSet<NodePlace> = unused
            .filter(|place| explorer.plan.could_use(*place))
            .collect();
        let mut explorer = explorer.confined_to(&wanted);
        for _ in 0..self.beyond {
            if wanted.is_empty() || !explorer.next(&mut self.budget) {
                return;
            }
            summaries.note_beyond(&self.outline, &explorer.found);
            for seat in self.outline.used(&explorer.found) {
                wanted.remove(&seat.place);
            }
        }
    }
}

/// The candidates of a plan, without limit.
pub(super) struct Explorer<'a> {
    plan: Plan<'a>,
    sharing: SharingProviders<'a>,
    anchors: TreeFilter<'a>,
    trees: TreeCursor<'a>,
    strategy: GenerationStrategy,
    /// The current anchor (depth first).
    current: TreeSearch<'a>,
    under_way: bool,
    /// The suspended searches of anchors that have yielded a candidate (breadth first).
    waiting: VecDeque<TreeSearch<'a>>,
    waiting_bytes: usize,
    /// Yielded candidates that consist only of sharing providers. Several anchors can produce the
    /// same one. All other candidates contain a provider that belongs to one anchor.
    given: BTreeSet<Vec<NodePlace>>,
    /// Instances that consist only of sharing providers of other trees. A second, equal instance
    /// yields nothing new.
    outside: BTreeSet<Vec<Vec<NodePlace>>>,
    /// The slot of each variable in the last candidate.
    solution: Vec<SlotIndex>,
    /// The candidate that was found last.
    pub(super) found: Candidate<'a>,
}

impl<'a> Explorer<'a> {
    pub(super) fn new(
        plan: Plan<'a>,
        strategy: GenerationStrategy,
        budget: &mut StepBudget<'_>,
    ) -> Self {
        let sharing = SharingProviders::find(&plan, budget);
        let mut anchors = anchors(&plan, &sharing);
        if let Some(seed) = plan.seed {
            anchors.start_anywhere(seed, plan.state.tree_numbers_end());
        }
        let strategy = (plan.seed).map_or(strategy, |_| GenerationStrategy::BreadthFirst);
        Self::over(plan, sharing, anchors, strategy)
    }

    fn over(
        plan: Plan<'a>,
        sharing: SharingProviders<'a>,
        anchors: TreeFilter<'a>,
        strategy: GenerationStrategy,
    ) -> Self {
        Self {
            trees: plan.state.providers.tree_cursor(),
            plan,
            sharing,
            anchors,
            strategy,
            current: TreeSearch::default(),
            under_way: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            given: BTreeSet::new(),
            outside: BTreeSet::new(),
            solution: Vec::new(),
            found: Candidate::default(),
        }
    }

    /// Restarts the search, limited to the anchors that these providers could serve.
    fn confined_to(self, places: &BTreeSet<NodePlace>) -> Self {
        let own = TreeSet::from_iter(places.iter().map(|place| place.tree.0));
        let state: &'a State = self.plan.state;
        let nodes = places.iter().map(|place| state.node(*place));
        let shared = nodes
            .filter(|node| self.sharing.shares(node))
            .flat_map(|node| node.aggregates.iter())
            .filter_map(|aggregate| state.indexes().with_member(aggregate));
        let own = std::iter::once(Cow::Owned(own));
        let trees = own.chain(shared.map(Cow::Borrowed)).collect();
        let mut anchors = anchors(&self.plan, &self.sharing);
        anchors.require(trees);
        Self::over(self.plan, self.sharing, anchors, self.strategy)
    }

    /// Finds the next candidate; returns false at the end, or if the watch stops the search.
    pub(super) fn next(&mut self, budget: &mut StepBudget<'_>) -> bool {
        loop {
            if !self.under_way && !self.open_anchor(budget) && !self.resume(budget) {
                return false;
            }
            match self.current.next(&self.plan, budget) {
                Step::Found => {
                    if self.take_found() {
                        self.take_turns();
                        return true;
                    }
                }
                Step::Exhausted => self.under_way = false,
                Step::Stopped => return false,
            }
        }
    }

    /// With breadth first, moves an anchor that yielded a candidate to the end of the queue.
    fn take_turns(&mut self) {
        if self.strategy == GenerationStrategy::DepthFirst {
            return;
        }
        self.under_way = false;
        if !self.current.is_last(&self.plan) {
            let waiting = std::mem::take(&mut self.current);
            self.waiting_bytes += waiting.bytes();
            self.waiting.push_back(waiting);
        }
    }

    /// Resumes the anchor whose search has been suspended longest.
    fn resume(&mut self, budget: &StepBudget<'_>) -> bool {
        let next = self.waiting.pop_front_if(|_| !budget.stopped());
        let Some(next) = next else {
            return false;
        };
        self.waiting_bytes -= next.bytes();
        self.current = next;
        self.under_way = true;
        true
    }

    /// Opens the next anchor that may yield a new candidate.
    fn open_anchor(&mut self, budget: &mut StepBudget<'_>) -> bool {
        while budget.spend(1) {
            let next = self.anchors.next();
            // Skipped trees are counted too, so that the watch can stop a long walk in time.
            if !budget.spend(self.anchors.take_steps()) {
                return false;
            }
            let Some(number) = next else {
                return false;
            };
            let Some(tree) = self.trees.find(number) else {
                continue;
            };
            let anchor = (number, &**tree);
            let begun = (self.current).begin(&self.plan, &self.sharing, anchor, budget);
            if begun && self.is_new_instance() {
                self.under_way = true;
                return true;
            }
        }
        false
    }

    fn is_new_instance(&mut self) -> bool {
        let instance = &self.current.instance;
        if !instance.slots.iter().all(|slot| slot.outside) {
            return true;
        }
        let places = |slots: &Vec<u32>| {
            let places = slots.iter().map(|slot| instance.place(*slot));
            places.collect()
        };
        self.outside
            .insert(instance.domains.iter().map(places).collect())
    }

    /// Takes the found candidate, unless another anchor has already yielded it.
    fn take_found(&mut self) -> bool {
        self.current.solution(&mut self.solution);
        let slots = self
            .solution
            .iter()
            .map(|index| self.current.instance.slots[*index as usize]);
        let places = || slots.clone().map(|slot| slot.seat.place);
        if slots.clone().all(|slot| slot.shares) && !self.given.insert(places().collect()) {
            return false;
        }
        self.found.seats.clear();
        self.found.seats.extend(slots.map(|slot| slot.seat));
        true
    }
}
