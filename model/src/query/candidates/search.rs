//! From anchor to anchor, in the order that was asked for.

use std::collections::{BTreeSet, VecDeque};

use super::answer::{Candidate, Placement, Summaries};
use super::budget::StepBudget;
use super::filter::Filter;
use super::plan::Plan;
use super::request::{AllocationRequest, CandidateRequest, Candidates, GenerationStrategy};
use super::sharing::SharingProviders;
use super::tree_search::{Step, TreeSearch};
use crate::state::tree_set::TreeSet;
use crate::state::{Place, State};

/// A running search over one state: the next candidate is made when it is asked for, at most
/// `limit` of them.
pub struct Search<'a> {
    state: &'a State,
    request: &'a CandidateRequest,
    /// `None` when there is certainly nothing (more) to be found.
    explorer: Option<Explorer<'a>>,
    budget: StepBudget<'a>,
    left: usize,
    /// How many candidates may be looked at beyond those given.
    beyond: usize,
}

impl<'a> Search<'a> {
    /// A search over a plan of the request; without one it is over before it begins.
    pub(super) fn over(
        plan: Option<Plan<'a>>,
        state: &'a State,
        request: &'a CandidateRequest,
        budget: StepBudget<'a>,
    ) -> Self {
        let most = request.search_max.unwrap_or(usize::MAX);
        let left = request.limit.unwrap_or(usize::MAX).min(most);
        Self {
            state,
            request,
            explorer: plan.map(|plan| Explorer::new(plan, request.strategy)),
            budget,
            left,
            beyond: most - left,
        }
    }

    /// The next candidate as places in the state, which costs less than one with names.
    pub fn next_candidate(&mut self) -> Option<Candidate> {
        if self.left == 0 || self.budget.stopped() {
            return None;
        }
        let next = self
            .explorer
            .as_mut()
            .and_then(|explorer| explorer.next(&mut self.budget));
        if next.is_some() {
            self.left -= 1;
        } else {
            self.explorer = None;
        }
        next
    }

    /// Whether the watch ended the search, so that there may be more candidates.
    pub fn interrupted(&self) -> bool {
        self.budget.stopped()
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.budget.steps()
    }

    /// A candidate with names.
    pub fn describe(&self, candidate: &Candidate) -> AllocationRequest {
        candidate.describe(self.state, self.request)
    }

    /// Ends the search, and finds what the summaries of its candidates lack because of the limit:
    /// below 1.29 also those providers of their trees count that only candidates beyond it use.
    /// Looks at no other candidates than those that could use one of these providers.
    pub fn complete(&mut self, summaries: &mut Summaries<'a>) {
        let Some(mut explorer) = self.explorer.take().filter(|one| one.plan.one_per_tree) else {
            return;
        };
        let mut wanted: BTreeSet<Place> = summaries
            .unused()
            .filter(|place| explorer.plan.could_use(*place))
            .collect();
        explorer.confine_to(&wanted);
        for _ in 0..self.beyond {
            if wanted.is_empty() {
                return;
            }
            let Some(candidate) = explorer.next(&mut self.budget) else {
                return;
            };
            summaries.note_beyond(&candidate);
            for place in candidate.used(self.request) {
                wanted.remove(&place);
            }
        }
    }

    /// All that is left, with the summaries of the providers concerned.
    pub fn into_candidates(mut self) -> Candidates {
        let mut summaries = Summaries::new(self.state, self.request);
        let mut allocation_requests = Vec::new();
        while let Some(candidate) = self.next_candidate() {
            summaries.note(&candidate);
            allocation_requests.push(self.describe(&candidate));
        }
        self.complete(&mut summaries);
        Candidates {
            allocation_requests,
            provider_summaries: summaries.each().collect(),
        }
    }
}

impl Iterator for Search<'_> {
    type Item = AllocationRequest;

    fn next(&mut self) -> Option<AllocationRequest> {
        let candidate = self.next_candidate()?;
        Some(self.describe(&candidate))
    }
}

/// The candidates of a plan, without limit.
pub(super) struct Explorer<'a> {
    plan: Plan<'a>,
    sharing: SharingProviders<'a>,
    anchors: Filter,
    strategy: GenerationStrategy,
    /// The anchor at hand (depth first).
    current: TreeSearch<'a>,
    under_way: bool,
    /// Anchors that gave one and wait for their next turn (breadth first).
    waiting: VecDeque<TreeSearch<'a>>,
    /// Candidates of sharing providers alone, which several anchors can give. All others have a
    /// provider that belongs to one anchor.
    given: BTreeSet<Vec<Place>>,
    /// Instances of sharing providers of other trees alone: the next with the same gives nothing new.
    outside: BTreeSet<Vec<Vec<Place>>>,
}

