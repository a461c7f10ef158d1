//! What a request asks, in the terms of the state: ids for names, and variables to be placed.

use std::collections::BTreeSet;

use super::request::{CandidateRequest, GroupPolicy, RequestGroup};
use crate::state::change::{ResourceClassId, TraitId};
use crate::state::indexes::offer;
use crate::state::tree::{Node, TreeNumber};
use crate::state::{Place, State};
use crate::types::{AggregateUuid, Given, TraitName};

/// A resolved request.
pub(super) struct Plan<'a> {
    pub(super) state: &'a State,
    /// One for each group of the request, in its order.
    pub(super) rules: Vec<Rule<'a>>,
    /// What is to be placed: each named group, each class of the unnumbered group.
    pub(super) variables: Vec<Variable>,
    pub(super) kinds: Vec<Kind>,
    /// All classes asked for. Elsewhere a class is its index here.
    pub(super) classes: Vec<ResourceClassId>,
    /// For each `same_subtree` that constrains anything, the kinds in it.
    pub(super) subtrees: Vec<Vec<usize>>,
    /// Sets of traits which the providers of the unnumbered group must have between them, one
    /// of each set.
    pub(super) trait_sets: Vec<Vec<TraitId>>,
    pub(super) root: RootRule,
    /// Named groups must have providers of their own.
    pub(super) isolate: bool,
    /// At most one provider of each tree may be used.
    pub(super) one_per_tree: bool,
    /// Kinds that compete for the same class.
    pub(super) contests: Vec<Contest>,
    /// No variable's place bears on another's.
    pub(super) independent: bool,
    /// Where to begin.
    pub(super) seed: Option<u64>,
}

/// What a group asks of each provider it uses.
pub(super) struct Rule<'a> {
    pub(super) named: bool,
    resourceless: bool,
    pub(super) required: Vec<Vec<TraitId>>,
    pub(super) forbidden: Vec<TraitId>,
    pub(super) member_of: &'a [BTreeSet<AggregateUuid>],
    pub(super) not_member_of: &'a BTreeSet<AggregateUuid>,
    pub(super) in_tree: Option<TreeNumber>,
}

/// Something to be placed on one provider.
pub(super) struct Variable {
    pub(super) group: usize,
    pub(super) kind: usize,
}

/// Variables that ask exactly the same: whatever holds of one holds of the others.
pub(super) struct Kind {
    /// Index of the rule.
    pub(super) rule: usize,
    pub(super) demands: Vec<Demand>,
    pub(super) named: bool,
    /// Indexes into [`Plan::subtrees`].
    pub(super) subtrees: Vec<usize>,
    /// How many variables are of this kind.
    pub(super) count: u64,
}

/// Units of one class.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    /// Index into [`Plan::classes`].
    pub(super) class: usize,
    pub(super) id: ResourceClassId,
    pub(super) amount: u64,
}

/// What is asked of an anchor's root.
#[derive(Default)]
pub(super) struct RootRule {
    pub(super) required: Vec<TraitId>,
    pub(super) forbidden: Vec<TraitId>,
}

/// Several kinds want the same class.
pub(super) struct Contest {
    pub(super) class: usize,
    /// Kind and amount.
    pub(super) kinds: Vec<(usize, u64)>,
}

