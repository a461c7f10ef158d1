//! Rows of the state as clients of `/placementd/v1/events` and `history` see them, and the changes
//! of a log entry.
//!
//! The row of a consumer becomes several values: the consumer and its allocations per provider. An
//! empty set of traits or aggregates has no value.

use std::collections::BTreeSet;

use placement_model::State;
use placement_model::ledger::{LedgerEntry, Names};
use placement_model::state::change::{
    Amount, Change, ConsumerRow, ProviderId, ProviderRow, ResourceClassId, TraitId,
};
use placement_model::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Inventory, ProjectId, ProviderName,
    ProviderUuid, ResourceClassName, TraitName, UserId,
};
use serde::{Deserialize, Serialize};

use super::values::Members;
use crate::backend::PlacementIndex;

/// Look-up of ids; `None` for an unknown id.
pub(crate) trait Meanings {
    fn provider(&self, id: ProviderId) -> Option<ProviderUuid>;
    fn class(&self, id: ResourceClassId) -> Option<&ResourceClassName>;
    fn named_trait(&self, id: TraitId) -> Option<&TraitName>;
}

impl Meanings for Names {
    fn provider(&self, id: ProviderId) -> Option<ProviderUuid> {
        self.providers.get(&id).copied()
    }

    fn class(&self, id: ResourceClassId) -> Option<&ResourceClassName> {
        self.classes.get(&id)
    }

    fn named_trait(&self, id: TraitId) -> Option<&TraitName> {
        self.traits.get(&id)
    }
}

/// For ids in rows of this state.
impl Meanings for State {
    fn provider(&self, id: ProviderId) -> Option<ProviderUuid> {
        Some(self.node_by_id(id)?.uuid)
    }

    fn class(&self, id: ResourceClassId) -> Option<&ResourceClassName> {
        Some(self.resource_class_name(id))
    }

    fn named_trait(&self, id: TraitId) -> Option<&TraitName> {
        Some(self.trait_name(id))
    }
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Provider,
    Inventory,
    Trait,
    Aggregate,
    Class,
    Consumer,
    Allocation,
}

/// Filter of changes and rows; all given conditions must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Filter {
    /// The value has one of these kinds.
    pub(crate) kinds: Option<Vec<Kind>>,
    /// The value is, or belongs to, this provider, or is an allocation of it.
    pub(crate) provider: Option<ProviderUuid>,
    /// The value is this consumer, or an allocation of it.
    pub(crate) consumer: Option<ConsumerUuid>,
    /// The value belongs to a consumer of this project.
    pub(crate) project: Option<ProjectId>,
    /// The value is this class, or an inventory or allocation of it.
    pub(crate) class: Option<ResourceClassName>,
    /// Includes values that were written without a change.
    pub(crate) rewritten: bool,
}

impl Filter {
    /// Whether the filter matches everything.
    pub(crate) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an entry with these names can match: a cheap test before the thorough one.
    fn may_match(&self, names: &Names) -> bool {
        let asked = self.provider.as_ref();
        asked.is_none_or(|asked| names.providers.values().any(|named| named == asked))
    }

    fn matches(&self, item: &Item<'_>) -> bool {
        fn is<T: PartialEq>(asked: Option<&T>, found: Option<&T>) -> bool {
            asked.is_none() || asked == found
        }
        let has_class = |class: &ResourceClassName| match (&item.key, &item.value) {
            (_, Value::Allocation { resources }) => {
                let mut classes = resources.0.iter();
                classes.any(|(name, _)| *name == class.as_str())
            }
            (Key::Inventory { resource_class, .. } | Key::Class { resource_class }, _) => {
                *resource_class == Some(class)
            }
            _ => false,
        };
        (self.kinds.as_ref()).is_none_or(|kinds| kinds.contains(&item.kind))
            && is(self.provider.as_ref(), item.key.provider().as_ref())
            && is(self.consumer.as_ref(), item.key.consumer())
            && is(self.project.as_ref(), item.project)
            && self.class.as_ref().is_none_or(has_class)
    }
}

/// Identifies a value among the values of its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Key<'a> {
    Provider {
        uuid: ProviderUuid,
    },
    Inventory {
        resource_provider: Option<ProviderUuid>,
        resource_class: Option<&'a ResourceClassName>,
    },
    /// The traits or aggregates of a provider.
    Of {
        resource_provider: Option<ProviderUuid>,
    },
    Trait {
        r#trait: &'a TraitName,
    },
    Class {
        resource_class: Option<&'a ResourceClassName>,
    },
    Consumer {
        consumer: &'a ConsumerUuid,
    },
    Allocation {
        consumer: &'a ConsumerUuid,
        resource_provider: Option<ProviderUuid>,
    },
}

