//! A resolved request: names replaced by ids, and groups by variables to be placed.

use std::collections::BTreeSet;

use super::request::{CandidateRequest, GroupPolicy, RequestGroup};
use crate::state::change::{ResourceClassId, TraitId};
use crate::state::indexes::offer;
use crate::state::tree::{Node, TreeNumber};
use crate::state::tree_set::TreeSet;
use crate::state::{NodePlace, State};
use crate::types::{AggregateUuid, Given, TraitName};

/// A request with all names resolved.
pub(super) struct Plan<'a> {
    pub(super) state: &'a State,
    /// One rule per group of the request, in the same order.
    pub(super) rules: Vec<Rule<'a>>,
    /// The variables to be placed: one per named group and per class of the unnumbered group.
    pub(super) variables: Vec<Variable>,
    pub(super) kinds: Vec<Kind>,
    /// All requested classes. Other fields refer to a class by its index here.
    pub(super) classes: Vec<ResourceClassId>,
    /// For each `same_subtree` with several groups, the kinds in it.
    pub(super) subtrees: Vec<Vec<usize>>,
    /// Trait sets of the unnumbered group. For each set, some provider of the group must have one
    /// of its traits.
    pub(super) trait_sets: Vec<Vec<TraitId>>,
    /// Traits that the anchor's root must have.
    pub(super) root_required: Vec<TraitId>,
    /// Traits that the anchor's root must not have.
    pub(super) root_forbidden: Vec<TraitId>,
    /// Whether each named group must have a separate provider.
    pub(super) isolate: bool,
    /// Whether at most one provider per tree may be used.
    pub(super) one_per_tree: bool,
    /// The classes that several kinds compete for.
    pub(super) contests: Vec<ContendedClass>,
    /// Whether each variable can be placed independently of the others.
    pub(super) independent: bool,
    /// Seed of the random starting point, if requested.
    pub(super) seed: Option<u64>,
    pub(super) only_trees: Option<&'a TreeSet>,
    pub(super) not_trees: &'a TreeSet,
}

/// The conditions of a group on each of its providers.
pub(super) struct Rule<'a> {
    pub(super) named: bool,
    resourceless: bool,
    pub(super) required: Vec<Vec<TraitId>>,
    pub(super) forbidden: Vec<TraitId>,
    pub(super) member_of: &'a [BTreeSet<AggregateUuid>],
    pub(super) not_member_of: &'a BTreeSet<AggregateUuid>,
    pub(super) in_tree: Option<TreeNumber>,
}

/// A unit of the request that is placed on one provider.
pub(super) struct Variable {
    pub(super) group: usize,
    pub(super) kind: usize,
}

/// A set of variables with identical conditions, which are interchangeable.
pub(super) struct Kind {
    /// Index into [`Plan::rules`].
    pub(super) rule: usize,
    pub(super) demands: Vec<Demand>,
    pub(super) named: bool,
    /// Indexes into [`Plan::subtrees`].
    pub(super) subtrees: Vec<usize>,
    /// Number of variables of this kind.
    pub(super) count: u64,
}

/// A demand for units of one class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    /// Index into [`Plan::classes`].
    pub(super) class: usize,
    pub(super) id: ResourceClassId,
    pub(super) amount: u64,
}

/// A class that several kinds demand.
pub(super) struct ContendedClass {
    pub(super) class: usize,
    /// The index of each of these kinds, and the amount that it demands.
    pub(super) kinds: Vec<(usize, u64)>,
}

