//! Queries of consumers, and usages of projects and users.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::allocations::{Consumer, ConsumerHolding};
use placement_model::query::consumers::{ConsumerFilter, ListedAllocation, ListedConsumer};
use placement_model::query::usages::TypeUsage;
use placement_model::types::{ConsumerTypeName, ConsumerUuid, ProjectId, ProviderUuid, UserId};

use super::{Naive, NaiveProvider};

impl Naive {
    /// `GET /allocations/{consumer}`, without links.
    pub fn consumer(&self, name: &ConsumerUuid) -> Option<Consumer> {
        let consumer = self.consumers.get(name)?;
        let mut providers: Vec<_> = self.providers.iter().collect();
        providers.sort_by_key(|(_, provider)| provider.order);
        let holding = |(uuid, provider): (&ProviderUuid, &NaiveProvider)| ConsumerHolding {
            provider: *uuid,
            generation: provider.generation,
            resources: self.held(name, uuid),
        };
        let allocations = providers.into_iter().map(holding);
        Some(Consumer {
            generation: consumer.generation,
            project: consumer.project.clone(),
            user: consumer.user.clone(),
            consumer_type: consumer.consumer_type.clone(),
            allocations: allocations
                .filter(|holding| !holding.resources.is_empty())
                .collect(),
            modified: consumer.updated,
        })
    }

    /// `GET /usages`, by consumer type.
    pub fn usages(
        &self,
        project: &ProjectId,
        user: Option<&UserId>,
    ) -> BTreeMap<Option<ConsumerTypeName>, TypeUsage> {
        let mut usages: BTreeMap<_, TypeUsage> = BTreeMap::new();
        for (name, consumer) in &self.consumers {
            let mine: Vec<_> = self
                .allocations
                .iter()
                .filter(|((c, _, _), _)| c == name)
                .collect();
            let charged = consumer.project == *project
                && user.is_none_or(|user| consumer.user == *user)
                && !mine.is_empty();
            if !charged {
                continue;
            }
            let usage = usages.entry(consumer.consumer_type.clone()).or_default();
            usage.consumer_count += 1;
            for ((_, _, class), amount) in mine {
                *usage.usages.entry(class.clone()).or_default() += amount;
            }
        }
        usages
    }

    /// `GET /placementd/v1/consumers`, all pages.
    pub fn consumers(&self, filter: &ConsumerFilter) -> Vec<ListedConsumer> {
        let passes = |consumer: &ListedConsumer| {
            let holds = |allocation: &ListedAllocation| {
                let of_provider = (filter.provider).is_none_or(|it| it == allocation.provider.uuid);
                let mut classes = allocation.resources.keys();
                of_provider
                    && (filter.class.as_ref()).is_none_or(|it| classes.any(|class| class == it))
            };
            let mut rules = vec![
                filter
                    .project
                    .as_ref()
                    .is_none_or(|it| *it == consumer.project_id),
                filter
                    .user
                    .as_ref()
                    .is_none_or(|it| *it == consumer.user_id),
                filter
                    .consumer_type
                    .as_ref()
                    .is_none_or(|it| *it == consumer.consumer_type),
                filter
                    .updated_until
                    .is_none_or(|it| consumer.updated_at <= it),
                !filter.several_trees || consumer.trees >= 2,
                !filter.held || consumer.hold.is_some(),
            ];
            if filter.provider.is_some() || filter.class.is_some() {
                rules.push(consumer.allocations.iter().any(holds));
            }
            rules.into_iter().all(|rule| rule)
        };
        let all = self.consumers.keys().map(|uuid| self.listed(uuid));
        all.filter(passes).collect()
    }

    fn listed(&self, uuid: &ConsumerUuid) -> ListedConsumer {
        let consumer = self.consumer(uuid).unwrap();
        let allocation = |holding: &ConsumerHolding| ListedAllocation {
            provider: self.named_provider(&holding.provider),
            root: self.named_provider(&self.root(&holding.provider)),
            resources: holding.resources.iter().cloned().collect(),
        };
        let shares = |holding: &&ConsumerHolding| {
            let mut traits = self.providers[&holding.provider].traits.iter();
            traits.any(|name| name.as_str() == "MISC_SHARES_VIA_AGGREGATE")
        };
        let trees = (consumer.allocations.iter())
            .filter(|holding| !shares(holding))
            .map(|holding| self.root(&holding.provider));
        ListedConsumer {
            uuid: uuid.clone(),
            trees: trees.collect::<BTreeSet<_>>().len(),
            allocations: consumer.allocations.iter().map(allocation).collect(),
            consumer_type: consumer.consumer_type,
            project_id: consumer.project,
            user_id: consumer.user,
            generation: consumer.generation,
            updated_at: consumer.modified,
            hold: self.consumers[uuid].hold.clone(),
        }
    }
}
