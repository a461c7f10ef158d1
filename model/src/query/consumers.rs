//! Consumers with what they hold, a page at a time.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::NamedProvider;
use crate::state::State;
use crate::state::change::{Amount, ConsumerRow, ProviderId};
use crate::types::{
    ConsumerTypeName, ConsumerUuid, Generation, ProjectId, ProviderUuid, ResourceClassName,
    Timestamp, UserId,
};

/// Which consumers to list; everything given must hold of a consumer at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerFilter {
    /// Those that hold something of this provider.
    pub provider: Option<ProviderUuid>,
    /// Who is charged.
    pub project: Option<ProjectId>,
    /// Who is charged.
    pub user: Option<UserId>,
    /// Their type; `Some(None)`: those without.
    pub consumer_type: Option<Option<ConsumerTypeName>>,
    /// Those that hold something of this class, of the provider if one is given.
    pub class: Option<ResourceClassName>,
    /// Those whose allocations were not written after this.
    pub updated_until: Option<Timestamp>,
    /// Those that hold something in several trees.
    pub several_trees: bool,
}

/// A part of the answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ConsumerPage {
    /// In the order of their UUIDs.
    pub consumers: Vec<ListedConsumer>,
    /// After which consumer the next page begins, even if this one is empty; `None`: there is no
    /// more.
    pub next: Option<ConsumerUuid>,
}

/// A consumer and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedConsumer {
    /// Its UUID.
    pub uuid: ConsumerUuid,
    /// Its type, if it has one.
    #[serde(rename = "type")]
    pub consumer_type: Option<ConsumerTypeName>,
    /// Who is charged.
    pub project_id: ProjectId,
    /// Who is charged.
    pub user_id: UserId,
    /// Its generation.
    pub generation: Generation,
    /// When the allocations were written.
    #[serde(serialize_with = "Timestamp::serialize_rfc3339")]
    pub updated_at: Timestamp,
    /// In how many trees it holds something; providers that share count to no tree.
    pub trees: usize,
    /// Per provider, in the order of the providers' creation.
    pub allocations: Vec<ListedAllocation>,
}

/// What a consumer holds of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedAllocation {
    /// The provider.
    pub provider: NamedProvider,
    /// The root of its tree.
    pub root: NamedProvider,
    /// Units per class.
    pub resources: BTreeMap<ResourceClassName, u64>,
}

impl State {
    /// The first `limit` consumers after one that pass the filter. Ends earlier once it has walked
    /// `rows_max` rows: a consumer is one, and each of its amounts.
    pub fn consumers(
        &self,
        filter: &ConsumerFilter,
        after: Option<&ConsumerUuid>,
        limit: usize,
        rows_max: usize,
    ) -> ConsumerPage {
        let id_of = |uuid| self.providers.id_of_uuid(uuid);
        let provider = filter.provider.as_ref().map(id_of);
        let class = filter.class.as_ref();
        let class = class.map(|name| self.resource_class_id(name));
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
        };
        let mut page = ConsumerPage::default();
        let mut walked = 0;
        let mut rows = self.consumers.rows_after(provider, after).peekable();
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
        let sharing = self.sharing_trait();
        let tree = |(id, _): (ProviderId, _)| {
            let place = self.place_by_id(id)?;
            let shares = sharing.is_some_and(|id| self.node(place).traits.contains(&id));
            (!shares).then_some(place.tree)
        };
        let trees: BTreeSet<_> = row.allocations.by_provider().filter_map(tree).collect();
        trees.len()
    }

    fn listed(&self, uuid: &ConsumerUuid, row: &ConsumerRow) -> ListedConsumer {
        let allocation = |(id, amounts): (ProviderId, &[Amount])| {
            let place = self.place_by_id(id);
            let place = place.expect("what a consumer holds is of a provider that is there");
            let tree = self.tree(place.tree);
            let tree = tree.expect("a place names a tree that exists");
            ListedAllocation {
                provider: NamedProvider::of(&tree.nodes[place.node as usize]),
                root: NamedProvider::of(tree.root()),
                resources: self.named(amounts).into_iter().collect(),
            }
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
        }
    }
}
