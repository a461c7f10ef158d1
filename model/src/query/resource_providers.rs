//! Single providers and filtered lists of providers.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::UnknownName;
use super::tree_filter::{TreeFilter, with_any_member, with_any_members, with_any_traits};
use crate::outcome::Provider;
use crate::state::change::{ResourceClassId, TraitId};
use crate::state::tree::{Node, TreeNumber};
use crate::state::{NodePlace, State};
use crate::types::{
    AggregateUuid, Given, ProviderName, ProviderUuid, ResourceClassName, Timestamp, TraitName,
};

/// Selects providers. A provider must satisfy every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderFilter {
    /// The provider with exactly this name.
    pub name: Option<String>,
    /// The provider with this UUID.
    pub uuid: Option<Given<ProviderUuid>>,
    /// All providers of this provider's tree.
    pub in_tree: Option<Given<ProviderUuid>>,
    /// Providers that are members of at least one aggregate of each set.
    pub member_of: Vec<BTreeSet<AggregateUuid>>,
    /// Providers that are members of none of these aggregates.
    pub not_member_of: BTreeSet<AggregateUuid>,
    /// Providers with at least one trait of each set.
    pub required: Vec<BTreeSet<Given<TraitName>>>,
    /// Providers with none of these traits.
    pub forbidden: BTreeSet<Given<TraitName>>,
    /// Providers with room for each of these amounts, subject to min_unit, max_unit and step_size.
    pub resources: BTreeMap<Given<ResourceClassName>, u64>,
}

impl State {
    /// The provider with this UUID.
    pub fn provider(&self, uuid: &ProviderUuid) -> Option<Provider> {
        Some(self.provider_at(self.place(uuid)?))
    }

    /// Time of the last change after the provider's creation, if any. A root counts as changed at
    /// its creation: upstream inserts the row first and then sets the provider as its own root.
    pub fn provider_updated(&self, uuid: &ProviderUuid) -> Option<Timestamp> {
        let node = self.node(self.place(uuid)?);
        let changed = node.parent.is_none() || node.updated_at != node.created_at;
        changed.then_some(node.updated_at)
    }

    /// The provider at `place`, which must belong to this state.
    pub fn provider_at(&self, place: NodePlace) -> Provider {
        let node = self.node(place);
        let tree = self
            .tree(place.tree)
            .expect("a place refers to an existing tree");
        Provider {
            uuid: node.uuid,
            name: node.name.clone(),
            generation: node.generation,
            parent: tree.parent(place.node).map(|parent| parent.uuid),
            root: tree.root().uuid,
            modified: node.updated_at,
        }
    }

    /// Returns all providers that pass the filter, in the order of their creation, or `None` if
    /// this would require examining more than `looks_max` providers.
    ///
    /// # Errors
    /// The filter contains an unknown resource class or trait. Upstream evaluates the filters in
    /// the order `in_tree`, required traits, forbidden traits, `member_of`, resources, and stops at
    /// the first filter that no provider passes. An unknown name in a later filter is no error.
    pub fn providers(
        &self,
        filter: &ProviderFilter,
        looks_max: usize,
    ) -> Result<Option<Vec<Provider>>, UnknownName> {
        let mut looks = ScanBudget(Some(looks_max));
        let facts = self.facts(filter, &mut looks)?;
        let mut found = Vec::new();
        if let Some(facts) = &facts {
            let mut add = |place: NodePlace| {
                let node = self.node(place);
                let is_in_tree = facts.in_tree.is_none_or(|tree| tree == place.tree);
                if is_in_tree && facts.hold_of(node) && filter.names(node) {
                    found.push((node.id, place));
                }
                looks.take(1)
            };
            let trees = facts.trees(self);
            if let Some(few) = self.few(filter, facts.in_tree) {
                few.into_iter().all(add);
            } else if trees.is_bounded() {
                trees.flat_map(|number| self.places_of(number)).all(add);
            } else {
                self.providers.places().all(|(_, place)| add(place));
            }
        }
        if looks.0.is_none() {
            return Ok(None);
        }
        found.sort_by_key(|(id, _)| *id);
        let found = found.into_iter().map(|(_, place)| self.provider_at(place));
        Ok(Some(found.collect()))
    }

    fn places_of(&self, tree: TreeNumber) -> impl Iterator<Item = NodePlace> + use<> {
        let nodes = self.tree(tree).map_or(0, |tree| tree.nodes.len() as u32);
        (0..nodes).map(move |node| tree.node(node))
    }