impl Key<'_> {
    fn provider(&self) -> Option<ProviderUuid> {
        match self {
            Self::Provider { uuid } => Some(*uuid),
            Self::Inventory {
                resource_provider, ..
            }
            | Self::Of { resource_provider }
            | Self::Allocation {
                resource_provider, ..
            } => *resource_provider,
            Self::Trait { .. } | Self::Class { .. } | Self::Consumer { .. } => None,
        }
    }

    fn consumer(&self) -> Option<&ConsumerUuid> {
        match self {
            Self::Consumer { consumer } | Self::Allocation { consumer, .. } => Some(consumer),
            _ => None,
        }
    }
}

/// The value, with the names of the REST API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Value<'a> {
    Provider {
        uuid: ProviderUuid,
        name: &'a ProviderName,
        generation: Generation,
        parent_provider_uuid: Option<ProviderUuid>,
    },
    Inventory(&'a Inventory),
    Traits {
        traits: Vec<Option<&'a TraitName>>,
    },
    Aggregates {
        aggregates: &'a BTreeSet<AggregateUuid>,
    },
    Name {
        name: &'a str,
    },
    Consumer {
        consumer_generation: Generation,
        project_id: &'a ProjectId,
        user_id: &'a UserId,
        consumer_type: &'a str,
    },
    Allocation {
        resources: Members<Vec<(&'a str, u64)>>,
    },
}

/// A value with its key, at one point in time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Item<'a> {
    kind: Kind,
    key: Key<'a>,
    value: Value<'a>,
    /// The project of the consumer, or of the consumer of an allocation.
    #[serde(skip)]
    project: Option<&'a ProjectId>,
}

/// The values of a row, in the order of [`Kind`]; empty if the row is deleted or empty. Allocations
/// are sorted by the ids of their providers, which are returned with them.
fn items<'a>(meanings: &'a impl Meanings, row: &'a Change) -> Vec<(Option<ProviderId>, Item<'a>)> {
    let item = |kind, key, value| {
        let project = None;
        vec![(
            None,
            Item {
                kind,
                key,
                value,
                project,
            },
        )]
    };
    let of = |id: &ProviderId| Key::Of {
        resource_provider: meanings.provider(*id),
    };
    match row {
        Change::PutProvider(_, row) => {
            let key = Key::Provider { uuid: row.uuid };
            item(Kind::Provider, key, provider(meanings, row))
        }
        Change::PutInventory(id, class, row) => {
            let key = Key::Inventory {
                resource_provider: meanings.provider(*id),
                resource_class: meanings.class(*class),
            };
            item(Kind::Inventory, key, Value::Inventory(&row.inventory))
        }
        Change::PutProviderTraits(id, traits) if !traits.is_empty() => {
            let traits = traits.iter().map(|id| meanings.named_trait(*id));
            let traits = traits.collect();
            item(Kind::Trait, of(id), Value::Traits { traits })
        }
        Change::PutProviderAggregates(id, aggregates) if !aggregates.is_empty() => {
            item(Kind::Aggregate, of(id), Value::Aggregates { aggregates })
        }
        Change::PutTrait(_, row) => {
            let name = row.name.as_str();
            let key = Key::Trait { r#trait: &row.name };
            item(Kind::Trait, key, Value::Name { name })
        }
        Change::PutResourceClass(_, row) => {
            let name = row.name.as_str();
            let resource_class = Some(&row.name);
            let key = Key::Class { resource_class };
            item(Kind::Class, key, Value::Name { name })
        }
        Change::PutConsumer(consumer, row) => {
            let held = row.allocations.by_provider();
            let held = held.map(|(id, amounts)| {
                let item = allocation(meanings, consumer, row, id, amounts);
                (Some(id), item)
            });
            std::iter::once((None, self::consumer(consumer, row)))
                .chain(held)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn provider<'a>(meanings: &impl Meanings, row: &'a ProviderRow) -> Value<'a> {
    Value::Provider {
        uuid: row.uuid,
        name: &row.name,
        generation: row.generation,
        parent_provider_uuid: row.parent.and_then(|id| meanings.provider(id)),
    }
}

fn consumer<'a>(consumer: &'a ConsumerUuid, row: &'a ConsumerRow) -> Item<'a> {
    let consumer_type = row.consumer_type.as_ref();
    Item {
        kind: Kind::Consumer,
        key: Key::Consumer { consumer },
        value: Value::Consumer {
            consumer_generation: row.generation,
            project_id: &row.project,
            user_id: &row.user,
            consumer_type: consumer_type.map_or("unknown", ConsumerTypeName::as_str),
        },
        project: Some(&row.project),
    }
}

fn allocation<'a>(
    meanings: &'a impl Meanings,
    consumer: &'a ConsumerUuid,
    row: &'a ConsumerRow,
    provider: ProviderId,
    amounts: &[Amount],
) -> Item<'a> {
    let resources = amounts.iter().map(|amount| {
        let class = meanings.class(amount.class);
        (class.map_or("", ResourceClassName::as_str), amount.units)
    });
    Item {
        kind: Kind::Allocation,
        key: Key::Allocation {
            consumer,
            resource_provider: meanings.provider(provider),
        },
        value: Value::Allocation {
            resources: Members(resources.collect()),
        },
        project: Some(&row.project),
    }
}

