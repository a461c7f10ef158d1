//! Export of all rows of a state, and loading them again.

use super::State;
use super::change::{Change, ProviderId, ResourceClassId, RowKey, TraitId};
use super::digest::Digest;
use super::loading::{DanglingReference, Loading};

impl State {
    /// Every row of the state, as changes that create the state from an empty one, in an order that
    /// [`State::commit`] accepts.
    pub fn rows(&self) -> Box<dyn Iterator<Item = Change> + Send + '_> {
        let counters = self.counters.iter().map(|it| Change::PutCounters(*it));
        let level = self.level.map(Change::PutLevel);
        let partitions = self
            .partitions
            .iter()
            .map(|(id, row)| Change::PutPartition(*id, row.clone()));
        let classes = self
            .resource_classes
            .rows()
            .map(|(id, row)| Change::PutResourceClass(ResourceClassId(id), row.clone()));
        let traits = self
            .traits
            .rows()
            .map(|(id, row)| Change::PutTrait(TraitId(id), row.clone()));
        let consumers = self
            .consumers
            .rows()
            .map(|(id, row)| Change::PutConsumer(id.clone(), row.clone()));
        let sessions = self
            .sessions
            .rows()
            .map(|(origin, row)| Change::PutSession(origin, *row));
        let outcomes = self.sessions.outcomes().map(|(origin, sequence, outcome)| {
            Change::PutOutcome(origin, sequence, outcome.clone())
        });
        let joins = self
            .joins()
            .map(|(node, row)| Change::PutJoin(node, row.clone()));
        let limits = self.limits.iter();
        let limits = limits.map(|limits| Change::PutLimits(Box::new(limits.row.clone())));
        let rows = counters
            .chain(level)
            .chain(partitions)
            .chain(classes)
            .chain(traits)
            .chain(self.provider_rows())
            .chain(consumers);
        Box::new(
            rows.chain(sessions)
                .chain(outcomes)
                .chain(joins)
                .chain(limits),
        )
    }

    /// The current value of a row: the change that puts it, or that deletes it if it does not
    /// exist.
    pub fn row(&self, key: &RowKey) -> Change {
        let row = self.current_row(key);
        row.unwrap_or_else(|| Change::Delete(key.clone()))
    }

    /// The change that puts the current value of a row; `None` if the row does not exist.
    pub(super) fn current_row(&self, key: &RowKey) -> Option<Change> {
        let provider = |id: &ProviderId| self.node_by_id(*id);
        Some(match key {
            RowKey::Provider(id) => {
                let place = self.place_by_id(*id)?;
                Change::PutProvider(*id, self.providers.row(place))
            }
            RowKey::Inventory(id, class) => {
                Change::PutInventory(*id, *class, provider(id)?.stock(*class)?.row())
            }
            RowKey::ProviderTraits(id) => {
                Change::PutProviderTraits(*id, provider(id)?.traits.as_ref().clone())
            }
            RowKey::ProviderAggregates(id) => {
                Change::PutProviderAggregates(*id, provider(id)?.aggregates.as_ref().clone())
            }
            RowKey::ResourceClass(id) => {
                Change::PutResourceClass(*id, self.resource_classes.row(id.0)?.clone())
            }
            RowKey::Trait(id) => Change::PutTrait(*id, self.traits.row(id.0)?.clone()),
            RowKey::Consumer(consumer) => {
                let row = self.consumers.row(consumer)?;
                Change::PutConsumer(consumer.clone(), row.as_ref().clone())
            }
            RowKey::Session(origin) => Change::PutSession(*origin, *self.sessions.row(*origin)?),
            RowKey::Counters => Change::PutCounters(self.counters?),
            RowKey::Outcome(origin, sequence) => {
                let outcome = self.sessions.outcome(*origin, *sequence)?;
                Change::PutOutcome(*origin, *sequence, outcome.as_ref().clone())
            }
            RowKey::Level => Change::PutLevel(self.level?),
            RowKey::Join(node) => Change::PutJoin(*node, self.join(*node)?.clone()),
            RowKey::Partition(id) => Change::PutPartition(*id, self.partitions.get(id)?.clone()),
            RowKey::Limits => Change::PutLimits(Box::new(self.limits.as_ref()?.row.clone())),
        })
    }

    /// The rows of providers, each followed by its inventories, traits and aggregates; parents come
    /// before children.
    fn provider_rows(&self) -> impl Iterator<Item = Change> + Send + '_ {
        self.trees().flat_map(|(_, tree)| {
            (0_u32..).zip(&tree.nodes).flat_map(|(index, node)| {
                let provider = Change::PutProvider(node.id, tree.row(index));
                let inventories = node
                    .inventories
                    .iter()
                    .map(|stock| Change::PutInventory(node.id, stock.class, stock.row()));
                let traits = (!node.traits.is_empty())
                    .then(|| Change::PutProviderTraits(node.id, node.traits.as_ref().clone()));
                let aggregates = (!node.aggregates.is_empty()).then(|| {
                    Change::PutProviderAggregates(node.id, node.aggregates.as_ref().clone())
                });
                std::iter::once(provider)
                    .chain(inventories)
                    .chain(traits)
                    .chain(aggregates)
            })
        })
    }

    /// Whether all derived data (trees, indexes, running sums, holders, the digest) equals the same
    /// data computed again from the rows. Costs as much as loading the state.
    pub fn agrees_with_recount(&self) -> bool {
        self.recount().is_empty()
    }

    /// The parts of the derived data that differ from the same data computed again from the rows.
    pub(super) fn recount(&self) -> Vec<&'static str> {
        let Ok(again) = Self::load(self.rows()) else {
            return vec!["the rows: some refer to missing rows"];
        };
        let parts = [
            (
                self.providers == again.providers,
                "provider trees and the usage of inventories",
            ),
            (
                self.resource_classes == again.resource_classes,
                "resource classes and their use counts",
            ),
            (self.traits == again.traits, "traits and their use counts"),
            (
                self.consumers == again.consumers,
                "consumers, the consumers of each provider, holds and the usage sums",
            ),
            (self.sessions == again.sessions, "sessions"),
            (self.counters == again.counters, "the next ids"),
            (self.level == again.level, "the feature level"),
            (self.joins == again.joins, "joining nodes"),
            (self.partitions == again.partitions, "partitions"),
            (self.limits == again.limits, "limits"),
            (
                self.indexes == again.indexes,
                "the indexes of the candidate search",
            ),
            (self.digest == again.digest, "the digest"),
        ];
        let wrong = parts.into_iter().filter(|(agrees, _)| !agrees);
        wrong.map(|(_, part)| part).collect()
    }

    /// Loads a state from its rows, in any order, as read from tables on disk or a snapshot.
    ///
    /// # Errors
    /// [`DanglingReference`] if a row refers to a missing row.
    pub fn load(rows: impl IntoIterator<Item = Change>) -> Result<Self, DanglingReference> {
        let mut loading = Loading::default();
        for row in rows {
            let digest = Digest::from_change(&row);
            loading.take(row, digest);
        }
        loading.finish()
    }
}
