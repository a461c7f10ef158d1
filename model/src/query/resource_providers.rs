//! One provider, and lists of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::Provider;
use crate::state::change::{ProviderId, ResourceClassId, TraitId};
use crate::state::tree::Node;
use crate::state::{Place, State};
use crate::types::{
    AggregateUuid, Given, ProviderName, ProviderUuid, ResourceClassName, Timestamp, TraitName,
};

/// Which providers to list; everything given must hold of a provider at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderFilter {
    /// Exactly this name.
    pub name: Option<String>,
    /// This provider.
    pub uuid: Option<Given<ProviderUuid>>,
    /// The whole tree that this provider is in.
    pub in_tree: Option<Given<ProviderUuid>>,
    /// Member of at least one aggregate of each set.
    pub member_of: Vec<BTreeSet<AggregateUuid>>,
    /// Member of none of these.
    pub not_member_of: BTreeSet<AggregateUuid>,
    /// At least one trait of each set.
    pub required: Vec<BTreeSet<Given<TraitName>>>,
    /// None of these traits.
    pub forbidden: BTreeSet<Given<TraitName>>,
    /// Room for each of these amounts, min_unit, max_unit and step_size included.
    pub resources: BTreeMap<Given<ResourceClassName>, u64>,
}

/// A filter that names what does not exist, and that is looked at: as upstream evaluates filters
/// one after the other (`in_tree`, required traits, forbidden traits, `member_of`, resources) and
/// stops at the first that no provider passes, an unknown name behind that is not found out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No such resource class.
    #[error("no such resource class {0}")]
    UnknownResourceClass(Given<ResourceClassName>),
    /// No such traits.
    #[error("no such traits {0:?}")]
    UnknownTraits(Vec<Given<TraitName>>),
}

impl State {
    /// The provider with this UUID.
    pub fn provider(&self, uuid: &ProviderUuid) -> Option<Provider> {
        Some(self.provider_at(self.place(uuid)?))
    }

    /// When a provider was last changed after its creation, if ever. A root counts as changed
    /// when it is created: upstream makes its row first and then names it its own root.
    pub fn provider_updated(&self, uuid: &ProviderUuid) -> Option<Timestamp> {
        let node = self.node(self.place(uuid)?);
        let changed = node.parent.is_none() || node.updated_at != node.created_at;
        changed.then_some(node.updated_at)
    }

    /// The provider at a place of this state.
    pub fn provider_at(&self, place: Place) -> Provider {
        let node = self.node(place);
        let tree = self
            .tree(place.tree)
            .expect("a place names a tree that exists");
        Provider {
            uuid: node.uuid,
            name: node.name.clone(),
            generation: node.generation,
            parent: tree.parent(place.node).map(|parent| parent.uuid),
            root: tree.root().uuid,
            modified: node.updated_at,
        }
    }

    /// All providers that pass the filter, in the order of their creation.
    ///
    /// # Errors
    /// A filter that names an unknown resource class or trait.
    pub fn providers(&self, filter: &ProviderFilter) -> Result<Vec<Provider>, FilterError> {
        let Some(facts) = self.facts(filter)? else {
            return Ok(Vec::new());
        };
        let mut found: Vec<(ProviderId, Place)> = match self.few(filter) {
            Some(places) => places
                .into_iter()
                .map(|place| (self.node(place).id, place))
                .collect(),
            None => self.places().collect(),
        };
        found.retain(|(_, place)| {
            let node = self.node(*place);
            facts.hold_of(node)
                && filter
                    .uuid
                    .as_ref()
                    .is_none_or(|uuid| uuid.valid() == Some(&node.uuid))
                && filter
                    .name
                    .as_ref()
                    .is_none_or(|n| n.is_empty() || n == node.name.as_str())
        });
        found.sort_by_key(|(id, _)| *id);
        Ok(found
            .into_iter()
            .map(|(_, place)| self.provider_at(place))
            .collect())
    }

