//! The next operations of simulated clients: every command that a client can cause, with few names
//! so that clients conflict, and every question.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::command::{
    CapacityRule, Ceiling, Claim, Claimant, Command, ConsumerAllocations, ConsumerGeneration,
    ConsumerTypeUpdate, Counted, CreateInventory, CreateProvider, CreateResourceClass,
    DeleteAllocations, DeleteInventories, DeleteInventory, DeleteProvider, DeleteProviderTraits,
    DeleteResourceClass, DeleteTrait, EnsureResourceClass, EnsureTrait, Group, GroupRule, NewHold,
    ParentUpdate, ProviderAmounts, RenameResourceClass, RenewHold, ReplaceAllocations,
    ReplaceInventories, ReplaceLimits, ReplaceProviderAggregates, ReplaceProviderTraits, Reshape,
    ReshapedInventories, UpdateInventory, UpdateProvider,
};
use placement_model::types::{
    AggregateUuid, ConsumerUuid, Generation, Given, HoldTerm, Inventory, LimitMode,
    LimitedResource, Limits, ProjectId, ProjectLimits, ProviderName, ProviderUuid,
    ResourceClassName, ResourceLimits, Timestamp, TraitName,
};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use uuid::Uuid;

use crate::beliefs::{Beliefs, CLASS};
use crate::operation::{Level, Operation, Question, QuestionKind, Token, Write};
use crate::seed::{Seed, uuid_from};

/// All resource classes in requests.
pub(crate) const CLASSES: [&str; 5] =
    ["VCPU", "DISK_GB", "CUSTOM_GOLD", "CUSTOM_IRON", "MEMORY_MB"];
/// The classes that clients create and delete.
const CUSTOM_CLASSES: [&str; 3] = ["CUSTOM_GOLD", "CUSTOM_IRON", "CUSTOM_TIN"];
/// All traits in requests.
pub(crate) const TRAITS: [&str; 5] = [
    "CUSTOM_RED",
    "CUSTOM_BLUE",
    "MISC_SHARES_VIA_AGGREGATE",
    "HW_CPU_X86_VMX",
    "CUSTOM_GREEN",
];
/// The traits that clients create and delete.
const CUSTOM_TRAITS: [&str; 3] = ["CUSTOM_RED", "CUSTOM_BLUE", "CUSTOM_GREEN"];
/// Project and user of allocations below 1.8, where requests name none.
const NO_ONE: &str = "00000000-0000-0000-0000-000000000000";
/// Minor part of the newest microversion, `1.39`.
pub(crate) const NEWEST: u8 = 39;
/// Number of providers that clients create and delete.
const FIELD: usize = 6;
/// Number of consumers of holds.
const HOLDERS: usize = 4;
/// The project above all others, if limits have one. It has no consumers.
const ABOVE: &str = "above";
/// Percentage of generation-checked writes that are preceded by a read.
const LOOKS_PERCENT: u32 = 70;

/// Parameters of the workload.
#[derive(Debug, Clone, Copy)]
pub struct Choices {
    /// Seed of all choices.
    pub seed: Seed,
    /// Number of core providers, which are created first and stay.
    pub providers: usize,
    /// Number of consumers that contend for them.
    pub consumers: usize,
    /// Percentage of writes without a check of the consumer generation.
    pub unchecked_percent: u32,
    /// Percentage of checked claims that are equal to those of other clients.
    pub equal_percent: u32,
    /// Percentage of writes of allocations that the client repeats, as keystoneauth does.
    pub repeated_percent: u32,
    /// Percentage of claims of one consumer that are replaced by claims with several choices.
    /// Upstream does not have these.
    pub choices_percent: u32,
    /// Percentage of claims with several choices that make a hold, and of releases that instead
    /// change the end of one.
    pub holds_percent: u32,
    /// Percentage of releases that instead replace the limits of projects. Upstream does not have
    /// these.
    pub limits_percent: u32,
}

/// The few names that the clients of a run contend for.
#[derive(Debug, Clone)]
pub struct Names {
    /// Core providers: created before the fault phase and never deleted, except for the last one.
    pub core: Vec<Uuid>,
    /// Field providers: created, moved, changed and deleted.
    pub field: Vec<Uuid>,
    /// UUIDs of the consumers.
    pub consumers: Vec<Uuid>,
    /// UUIDs of the consumers of holds.
    pub holders: Vec<Uuid>,
    /// Names of the projects.
    pub projects: Vec<String>,
    /// Aggregates that providers are members of.
    pub aggregates: Vec<String>,
}

impl Names {
    /// The names of a run.
    pub fn new(choices: &Choices) -> Self {
        let random = &mut choices.seed.stream("names");
        let mut some =
            |count: usize| -> Vec<Uuid> { (0..count).map(|_| uuid_from(random)).collect() };
        Self {
            consumers: some(choices.consumers),
            core: some(choices.providers),
            field: some(FIELD),
            aggregates: some(2).iter().map(ToString::to_string).collect(),
            projects: vec!["red".to_owned(), "blue".to_owned()],
            holders: some_holders(choices.seed),
        }
    }
}