impl<'a> Plan<'a> {
    /// Builds the plan of a request; `None` if the request certainly has no answer, for example
    /// because of an unknown name.
    pub(super) fn build(state: &'a State, request: &'a CandidateRequest) -> Option<Self> {
        let mut plan = Self {
            state,
            rules: Vec::new(),
            variables: Vec::new(),
            kinds: Vec::new(),
            classes: Vec::new(),
            subtrees: Vec::new(),
            trait_sets: Vec::new(),
            root_required: ids(state, &request.root_required)?,
            root_forbidden: ids(state, &request.root_forbidden)?,
            isolate: request.group_policy == Some(GroupPolicy::Isolate),
            one_per_tree: !request.nested && !state.indexes().nested().is_empty(),
            contests: Vec::new(),
            independent: false,
            seed: request.seed,
            only_trees: request.only_trees.as_ref(),
            not_trees: &request.not_trees,
        };
        // A `same_subtree` of a single group is no constraint.
        let several = |suffixes: &&BTreeSet<String>| {
            let groups = request.groups.iter();
            let concerned = groups.filter(|group| suffixes.contains(&group.suffix));
            concerned.count() > 1
        };
        let subtrees: Vec<_> = request.same_subtree.iter().filter(several).collect();
        for (index, group) in request.groups.iter().enumerate() {
            plan.rules.push(Rule::resolve(state, group)?);
            plan.add_variables(&request.groups, index, &subtrees)?;
        }
        let kinds_in = |subtree| {
            let is_in = |kind: &usize| plan.kinds[*kind].subtrees.contains(&subtree);
            (0..plan.kinds.len()).filter(is_in).collect()
        };
        plan.subtrees = (0..subtrees.len()).map(kinds_in).collect();
        plan.find_contests();
        (!plan.variables.is_empty()).then_some(plan)
    }

    fn add_variables(
        &mut self,
        groups: &[RequestGroup],
        index: usize,
        subtrees: &[&BTreeSet<String>],
    ) -> Option<()> {
        let group = &groups[index];
        let mut demands = Vec::new();
        for (name, amount) in &group.resources {
            let id = self.state.class_given(name)?;
            let known = self.classes.iter().position(|class| *class == id);
            let class = known.unwrap_or(self.classes.len());
            if known.is_none() {
                self.classes.push(id);
            }
            demands.push(Demand {
                class,
                id,
                amount: *amount,
            });
        }
        if !self.rules[index].named {
            self.trait_sets = self.rules[index].required.clone();
            for demand in demands {
                self.add_variable(index, vec![demand], Vec::new());
            }
            return (!group.resources.is_empty()).then_some(());
        }
        let subtrees = (0..subtrees.len())
            .filter(|subtree| subtrees[*subtree].contains(&group.suffix))
            .collect();
        let like = self.variables.iter().find(|variable| {
            let kind = &self.kinds[variable.kind];
            kind.named && kind.subtrees == subtrees && alike(&groups[variable.group], group)
        });
        match like.map(|like| like.kind) {
            Some(kind) => {
                self.kinds[kind].count += 1;
                self.variables.push(Variable { group: index, kind });
            }
            None => self.add_variable(index, demands, subtrees),
        }
        Some(())
    }

    fn add_variable(&mut self, group: usize, demands: Vec<Demand>, subtrees: Vec<usize>) {
        self.variables.push(Variable {
            group,
            kind: self.kinds.len(),
        });
        self.kinds.push(Kind {
            rule: group,
            demands,
            named: self.rules[group].named,
            subtrees,
            count: 1,
        });
    }

    fn find_contests(&mut self) {
        let mut several_of_a_kind = false;
        for class in 0..self.classes.len() {
            let kinds: Vec<(usize, u64)> = (0..self.kinds.len())
                .filter_map(|kind| Some((kind, self.kinds[kind].demand(class)?)))
                .collect();
            several_of_a_kind |= kinds.iter().any(|(kind, _)| self.kinds[*kind].count > 1);
            if kinds.len() > 1 {
                self.contests.push(ContendedClass { class, kinds });
            }
        }
        let named = self.kinds.iter().filter(|kind| kind.named);
        self.isolate &= named.map(|kind| kind.count).sum::<u64>() > 1;
        self.independent = self.contests.is_empty()
            && !several_of_a_kind
            && !self.isolate
            && !self.one_per_tree
            && self.subtrees.is_empty()
            && self.trait_sets.is_empty();
    }

