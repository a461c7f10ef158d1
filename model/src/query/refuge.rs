//! Where the consumers of some trees could go, if these trees had to be emptied.
//!
//! One consumer after the other claims room elsewhere in a copy of the state, the largest first. So
//! the moves that are found can be made on this state, one after the other, while a consumer that
//! is left may have room in another assignment of all consumers.

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::{CandidateRequest, GenerationStrategy, GroupPolicy, RequestGroup, Watch};
use super::consumers::ListedAllocation;
use super::explain::Explanation;
pub use super::ranked::Order;
use super::ranked::{CANDIDATES_MAX, Ranked};
use super::{NamedProvider, UnknownName};
use crate::command::{
    ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, ProviderAmounts,
};
use crate::mutant;
use crate::state::State;
use crate::state::change::ConsumerRow;
use crate::state::tree::Tree;
use crate::state::tree_set::TreeSet;
use crate::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Given, ProjectId, ProviderUuid,
    ResourceClassName, TraitName,
};

/// The consumer type of the source of a move in progress, which Nova removes by itself.
const MIGRATION: &str = "MIGRATION";
/// Maximum number of explanations.
const EXPLAINED_MAX: usize = 20;
/// Maximum number of trees in a list.
const LISTED_MAX: usize = 1_000;

/// The trees to empty, and conditions on the other trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefugeRequest {
    /// Providers of the trees to empty.
    pub providers: BTreeSet<ProviderUuid>,
    /// Conditions on the new trees.
    pub elsewhere: ElsewhereRequest,
}

/// Conditions on the trees where consumers could go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElsewhereRequest {
    /// Traits that the root of a consumer's new tree must have.
    pub required: BTreeSet<Given<TraitName>>,
    /// Traits that this root must not have.
    pub forbidden: BTreeSet<Given<TraitName>>,
    /// For each set, this root must be a member of one of its aggregates.
    pub member_of: Vec<BTreeSet<AggregateUuid>>,
    /// Which candidates are preferred.
    pub order: Order,
}

/// Where consumers could go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Refuge {
    /// Number of consumers to move.
    pub consumers: usize,
    /// Number of consumers of the type `MIGRATION`, which are not moved.
    pub migrations: usize,
    /// Number of consumers with holds, which are not moved.
    pub holds: usize,
    /// Moves that are possible in this order.
    pub moves: Vec<Move>,
    /// Consumers without room, the largest first.
    pub left: Vec<Left>,
    /// Explanations of their requests after the moves, each different request once.
    pub explanations: Vec<Explanation>,
    /// Whether all consumers were searched for. If not, some are neither moved nor left.
    pub complete: bool,
    /// Whether no other assignment has room for more consumers.
    pub exact: bool,
}

/// A consumer and the allocations it could have elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// The project that owns its allocations.
    pub project: ProjectId,
    /// The allocations that replace those in the emptied trees.
    pub to: Vec<ListedAllocation>,
}

/// A consumer without room elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Left {
    /// The consumer.
    pub consumer: ConsumerUuid,
    /// The project that owns its allocations.
    pub project: ProjectId,
    /// Its consumer type.
    pub consumer_type: Option<ConsumerTypeName>,
    /// Its allocated units in the emptied trees.
    pub resources: BTreeMap<ResourceClassName, u64>,
    /// The index of its request in [`Refuge::explanations`]; `None` beyond 20 different requests.
    pub why: Option<usize>,
}

/// Which trees could be emptied, each by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EachRefuge {
    /// Number of trees that were looked at.
    pub trees: usize,
    /// Number of trees with consumers that have no room elsewhere.
    pub stuck: usize,
    /// The first 1,000 of these trees, in the order of their creation.
    pub list: Vec<StuckTree>,
    /// Number of trees that were not looked at: there was no time, or they have too many consumers.
    pub undecided: usize,
}

/// A tree with consumers that have no room elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckTree {
    /// The root of the tree.
    pub root: NamedProvider,
    /// Number of consumers to move.
    pub consumers: usize,
    /// Number of consumers without room.
    pub left: usize,
    /// Allocated units of the largest one in the tree.
    pub largest: BTreeMap<ResourceClassName, u64>,
    /// As [`Refuge::exact`].
    pub exact: bool,
}

/// An error of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefugeError {
    /// A provider does not exist.
    UnknownProvider(ProviderUuid),
    /// The trees have more than [`CONSUMERS_MAX`](super::CONSUMERS_MAX) consumers.
    TooManyConsumers,
    /// A trait does not exist.
    UnknownName(UnknownName),
}