fn some_holders(seed: Seed) -> Vec<Uuid> {
    let random = &mut seed.stream("holders");
    (0..HOLDERS).map(|_| uuid_from(random)).collect()
}

/// A kind of write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A claim of one consumer.
    Claim,
    /// Claims of several consumers in one request.
    Claims,
    /// A `DELETE` of `/allocations/{consumer}`.
    Release,
    /// One more unit for a core provider.
    Grow,
    /// A `POST` of `/resource_providers`.
    CreateProvider,
    /// A `PUT` of `/resource_providers/{uuid}`.
    UpdateProvider,
    /// A `DELETE` of `/resource_providers/{uuid}`.
    DeleteProvider,
    /// A `PUT` of `…/inventories`.
    ReplaceInventories,
    /// A `POST` of `…/inventories`.
    CreateInventory,
    /// A `PUT` of `…/inventories/{class}`.
    UpdateInventory,
    /// A `DELETE` of `…/inventories/{class}`.
    DeleteInventory,
    /// A `DELETE` of `…/inventories`.
    DeleteInventories,
    /// A `PUT` of `…/traits`.
    ReplaceTraits,
    /// A `DELETE` of `…/traits`.
    DeleteTraits,
    /// A `PUT` of `…/aggregates`.
    ReplaceAggregates,
    /// A `PUT` of `/traits/{name}`.
    EnsureTrait,
    /// A `DELETE` of `/traits/{name}`.
    DeleteTrait,
    /// A `POST` of `/resource_classes`.
    CreateClass,
    /// A `PUT` of `/resource_classes/{name}` from 1.7.
    EnsureClass,
    /// A `PUT` of `/resource_classes/{name}` below 1.7.
    RenameClass,
    /// A `DELETE` of `/resource_classes/{name}`.
    DeleteClass,
    /// A `POST` of `/reshaper`.
    Reshape,
}

/// Weights of the kinds: half of the writes contend for the core.
const KINDS: [(Kind, u32); 22] = [
    (Kind::Claim, 38),
    (Kind::Claims, 10),
    (Kind::Release, 10),
    (Kind::Grow, 6),
    (Kind::CreateProvider, 9),
    (Kind::UpdateProvider, 5),
    (Kind::DeleteProvider, 4),
    (Kind::ReplaceInventories, 7),
    (Kind::CreateInventory, 3),
    (Kind::UpdateInventory, 3),
    (Kind::DeleteInventory, 3),
    (Kind::DeleteInventories, 1),
    (Kind::ReplaceTraits, 4),
    (Kind::DeleteTraits, 1),
    (Kind::ReplaceAggregates, 4),
    (Kind::EnsureTrait, 3),
    (Kind::DeleteTrait, 3),
    (Kind::CreateClass, 2),
    (Kind::EnsureClass, 2),
    (Kind::RenameClass, 1),
    (Kind::DeleteClass, 3),
    (Kind::Reshape, 4),
];

/// The random choices of one client.
pub struct Workload {
    /// Random stream of the client.
    pub random: SmallRng,
    number: usize,
    marks: u32,
    unchecked_percent: u32,
    equal_percent: u32,
    repeated_percent: u32,
    choices_percent: u32,
    holds_percent: u32,
    /// Random stream of the holds.
    holds: SmallRng,
    limits_percent: u32,
    /// Random stream of the limits.
    limits: SmallRng,
    /// The last claim with several choices, which the client may send again.
    last_choices: Option<Write>,
    /// Random stream of the repetitions.
    repeats: SmallRng,
    /// Random stream of the request ids.
    ids: SmallRng,
}

impl Workload {
    /// The choices of client `number`.
    pub fn new(number: usize, choices: &Choices) -> Self {
        Self {
            random: choices.seed.stream(&format!("workload {number}")),
            number,
            marks: 0,
            unchecked_percent: choices.unchecked_percent,
            equal_percent: choices.equal_percent,
            repeated_percent: choices.repeated_percent,
            choices_percent: choices.choices_percent,
            holds_percent: choices.holds_percent,
            holds: choices.seed.stream(&format!("holds {number}")),
            limits_percent: choices.limits_percent,
            limits: choices.seed.stream(&format!("limits {number}")),
            last_choices: None,
            repeats: choices.seed.stream(&format!("repeats {number}")),
            ids: choices.seed.stream(&format!("request ids {number}")),
        }
    }

    /// A write with a new request id.
    fn identified(&mut self, command: Command, minor: u8) -> Write {
        Write {
            command,
            minor,
            request_id: Some(uuid_from(&mut self.ids)),
        }
    }