impl<'a> Explorer<'a> {
    pub(super) fn new(plan: Plan<'a>, strategy: GenerationStrategy) -> Self {
        let sharing = SharingProviders::find(&plan);
        let anchors = Filter::anchors(&plan, &sharing);
        Self {
            plan,
            sharing,
            anchors,
            strategy,
            current: TreeSearch::default(),
            under_way: false,
            waiting: VecDeque::new(),
            given: BTreeSet::new(),
            outside: BTreeSet::new(),
        }
    }

    /// Begins anew, with only those anchors for which these providers could serve something.
    fn confine_to(&mut self, places: &BTreeSet<Place>) {
        let own = TreeSet::from_iter(places.iter().map(|place| place.tree.0));
        let state = self.plan.state;
        let shared = places
            .iter()
            .map(|place| state.node(*place))
            .filter(|node| self.sharing.shares(node))
            .flat_map(|node| node.aggregates.iter())
            .filter_map(|aggregate| state.indexes().with_member(aggregate).cloned());
        let trees = std::iter::once(own).chain(shared).collect();
        self.anchors = Filter::anchors(&self.plan, &self.sharing).within(trees);
        self.under_way = false;
        self.waiting.clear();
        self.given.clear();
        self.outside.clear();
    }

    /// The next candidate; `None` at the end, or when the watch ends the search.
    pub(super) fn next(&mut self, budget: &mut StepBudget<'_>) -> Option<Candidate> {
        match self.strategy {
            GenerationStrategy::DepthFirst => self.next_deep(budget),
            GenerationStrategy::BreadthFirst => self.next_broad(budget),
        }
    }

    fn next_deep(&mut self, budget: &mut StepBudget<'_>) -> Option<Candidate> {
        loop {
            if !self.under_way && !self.open_anchor(budget) {
                return None;
            }
            match self.current.next(&self.plan, budget) {
                Step::Found => {
                    if let Some(candidate) = self.candidate() {
                        return Some(candidate);
                    }
                }
                Step::Exhausted => self.under_way = false,
                Step::Stopped => return None,
            }
        }
    }

    fn next_broad(&mut self, budget: &mut StepBudget<'_>) -> Option<Candidate> {
        loop {
            if !self.under_way && !self.open_anchor(budget) {
                if budget.stopped() {
                    return None;
                }
                self.current = self.waiting.pop_front()?;
                self.under_way = true;
            }
            match self.current.next(&self.plan, budget) {
                Step::Found => {
                    let candidate = self.candidate();
                    if candidate.is_some() {
                        self.under_way = false;
                        if !self.current.is_last(&self.plan) {
                            self.waiting.push_back(std::mem::take(&mut self.current));
                        }
                        return candidate;
                    }
                }
                Step::Exhausted => self.under_way = false,
                Step::Stopped => return None,
            }
        }
    }

    /// Begins on the next anchor that may have something new.
    fn open_anchor(&mut self, budget: &mut StepBudget<'_>) -> bool {
        while budget.spend(1) {
            let Some(number) = self.anchors.next() else {
                return false;
            };
            let begun = (self.current).begin(&self.plan, &self.sharing, number, budget);
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
            slots
                .iter()
                .map(|slot| instance.slots[*slot as usize].place)
                .collect()
        };
        self.outside
            .insert(instance.domains.iter().map(places).collect())
    }

    /// What was found, unless another anchor gave it before.
    fn candidate(&mut self) -> Option<Candidate> {
        let slots = self.current.slots();
        let slot = |index: &u32| self.current.instance.slots[*index as usize];
        if slots.iter().all(|index| slot(index).shares)
            && !self
                .given
                .insert(slots.iter().map(|index| slot(index).place).collect())
        {
            return None;
        }
        let placements = slots
            .iter()
            .zip(&self.plan.variables)
            .map(|(index, variable)| {
                let rule = &self.plan.rules[variable.group];
                let kind = &self.plan.kinds[variable.kind];
                Placement {
                    group: variable.group,
                    class: kind
                        .demands
                        .first()
                        .filter(|_| !rule.named)
                        .map(|demand| demand.id),
                    place: slot(index).place,
                }
            });
        Some(Candidate {
            placements: placements.collect(),
        })
    }
}