/// The consumers to move, the largest first.
struct Guests<'a> {
    list: Vec<Guest<'a>>,
    /// Number of migrations, which are not moved.
    migrations: usize,
    /// Number of holds, which are not moved.
    holds: usize,
}

impl Guests<'_> {
    fn are_equal(&self) -> bool {
        let mut pairs = self.list.windows(2);
        pairs.all(|pair| pair[0].request == pair[1].request)
    }
}

/// A consumer to move.
struct Guest<'a> {
    consumer: &'a ConsumerUuid,
    row: &'a ConsumerRow,
    request: CandidateRequest,
    /// The largest share of a provider's capacity that it holds.
    share: f64,
}

impl State {
    /// Finds out where the consumers of some trees could go. Holdings on a root become the
    /// unnumbered group of a request, holdings on each other provider a numbered group. Holdings in
    /// other trees, such as those on sharing providers, stay. The watch is called before and during
    /// each search, and may end the answer early.
    ///
    /// # Errors
    /// A provider or a trait does not exist, or there are too many consumers.
    pub fn refuge(
        &self,
        request: &RefugeRequest,
        mut watch: Watch<'_>,
    ) -> Result<Refuge, RefugeError> {
        let emptied = self.trees_to_empty(&request.providers)?;
        let elsewhere = self.elsewhere(&request.elsewhere, &emptied);
        let guests = self.guests(&emptied, &elsewhere);
        let guests = guests.ok_or(RefugeError::TooManyConsumers)?;
        let (mut refuge, after) =
            self.empty(&emptied, &guests, request.elsewhere.order, &mut watch)?;
        after.explain_left(&guests, &mut refuge, &mut watch);
        Ok(refuge)
    }

    /// Finds out for each tree by itself whether it could be emptied, such as for the loss of any
    /// host. With aggregates, only trees whose root is a member are looked at. Trees whose root is
    /// a sharing provider, such as storage, are left out.
    ///
    /// # Errors
    /// A trait does not exist.
    pub fn refuge_of_each(
        &self,
        request: &ElsewhereRequest,
        mut watch: Watch<'_>,
    ) -> Result<EachRefuge, RefugeError> {
        let mut each = EachRefuge::default();
        let sharing = self.sharing_trait();
        let shares = |tree: &Tree| sharing.is_some_and(|id| tree.root().traits.contains(&id));
        let mut is_late = false;
        let all = self.elsewhere(request, &TreeSet::default());
        let trees = self.trees().filter(|(number, _)| all.permits(*number));
        for (number, tree) in trees.filter(|(_, tree)| !shares(tree)) {
            if is_late {
                each.undecided += 1;
                continue;
            }
            let emptied = TreeSet::from_iter([number.0]);
            let elsewhere = CandidateRequest {
                not_trees: emptied.clone(),
                ..all.clone()
            };
            let Some(guests) = self.guests(&emptied, &elsewhere) else {
                each.undecided += 1;
                continue;
            };
            let (refuge, _) = self.empty(&emptied, &guests, request.order, &mut watch)?;
            if !refuge.complete {
                each.undecided += 1;
                is_late = true;
                continue;
            }
            each.trees += 1;
            if let Some(largest) = refuge.left.first() {
                each.stuck += 1;
                if each.list.len() < LISTED_MAX {
                    each.list.push(StuckTree {
                        root: NamedProvider::from_node(tree.root()),
                        consumers: refuge.consumers,
                        left: refuge.left.len(),
                        largest: largest.resources.clone(),
                        exact: refuge.exact,
                    });
                }
            }
        }
        Ok(each)
    }