impl<'a> Plan<'a> {
    /// The plan of a request; `None` if it certainly has no answer, as is so when it names what does
    /// not exist.
    pub(super) fn build(state: &'a State, request: &'a CandidateRequest) -> Option<Self> {
        let mut plan = Self {
            state,
            rules: Vec::new(),
            variables: Vec::new(),
            kinds: Vec::new(),
            classes: Vec::new(),
            subtrees: Vec::new(),
            trait_sets: Vec::new(),
            root: RootRule {
                required: ids(state, &request.root_required)?,
                forbidden: ids(state, &request.root_forbidden)?,
            },
            isolate: request.group_policy == Some(GroupPolicy::Isolate),
            one_per_tree: !request.nested && !state.indexes().nested().is_empty(),
            contests: Vec::new(),
            independent: false,
            seed: request.seed,
        };
        // One group alone is no constraint.
        let several = |suffixes: &&BTreeSet<String>| {
            request
                .groups
                .iter()
                .filter(|group| suffixes.contains(&group.suffix))
                .count()
                > 1
        };
        let subtrees: Vec<&BTreeSet<String>> =
            request.same_subtree.iter().filter(several).collect();
        for (index, group) in request.groups.iter().enumerate() {
            plan.rules.push(Rule::of(state, group)?);
            plan.add_variables(&request.groups, index, &subtrees)?;
        }
        plan.subtrees = (0..subtrees.len())
            .map(|subtree| plan.kinds_where(|kind| kind.subtrees.contains(&subtree)))
            .collect();
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
            let class = self
                .classes
                .iter()
                .position(|class| *class == id)
                .unwrap_or_else(|| {
                    self.classes.push(id);
                    self.classes.len() - 1
                });
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

    fn kinds_where(&self, of: impl Fn(&Kind) -> bool) -> Vec<usize> {
        (0..self.kinds.len())
            .filter(|kind| of(&self.kinds[*kind]))
            .collect()
    }

    fn find_contests(&mut self) {
        let mut several_of_a_kind = false;
        for class in 0..self.classes.len() {
            let kinds: Vec<(usize, u64)> = (0..self.kinds.len())
                .filter_map(|kind| Some((kind, self.kinds[kind].demand(class)?)))
                .collect();
            several_of_a_kind |= kinds.iter().any(|(kind, _)| self.kinds[*kind].count > 1);
            if kinds.len() > 1 {
                self.contests.push(Contest { class, kinds });
            }
        }
        let named: u64 = self
            .kinds
            .iter()
            .filter(|kind| kind.named)
            .map(|kind| kind.count)
            .sum();
        self.isolate &= named > 1;
        self.independent = self.contests.is_empty()
            && !several_of_a_kind
            && !self.isolate
            && !self.one_per_tree
            && self.subtrees.is_empty()
            && self.trait_sets.is_empty();
    }

    /// Whether a provider inside the anchor's tree can serve a variable of this kind, as far as
    /// it alone is concerned.
    pub(super) fn serves(&self, kind: &Kind, tree: TreeNumber, root: &Node, node: &Node) -> bool {
        let rule = &self.rules[kind.rule];
        if rule.named {
            return kind.has_room(node) && rule.named_accepts(tree, node);
        }
        kind.has_room(node)
            && rule.in_tree.is_none_or(|only| only == tree)
            && !has_any(node, &rule.forbidden)
            && (rule.is_member(node) || rule.is_member(root))
            && !rule.is_barred(node)
            && !rule.is_barred(root)
    }

    /// Whether a provider can serve anything for its own tree or, if it shares, for others.
    pub(super) fn could_use(&self, place: Place) -> bool {
        let Some(tree) = self.state.tree(place.tree) else {
            return false;
        };
        let node = &tree.nodes[place.node as usize];
        self.kinds.iter().any(|kind| {
            self.serves(kind, place.tree, &tree.nodes[0], node)
                || self.serves_others(kind, place.tree, node)
        })
    }

    /// Whether a sharing provider can serve a variable of this kind for other trees. What is
    /// asked of the anchor's root is left to the filter.
    pub(super) fn serves_others(&self, kind: &Kind, tree: TreeNumber, node: &Node) -> bool {
        let rule = &self.rules[kind.rule];
        if rule.named {
            return kind.has_room(node) && rule.named_accepts(tree, node);
        }
        kind.has_room(node)
            && rule.in_tree.is_none()
            && !has_any(node, &rule.forbidden)
            && rule.is_member(node)
            && !rule.is_barred(node)
    }
}

impl Kind {
    fn demand(&self, class: usize) -> Option<u64> {
        self.demands
            .iter()
            .find(|demand| demand.class == class)
            .map(|demand| demand.amount)
    }

    fn has_room(&self, node: &Node) -> bool {
        self.demands.iter().all(|demand| {
            node.inventories
                .iter()
                .find(|stock| stock.class == demand.id)
                .is_some_and(|stock| {
                    stock.inventory.permits_amount(demand.amount) && offer(stock) >= demand.amount
                })
        })
    }
}

impl<'a> Rule<'a> {
    fn of(state: &State, group: &'a RequestGroup) -> Option<Self> {
        let required = group
            .required
            .iter()
            .map(|any| ids(state, any))
            .collect::<Option<_>>()?;
        let in_tree = match &group.in_tree {
            Some(provider) => Some(state.place_given(provider)?.tree),
            None => None,
        };
        let resourceless = group.resources.is_empty();
        Some(Self {
            named: !group.suffix.is_empty(),
            resourceless,
            required,
            forbidden: ids(state, &group.forbidden)?,
            member_of: &group.member_of,
            not_member_of: &group.not_member_of,
            // Upstream finds the providers of a resourceless group without it.
            in_tree: in_tree.filter(|_| !resourceless),
        })
    }

    fn named_accepts(&self, tree: TreeNumber, node: &Node) -> bool {
        // Without resources, upstream starts from the providers that have what is wanted; from
        // filters that only take away it gets none.
        (!self.resourceless || !self.required.is_empty() || !self.member_of.is_empty())
            && self.in_tree.is_none_or(|only| only == tree)
            && self.required.iter().all(|any| has_any(node, any))
            && !has_any(node, &self.forbidden)
            && self.is_member(node)
            && !self.is_barred(node)
    }

    fn is_member(&self, node: &Node) -> bool {
        is_member(self.member_of, node)
    }

    fn is_barred(&self, node: &Node) -> bool {
        self.not_member_of
            .iter()
            .any(|aggregate| node.aggregates.contains(aggregate))
    }
}

/// Whether a provider is in at least one aggregate of each set.
pub(super) fn is_member(member_of: &[BTreeSet<AggregateUuid>], node: &Node) -> bool {
    member_of.iter().all(|any| {
        any.iter()
            .any(|aggregate| node.aggregates.contains(aggregate))
    })
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
