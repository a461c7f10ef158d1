//! Small clouds in domain words, and requests against them.

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

/// The trait of sharing providers.
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

/// A provider, by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// Names it in the sample cloud.
    pub name: String,
    /// What requests and answers call it.
    pub uuid: ProviderUuid,
    /// `None`: a root.
    pub parent: Option<String>,
    /// By class.
    pub stocks: BTreeMap<String, Stock>,
    /// By name.
    pub traits: BTreeSet<String>,
    /// By short name or UUID.
    pub aggregates: BTreeSet<String>,
}

/// An inventory and what is taken of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stock {
    /// The inventory.
    pub inventory: Inventory,
    /// What is taken of it.
    pub used: u64,
}

/// So many units, as plain as can be.
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

/// A root provider.
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
    /// Below another one.
    pub fn under(mut self, parent: &str) -> Self {
        self.parent = Some(parent.to_owned());
        self
    }

    /// So many units, see [`units`].
    pub fn has(self, class: &str, total: u32) -> Self {
        self.stocked(class, units(total))
    }

    /// With an inventory.
    pub fn stocked(mut self, class: &str, stock: Stock) -> Self {
        self.stocks.insert(class.to_owned(), stock);
        self
    }

    /// With a trait.
    pub fn bears(mut self, name: &str) -> Self {
        self.traits.insert(name.to_owned());
        self
    }

    /// In an aggregate.
    pub fn member(mut self, aggregate: &str) -> Self {
        self.aggregates.insert(aggregate.to_owned());
        self
    }

    /// Shares with all members of an aggregate.
    pub fn shares_with(self, aggregate: &str) -> Self {
        self.bears(SHARES).member(aggregate)
    }
}

/// Providers in the order of their creation; parents come before their children.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleCloud {
    /// All of them.
    pub providers: Vec<Provider>,
    /// The resource classes that there are.
    pub classes: BTreeSet<String>,
    /// The traits that there are.
    pub traits: BTreeSet<String>,
}

/// An sample_cloud of these providers, with UUIDs that are counted, and [`CLASSES`] and [`TRAITS`].
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

/// The UUID behind an aggregate's short name.
pub fn aggregate(name: &str) -> AggregateUuid {
    AggregateUuid::from(name)
}

impl SampleCloud {
    /// The provider of this name.
    pub fn get(&self, name: &str) -> &Provider {
        let found = self.providers.iter().find(|provider| provider.name == name);
        found.expect("a known provider")
    }

    fn id(&self, name: &str) -> ProviderId {
        let mut names = self.providers.iter().map(|provider| &provider.name);
        let index = names.position(|other| other == name);
        ProviderId(index.expect("a known provider") as u32 + 1)
    }

    /// The UUID behind a name.
    pub fn uuid(&self, name: &str) -> ProviderUuid {
        self.get(name).uuid
    }

    /// The name behind a UUID.
    pub fn name(&self, uuid: ProviderUuid) -> &str {
        let found = self.providers.iter().find(|provider| provider.uuid == uuid);
        &found.expect("a known provider").name
    }

    /// The root of its tree, perhaps itself.
    pub fn root<'a>(&'a self, name: &'a str) -> &'a str {
        self.get(name)
            .parent
            .as_deref()
            .map_or(name, |parent| self.root(parent))
    }

    /// The sample cloud as the model holds it.
    pub fn state(&self) -> State {
        self.state_without("")
    }

    /// The same without one tree, the others keeping their ids.
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
        let taken = provider.stocks.iter().filter(|(_, stock)| stock.used > 0);
        let taken = taken.map(|(class, stock)| Amount {
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

/// A request as of the newest microversion.
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

/// Further wishes of a group.
pub trait Wishes {
    /// One of these traits.
    fn required(self, any: &[&str]) -> Self;
    /// Not this trait.
    fn without(self, name: &str) -> Self;
    /// In one of these aggregates.
    fn member_of(self, any: &[&str]) -> Self;
    /// Not in this aggregate.
    fn not_member_of(self, name: &str) -> Self;
    /// Only in this provider's tree.
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
