//! A cloud for the tests of this folder, in which providers and consumers have short names.

use std::collections::BTreeMap;

use placement_model::command::{
    CapacityRule, Command, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate,
    CreateInventory, CreateProvider, ParentUpdate, ProviderAmounts, ReplaceAllocations,
    ReplaceInventories, Reshape, ReshapedInventories, UpdateInventory, UpdateProvider, WriteId,
};
use placement_model::outcome::{Outcome, Provider, Refusal, Reply};
use placement_model::query::allocations::Consumer;
use placement_model::types::{
    ConsumerUuid, Generation, Given, Inventory, ProjectId, ProviderName, ProviderUuid,
    ResourceClassName, Timestamp, UserId,
};
use placement_model::{State, apply, standard};
use placement_naive::stamped;
use uuid::Uuid;

pub(crate) struct Cloud {
    pub(crate) state: State,
    now: i64,
}

/// The UUID of the provider or consumer with this short name.
fn uuid(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(name.bytes()) {
        *place = byte;
    }
    Uuid::from_bytes(bytes)
}

pub(crate) fn provider(name: &str) -> ProviderUuid {
    ProviderUuid(uuid(name))
}

pub(crate) fn given(name: &str) -> Given<ProviderUuid> {
    Given::from(provider(name).to_string())
}

pub(crate) fn consumer(name: &str) -> ConsumerUuid {
    ConsumerUuid::from(uuid(name).to_string())
}

pub(crate) fn class(name: &str) -> ResourceClassName {
    name.parse().unwrap()
}

/// The class as in a request.
pub(crate) fn asked(name: &str) -> Given<ResourceClassName> {
    Given::from(name)
}

pub(crate) fn stock(total: u32) -> Inventory {
    Inventory {
        total,
        reserved: 0,
        min_unit: 1,
        max_unit: total,
        step_size: 1,
        allocation_ratio: 1.0,
    }
}

pub(crate) fn stocks(all: &[(&str, u32)]) -> BTreeMap<Given<ResourceClassName>, Inventory> {
    all.iter()
        .map(|(name, total)| (asked(name), stock(*total)))
        .collect()
}

impl Cloud {
    /// Makes a cloud with the standard classes and traits.
    pub(crate) fn new() -> Self {
        let mut cloud = Self {
            state: State::default(),
            now: 0,
        };
        cloud.done(standard::sync());
        cloud
    }

    pub(crate) fn try_request(&mut self, write_id: Option<WriteId>, command: Command) -> Outcome {
        self.now += 1;
        let stamped = stamped(Timestamp(self.now), write_id, command);
        let (outcome, changes) = apply(&self.state, &stamped);
        self.state.commit(&changes);
        outcome
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, seconds: i64) {
        self.now += seconds * 1_000_000;
    }