    /// Whether a provider of the anchor's tree can serve a variable of this kind, regardless of
    /// other variables.
    pub(super) fn serves(&self, kind: &Kind, tree: TreeNumber, root: &Node, node: &Node) -> bool {
        let rule = &self.rules[kind.rule];
        if rule.named {
            return kind.has_room(node) && rule.named_accepts(tree, node);
        }
        kind.has_room(node)
            && rule.in_tree.is_none_or(|only| only == tree)
            && !has_any(node, &rule.forbidden)
            && (node.is_member(rule.member_of) || root.is_member(rule.member_of))
            && !rule.is_forbidden(node)
            && !rule.is_forbidden(root)
    }

    /// Whether a provider can serve any kind for its own tree or, if it shares, for other trees.
    pub(super) fn could_use(&self, place: NodePlace) -> bool {
        let Some(tree) = self.state.tree(place.tree) else {
            return false;
        };
        let node = &tree.nodes[place.node as usize];
        self.kinds.iter().any(|kind| {
            self.serves(kind, place.tree, &tree.nodes[0], node)
                || self.serves_others(kind, place.tree, node)
        })
    }

    /// Whether a sharing provider can serve a variable of this kind for other trees. The filter
    /// checks the conditions on the anchor's root.
    pub(super) fn serves_others(&self, kind: &Kind, tree: TreeNumber, node: &Node) -> bool {
        let rule = &self.rules[kind.rule];
        (rule.named || rule.in_tree.is_none()) && self.serves(kind, tree, node, node)
    }
}

impl Kind {
    fn demand(&self, class: usize) -> Option<u64> {
        let demand = self.demands.iter().find(|demand| demand.class == class);
        demand.map(|demand| demand.amount)
    }

    fn has_room(&self, node: &Node) -> bool {
        self.demands.iter().all(|Demand { id, amount, .. }| {
            let stock = node.stock(*id);
            stock.is_some_and(|stock| {
                stock.inventory.permits_amount(*amount) && offer(stock) >= *amount
            })
        })
    }
}

impl<'a> Rule<'a> {
    fn resolve(state: &State, group: &'a RequestGroup) -> Option<Self> {
        let required = group.required.iter().map(|any| ids(state, any));
        let in_tree = match &group.in_tree {
            Some(provider) => Some(state.place_given(provider)?.tree),
            None => None,
        };
        let resourceless = group.resources.is_empty();
        Some(Self {
            named: !group.suffix.is_empty(),
            resourceless,
            required: required.collect::<Option<_>>()?,
            forbidden: ids(state, &group.forbidden)?,
            member_of: &group.member_of,
            not_member_of: &group.not_member_of,
            // Upstream ignores `in_tree` for a resourceless group.
            in_tree: in_tree.filter(|_| !resourceless),
        })
    }

    fn named_accepts(&self, tree: TreeNumber, node: &Node) -> bool {
        // For a resourceless group, upstream starts from the providers that meet a positive
        // condition. If the group has only negative conditions, upstream finds no provider.
        (!self.resourceless || !self.required.is_empty() || !self.member_of.is_empty())
            && self.in_tree.is_none_or(|only| only == tree)
            && self.required.iter().all(|any| has_any(node, any))
            && !has_any(node, &self.forbidden)
            && node.is_member(self.member_of)
            && !self.is_forbidden(node)
    }

    fn is_forbidden(&self, node: &Node) -> bool {
        let mut barred = self.not_member_of.iter();
        barred.any(|aggregate| node.aggregates.contains(aggregate))
    }
}

/// Whether a provider has at least one of these traits.
pub(super) fn has_any(node: &Node, traits: &[TraitId]) -> bool {
    traits.iter().any(|id| node.traits.contains(id))
}

fn alike(one: &RequestGroup, other: &RequestGroup) -> bool {
    one.resources == other.resources
        && one.required == other.required
        && one.forbidden == other.forbidden
        && one.member_of == other.member_of
        && one.not_member_of == other.not_member_of
        && one.in_tree == other.in_tree
}

fn ids(state: &State, names: &BTreeSet<Given<TraitName>>) -> Option<Vec<TraitId>> {
    names.iter().map(|name| state.trait_given(name)).collect()
}