/// The change of one value; `None` where it does not exist.
#[derive(Serialize)]
struct Changed<'a> {
    kind: Kind,
    key: Key<'a>,
    before: Option<Value<'a>>,
    after: Option<Value<'a>>,
}

/// An entry in the form that clients see.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    index: String,
    at: Option<String>,
    verb: &'a str,
    request_id: Option<String>,
    changes: Vec<Changed<'a>>,
}

impl<'a> Line<'a> {
    /// The matching changes of an entry of this epoch; `None` if nothing matches.
    pub(crate) fn of(epoch: u64, entry: &'a LedgerEntry, filter: &Filter) -> Option<Self> {
        if !filter.may_match(&entry.names) {
            return None;
        }
        let mut changes = Vec::new();
        for row in &entry.rows {
            let before = items(&entry.names, &row.before);
            let after = items(&entry.names, &row.after);
            changes.extend(pairs(before, after).filter_map(|pair| changed(pair, filter)));
        }
        let index = entry.index;
        (!changes.is_empty()).then(|| Self {
            index: PlacementIndex { epoch, index }.to_string(),
            at: entry.at.rfc3339(),
            verb: &entry.verb,
            request_id: (entry.request_id).map(|id| format!("req-{}", id.as_hyphenated())),
            changes,
        })
    }
}

/// A value before and after a change.
type Pair<'a> = (Option<Item<'a>>, Option<Item<'a>>);

/// Pairs the values of the same provider; both lists are sorted.
fn pairs<'a>(
    before: Vec<(Option<ProviderId>, Item<'a>)>,
    after: Vec<(Option<ProviderId>, Item<'a>)>,
) -> impl Iterator<Item = Pair<'a>> {
    let (mut before, mut after) = (before.into_iter().peekable(), after.into_iter().peekable());
    std::iter::from_fn(move || {
        let first = [before.peek(), after.peek()];
        let first = first.into_iter().flatten().map(|(id, _)| *id).min()?;
        let before = before.next_if(|(id, _)| *id == first);
        let after = after.next_if(|(id, _)| *id == first);
        Some((before.map(|(_, item)| item), after.map(|(_, item)| item)))
    })
}

fn changed<'a>((before, after): Pair<'a>, filter: &Filter) -> Option<Changed<'a>> {
    let is_asked_for = |item: &Option<Item<'_>>| item.as_ref().is_some_and(|it| filter.matches(it));
    let value = |item: &Option<Item<'a>>| item.as_ref().map(|item| item.value.clone());
    let values = (value(&before), value(&after));
    let is_new = filter.rewritten || values.0 != values.1;
    if !is_new || !(is_asked_for(&before) || is_asked_for(&after)) {
        return None;
    }
    // A renamed value has its new name.
    let Item { kind, key, .. } = after.or(before)?;
    Some(Changed {
        kind,
        key,
        before: values.0,
        after: values.1,
    })
}

/// Calls a function with each matching value of a row.
pub(crate) fn each_value(
    state: &State,
    row: &Change,
    filter: &Filter,
    mut with: impl FnMut(&Item<'_>),
) {
    for (_, item) in items(state, row) {
        if filter.matches(&item) {
            with(&item);
        }
    }
}