    /// The places to look at, if the filter itself says where they are.
    fn few(&self, filter: &ProviderFilter) -> Option<Vec<Place>> {
        if let Some(uuid) = &filter.uuid {
            let in_tree = filter.in_tree.as_ref().map(|uuid| self.place_given(uuid));
            let place = self.place_given(uuid);
            let same =
                |place: &Place| in_tree.is_none_or(|at| at.is_some_and(|at| at.tree == place.tree));
            return Some(place.into_iter().filter(same).collect());
        }
        if filter.in_tree.is_none() {
            let name = filter.name.clone().filter(|name| !name.is_empty())?;
            let id = ProviderName::try_from(name)
                .ok()
                .and_then(|name| self.id_of_name(&name));
            return Some(id.and_then(|id| self.place_by_id(id)).into_iter().collect());
        }
        let number = self.place_given(filter.in_tree.as_ref()?)?.tree;
        let nodes = 0..self.tree(number)?.nodes.len() as u32;
        Some(nodes.map(|node| Place { tree: number, node }).collect())
    }

    /// The filter with names looked up, or `None` if no provider can pass one of its parts.
    fn facts<'a>(&self, filter: &'a ProviderFilter) -> Result<Option<Facts<'a>>, FilterError> {
        if filter
            .in_tree
            .as_ref()
            .is_some_and(|uuid| self.place_given(uuid).is_none())
        {
            return Ok(None);
        }
        let required = filter.required.iter().map(|any| self.known_traits(any));
        let required = required.collect::<Result<Vec<_>, _>>()?;
        let mut facts = Facts {
            required,
            ..Facts::default()
        };
        if !facts.required.is_empty() && !self.anybody(|node| facts.has_required(node)) {
            return Ok(None);
        }
        facts.forbidden = self.known_traits(&filter.forbidden)?;
        facts.member_of = &filter.member_of;
        if !facts.member_of.is_empty() && !self.anybody(|node| facts.is_member(node)) {
            return Ok(None);
        }
        facts.not_member_of = Some(&filter.not_member_of);
        for (name, amount) in &filter.resources {
            let id = self.class_given(name);
            let id = id.ok_or_else(|| FilterError::UnknownResourceClass(name.clone()))?;
            facts.resources.push((id, *amount));
        }
        Ok(Some(facts))
    }

    fn known_traits(
        &self,
        names: &BTreeSet<Given<TraitName>>,
    ) -> Result<BTreeSet<TraitId>, FilterError> {
        let unknown: Vec<_> = names
            .iter()
            .filter(|name| self.trait_given(name).is_none())
            .cloned()
            .collect();
        if unknown.is_empty() {
            Ok(names
                .iter()
                .filter_map(|name| self.trait_given(name))
                .collect())
        } else {
            Err(FilterError::UnknownTraits(unknown))
        }
    }

    fn anybody(&self, has: impl Fn(&Node) -> bool) -> bool {
        self.trees()
            .any(|(_, tree)| tree.nodes.iter().any(|node| has(node)))
    }
}

/// A [`ProviderFilter`] in the terms of nodes.
#[derive(Default)]
struct Facts<'a> {
    required: Vec<BTreeSet<TraitId>>,
    forbidden: BTreeSet<TraitId>,
    member_of: &'a [BTreeSet<AggregateUuid>],
    not_member_of: Option<&'a BTreeSet<AggregateUuid>>,
    resources: Vec<(ResourceClassId, u64)>,
}

impl Facts<'_> {
    fn has_required(&self, node: &Node) -> bool {
        self.required
            .iter()
            .all(|any| !any.is_disjoint(&node.traits))
    }

    fn is_member(&self, node: &Node) -> bool {
        self.member_of
            .iter()
            .all(|any| !any.is_disjoint(&node.aggregates))
    }

    fn hold_of(&self, node: &Node) -> bool {
        self.has_required(node)
            && self.forbidden.is_disjoint(&node.traits)
            && self.is_member(node)
            && self
                .not_member_of
                .is_none_or(|none| none.is_disjoint(&node.aggregates))
            && self.resources.iter().all(|(class, amount)| {
                node.stock(*class)
                    .is_some_and(|stock| stock.has_room_for(*amount))
            })
    }
}