    /// The timestamp of the last command.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.now)
    }

    pub(crate) fn done(&mut self, command: Command) -> Reply {
        match self.try_request(None, command.clone()) {
            Outcome::Done(reply) => reply,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    pub(crate) fn refused(&mut self, command: Command) -> Refusal {
        match self.try_request(None, command.clone()) {
            Outcome::Refused(refusal) => refusal,
            other => panic!("{command:?}: {other:?}"),
        }
    }

    /// Creates a root with these totals.
    pub(crate) fn host(&mut self, name: &str, totals: &[(&str, u32)]) {
        self.below(None, name, totals);
    }

    pub(crate) fn child(&mut self, parent: &str, name: &str, totals: &[(&str, u32)]) {
        self.below(Some(parent), name, totals);
    }

    fn below(&mut self, parent: Option<&str>, name: &str, totals: &[(&str, u32)]) {
        self.done(Command::CreateProvider(CreateProvider {
            uuid: provider(name),
            name: ProviderName::try_from(name.to_owned()).unwrap(),
            parent: parent.map(given),
        }));
        for (class, total) in totals {
            self.done(create_inventory(name, class, stock(*total)));
        }
    }

    pub(crate) fn provider(&self, name: &str) -> Provider {
        self.state
            .provider(&provider(name))
            .expect("the test created it")
    }

    pub(crate) fn generation(&self, name: &str) -> i64 {
        self.provider(name).generation.0
    }

    pub(crate) fn consumer(&self, name: &str) -> Option<Consumer> {
        self.state.consumer(&consumer(name))
    }

    pub(crate) fn consumer_generation(&self, name: &str) -> Option<i64> {
        Some(self.consumer(name)?.generation.0)
    }

    pub(crate) fn used(&self, name: &str, of: &str) -> u64 {
        let usages = self.state.provider_usages(&provider(name));
        let (_, usages) = usages.expect("the test created it");
        usages[&class(of)]
    }

    pub(crate) fn digest(&self) -> u128 {
        self.state.digest().sum
    }
}

pub(crate) fn create_inventory(name: &str, of: &str, inventory: Inventory) -> Command {
    Command::CreateInventory(CreateInventory {
        provider: provider(name),
        resource_class: asked(of),
        inventory,
        capacity_rule: CapacityRule::NotNegative,
    })
}

pub(crate) fn replace_inventories(
    name: &str,
    generation: i64,
    inventories: BTreeMap<Given<ResourceClassName>, Inventory>,
) -> Command {
    Command::ReplaceInventories(ReplaceInventories {
        provider: provider(name),
        generation: Generation(generation),
        inventories,
        capacity_rule: CapacityRule::NotNegative,
    })
}

pub(crate) fn update_inventory(
    name: &str,
    generation: i64,
    of: &str,
    inventory: Inventory,
) -> Command {
    Command::UpdateInventory(UpdateInventory {
        provider: provider(name),
        generation: Generation(generation),
        resource_class: asked(of),
        inventory,
        capacity_rule: CapacityRule::NotNegative,
    })
}

pub(crate) fn move_below(name: &str, parent: ParentUpdate, may_reparent: bool) -> Command {
    Command::UpdateProvider(UpdateProvider {
        uuid: provider(name),
        name: ProviderName::try_from(name.to_owned()).unwrap(),
        parent,
        may_reparent,
    })
}

/// Amounts of one provider.
pub(crate) type Amounts<'a> = (&'a str, &'a [(&'a str, u64)]);

/// The requested allocations of one consumer, as from microversion 1.28 on.
#[derive(Clone)]
pub(crate) struct Wanted(pub(crate) ConsumerAllocations);

pub(crate) fn wanted(name: &str, amounts: &[Amounts<'_>]) -> Wanted {
    let one = |(name, resources): &Amounts<'_>| ProviderAmounts {
        provider: given(name),
        resources: resources
            .iter()
            .map(|(of, amount)| (asked(of), *amount))
            .collect(),
    };
    Wanted(ConsumerAllocations {
        consumer: consumer(name),
        allocations: amounts.iter().map(one).collect(),
        project: ProjectId::from("project"),
        user: UserId::from("user"),
        generation: ConsumerGeneration::New,
        consumer_type: ConsumerTypeUpdate::Keep,
    })
}

impl Wanted {
    pub(crate) fn at(mut self, generation: i64) -> Self {
        self.0.generation = ConsumerGeneration::Expect(Generation(generation));
        self
    }

    /// Does not check the consumer generation, as before microversion 1.28.
    pub(crate) fn unchecked(mut self) -> Self {
        self.0.generation = ConsumerGeneration::Unchecked;
        self
    }

    pub(crate) fn charged_to(mut self, project: &str, user: &str) -> Self {
        self.0.project = ProjectId::from(project);
        self.0.user = UserId::from(user);
        self
    }

    pub(crate) fn of_type(mut self, name: &str) -> Self {
        self.0.consumer_type = ConsumerTypeUpdate::Set(name.parse().unwrap());
        self
    }

    pub(crate) fn put(self) -> Command {
        post([self])
    }
}

pub(crate) fn post(all: impl IntoIterator<Item = Wanted>) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: all.into_iter().map(|one| one.0).collect(),
    })
}

/// A provider, the generation that the client saw, and the wanted totals.
type Reshaped<'a> = (&'a str, i64, &'a [(&'a str, u32)]);

pub(crate) fn reshape(
    inventories: &[Reshaped<'_>],
    allocations: impl IntoIterator<Item = Wanted>,
) -> Command {
    let one = |(name, generation, totals): &Reshaped<'_>| ReshapedInventories {
        provider: given(name),
        generation: Generation(*generation),
        inventories: stocks(totals),
    };
    Command::Reshape(Reshape {
        inventories: inventories.iter().map(one).collect(),
        allocations: allocations.into_iter().map(|one| one.0).collect(),
    })
}
