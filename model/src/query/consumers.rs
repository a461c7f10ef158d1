//! Consumers with their allocations, one page at a time.

use std::collections::BTreeMap;

use super::NamedProvider;
use crate::state::State;
use crate::state::change::{Amount, ConsumerRow, ProviderId};
use crate::state::tree::NodePlace;
use crate::types::{
    ConsumerTypeName, ConsumerUuid, Generation, Hold, ProjectId, ProviderUuid, ResourceClassName,
    Timestamp, UserId,
};

/// Selects consumers. A consumer must satisfy every condition that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerFilter {
    /// Consumers with allocations on this provider.
    pub provider: Option<ProviderUuid>,
    /// Consumers of this project.
    pub project: Option<ProjectId>,
    /// Consumers of this user.
    pub user: Option<UserId>,
    /// Consumers of this type; `Some(None)` selects consumers without a type.
    pub consumer_type: Option<Option<ConsumerTypeName>>,
    /// Consumers with allocations of this class, on `provider` if that is set.
    pub class: Option<ResourceClassName>,
    /// Consumers whose allocations were last written at or before this time.
    pub updated_until: Option<Timestamp>,
    /// Consumers with allocations in more than one tree.
    pub several_trees: bool,
    /// Consumers whose allocations are a hold.
    pub held: bool,
}

/// One page of consumers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerPage {
    /// Consumers in the order of their UUIDs.
    pub consumers: Vec<ListedConsumer>,
    /// The next page begins after this consumer, even if this page is empty; `None` on the last
    /// page.
    pub next: Option<ConsumerUuid>,
}

/// A consumer and its allocations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedConsumer {
    /// The UUID of the consumer.
    pub uuid: ConsumerUuid,
    /// The consumer type, if the consumer has one.
    pub consumer_type: Option<ConsumerTypeName>,
    /// The project that owns the allocations.
    pub project_id: ProjectId,
    /// The user that owns the allocations.
    pub user_id: UserId,
    /// The generation, for optimistic concurrency control.
    pub generation: Generation,
    /// Time of the last write to the allocations.
    pub updated_at: Timestamp,
    /// Number of trees with allocations of the consumer, not counting sharing providers.
    pub trees: usize,
    /// One entry per provider, in the order of the providers' creation.
    pub allocations: Vec<ListedAllocation>,
    /// The hold, if the allocations are one.
    pub hold: Option<Hold>,
}

/// The allocation of a consumer on one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAllocation {
    /// The provider of the allocation.
    pub provider: NamedProvider,
    /// The root of the provider's tree.
    pub root: NamedProvider,
    /// Allocated units per class.
    pub resources: BTreeMap<ResourceClassName, u64>,
}

impl State {
    /// Returns the first `limit` consumers after `after` that pass the filter. The page ends early
    /// once `rows_max` rows are examined: a consumer counts as one row, and so does each of its
    /// amounts.
    pub fn consumers(
        &self,
        filter: &ConsumerFilter,
        after: Option<&ConsumerUuid>,
        limit: usize,
        rows_max: usize,
    ) -> ConsumerPage {
        let id_of = |uuid| self.providers.id_of_uuid(uuid);
        let provider = filter.provider.as_ref().map(id_of);
        let class = filter
            .class
            .as_ref()
            .map(|name| self.resource_class_id(name));
        if provider == Some(None) || class == Some(None) {
            return ConsumerPage::default();
        }
        let (provider, class) = (provider.flatten(), class.flatten());
        let is_asked = |amount: &Amount| {
            provider.is_none_or(|id| id == amount.provider)
                && class.is_none_or(|id| id == amount.class)
        };
        let consumer_type = filter.consumer_type.as_ref();
        let passes = |row: &ConsumerRow| {
            filter.project.as_ref().is_none_or(|id| *id == row.project)
                && filter.user.as_ref().is_none_or(|id| *id == row.user)
                && consumer_type.is_none_or(|name| *name == row.consumer_type)
                && filter.updated_until.is_none_or(|at| row.updated_at <= at)
                && (class.is_none() || row.allocations.iter().any(is_asked))
                && (!filter.several_trees || self.trees_of(row) > 1)
                && (!filter.held || row.hold.is_some())
        };
        let mut page = ConsumerPage::default();
        let mut walked = 0;
        let rows = if filter.held && provider.is_none() {
            self.consumers.holds_after(after)
        } else {
            self.consumers.rows_after(provider, after)
        };
        let mut rows = rows.peekable();
        while let Some((uuid, row)) = rows.next() {
            walked += 1 + row.allocations.iter().len();
            if passes(row) {
                page.consumers.push(self.listed(uuid, row));
            }
            if page.consumers.len() >= limit || walked >= rows_max {
                page.next = rows.peek().map(|_| uuid.clone());
                break;
            }
        }
        page
    }

    fn trees_of(&self, row: &ConsumerRow) -> usize {
        let providers = row.allocations.by_provider();
        let trees = self.trees_of_providers(providers.map(|(provider, _)| provider));
        trees.len()
    }

    pub(super) fn listed(&self, uuid: &ConsumerUuid, row: &ConsumerRow) -> ListedConsumer {
        let allocation = |(id, amounts): (ProviderId, &[Amount])| {
            let place = self
                .place_by_id(id)
                .expect("the provider of an allocation exists");
            self.listed_allocation(place, self.named(amounts).into_iter().collect())
        };
        ListedConsumer {
            uuid: uuid.clone(),
            consumer_type: row.consumer_type.clone(),
            project_id: row.project.clone(),
            user_id: row.user.clone(),
            generation: row.generation,
            updated_at: row.updated_at,
            trees: self.trees_of(row),
            allocations: row.allocations.by_provider().map(allocation).collect(),
            hold: row.hold.as_deref().cloned(),
        }
    }

    /// An allocation on the provider at `place`, with the names of providers.
    pub(super) fn listed_allocation(
        &self,
        place: NodePlace,
        resources: BTreeMap<ResourceClassName, u64>,
    ) -> ListedAllocation {
        let tree = self.tree(place.tree);
        let tree = tree.expect("a place refers to an existing tree");
        ListedAllocation {
            provider: NamedProvider::from_node(&tree.nodes[place.node as usize]),
            root: NamedProvider::from_node(tree.root()),
            resources,
        }
    }
}
