//! Every row of a state, out and back in.

use std::collections::{BTreeMap, BTreeSet};

use super::State;
use super::change::{Change, ProviderId, ProviderRow, ResourceClassId, TraitId};
use super::commit::inventory_row;

/// Changes are committed in pieces of this many, so that loading needs no second copy of all.
const CHUNK: usize = 10_000;

impl State {
    /// Every row of the state, as the changes that would make it from nothing, in an order that
    /// [`State::commit`] takes.
    pub fn rows(&self) -> Box<dyn Iterator<Item = Change> + Send + '_> {
        let counters = self
            .counters
            .iter()
            .map(|counters| Change::PutCounters(*counters));
        let level = self.level.map(Change::PutLevel);
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
            .map(|(consumer, row)| Change::PutConsumer(consumer.clone(), row.clone()));
        let sessions = self
            .sessions
            .rows()
            .map(|(origin, row)| Change::PutSession(origin, *row));
        let outcomes = self.sessions.outcomes().map(|(origin, sequence, outcome)| {
            Change::PutOutcome(origin, sequence, outcome.clone())
        });
        Box::new(
            counters
                .chain(level)
                .chain(classes)
                .chain(traits)
                .chain(self.provider_rows())
                .chain(consumers)
                .chain(sessions)
                .chain(outcomes),
        )
    }

    /// The rows of providers, each followed by what belongs to it; parents before children.
    fn provider_rows(&self) -> impl Iterator<Item = Change> + Send + '_ {
        self.trees().flat_map(|(_, tree)| {
            (0_u32..).zip(&tree.nodes).flat_map(|(index, node)| {
                let provider = Change::PutProvider(node.id, tree.row(index));
                let inventories = node
                    .inventories
                    .iter()
                    .map(|stock| Change::PutInventory(node.id, stock.class, inventory_row(stock)));
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

    /// Whether all that follows from the rows (trees, indexes, running sums, who holds what, the
    /// digest) is what a recount from the rows gives. Costs as much as loading the state.
    pub fn agrees_with_recount(&self) -> bool {
        let Ok(again) = Self::load(self.rows()) else {
            return false;
        };
        self.providers == again.providers
            && self.resource_classes == again.resource_classes
            && self.traits == again.traits
            && self.consumers == again.consumers
            && self.sessions == again.sessions
            && self.counters == again.counters
            && self.level == again.level
            && self.indexes == again.indexes
            && self.digest == again.digest
    }

    /// A state from its rows in whatever order, as tables on disk or a snapshot give them.
    ///
    /// # Errors
    /// [`Dangling`] if a row refers to another that is not there: rows are missing.
    pub fn load(rows: impl IntoIterator<Item = Change>) -> Result<Self, Dangling> {
        let mut loading = Loading::default();
        for row in rows {
            loading.take(row);
        }
        loading.finish()
    }
}

/// Rows that refer to others that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{rows} rows refer to others that are not there")]
pub struct Dangling {
    /// How many.
    pub rows: usize,
}

/// Rows that wait for others that they refer to.
#[derive(Default)]
struct Loading {
    state: State,
    /// Rows that refer to nothing.
    free: Vec<Change>,
    providers: BTreeMap<ProviderId, ProviderRow>,
    /// Inventories, traits and aggregates.
    belongings: Vec<Change>,
    consumers: Vec<Change>,
}

impl Loading {
    fn take(&mut self, row: Change) {
        match row {
            Change::PutProvider(id, row) => drop(self.providers.insert(id, row)),
            Change::PutInventory(..)
            | Change::PutProviderTraits(..)
            | Change::PutProviderAggregates(..) => self.belongings.push(row),
            Change::PutConsumer(..) => self.consumers.push(row),
            row => {
                self.free.push(row);
                if self.free.len() >= CHUNK {
                    self.state.commit(&self.free);
                    self.free.clear();
                }
            }
        }
    }

    fn finish(mut self) -> Result<State, Dangling> {
        self.state.commit(&self.free);
        let mut dangling = self.put_providers();
        for mut rows in [self.belongings, self.consumers] {
            let all = rows.len();
            rows.retain(|row| fits(&self.state, row));
            dangling += all - rows.len();
            for chunk in rows.chunks(CHUNK) {
                self.state.commit(chunk);
            }
        }
        if dangling > 0 {
            return Err(Dangling { rows: dangling });
        }
        Ok(self.state)
    }

    /// Parents first. A provider may have a parent that is younger than itself, since it can be
    /// moved; walking up a chain of parents is no recursion, as a chain may be long. Returns how many
    /// have no root.
    fn put_providers(&mut self) -> usize {
        let (mut seen, mut placed) = (BTreeSet::new(), BTreeSet::new());
        let mut changes = Vec::with_capacity(self.providers.len());
        for id in self.providers.keys() {
            let mut chain = Vec::new();
            let mut next = Some(*id);
            while let Some(id) = next
                && let Some(row) = self.providers.get(&id)
                && seen.insert(id)
            {
                chain.push((id, row));
                next = row.parent;
            }
            if next.is_none_or(|ancestor| placed.contains(&ancestor)) {
                placed.extend(chain.iter().map(|(id, _)| *id));
                let rows = chain.into_iter().rev();
                changes.extend(rows.map(|(id, row)| Change::PutProvider(id, row.clone())));
            }
        }
        for chunk in changes.chunks(CHUNK) {
            self.state.commit(chunk);
        }
        self.providers.len() - changes.len()
    }
}

/// Whether all that the row of a provider's belongings or of a consumer refers to is there.
fn fits(state: &State, row: &Change) -> bool {
    match row {
        Change::PutInventory(id, class, _) => {
            state.node_by_id(*id).is_some() && state.resource_class_row(class.0).is_some()
        }
        Change::PutProviderTraits(id, traits) => {
            state.node_by_id(*id).is_some() && traits.iter().all(|id| state.has_trait(*id))
        }
        Change::PutConsumer(_, row) => row.allocations.iter().all(|(id, amounts)| {
            state
                .node_by_id(*id)
                .is_some_and(|node| amounts.keys().all(|class| node.stock(*class).is_some()))
        }),
        Change::PutProviderAggregates(id, _) => state.node_by_id(*id).is_some(),
        _ => true,
    }
}
