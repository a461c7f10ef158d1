//! Builders for small clouds, and for requests against them.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::query::candidates::{CandidateRequest, RequestGroup};
use placement_model::state::change::{
    Amount, Amounts, Change, ConsumerRow, InventoryRow, NameRow, ProviderId, ProviderRow,
    ResourceClassId, TraitId,
};
use placement_model::types::{
    AggregateUuid, ConsumerUuid, Generation, Given, Inventory, ProviderName, ProviderUuid,
    Timestamp,
};
use placement_model::{Changes, State};
use uuid::Uuid;

/// The trait that marks a sharing provider.
pub const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";
/// Every class a test may use.
pub const CLASSES: [&str; 5] = ["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_VF", "CUSTOM_FPGA"];
/// Every trait a test may use.
pub const TRAITS: [&str; 5] = [
    SHARES,
    "CUSTOM_RED",
    "CUSTOM_BLUE",
    "CUSTOM_GREEN",
    "HW_CPU_X86_VMX",
];

/// A provider of a sample cloud.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// Short name, unique in the sample cloud.
    pub name: String,
    /// The UUID used in requests and answers.
    pub uuid: ProviderUuid,
    /// The name of the parent; `None` for a root.
    pub parent: Option<String>,
    /// The inventories by class.
    pub stocks: BTreeMap<String, Stock>,
    /// The names of the traits.
    pub traits: BTreeSet<String>,
    /// The aggregates, by short name or UUID.
    pub aggregates: BTreeSet<String>,
}

/// An inventory and its usage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stock {
    /// The inventory record as written.
    pub inventory: Inventory,
    /// The units that are allocated.
    pub used: u64,
}

/// An inventory of `total` units without reservation, overcommit or effective unit limits.
pub fn units(total: u32) -> Stock {
    let inventory = Inventory {
        total,
        reserved: 0,
        min_unit: 1,
        max_unit: u32::MAX >> 1,
        step_size: 1,
        allocation_ratio: 1.0,
    };
    let used = 0;
    Stock { inventory, used }
}

/// Makes a root provider without inventories.
pub fn provider(name: &str) -> Provider {
    Provider {
        name: name.to_owned(),
        uuid: ProviderUuid(Uuid::nil()),
        parent: None,
        stocks: BTreeMap::new(),
        traits: BTreeSet::new(),
        aggregates: BTreeSet::new(),
    }
}

impl Provider {
    /// Sets the parent by name.
    pub fn under(mut self, parent: &str) -> Self {
        self.parent = Some(parent.to_owned());
        self
    }

    /// Adds a plain inventory, see [`units`].
    pub fn has(self, class: &str, total: u32) -> Self {
        self.stocked(class, units(total))
    }

    /// Adds an inventory with usage.
    pub fn stocked(mut self, class: &str, stock: Stock) -> Self {
        self.stocks.insert(class.to_owned(), stock);
        self
    }

    /// Adds a trait to the provider.
    pub fn bears(mut self, name: &str) -> Self {
        self.traits.insert(name.to_owned());
        self
    }

    /// Adds the provider to an aggregate.
    pub fn member(mut self, aggregate: &str) -> Self {
        self.aggregates.insert(aggregate.to_owned());
        self
    }

    /// Makes the provider a sharing provider for the members of an aggregate.
    pub fn shares_with(self, aggregate: &str) -> Self {
        self.bears(SHARES).member(aggregate)
    }
}

/// Providers in the order of their creation; parents come before their children.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleCloud {
    /// The providers of the cloud.
    pub providers: Vec<Provider>,
    /// The resource classes that exist.
    pub classes: BTreeSet<String>,
    /// The traits that exist.
    pub traits: BTreeSet<String>,
}

/// Makes a sample cloud of these providers with sequential UUIDs, and with [`CLASSES`] and
/// [`TRAITS`].
pub fn sample_cloud(providers: impl IntoIterator<Item = Provider>) -> SampleCloud {
    let numbered = |(number, provider): (u128, Provider)| Provider {
        uuid: ProviderUuid(Uuid::from_u128(0xabc0_0000 + number)),
        ..provider
    };
    SampleCloud {
        providers: (1..).zip(providers).map(numbered).collect(),
        classes: CLASSES.map(str::to_owned).into(),
        traits: TRAITS.map(str::to_owned).into(),
    }
}

/// The UUID of an aggregate with this short name.
pub fn aggregate(name: &str) -> AggregateUuid {
    AggregateUuid::from(name)
}

impl SampleCloud {
    /// The provider with this name.
    pub fn get(&self, name: &str) -> &Provider {
        let found = self.providers.iter().find(|provider| provider.name == name);
        found.expect("a known provider")
    }

    fn id(&self, name: &str) -> ProviderId {
        let mut names = self.providers.iter().map(|provider| &provider.name);
        let index = names.position(|other| other == name);
        ProviderId(index.expect("a known provider") as u32 + 1)
    }

    /// The UUID of the provider with this name.
    pub fn uuid(&self, name: &str) -> ProviderUuid {
        self.get(name).uuid
    }

