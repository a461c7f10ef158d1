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
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Inventory, ProjectId, ProviderUuid,
    ResourceClassName, TraitName,
};
use placement_wire::events::{
    AggregatesValue, AllocationKey, AllocationValue, Change as Changed, ClassKey, ConsumerKey,
    ConsumerValue, Entry, InventoryKey, InventoryValue, Item as Shown, Kind, NO_TYPE, NameValue,
    ProviderKey, ProviderValue, SetKey, TraitKey, TraitsValue,
};
use serde::Serialize;

use super::own;
use super::values::Members;
use placement_base::backend::PlacementIndex;

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
            (_, Value::Allocation(AllocationValue { resources })) => {
                let mut classes = resources.0.iter();
                classes.any(|(name, _)| *name == class.as_str())
            }
            (
                Key::Inventory(InventoryKey { resource_class, .. })
                | Key::Class(ClassKey { resource_class }),
                _,
            ) => *resource_class == Some(class),
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
pub(crate) enum Key<'a> {
    Provider(ProviderKey<ProviderUuid>),
    Inventory(InventoryKey<ProviderUuid, &'a ResourceClassName>),
    /// The traits or aggregates of a provider.
    Of(SetKey<ProviderUuid>),
    Trait(TraitKey<&'a TraitName>),
    Class(ClassKey<&'a ResourceClassName>),
    Consumer(ConsumerKey<&'a ConsumerUuid>),
    Allocation(AllocationKey<&'a ConsumerUuid, ProviderUuid>),
}

impl Key<'_> {
    fn provider(&self) -> Option<ProviderUuid> {
        match self {
            Self::Provider(key) => Some(key.uuid),
            Self::Inventory(key) => key.resource_provider,
            Self::Of(key) => key.resource_provider,
            Self::Allocation(key) => key.resource_provider,
            Self::Trait(_) | Self::Class(_) | Self::Consumer(_) => None,
        }
    }

    fn consumer(&self) -> Option<&ConsumerUuid> {
        match self {
            Self::Consumer(key) => Some(key.consumer),
            Self::Allocation(key) => Some(key.consumer),
            _ => None,
        }
    }
}

/// The amounts of an allocation, by the names of their classes.
type Amounts<'a> = Members<Vec<(&'a str, u64)>>;

/// The value, with the names of the REST API.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum Value<'a> {
    Provider(ProviderValue<ProviderUuid, &'a str>),
    Inventory(InventoryValue),
    Traits(TraitsValue<Option<&'a TraitName>>),
    Aggregates(AggregatesValue<&'a BTreeSet<AggregateUuid>>),
    Name(NameValue<&'a str>),
    Consumer(ConsumerValue<&'a str>),
    Allocation(AllocationValue<Amounts<'a>>),
}

/// A value with its key, at one point in time.
#[derive(Debug, Clone, PartialEq)]
struct Item<'a> {
    kind: Kind,
    key: Key<'a>,
    value: Value<'a>,
    /// The project of the consumer, or of the consumer of an allocation.
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
    let of = |id: &ProviderId| {
        Key::Of(SetKey {
            resource_provider: meanings.provider(*id),
        })
    };
    match row {
        Change::PutProvider(_, row) => {
            let key = Key::Provider(ProviderKey { uuid: row.uuid });
            item(Kind::Provider, key, provider(meanings, row))
        }
        Change::PutInventory(id, class, row) => {
            let key = Key::Inventory(InventoryKey {
                resource_provider: meanings.provider(*id),
                resource_class: meanings.class(*class),
            });
            item(Kind::Inventory, key, inventory(&row.inventory))
        }
        Change::PutProviderTraits(id, traits) if !traits.is_empty() => {
            let traits = traits.iter().map(|id| meanings.named_trait(*id)).collect();
            item(Kind::Trait, of(id), Value::Traits(TraitsValue { traits }))
        }
        Change::PutProviderAggregates(id, aggregates) if !aggregates.is_empty() => {
            let value = Value::Aggregates(AggregatesValue { aggregates });
            item(Kind::Aggregate, of(id), value)
        }
        Change::PutTrait(_, row) => {
            let name = row.name.as_str();
            let key = Key::Trait(TraitKey { r#trait: &row.name });
            item(Kind::Trait, key, Value::Name(NameValue { name }))
        }
        Change::PutResourceClass(_, row) => {
            let name = row.name.as_str();
            let resource_class = Some(&row.name);
            let key = Key::Class(ClassKey { resource_class });
            item(Kind::Class, key, Value::Name(NameValue { name }))
        }
        Change::PutConsumer(consumer, row) => {
            let held = row.allocations.by_provider().map(|(id, amounts)| {
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
    Value::Provider(ProviderValue {
        uuid: row.uuid,
        name: row.name.as_str(),
        generation: row.generation.0,
        parent_provider_uuid: row.parent.and_then(|id| meanings.provider(id)),
    })
}

fn inventory<'a>(inventory: &Inventory) -> Value<'a> {
    let Inventory {
        total,
        reserved,
        min_unit,
        max_unit,
        step_size,
        allocation_ratio,
    } = *inventory;
    Value::Inventory(InventoryValue {
        total,
        reserved,
        min_unit,
        max_unit,
        step_size,
        allocation_ratio,
    })
}

fn consumer<'a>(consumer: &'a ConsumerUuid, row: &'a ConsumerRow) -> Item<'a> {
    let consumer_type = row.consumer_type.as_ref();
    Item {
        kind: Kind::Consumer,
        key: Key::Consumer(ConsumerKey { consumer }),
        value: Value::Consumer(ConsumerValue {
            consumer_generation: row.generation.0,
            project_id: row.project.as_str(),
            user_id: row.user.as_str(),
            consumer_type: consumer_type.map_or(NO_TYPE, ConsumerTypeName::as_str),
            hold: row.hold.as_deref().map(own::hold),
        }),
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
        key: Key::Allocation(AllocationKey {
            consumer,
            resource_provider: meanings.provider(provider),
        }),
        value: Value::Allocation(AllocationValue {
            resources: Members(resources.collect()),
        }),
        project: Some(&row.project),
    }
}

/// An entry in the form that clients see.
pub(crate) type Line<'a> = Entry<'a, Changed<Kind, Key<'a>, Value<'a>>>;

/// The matching changes of an entry of this epoch; `None` if nothing matches.
pub(crate) fn line<'a>(epoch: u64, entry: &'a LedgerEntry, filter: &Filter) -> Option<Line<'a>> {
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
    let request_id = entry.request_id.as_ref();
    (!changes.is_empty()).then(|| Line {
        index: PlacementIndex { epoch, index }.to_string().into(),
        at: entry.at.rfc3339().map(Into::into),
        verb: entry.verb.as_ref().into(),
        request_id: request_id.map(|id| format!("req-{}", id.as_hyphenated()).into()),
        changes,
    })
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
        let first = [before.peek(), after.peek()]
            .into_iter()
            .flatten()
            .map(|(id, _)| *id)
            .min()?;
        let before = before.next_if(|(id, _)| *id == first);
        let after = after.next_if(|(id, _)| *id == first);
        Some((before.map(|(_, item)| item), after.map(|(_, item)| item)))
    })
}

fn changed<'a>(
    (before, after): Pair<'a>,
    filter: &Filter,
) -> Option<Changed<Kind, Key<'a>, Value<'a>>> {
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
    mut with: impl FnMut(&Shown<Key<'_>, Value<'_>>),
) {
    for (_, item) in items(state, row) {
        if filter.matches(&item) {
            let Item {
                kind, key, value, ..
            } = item;
            with(&Shown { kind, key, value });
        }
    }
}