    /// Moves the guests of these trees in a copy of the state, one after the other.
    fn empty(
        &self,
        emptied: &TreeSet,
        guests: &Guests<'_>,
        order: Order,
        watch: &mut Watch<'_>,
    ) -> Result<(Refuge, Self), RefugeError> {
        let mut refuge = Refuge {
            consumers: guests.list.len(),
            migrations: guests.migrations,
            holds: guests.holds,
            complete: true,
            ..Refuge::default()
        };
        let mut state = self.clone();
        let mut stuck: Vec<&CandidateRequest> = Vec::new();
        let mut all_alone = true;
        for guest in &guests.list {
            if watch(0).is_break() {
                refuge.complete = false;
                break;
            }
            // Room only becomes less.
            let found = if stuck.contains(&&guest.request) {
                None
            } else {
                let found = state.ranked(
                    &guest.request,
                    (order, CANDIDATES_MAX),
                    Box::new(&mut *watch),
                );
                let found = found.map_err(RefugeError::UnknownName)?;
                if found.interrupted {
                    refuge.complete = false;
                    break;
                }
                let mut list = found.list.into_iter();
                list.find(|one| !self.uses_any(one, emptied))
            };
            let moved = found.and_then(|one| {
                let changes = state.changes_of(vec![guest.holding_both(self, &one)])?;
                Some((one, changes))
            });
            let Some((one, changes)) = moved else {
                if !stuck.contains(&&guest.request) {
                    stuck.push(&guest.request);
                }
                refuge.left.push(guest.left());
                continue;
            };
            all_alone &= state.is_only_provider(&one);
            if !mutant!("refuge-room-twice") {
                state.commit(&changes);
            }
            refuge.moves.push(Move {
                consumer: guest.consumer.clone(),
                project: guest.row.project.clone(),
                to: state.listed_amounts(&one.amounts),
            });
        }
        refuge.exact = refuge.complete
            && (refuge.left.is_empty()
                || guests.are_equal() && all_alone
                || mutant!("refuge-always-exact")
                || self.has_no_candidates(&stuck, watch)?);
        Ok((refuge, state))
    }

    /// The amounts of a candidate, with the names of providers.
    fn listed_amounts(&self, amounts: &[ProviderAmounts]) -> Vec<ListedAllocation> {
        let listed = |one: &ProviderAmounts| {
            let Given::Valid(uuid) = one.provider else {
                return None;
            };
            let resources = one
                .resources
                .iter()
                .filter_map(|(class, units)| match class {
                    Given::Valid(name) => Some((name.clone(), *units)),
                    Given::Malformed(_) => None,
                });
            Some(self.listed_allocation(self.place(&uuid)?, resources.collect()))
        };
        amounts.iter().filter_map(listed).collect()
    }

    fn trees_to_empty(&self, providers: &BTreeSet<ProviderUuid>) -> Result<TreeSet, RefugeError> {
        let trees = providers.iter().map(|uuid| {
            let place = self
                .place(uuid)
                .ok_or(RefugeError::UnknownProvider(*uuid))?;
            Ok(place.tree.0)
        });
        trees.collect()
    }

    /// A request without groups, for candidates outside of the emptied trees.
    fn elsewhere(&self, request: &ElsewhereRequest, emptied: &TreeSet) -> CandidateRequest {
        let roots_in = |any: &BTreeSet<AggregateUuid>| {
            let sets = any
                .iter()
                .filter_map(|one| self.indexes().with_root_member(one));
            sets.fold(TreeSet::default(), |mut trees, set| {
                trees.absorb(set);
                trees
            })
        };
        let only_trees = request
            .member_of
            .iter()
            .map(roots_in)
            .reduce(|all, set| all.iter().filter(|tree| set.contains(*tree)).collect());
        CandidateRequest {
            group_policy: Some(GroupPolicy::None),
            root_required: request.required.clone(),
            root_forbidden: request.forbidden.clone(),
            nested: true,
            strategy: GenerationStrategy::BreadthFirst,
            only_trees,
            not_trees: if mutant!("refuge-takes-back") {
                TreeSet::default()
            } else {
                emptied.clone()
            },
            ..CandidateRequest::default()
        }
    }