    /// Whether the client repeats a write that fails.
    pub(crate) fn is_repeated(&mut self, write: &Write) -> bool {
        let claims = matches!(
            write.command,
            Command::ReplaceAllocations(_) | Command::Claim(_)
        );
        claims && self.repeats.random_range(0..100) < self.repeated_percent
    }

    /// The node for a repetition.
    pub(crate) fn node_for_repetition(&mut self, nodes: &[u64]) -> u64 {
        let chosen = nodes.choose(&mut self.repeats);
        *chosen.expect("some node is up")
    }

    /// A number that no other write contains, valid as `max_unit`.
    fn mark(&mut self) -> u32 {
        self.marks += 1;
        1_000_000 * (u32::try_from(self.number).expect("few clients") + 1) + self.marks
    }

    /// True with this probability in percent.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.random.random_range(0..100) < percent
    }

    pub(crate) fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of.choose(&mut self.random).expect("not empty").clone()
    }

    /// A microversion in this range, often the newest of it.
    pub(crate) fn minor(&mut self, since: u8, until: u8) -> u8 {
        if self.percent(40) {
            until
        } else {
            self.random.random_range(since..=until)
        }
    }

    /// The consistency level of a read.
    pub fn level(&mut self, token: Option<Token>) -> Level {
        match (self.random.random_range(0..100), token) {
            (0..37, _) => Level::Default,
            (37..74, _) => Level::Linearizable,
            (74..84, Some(token)) => Level::Session(token),
            (84..92, _) => Level::Bounded(self.random.random_range(100..2000)),
            _ => Level::Local,
        }
    }

    /// The first writes of a run: the core with its inventories, and a part of the field.
    pub fn set_up(&mut self, names: &Names, total: u32) -> Vec<Write> {
        let mut writes = Vec::new();
        for (number, uuid) in names.core.iter().enumerate() {
            let create = CreateProvider {
                uuid: ProviderUuid(*uuid),
                name: name(format!("host{number}")),
                parent: None,
            };
            let inventory = self.plain(total);
            writes.push(Command::CreateProvider(create));
            writes.push(Command::ReplaceInventories(ReplaceInventories {
                provider: ProviderUuid(*uuid),
                generation: Generation(0),
                inventories: BTreeMap::from([(Given::from(CLASS), inventory)]),
                capacity_rule: CapacityRule::NotNegative,
            }));
        }
        writes.extend(self.set_up_field(names));
        let minor = NEWEST;
        writes
            .into_iter()
            .map(|command| self.identified(command, minor))
            .collect()
    }

    /// A provider below the core, one below that, and one that shares its disk with the core.
    fn set_up_field(&mut self, names: &Names) -> Vec<Command> {
        let [below, device, shared] = [0, 1, 2].map(|number| ProviderUuid(names.field[number]));
        let top = ProviderUuid(names.core[0]);
        let mut create = |uuid, parent: Option<ProviderUuid>| {
            Command::CreateProvider(CreateProvider {
                uuid,
                name: self.name(),
                parent: parent.map(|parent| Given::from(parent.to_string())),
            })
        };
        let creates = [
            create(below, Some(top)),
            create(device, Some(below)),
            create(shared, None),
        ];
        let mut stock = |provider, classes: &[&str]| {
            Command::ReplaceInventories(ReplaceInventories {
                provider,
                generation: Generation(0),
                inventories: classes
                    .iter()
                    .map(|class| (Given::from(*class), self.plain(8)))
                    .collect(),
                capacity_rule: CapacityRule::NotNegative,
            })
        };
        let stocks = [
            stock(below, &[CLASS, "CUSTOM_GOLD"]),
            stock(device, &["CUSTOM_GOLD"]),
            stock(shared, &["DISK_GB"]),
        ];
        let aggregate = AggregateUuid::from(names.aggregates[0].as_str());
        let joins = [(top, 1), (shared, 2)].map(|(provider, generation)| {
            Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
                provider,
                generation: Some(Generation(generation)),
                aggregates: BTreeSet::from([aggregate.clone()]),
            })
        });
        let shares = ReplaceProviderTraits {
            provider: shared,
            generation: Generation(1),
            traits: BTreeSet::from([Given::from("MISC_SHARES_VIA_AGGREGATE")]),
        };
        let class = EnsureResourceClass {
            name: class_name("CUSTOM_GOLD"),
        };
        let name = trait_name("CUSTOM_RED");
        let mut writes = vec![
            Command::EnsureTrait(EnsureTrait { name }),
            Command::EnsureResourceClass(class),
        ];
        writes.extend(creates);
        writes.extend(stocks);
        writes.push(Command::ReplaceProviderTraits(shares));
        writes.extend(joins);
        writes
    }

    /// The kind of the next write, and its providers.
    pub fn kind(&mut self, names: &Names) -> (Kind, Vec<Uuid>) {
        let chosen = KINDS.choose_weighted(&mut self.random, |(_, weight)| *weight);
        let kind = chosen.expect("the weights are fixed").0;
        let providers = match kind {
            Kind::Grow => vec![self.one(&names.core)],
            Kind::ReplaceTraits | Kind::ReplaceAggregates if self.percent(30) => {
                vec![self.one(&names.core)]
            }
            // The last core provider is also deleted and created; it is in use more often than a
            // field provider.
            Kind::DeleteProvider | Kind::CreateProvider
                if names.core.len() > 1 && self.percent(20) =>
            {
                names.core.last().copied().into_iter().collect()
            }
            Kind::Reshape => {
                let count = if self.percent(30) { 2 } else { 1 };
                // Providers of the set-up, which mostly exist.
                let mut some: Vec<Uuid> = names.field[..3]
                    .choose_multiple(&mut self.random, count)
                    .copied()
                    .collect();
                some.sort();
                some
            }
            _ => vec![self.one(&names.field)],
        };
        (kind, providers)
    }

    /// The reads that a client sends to a node before a write.
    pub fn looks(&mut self, kind: Kind, providers: &[Uuid]) -> Vec<Operation> {
        let needed = matches!(
            kind,
            Kind::Grow
                | Kind::ReplaceInventories
                | Kind::UpdateInventory
                | Kind::ReplaceTraits
                | Kind::ReplaceAggregates
                | Kind::Reshape
        );
        if !needed || (kind != Kind::Grow && !self.percent(LOOKS_PERCENT)) {
            return Vec::new();
        }
        let look = |provider: &Uuid| {
            let asked = QuestionKind::Inventories(*provider);
            let minor = self.minor(0, NEWEST);
            Operation::Read(Question { asked, minor }, Level::Local)
        };
        providers.iter().map(look).collect()
    }

    /// A write of this kind for these providers, if the client knows enough for it.
    pub fn write(
        &mut self,
        kind: Kind,
        providers: &[Uuid],
        names: &Names,
        beliefs: &Beliefs,
    ) -> Option<Write> {
        let about = *providers.first()?;
        let provider = ProviderUuid(about);
        let generation = Generation(beliefs.generation(about));
        let (command, minor) = match kind {
            Kind::Claim if self.choices_percent > 0 && self.percent(self.choices_percent) => {
                return Some(self.choices(names, beliefs));
            }
            Kind::Claim => return Some(self.claims(1, names, beliefs)),
            Kind::Claims => {
                let most = names.consumers.len().min(3);
                return Some(self.claims(most, names, beliefs));
            }
            Kind::Release if self.is_about_limits() => {
                let replace = ReplaceLimits {
                    generation: Generation(beliefs.limits()),
                    limits: self.new_limits(names),
                };
                (Command::ReplaceLimits(replace), NEWEST)
            }
            Kind::Release if self.is_about_holds() => {
                let holder = names.holders.choose(&mut self.holds)?.to_string();
                let consumer = ConsumerUuid::from(holder);
                let command = if self.holds.random_range(0..4) == 0 {
                    Command::DeleteAllocations(DeleteAllocations { consumer })
                } else {
                    let term = self.hold_term();
                    Command::RenewHold(RenewHold { consumer, term })
                };
                (command, NEWEST)
            }
            Kind::Release => {
                let consumer = ConsumerUuid::from(self.one(&names.consumers).to_string());
                let minor = self.minor(0, NEWEST);
                (
                    Command::DeleteAllocations(DeleteAllocations { consumer }),
                    minor,
                )
            }
            Kind::Grow => return self.grow(about, beliefs),
            Kind::CreateProvider => {
                let minor = self.minor(0, NEWEST);
                let parent = (minor >= 14 && self.percent(60)).then(|| self.parent(names));
                let create = CreateProvider {
                    uuid: provider,
                    name: self.name(),
                    parent,
                };
                (Command::CreateProvider(create), minor)
            }
            Kind::UpdateProvider => {
                let minor = self.minor(0, NEWEST);
                let parent = match self.random.random_range(0..4) {
                    _ if minor < 14 => ParentUpdate::Keep,
                    0 => ParentUpdate::Keep,
                    1 => ParentUpdate::Clear,
                    _ => ParentUpdate::Set(self.parent(names)),
                };
                let update = UpdateProvider {
                    uuid: provider,
                    name: self.name(),
                    parent,
                    may_reparent: minor >= 37,
                };
                (Command::UpdateProvider(update), minor)
            }
            Kind::DeleteProvider => {
                let delete = DeleteProvider { uuid: provider };
                (Command::DeleteProvider(delete), self.minor(0, NEWEST))
            }
            Kind::ReplaceInventories => {
                let minor = self.minor(0, NEWEST);
                let replace = ReplaceInventories {
                    provider,
                    generation,
                    inventories: self.inventories(),
                    capacity_rule: capacity_rule(minor),
                };
                (Command::ReplaceInventories(replace), minor)
            }
            Kind::CreateInventory => {
                let minor = self.minor(0, NEWEST);
                let create = CreateInventory {
                    provider,
                    resource_class: self.class(),
                    inventory: self.inventory(),
                    capacity_rule: capacity_rule(minor),
                };
                (Command::CreateInventory(create), minor)
            }
            Kind::UpdateInventory => {
                let minor = self.minor(0, NEWEST);
                let update = UpdateInventory {
                    provider,
                    generation,
                    resource_class: self.class(),
                    inventory: self.inventory(),
                    capacity_rule: capacity_rule(minor),
                };
                (Command::UpdateInventory(update), minor)
            }
            Kind::DeleteInventory => {
                let delete = DeleteInventory {
                    provider,
                    resource_class: self.class(),
                };
                (Command::DeleteInventory(delete), self.minor(0, NEWEST))
            }
            Kind::DeleteInventories => {
                let delete = DeleteInventories { provider };
                (Command::DeleteInventories(delete), self.minor(5, NEWEST))
            }
            Kind::ReplaceTraits => {
                let replace = ReplaceProviderTraits {
                    provider,
                    generation,
                    traits: self.traits(2),
                };
                (
                    Command::ReplaceProviderTraits(replace),
                    self.minor(6, NEWEST),
                )
            }
            Kind::DeleteTraits => {
                let delete = DeleteProviderTraits { provider };
                (Command::DeleteProviderTraits(delete), self.minor(6, NEWEST))
            }
            Kind::ReplaceAggregates => {
                let minor = self.minor(1, NEWEST);
                let replace = ReplaceProviderAggregates {
                    provider,
                    generation: (minor >= 19).then_some(generation),
                    aggregates: self.aggregates(names),
                };
                (Command::ReplaceProviderAggregates(replace), minor)
            }
            Kind::EnsureTrait => {
                let name = trait_name(self.one(&CUSTOM_TRAITS));
                (
                    Command::EnsureTrait(EnsureTrait { name }),
                    self.minor(6, NEWEST),
                )
            }
            Kind::DeleteTrait => {
                let name = trait_name(self.one(&TRAITS));
                (
                    Command::DeleteTrait(DeleteTrait { name }),
                    self.minor(6, NEWEST),
                )
            }
            Kind::CreateClass => {
                let name = class_name(self.one(&CUSTOM_CLASSES));
                let create = CreateResourceClass { name };
                (Command::CreateResourceClass(create), self.minor(2, NEWEST))
            }
            Kind::EnsureClass => {
                let name = class_name(self.one(&CUSTOM_CLASSES));
                let ensure = EnsureResourceClass { name };
                (Command::EnsureResourceClass(ensure), self.minor(7, NEWEST))
            }
            Kind::RenameClass => {
                let rename = RenameResourceClass {
                    name: self.old_class(),
                    new_name: class_name(self.one(&CUSTOM_CLASSES)),
                };
                (Command::RenameResourceClass(rename), self.minor(2, 6))
            }
            Kind::DeleteClass => {
                let name = self.old_class();
                let delete = DeleteResourceClass { name };
                (Command::DeleteResourceClass(delete), self.minor(2, NEWEST))
            }
            Kind::Reshape => {
                let minor = self.minor(30, NEWEST);
                let sets = providers.iter().map(|uuid| ReshapedInventories {
                    provider: Given::from(uuid.to_string()),
                    generation: Generation(beliefs.generation(*uuid)),
                    inventories: self.inventories(),
                });
                let inventories: Vec<_> = sets.collect();
                let most = self.random.random_range(0..=2).min(names.consumers.len());
                let mut allocations = self.consumers(most, minor, providers, names, beliefs);
                if self.percent(80) {
                    for one in &mut allocations {
                        one.allocations = self.some_of(&inventories);
                    }
                }
                let reshape = Reshape {
                    inventories,
                    allocations,
                };
                (Command::Reshape(reshape), minor)
            }
        };
        Some(self.identified(command, minor))
    }

    /// One more unit than a read showed. The core never shrinks.
    fn grow(&mut self, about: Uuid, beliefs: &Beliefs) -> Option<Write> {
        let (generation, total) = beliefs.stock(about)?;
        let inventory = self.plain(total + 1);
        let provider = ProviderUuid(about);
        let generation = Generation(generation);
        let minor = self.minor(0, NEWEST);
        let capacity_rule = capacity_rule(minor);
        let command = if self.percent(70) {
            Command::ReplaceInventories(ReplaceInventories {
                provider,
                generation,
                inventories: BTreeMap::from([(Given::from(CLASS), inventory)]),
                capacity_rule,
            })
        } else {
            Command::UpdateInventory(UpdateInventory {
                provider,
                generation,
                resource_class: Given::from(CLASS),
                inventory,
                capacity_rule,
            })
        };
        Some(self.identified(command, minor))
    }

    /// Claims of up to `most` consumers; `POST` exists from 1.13.
    fn claims(&mut self, most: usize, names: &Names, beliefs: &Beliefs) -> Write {
        let unchecked = self.percent(self.unchecked_percent);
        let since = match most {
            // Below 1.8 the request has no unique mark.
            1 if self.percent(10) => 0,
            1 => 8,
            _ => 13,
        };
        let minor = if unchecked {
            self.minor(since, 27)
        } else {
            self.minor(28, NEWEST)
        };
        let mut providers = names.core.clone();
        if self.percent(40) {
            providers.extend(&names.field);
        }
        let mut consumers = self.consumers(most, minor, &providers, names, beliefs);
        if !unchecked && self.equal_percent > 0 && self.percent(self.equal_percent) {
            consumers.iter_mut().for_each(|one| make_equal(one, names));
        }
        let command = Command::ReplaceAllocations(ReplaceAllocations { consumers });
        self.identified(command, minor)
    }

    /// A claim with several choices, ceilings and groups. Some are those of this client again,
    /// under another request id.
    fn choices(&mut self, names: &Names, beliefs: &Beliefs) -> Write {
        if let Some(last) = self.last_choices.take()
            && self.percent(50)
        {
            return self.identified(last.command, last.minor);
        }
        let minor = self.minor(28, NEWEST);
        let most = self.one(&[1, 1, 2]);
        let mut providers = names.core.clone();
        if self.percent(40) {
            providers.extend(&names.field);
        }
        let consumers = self.consumers(most, minor, &providers, names, beliefs);
        let choices = (0..self.random.random_range(1..=4)).map(|_| {
            let of_each = consumers.iter().map(|_| self.amounts(&providers, names));
            of_each.collect()
        });
        let choices = choices.collect();
        let ceilings = (0..self.one(&[0, 1, 1, 2])).map(|_| self.ceiling(names));
        let ceilings = ceilings.collect();
        let groups = (0..self.one(&[0, 0, 1, 2])).map(|_| self.claim_group(names));
        let mut groups: Vec<_> = groups.collect();
        // A request has two lists of groups.
        groups.sort_by_key(|group| group.rule == GroupRule::Together);
        let claimant = |one: ConsumerAllocations| Claimant {
            consumer: one.consumer,
            project: one.project,
            user: one.user,
            consumer_type: one.consumer_type,
            generation: one.generation,
        };
        let mut claim = Claim {
            claimants: consumers.into_iter().map(claimant).collect(),
            choices,
            ceilings,
            groups,
            hold: None,
        };
        if self.is_about_holds() {
            self.make_hold(&mut claim, names, beliefs);
        }
        let command = Command::Claim(claim);
        let write = self.identified(command, minor);
        self.last_choices = Some(write.clone());
        write
    }

    fn is_about_holds(&mut self) -> bool {
        self.holds_percent > 0 && self.holds.random_range(0..100) < self.holds_percent
    }

    fn is_about_limits(&mut self) -> bool {
        self.limits_percent > 0 && self.limits.random_range(0..100) < self.limits_percent
    }

    /// Limits that the claims of a few consumers exceed.
    fn new_limits(&mut self, names: &Names) -> Limits {
        let random = &mut self.limits;
        let types = [Some("INSTANCE"), Some("MIGRATION"), None];
        let count = random.random_range(1..=types.len());
        let types = types.choose_multiple(random, count);
        let types = types
            .map(|name| name.map(|name| name.parse().expect("a type's name")))
            .collect();
        let parent = random.random_bool(0.5).then(|| ProjectId::from(ABOVE));
        let mut projects = BTreeMap::new();
        for name in &names.projects {
            let own = ProjectLimits {
                parent: parent.clone(),
                limits: low_limits(random),
            };
            projects.insert(ProjectId::from(name.as_str()), own);
        }
        if let Some(parent) = parent {
            let own = ProjectLimits {
                parent: None,
                limits: low_limits(random),
            };
            projects.insert(parent, own);
        }
        let mode = if random.random_bool(0.5) {
            LimitMode::Enforce
        } else {
            LimitMode::Report
        };
        Limits {
            mode,
            types,
            defaults: low_limits(random),
            projects,
        }
    }

    /// Turns a claim into one of a hold for up to two consumers, or into one that confirms a hold.
    fn make_hold(&mut self, claim: &mut Claim, names: &Names, beliefs: &Beliefs) {
        let count = claim.claimants.len();
        let holders = names.holders.choose_multiple(&mut self.holds, count);
        // A request has its consumers in this order.
        let holders: BTreeSet<Uuid> = holders.copied().collect();
        for (claimant, holder) in claim.claimants.iter_mut().zip(holders) {
            claimant.consumer = ConsumerUuid::from(holder.to_string());
            let generation = beliefs.consumer(holder).map(Generation);
            claimant.generation =
                generation.map_or(ConsumerGeneration::New, ConsumerGeneration::Expect);
        }
        if self.holds.random_range(0..5) > 0 {
            let count = self.holds.random_range(0..=2);
            let kept_for = names.consumers.choose_multiple(&mut self.holds, count);
            claim.hold = Some(NewHold {
                kept_for: kept_for
                    .map(|uuid| ConsumerUuid::from(uuid.to_string()))
                    .collect(),
                term: self.hold_term(),
            });
        }
    }

    /// Mostly a short lease.
    fn hold_term(&mut self) -> HoldTerm {
        match self.holds.random_range(0..6) {
            0 => HoldTerm::Due(Timestamp(1_900_000_000_000_000)),
            1 => HoldTerm::Open,
            seconds => HoldTerm::Lease {
                seconds: seconds - 1,
            },
        }
    }

    fn ceiling(&mut self, names: &Names) -> Ceiling {
        let count = self.random.random_range(1..=names.projects.len());
        let projects = names.projects.choose_multiple(&mut self.random, count);
        let projects = projects.map(|name| name.as_str().into()).collect();
        let types = [Some("INSTANCE"), Some("MIGRATION"), None];
        let count = self.one(&[0, 1, 2]);
        let types = types.choose_multiple(&mut self.random, count);
        let types: BTreeSet<_> = types
            .map(|name| name.map(|name| name.parse().expect("a type's name")))
            .collect();
        let of = if self.percent(40) {
            Counted::Consumers
        } else {
            Counted::Units(Given::from(CLASS))
        };
        let limit = match of {
            Counted::Consumers => self.random.random_range(0..=4),
            Counted::Units(_) => self.random.random_range(0..=10),
        };
        Ceiling {
            projects,
            types: (!types.is_empty()).then_some(types),
            of,
            limit,
        }
    }

    fn claim_group(&mut self, names: &Names) -> Group {
        let count = self.random.random_range(1..=4).min(names.consumers.len());
        let members = names
            .consumers
            .choose_multiple(&mut self.random, count)
            .map(|uuid| ConsumerUuid::from(uuid.to_string()))
            .collect();
        let rule = match self.random.random_range(0..4) {
            0 => GroupRule::Together,
            1 => GroupRule::Apart { most: 2 },
            _ => GroupRule::Apart { most: 1 },
        };
        Group { members, rule }
    }

    /// New allocations of up to `most` consumers, sorted by UUID like members of JSON objects.
    fn consumers(
        &mut self,
        most: usize,
        minor: u8,
        providers: &[Uuid],
        names: &Names,
        beliefs: &Beliefs,
    ) -> Vec<ConsumerAllocations> {
        let mut some: Vec<Uuid> = names
            .consumers
            .choose_multiple(&mut self.random, most)
            .copied()
            .collect();
        some.sort();
        let user = format!("user{}", self.mark());
        some.into_iter()
            .map(|consumer| {
                let generation = match beliefs.consumer(consumer) {
                    _ if minor < 28 => ConsumerGeneration::Unchecked,
                    Some(generation) => ConsumerGeneration::Expect(Generation(generation)),
                    None => ConsumerGeneration::New,
                };
                let holds = matches!(generation, ConsumerGeneration::Expect(_));
                let consumer_type = if minor >= 38 {
                    let name = self.one(&["INSTANCE", "INSTANCE", "MIGRATION"]);
                    ConsumerTypeUpdate::Set(name.parse().expect("a type's name"))
                } else {
                    ConsumerTypeUpdate::Keep
                };
                let allocations = if holds && self.percent(10) {
                    Vec::new()
                } else {
                    self.amounts(providers, names)
                };
                let (project, user) = if minor >= 8 {
                    (self.one(&names.projects), user.as_str())
                } else {
                    (NO_ONE.to_owned(), NO_ONE)
                };
                ConsumerAllocations {
                    consumer: ConsumerUuid::from(consumer.to_string()),
                    allocations,
                    project: project.into(),
                    user: user.into(),
                    generation,
                    consumer_type,
                }
            })
            .collect()
    }

    fn amounts(&mut self, providers: &[Uuid], names: &Names) -> Vec<ProviderAmounts> {
        let count = if self.percent(25) { 2 } else { 1 };
        let mut some: Vec<Uuid> = providers
            .choose_multiple(&mut self.random, count)
            .copied()
            .collect();
        some.sort();
        some.into_iter()
            .map(|provider| {
                let mut classes = BTreeSet::from([CLASS]);
                if names.field.contains(&provider) {
                    classes = BTreeSet::from([self.one(&CLASSES[..4])]);
                    classes.extend(self.percent(30).then(|| self.one(&CLASSES[..4])));
                }
                let resources = classes
                    .into_iter()
                    .map(|class| (Given::from(class), self.random.random_range(1..=3)))
                    .collect();
                ProviderAmounts {
                    provider: Given::from(provider.to_string()),
                    resources,
                }
            })
            .collect()
    }

    /// One or two units of one class in each of these inventory sets, unless it is empty.
    fn some_of(&mut self, inventories: &[ReshapedInventories]) -> Vec<ProviderAmounts> {
        let held = inventories.iter().filter_map(|one| {
            let class = one.inventories.keys().next()?.clone();
            Some(ProviderAmounts {
                provider: one.provider.clone(),
                resources: BTreeMap::from([(class, self.one(&[1, 1, 2]))]),
            })
        });
        held.collect()
    }

    /// A provider name, mostly unique.
    fn name(&mut self) -> ProviderName {
        let mark = self.mark();
        name(if self.percent(15) {
            "made".to_owned()
        } else {
            format!("made-{mark}")
        })
    }

    fn parent(&mut self, names: &Names) -> Given<ProviderUuid> {
        let from = if self.percent(40) {
            &names.core
        } else {
            &names.field
        };
        Given::from(self.one(from).to_string())
    }

    fn class(&mut self) -> Given<ResourceClassName> {
        Given::from(self.one(&CLASSES[..4]))
    }

    /// A resource class to change, mostly a custom one.
    fn old_class(&mut self) -> ResourceClassName {
        class_name(if self.percent(15) {
            CLASS
        } else {
            self.one(&CUSTOM_CLASSES)
        })
    }

    /// An inventory without reserved units, marked by `max_unit`.
    fn plain(&mut self, total: u32) -> Inventory {
        Inventory {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: self.mark(),
            step_size: 1,
            allocation_ratio: 1.0,
        }
    }

    fn inventory(&mut self) -> Inventory {
        let total = self.random.random_range(1..=10);
        let mut inventory = self.plain(total);
        if self.percent(30) {
            inventory.reserved = self.random.random_range(0..=total);
        }
        if self.percent(20) {
            inventory.max_unit = self.random.random_range(1..=4);
        }
        inventory.min_unit = self.one(&[1, 1, 1, 2]);
        inventory.step_size = self.one(&[1, 1, 1, 2]);
        inventory.allocation_ratio = self.one(&[1.0, 1.0, 0.5, 1.5, 4.0]);
        inventory
    }

    fn inventories(&mut self) -> BTreeMap<Given<ResourceClassName>, Inventory> {
        let count = self.random.random_range(0..=3);
        (0..count)
            .map(|_| (self.class(), self.inventory()))
            .collect()
    }

    /// Up to `most` traits.
    pub(crate) fn traits(&mut self, most: usize) -> BTreeSet<Given<TraitName>> {
        let count = self.random.random_range(0..=most);
        (0..count).map(|_| Given::from(self.one(&TRAITS))).collect()
    }

    /// Some aggregates; one with a unique name marks the list.
    fn aggregates(&mut self, names: &Names) -> BTreeSet<AggregateUuid> {
        let mark = Uuid::from_u128(u128::from(self.mark())).to_string();
        let some: Vec<String> = names
            .aggregates
            .iter()
            .filter(|_| self.percent(60))
            .cloned()
            .collect();
        some.into_iter()
            .chain([mark])
            .map(AggregateUuid::from)
            .collect()
    }
}