    /// The places to examine, if the filter gives a UUID, a tree or a name.
    fn few(&self, filter: &ProviderFilter, in_tree: Option<TreeNumber>) -> Option<Vec<NodePlace>> {
        if let Some(uuid) = &filter.uuid {
            return Some(self.place_given(uuid).into_iter().collect());
        }
        if let Some(tree) = in_tree {
            return Some(self.places_of(tree).collect());
        }
        let name = filter.name.clone().filter(|name| !name.is_empty())?;
        let name = ProviderName::try_from(name).ok();
        let id = name.and_then(|name| self.providers.id_of_name(&name));
        Some(id.and_then(|id| self.place_by_id(id)).into_iter().collect())
    }

    /// Resolves the names of a filter; `None` if no provider can pass one of its conditions.
    fn facts<'a>(
        &self,
        filter: &'a ProviderFilter,
        looks: &mut ScanBudget,
    ) -> Result<Option<ResolvedFilter<'a>>, UnknownName> {
        let in_tree = filter
            .in_tree
            .as_ref()
            .map(|uuid| self.place_given(uuid).map(|place| place.tree));
        if in_tree == Some(None) {
            return Ok(None);
        }
        let known = |names| self.traits_given(names).map_err(UnknownName::Traits);
        let required = filter.required.iter().map(known);
        let mut facts = ResolvedFilter {
            filter,
            in_tree: in_tree.flatten(),
            required: required.collect::<Result<_, _>>()?,
            forbidden: BTreeSet::new(),
            resources: Vec::new(),
        };
        let trees = with_any_traits(self.indexes(), &facts.required);
        let has_required = |node: &Node| facts.has_required(node);
        if trees.is_bounded() && !self.has_any(trees, looks, has_required) {
            return Ok(None);
        }
        facts.forbidden = known(&filter.forbidden)?;
        let trees = with_any_members(self.indexes(), &filter.member_of);
        let is_member = |node: &Node| node.is_member(&filter.member_of);
        if trees.is_bounded() && !self.has_any(trees, looks, is_member) {
            return Ok(None);
        }
        for (name, amount) in &filter.resources {
            let id = self
                .class_given(name)
                .ok_or_else(|| UnknownName::ResourceClass(name.clone()))?;
            facts.resources.push((id, *amount));
        }
        Ok(Some(facts))
    }

    /// Whether any provider of these trees satisfies `has`.
    fn has_any(
        &self,
        trees: TreeFilter<'_>,
        looks: &mut ScanBudget,
        has: impl Fn(&Node) -> bool,
    ) -> bool {
        let trees = trees.filter_map(|number| self.tree(number));
        let nodes = trees.flat_map(|tree| &tree.nodes);
        nodes.take_while(|_| looks.take(1)).any(|node| has(node))
    }
}

/// Number of providers that may still be examined; `None` once the limit is exceeded.
struct ScanBudget(Option<usize>);

impl ScanBudget {
    fn take(&mut self, looks: usize) -> bool {
        self.0 = self.0.and_then(|left| left.checked_sub(looks));
        self.0.is_some()
    }
}

impl ProviderFilter {
    /// Whether the provider has the name and the UUID of the filter, if these are set.
    fn names(&self, node: &Node) -> bool {
        let uuid = self.uuid.as_ref();
        let name = self.name.as_ref();
        uuid.is_none_or(|uuid| uuid.valid() == Some(&node.uuid))
            && name.is_none_or(|name| name.is_empty() || name == node.name.as_str())
    }
}

/// A [`ProviderFilter`] with names resolved to ids.
struct ResolvedFilter<'a> {
    filter: &'a ProviderFilter,
    in_tree: Option<TreeNumber>,
    required: Vec<BTreeSet<TraitId>>,
    forbidden: BTreeSet<TraitId>,
    resources: Vec<(ResourceClassId, u64)>,
}

impl ResolvedFilter<'_> {
    /// The trees in which a provider may satisfy all conditions; unbounded if every tree must be
    /// examined.
    fn trees<'s>(&self, state: &'s State) -> TreeFilter<'s> {
        let indexes = state.indexes();
        let mut trees = with_any_traits(indexes, &self.required);
        for any in &self.filter.member_of {
            trees.require(with_any_member(indexes, any));
        }
        for (class, amount) in self.resources.iter().filter(|(_, amount)| *amount > 0) {
            let offering = indexes.offering(*class, *amount);
            trees.require(offering.map(Cow::Borrowed).collect());
        }
        trees
    }

    fn has_required(&self, node: &Node) -> bool {
        let mut sets = self.required.iter();
        sets.all(|any| !any.is_disjoint(&node.traits))
    }

    fn hold_of(&self, node: &Node) -> bool {
        let has_room = |(class, amount): &(ResourceClassId, u64)| {
            let stock = node.stock(*class);
            stock.is_some_and(|stock| stock.has_room_for(*amount))
        };
        self.has_required(node)
            && self.forbidden.is_disjoint(&node.traits)
            && node.is_member(&self.filter.member_of)
            && self.filter.not_member_of.is_disjoint(&node.aggregates)
            && self.resources.iter().all(has_room)
    }
}