    /// The consumers of these trees; `None` if there are too many.
    fn guests(&self, emptied: &TreeSet, elsewhere: &CandidateRequest) -> Option<Guests<'_>> {
        let (mut migrations, mut holds) = (0, 0);
        let mut list = Vec::new();
        for (consumer, row) in self.consumers_in(emptied)? {
            let is_migration = row
                .consumer_type
                .as_ref()
                .is_some_and(|one| one.as_str() == MIGRATION);
            if is_migration {
                migrations += 1;
            } else if row.hold.is_some() {
                holds += 1;
            } else {
                list.push(self.guest(consumer, row, emptied, elsewhere));
            }
        }
        list.sort_by(|one, other| {
            let by_share = other.share.total_cmp(&one.share);
            by_share.then_with(|| one.consumer.cmp(other.consumer))
        });
        Some(Guests {
            list,
            migrations,
            holds,
        })
    }

    fn guest<'a>(
        &self,
        consumer: &'a ConsumerUuid,
        row: &'a ConsumerRow,
        emptied: &TreeSet,
        elsewhere: &CandidateRequest,
    ) -> Guest<'a> {
        let (mut root, mut others) = (None, Vec::new());
        for (place, amounts) in self.held_in(row, emptied) {
            let group = if place.node == 0 {
                root.get_or_insert_with(RequestGroup::default)
            } else {
                others.push(RequestGroup {
                    suffix: (others.len() + 1).to_string(),
                    ..RequestGroup::default()
                });
                others.last_mut().expect("a group was added")
            };
            for (class, units) in self.named(amounts) {
                let sum = group.resources.entry(Given::Valid(class)).or_default();
                *sum = sum.saturating_add(units);
            }
        }
        Guest {
            consumer,
            row,
            request: CandidateRequest {
                groups: root.into_iter().chain(others).collect(),
                ..elsewhere.clone()
            },
            share: self.largest_share(row, emptied),
        }
    }

    /// Whether a candidate uses a provider of these trees: they may share resources with others.
    fn uses_any(&self, candidate: &Ranked, trees: &TreeSet) -> bool {
        let providers = candidate
            .amounts
            .iter()
            .filter_map(|one| one.provider.valid());
        let mut places = providers.filter_map(|uuid| self.place(uuid));
        places.any(|place| trees.contains(place.tree.0)) && !mutant!("refuge-takes-back")
    }

    /// Whether a candidate uses only one provider, which is alone in its tree and not shared.
    fn is_only_provider(&self, candidate: &Ranked) -> bool {
        let mut trees = candidate.trees.iter().filter_map(|tree| self.tree(*tree));
        let is_alone = trees.next().is_some_and(|tree| tree.nodes.len() == 1);
        is_alone && candidate.amounts.len() == 1
    }

    /// Whether none of these requests has a candidate in this state.
    fn has_no_candidates(
        &self,
        requests: &[&CandidateRequest],
        watch: &mut Watch<'_>,
    ) -> Result<bool, RefugeError> {
        for request in requests {
            let watch: Watch<'_> = Box::new(&mut *watch);
            let search = self.candidates(request, Some(watch));
            let mut search = search.map_err(RefugeError::UnknownName)?;
            if search.advance().is_some() || search.interrupted() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Explains why consumers have no room in this state.
    fn explain_left(&self, guests: &Guests<'_>, refuge: &mut Refuge, watch: &mut Watch<'_>) {
        let mut explained: Vec<&CandidateRequest> = Vec::new();
        let mut guests = guests.list.iter();
        for one in &mut refuge.left {
            let guest = guests.find(|guest| *guest.consumer == one.consumer);
            let request = &guest
                .expect("each one left is a guest, in the same order")
                .request;
            one.why = explained.iter().position(|other| *other == request);
            if one.why.is_none() && explained.len() < EXPLAINED_MAX {
                let watch: Watch<'_> = Box::new(&mut *watch);
                // A request with too many conditions has no explanation.
                if let Ok(explanation) = self.explain(request, watch, &|_| None) {
                    one.why = Some(explained.len());
                    explained.push(request);
                    refuge.explanations.push(explanation);
                }
            }
        }
    }
}

impl Guest<'_> {
    /// The consumer with its allocations so far and the new ones: during a move it holds both.
    fn holding_both(&self, state: &State, new: &Ranked) -> ConsumerAllocations {
        let mut allocations = new.amounts.clone();
        for (provider, amounts) in self.row.allocations.by_provider() {
            let node = state
                .node_by_id(provider)
                .expect("the provider of an allocation exists");
            let uuid = Given::Valid(node.uuid);
            let at = allocations
                .iter()
                .position(|one| one.provider == uuid)
                .unwrap_or_else(|| {
                    allocations.push(ProviderAmounts {
                        provider: uuid,
                        resources: BTreeMap::new(),
                    });
                    allocations.len() - 1
                });
            for (class, units) in state.named(amounts) {
                let sum = allocations[at]
                    .resources
                    .entry(Given::Valid(class))
                    .or_default();
                *sum = sum.saturating_add(units);
            }
        }
        ConsumerAllocations {
            consumer: self.consumer.clone(),
            allocations,
            project: self.row.project.clone(),
            user: self.row.user.clone(),
            generation: ConsumerGeneration::Unchecked,
            consumer_type: ConsumerTypeUpdate::Keep,
        }
    }

    fn left(&self) -> Left {
        let mut resources = BTreeMap::new();
        for (class, units) in self
            .request
            .groups
            .iter()
            .flat_map(|group| &group.resources)
        {
            if let Given::Valid(class) = class {
                *resources.entry(class.clone()).or_default() += units;
            }
        }
        Left {
            consumer: self.consumer.clone(),
            project: self.row.project.clone(),
            consumer_type: self.row.consumer_type.clone(),
            resources,
            why: None,
        }
    }
}