    /// The name of the provider with this UUID.
    pub fn name(&self, uuid: ProviderUuid) -> &str {
        let found = self.providers.iter().find(|provider| provider.uuid == uuid);
        &found.expect("a known provider").name
    }

    /// The root of the provider's tree, which can be the provider itself.
    pub fn root<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name)
            .parent
            .as_deref()
            .map_or(name, |parent| self.root(parent))
    }

    /// The sample cloud as a state of the model.
    pub fn state(&self) -> State {
        self.state_without("")
    }

    /// The state without one tree. Other providers keep their ids.
    pub fn state_without(&self, root: &str) -> State {
        let mut state = State::default();
        state.commit(&names());
        for provider in &self.providers {
            if self.root(&provider.name) != root {
                state.commit(&self.rows(provider));
            }
        }
        state
    }

    fn rows(&self, provider: &Provider) -> Changes {
        let id = self.id(&provider.name);
        let time = Timestamp(0);
        let mut rows = vec![Change::PutProvider(
            id,
            ProviderRow {
                uuid: self.uuid(&provider.name),
                name: ProviderName::try_from(provider.name.clone()).unwrap(),
                generation: Generation(0),
                parent: provider.parent.as_deref().map(|parent| self.id(parent)),
                created_at: time,
                updated_at: time,
            },
        )];
        for (class, stock) in &provider.stocks {
            let row = InventoryRow {
                inventory: stock.inventory,
                updated_at: time,
            };
            rows.push(Change::PutInventory(id, class_id(class), row));
        }
        let traits = provider.traits.iter().map(|name| trait_id(name)).collect();
        rows.push(Change::PutProviderTraits(id, traits));
        let aggregates = provider.aggregates.iter().map(|name| aggregate(name));
        rows.push(Change::PutProviderAggregates(id, aggregates.collect()));
        let taken = provider
            .stocks
            .iter()
            .filter(|(_, stock)| stock.used > 0)
            .map(|(class, stock)| Amount {
                provider: id,
                class: class_id(class),
                units: stock.used,
            });
        let used: Amounts = taken.collect();
        if !used.is_empty() {
            let row = ConsumerRow {
                generation: Generation(1),
                project: "project".into(),
                user: "user".into(),
                consumer_type: None,
                allocations: used,
                updated_at: time,
                hold: None,
            };
            rows.push(Change::PutConsumer(
                ConsumerUuid::from(&*provider.name),
                row,
            ));
        }
        rows
    }
}

fn names() -> Changes {
    let updated_at = Timestamp(0);
    let classes = CLASSES.iter().map(|name| {
        let row = NameRow {
            name: name.parse().unwrap(),
            updated_at,
        };
        Change::PutResourceClass(class_id(name), row)
    });
    let traits = TRAITS.iter().map(|name| {
        let row = NameRow {
            name: name.parse().unwrap(),
            updated_at,
        };
        Change::PutTrait(trait_id(name), row)
    });
    classes.chain(traits).collect()
}

fn class_id(name: &str) -> ResourceClassId {
    let index = CLASSES.iter().position(|class| *class == name);
    ResourceClassId(index.expect("a known class") as u32 + 10)
}

fn trait_id(name: &str) -> TraitId {
    let index = TRAITS.iter().position(|other| *other == name);
    TraitId(index.expect("a known trait") as u32 + 20)
}

/// A request at the newest microversion.
pub fn request(groups: impl IntoIterator<Item = RequestGroup>) -> CandidateRequest {
    CandidateRequest {
        groups: groups.into_iter().collect(),
        nested: true,
        mappings: true,
        ..CandidateRequest::default()
    }
}

/// A group, named unless its suffix is empty.
pub fn group(suffix: &str, resources: &[(&str, u64)]) -> RequestGroup {
    RequestGroup {
        suffix: suffix.to_owned(),
        resources: resources
            .iter()
            .map(|(name, amount)| (name.parse().unwrap(), *amount))
            .collect(),
        ..RequestGroup::default()
    }
}

/// Builder methods for further conditions of a group.
pub trait Wishes {
    /// Requires one of these traits.
    fn required(self, any: &[&str]) -> Self;
    /// Forbids a trait by name.
    fn without(self, name: &str) -> Self;
    /// Requires membership in one of these aggregates.
    fn member_of(self, any: &[&str]) -> Self;
    /// Forbids membership in this aggregate.
    fn not_member_of(self, name: &str) -> Self;
    /// Limits the group to the tree of this provider.
    fn in_tree(self, provider: ProviderUuid) -> Self;
}

impl Wishes for RequestGroup {
    fn required(mut self, any: &[&str]) -> Self {
        self.required
            .push(any.iter().map(|name| name.parse().unwrap()).collect());
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.forbidden.insert(name.parse().unwrap());
        self
    }

    fn member_of(mut self, any: &[&str]) -> Self {
        self.member_of
            .push(any.iter().map(|name| aggregate(name)).collect());
        self
    }

    fn not_member_of(mut self, name: &str) -> Self {
        self.not_member_of.insert(aggregate(name));
        self
    }

    fn in_tree(mut self, provider: ProviderUuid) -> Self {
        self.in_tree = Some(Given::Valid(provider));
        self
    }
}