/// At most one limit of consumers and one of units.
fn low_limits(random: &mut SmallRng) -> ResourceLimits {
    let units = LimitedResource::Class(class_name(CLASS));
    let mut limits = ResourceLimits::new();
    for (resource, most) in [(LimitedResource::Consumers, 4), (units, 10)] {
        let limit = match random.random_range(0..6) {
            0 | 1 => continue,
            2 => None,
            _ => Some(random.random_range(0..=most)),
        };
        limits.insert(resource, limit);
    }
    limits
}

/// Makes a claim equal to those of other clients for the same consumer and generation: only its
/// request id is unique.
fn make_equal(claim: &mut ConsumerAllocations, names: &Names) {
    claim.project = names.projects[0].as_str().into();
    claim.user = "anyone".into();
    if let ConsumerTypeUpdate::Set(name) = &mut claim.consumer_type {
        *name = "INSTANCE".parse().expect("a type's name");
    }
    if !claim.allocations.is_empty() {
        claim.allocations = vec![ProviderAmounts {
            provider: Given::from(names.core[0].to_string()),
            resources: BTreeMap::from([(Given::from(CLASS), 1)]),
        }];
    }
}

/// From 1.26 the reserved amount may equal the total.
fn capacity_rule(minor: u8) -> CapacityRule {
    if minor >= 26 {
        CapacityRule::NotNegative
    } else {
        CapacityRule::Positive
    }
}

fn name(text: String) -> ProviderName {
    text.try_into().expect("a short name")
}

fn class_name(text: &str) -> ResourceClassName {
    text.parse().expect("a class's name")
}

fn trait_name(text: &str) -> TraitName {
    text.parse().expect("a trait's name")
}
