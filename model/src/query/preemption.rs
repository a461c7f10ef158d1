//! Which consumers would have to end to make room for a request. A plan only: nothing is ended.

use std::collections::BTreeSet;

use super::candidates::{CandidateRequest, Watch};
use super::consumers::ListedConsumer;
use super::{NamedProvider, UnknownName};
use crate::mutant;
use crate::state::State;
use crate::state::change::ConsumerRow;
use crate::state::tree::TreeNumber;
use crate::state::tree_set::TreeSet;
use crate::types::{ConsumerTypeName, ConsumerUuid, ProjectId};

/// The consumers that may end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preemptible {
    /// Consumers of these types.
    pub types: BTreeSet<ConsumerTypeName>,
    /// Consumers of these projects; empty: of all projects.
    pub projects: BTreeSet<ProjectId>,
}

impl Preemptible {
    fn contains(&self, row: &ConsumerRow) -> bool {
        let is_type = |of: &ConsumerTypeName| self.types.contains(of);
        (row.consumer_type.as_ref().is_some_and(is_type) || mutant!("preempts-any-type"))
            && (self.projects.is_empty() || self.projects.contains(&row.project))
    }
}

/// The best plan that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preemption {
    /// The plan; `None` if no plan was found.
    pub plan: Option<PreemptionPlan>,
    /// Whether all trees were searched: in time, and none has too many consumers.
    pub complete: bool,
}

/// Consumers whose end makes room for a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreemptionPlan {
    /// The tree of the candidate; `None` if there is room without a preemption.
    pub root: Option<NamedProvider>,
    /// The consumers, the largest first.
    pub consumers: Vec<ListedConsumer>,
    /// Whether no plan has fewer consumers, if each plan ends consumers of a single tree.
    pub exact: bool,
}

/// A consumer that may end, and the largest share of a provider's capacity that it holds.
type Victim<'a> = (&'a ConsumerUuid, &'a ConsumerRow, f64);

impl State {
    /// Searches each tree for the fewest consumers in it whose end leaves a candidate of the
    /// request; among plans with equally many consumers, the one whose consumers hold the smallest
    /// share. The watch is called before and during each search, and may end the search.
    ///
    /// # Errors
    /// The request contains an unknown resource class or trait.
    pub fn preemption(
        &self,
        request: &CandidateRequest,
        who: &Preemptible,
        mut watch: Watch<'_>,
    ) -> Result<Preemption, UnknownName> {
        let mut search = Searcher {
            state: self,
            request: request.clone(),
            watch: &mut watch,
            interrupted: false,
        };
        search.request.limit = Some(1);
        let none = PreemptionPlan {
            root: None,
            consumers: Vec::new(),
            exact: true,
        };
        let (mut best, mut complete) = (None::<(TreeNumber, Vec<Victim<'_>>)>, true);
        if search.has_room(&[])? {
            let plan = Some(none);
            return Ok(Preemption { plan, complete });
        }
        for (number, _) in self.trees().filter(|(number, _)| request.permits(*number)) {
            let tree = TreeSet::from_iter([number.0]);
            let Some(all) = self.consumers_in(&tree) else {
                complete = false;
                continue;
            };
            let all = all.into_iter().filter(|(_, row)| who.contains(row));
            let mut victims: Vec<Victim<'_>> = all
                .map(|(uuid, row)| (uuid, row, self.largest_share(row, &tree)))
                .collect();
            victims.sort_by(|one, other| other.2.total_cmp(&one.2));
            let most = best
                .as_ref()
                .map_or(usize::MAX, |(_, victims)| victims.len());
            search.request.only_trees = Some(tree);
            let found = search.fewest(victims, most)?;
            if search.interrupted {
                complete = false;
                break;
            }
            let share = |plan: &[Victim<'_>]| plan.iter().map(|victim| victim.2).sum::<f64>();
            let is_better = |found: &Vec<Victim<'_>>| {
                best.as_ref().is_none_or(|(_, best)| {
                    let by_count = found.len().cmp(&best.len());
                    by_count.then(share(found).total_cmp(&share(best))).is_lt()
                })
            };
            if let Some(found) = found.filter(is_better) {
                best = Some((number, found));
            }
        }
        let plan = best.map(|(number, victims)| {
            let tree = self.tree(number).expect("a tree that was searched exists");
            PreemptionPlan {
                root: Some(NamedProvider::from_node(tree.root())),
                // All plans with a single consumer were tried.
                exact: victims.len() < 2 || victims.len() == 2 && complete,
                consumers: (victims.iter())
                    .map(|(uuid, row, _)| self.listed(uuid, row))
                    .collect(),
            }
        });
        Ok(Preemption { plan, complete })
    }
}

/// The searches for one plan.
struct Searcher<'s, 'w, 'a> {
    state: &'s State,
    request: CandidateRequest,
    watch: &'w mut Watch<'a>,
    interrupted: bool,
}

impl<'s> Searcher<'s, '_, '_> {
    /// Few of these consumers, the largest first, whose end makes room; `None` if none do, or only
    /// more than `most`.
    fn fewest(
        &mut self,
        victims: Vec<Victim<'s>>,
        most: usize,
    ) -> Result<Option<Vec<Victim<'s>>>, UnknownName> {
        if victims.is_empty() || !self.has_room(&victims)? {
            return Ok(None);
        }
        let mut tried: Vec<&ConsumerRow> = Vec::new();
        for victim in victims.iter().rev() {
            if self.interrupted {
                return Ok(None);
            }
            // Consumers with equal allocations free the same room.
            if tried
                .iter()
                .any(|row| row.allocations == victim.1.allocations)
            {
                continue;
            }
            tried.push(victim.1);
            if self.has_room(&[*victim])? {
                return Ok(Some(vec![*victim]));
            }
        }
        if most < 2 {
            return Ok(None);
        }
        // The end of one more consumer never takes room, so the shortest beginning of the list
        // that makes room is found by bisection.
        let (mut too_few, mut enough) = (1, victims.len());
        while enough - too_few > 1 {
            let middle = usize::midpoint(too_few, enough);
            if self.has_room(&victims[..middle])? {
                enough = middle;
            } else {
                too_few = middle;
            }
        }
        let mut plan = victims;
        plan.truncate(enough);
        for at in (0..plan.len()).rev() {
            let kept = plan.remove(at);
            if !self.has_room(&plan)? || mutant!("preempts-too-many") {
                plan.insert(at, kept);
            }
        }
        Ok((plan.len() <= most).then_some(plan))
    }

    /// Whether the request has a candidate once these consumers have ended; false if the watch ends
    /// the search.
    fn has_room(&mut self, ended: &[Victim<'_>]) -> Result<bool, UnknownName> {
        if self.interrupted || (self.watch)(0).is_break() {
            self.interrupted = true;
            return Ok(false);
        }
        let state = self.state.without(ended.iter().map(|(uuid, ..)| *uuid));
        let mut search = state.candidates(&self.request, Some(Box::new(&mut *self.watch)))?;
        let has_room = search.advance().is_some();
        self.interrupted |= !has_room && search.interrupted();
        Ok(has_room)
    }
}
