//! The cost of a command or query grows with its size and with the size of its tree, not with their
//! product or square: apply is sequential for the whole cluster, and a running command cannot be
//! aborted.
#![allow(clippy::unwrap_used)] // A panic fails the test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_model::command::{
    CapacityRule, Ceiling, Claim, Claimant, Command, ConsumerAllocations, ConsumerGeneration,
    ConsumerTypeUpdate, Counted, DeleteAllocations, DeleteInventories, DeleteProvider, Group,
    GroupRule, ParentUpdate, ProviderAmounts, ReplaceAllocations, ReplaceInventories,
    ReplaceLimits, ReplaceProviderAggregates, ReplaceProviderTraits, Reshape, ReshapedInventories,
    RetireNode, UpdateProvider,
};
use placement_model::outcome::{Outcome, Refusal, Reply};
use placement_model::query::capacity::CapacityBy;
use placement_model::query::consumers::ConsumerFilter;
use placement_model::query::limits::LimitFilter;
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::state::change::{
    Amount, Change, ConsumerRow, InventoryRow, LimitsRow, NameRow, ProviderId, ProviderRow,
    ResourceClassId, SessionRow, TraitId,
};
use placement_model::types::{
    AggregateUuid, ConsumerUuid, Generation, Given, Inventory, LimitMode, LimitedResource, Limits,
    PartitionId, ProjectId, ProjectLimits, ProviderName, ProviderUuid, ResourceClassName,
    Timestamp, TraitName, UserId,
};
use placement_model::{Cluster, LedgerEntry, State, apply};
use placement_naive::stamped;
use rustix::time::{ClockId, clock_gettime};
use uuid::Uuid;

/// The size of the small case; the large case is four times as large. A quadratic algorithm then
/// costs sixteen times as much, and at these sizes the quadratic part dominates.
const SIZE: u32 = 1_000;
/// A linear algorithm costs about four times as much, and somewhat more as the tables grow.
const RATIO_MAX: f64 = 8.0;
/// Number of attempts, of which one must succeed: other processes may evict the caches. The
/// repetition cannot make a quadratic cost look linear.
const ATTEMPTS: u32 = 5;

const NOW: Timestamp = Timestamp(7);

/// Rows of a cloud, with numbers as names.
#[derive(Default)]
struct Rows(Vec<Change>);

fn provider(number: u32) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(1 << 64 | u128::from(number)))
}

fn name(number: u32) -> ProviderName {
    ProviderName::try_from(format!("provider {number}")).unwrap()
}

fn given(number: u32) -> Given<ProviderUuid> {
    Given::from(provider(number).to_string())
}

fn consumer(number: u32) -> ConsumerUuid {
    ConsumerUuid::from(Uuid::from_u128(2 << 64 | u128::from(number)).to_string())
}

fn aggregate(number: u32) -> AggregateUuid {
    AggregateUuid::from(Uuid::from_u128(3 << 64 | u128::from(number)).to_string())
}

fn class(number: u32) -> ResourceClassName {
    format!("CUSTOM_{number:06}").parse().unwrap()
}

fn asked(number: u32) -> Given<ResourceClassName> {
    Given::from(class(number).to_string())
}

fn trait_name(number: u32) -> TraitName {
    format!("CUSTOM_{number:06}").parse().unwrap()
}

fn stock() -> Inventory {
    Inventory {
        total: 1_000_000,
        reserved: 0,
        min_unit: 1,
        max_unit: 1_000_000,
        step_size: 1,
        allocation_ratio: 1.0,
    }
}

impl Rows {
    fn classes(mut self, numbers: u32) -> Self {
        self.0.extend((0..numbers).map(|number| {
            let row = NameRow {
                name: class(number),
                updated_at: NOW,
            };
            Change::PutResourceClass(ResourceClassId(number), row)
        }));
        self
    }

    fn traits(mut self, numbers: u32) -> Self {
        self.0.extend((0..numbers).map(|number| {
            let row = NameRow {
                name: trait_name(number),
                updated_at: NOW,
            };
            Change::PutTrait(TraitId(number), row)
        }));
        self
    }

    /// Adds provider 0 with `children` children.
    fn tree(self, children: u32) -> Self {
        let parent = |number| (number > 0).then_some(ProviderId(0));
        (0..=children).fold(self, |rows, number| rows.provider(number, parent(number)))
    }

    /// Adds a root without children. The number must be higher than all earlier ones.
    fn lone(self, number: u32) -> Self {
        self.provider(number, None)
    }

    fn provider(mut self, number: u32, parent: Option<ProviderId>) -> Self {
        let row = ProviderRow {
            uuid: provider(number),
            name: name(number),
            generation: Generation(0),
            parent,
            created_at: NOW,
            updated_at: NOW,
        };
        self.0.push(Change::PutProvider(ProviderId(number), row));
        self
    }

    fn stock(mut self, provider: u32, class: u32) -> Self {
        let row = InventoryRow {
            inventory: stock(),
            updated_at: NOW,
        };
        let (provider, class) = (ProviderId(provider), ResourceClassId(class));
        self.0.push(Change::PutInventory(provider, class, row));
        self
    }

    fn stocks(self, all: impl IntoIterator<Item = (u32, u32)>) -> Self {
        all.into_iter()
            .fold(self, |rows, (provider, class)| rows.stock(provider, class))
    }

    /// Adds a consumer of this type, with one unit of each (provider, class) in `held`.
    fn consumer(
        mut self,
        number: u32,
        consumer_type: &str,
        held: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        let amount = |(provider, class)| Amount {
            provider: ProviderId(provider),
            class: ResourceClassId(class),
            units: 1,
        };
        let row = ConsumerRow {
            generation: Generation(1),
            project: ProjectId::from("project"),
            user: UserId::from("user"),
            consumer_type: Some(consumer_type.parse().unwrap()),
            allocations: held.into_iter().map(amount).collect(),
            updated_at: NOW,
            hold: None,
        };
        self.0.push(Change::PutConsumer(consumer(number), row));
        self
    }

    /// Adds enforced limits that no usage reaches, of a parent and this many children.
    fn limits(mut self, children: u32) -> Self {
        let row = LimitsRow {
            generation: Generation(1),
            updated_at: NOW,
            limits: limits(children),
        };
        self.0.push(Change::PutLimits(Box::new(row)));
        self
    }

    fn state(self) -> State {
        State::load(self.0).unwrap()
    }
}

/// Limits of the project "parent" and its children, of which the first one is "project".
fn limits(children: u32) -> Limits {
    let own = |parent: Option<&str>| ProjectLimits {
        parent: parent.map(ProjectId::from),
        limits: BTreeMap::new(),
    };
    let name = |number: u32| match number {
        0 => ProjectId::from("project"),
        number => ProjectId::from(format!("project {number}")),
    };
    let mut projects: BTreeMap<_, _> = (0..children)
        .map(|number| (name(number), own(Some("parent"))))
        .collect();
    projects.insert(ProjectId::from("parent"), own(None));
    Limits {
        mode: LimitMode::Enforce,
        types: BTreeSet::from([None, Some("INSTANCE".parse().unwrap())]),
        defaults: BTreeMap::from([(LimitedResource::Class(class(0)), Some(u64::MAX))]),
        projects,
    }
}

fn wanted(number: u32, held: impl IntoIterator<Item = (u32, u32)>) -> ConsumerAllocations {
    let amounts = |(provider, class)| ProviderAmounts {
        provider: given(provider),
        resources: BTreeMap::from([(asked(class), 1)]),
    };
    ConsumerAllocations {
        consumer: consumer(number),
        allocations: held.into_iter().map(amounts).collect(),
        project: ProjectId::from("project"),
        user: UserId::from("user"),
        generation: ConsumerGeneration::Unchecked,
        consumer_type: ConsumerTypeUpdate::Set("INSTANCE".parse().unwrap()),
    }
}

fn post(consumers: impl IntoIterator<Item = ConsumerAllocations>) -> Command {
    Command::ReplaceAllocations(ReplaceAllocations {
        consumers: consumers.into_iter().collect(),
    })
}

fn inventories(
    classes: impl IntoIterator<Item = u32>,
) -> BTreeMap<Given<ResourceClassName>, Inventory> {
    let one = |class| (asked(class), stock());
    classes.into_iter().map(one).collect()
}

fn reshape(
    inventories: impl IntoIterator<Item = (u32, BTreeMap<Given<ResourceClassName>, Inventory>)>,
    allocations: impl IntoIterator<Item = ConsumerAllocations>,
) -> Command {
    let one = |(number, inventories)| ReshapedInventories {
        provider: given(number),
        generation: Generation(0),
        inventories,
    };
    Command::Reshape(Reshape {
        inventories: inventories.into_iter().map(one).collect(),
        allocations: allocations.into_iter().collect(),
    })
}

fn replace(classes: impl IntoIterator<Item = u32>) -> Command {
    Command::ReplaceInventories(ReplaceInventories {
        provider: provider(0),
        generation: Generation(0),
        inventories: inventories(classes),
        capacity_rule: CapacityRule::NotNegative,
    })
}

/// A claim with these choices, which name the same consumers.
fn claim(choices: impl IntoIterator<Item = Vec<ConsumerAllocations>>) -> Claim {
    let choices: Vec<_> = choices.into_iter().collect();
    let claimant = |one: &ConsumerAllocations| Claimant {
        consumer: one.consumer.clone(),
        project: one.project.clone(),
        user: one.user.clone(),
        consumer_type: one.consumer_type.clone(),
        generation: one.generation,
    };
    let allocations = |choice: Vec<ConsumerAllocations>| {
        let of_each = choice.into_iter().map(|one| one.allocations);
        of_each.collect()
    };
    Claim {
        claimants: choices[0].iter().map(claimant).collect(),
        choices: choices.into_iter().map(allocations).collect(),
        ceilings: Vec::new(),
        groups: Vec::new(),
        hold: None,
    }
}

fn ceiling(projects: impl IntoIterator<Item = ProjectId>) -> Ceiling {
    Ceiling {
        projects: projects.into_iter().collect(),
        types: None,
        of: Counted::Units(asked(0)),
        limit: u64::MAX,
    }
}

fn move_below(number: u32, parent: ParentUpdate) -> Command {
    Command::UpdateProvider(UpdateProvider {
        uuid: provider(number),
        name: name(number),
        parent,
        may_reparent: true,
    })
}

/// The first command that imports these rows into an empty partition.
fn first_piece(rows: Rows) -> (State, Command) {
    let all = usize::MAX;
    let piece = rows.state().pieces(all, all).next().unwrap().unwrap();
    (State::default(), Command::FillPartition(piece))
}

/// A command against a state, by size.
struct Case {
    name: &'static str,
    of_size: fn(u32) -> (State, Command),
}

/// The worst case of each command with many elements, or on a large tree.
const COMMANDS: [Case; 29] = [
    Case {
        name: "a reshape that empties all providers of a tree",
        of_size: |n| {
            let state = Rows::default().tree(n).state();
            let all = (1..=n).map(|number| (number, BTreeMap::new()));
            (state, reshape(all, []))
        },
    },
    Case {
        name: "a reshape that gives each provider of a tree a different class",
        of_size: |n| {
            let state = Rows::default().classes(n + 1).tree(n).state();
            let all = (1..=n).map(|number| (number, inventories([number])));
            (state, reshape(all, []))
        },
    },
    Case {
        name: "a reshape that moves all consumers from the root to the children",
        of_size: |n| {
            let mut rows = Rows::default().classes(2).tree(n).stock(0, 1);
            for number in 1..=n {
                rows = rows.consumer(number, "INSTANCE", [(0, 1)]);
            }
            let all = (1..=n)
                .map(|number| (number, inventories([1])))
                .chain([(0, BTreeMap::new())]);
            let moved = (1..=n).map(|number| wanted(number, [(number, 1)]));
            (rows.state(), reshape(all, moved))
        },
    },
    Case {
        name: "a reshape that is refused at its last provider",
        of_size: |n| {
            let rows = Rows::default().classes(2).tree(n).stock(n, 1);
            let state = rows.consumer(0, "INSTANCE", [(n, 1)]).state();
            let all = (1..=n).map(|number| (number, BTreeMap::new()));
            (state, reshape(all, []))
        },
    },
    Case {
        name: "a replacement of no inventories by many",
        of_size: |n| (Rows::default().classes(n).tree(0).state(), replace(0..n)),
    },
    Case {
        name: "a replacement that adds as many inventories as exist, with lower class ids",
        of_size: |n| {
            let rows = Rows::default().classes(2 * n).tree(0);
            let state = rows.stocks((n..2 * n).map(|class| (0, class))).state();
            (state, replace(0..2 * n))
        },
    },
    Case {
        name: "a replacement that deletes every other of many inventories",
        of_size: |n| {
            let rows = Rows::default().classes(2 * n).tree(0);
            let state = rows.stocks((0..2 * n).map(|class| (0, class))).state();
            (state, replace((0..n).map(|class| 2 * class)))
        },
    },
    Case {
        name: "the deletion of many inventories",
        of_size: |n| {
            let rows = Rows::default().classes(n).tree(0);
            let state = rows.stocks((0..n).map(|class| (0, class))).state();
            let provider = provider(0);
            let command = Command::DeleteInventories(DeleteInventories { provider });
            (state, command)
        },
    },
    Case {
        name: "many traits on a root whose tree already has many traits",
        of_size: |n| {
            let mut rows = Rows::default().traits(2 * n).tree(n);
            for number in 0..n {
                let own = BTreeSet::from([TraitId(number)]);
                let change = Change::PutProviderTraits(ProviderId(number + 1), own);
                rows.0.push(change);
            }
            let command = Command::ReplaceProviderTraits(ReplaceProviderTraits {
                provider: provider(0),
                generation: Generation(0),
                traits: (0..2 * n)
                    .map(|number| Given::from(trait_name(number).to_string()))
                    .collect(),
            });
            (rows.state(), command)
        },
    },
    Case {
        name: "a replacement of many aggregates by as many others",
        of_size: |n| {
            let mut rows = Rows::default().tree(n);
            let old = (0..n).map(aggregate).collect();
            rows.0
                .push(Change::PutProviderAggregates(ProviderId(0), old));
            let command = Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
                provider: provider(0),
                generation: Some(Generation(0)),
                aggregates: (n..2 * n).map(aggregate).collect(),
            });
            (rows.state(), command)
        },
    },
    Case {
        name: "many new consumers of the last of many inventories",
        of_size: |n| {
            let rows = Rows::default().classes(n).tree(0);
            let state = rows.stocks((0..n).map(|class| (0, class))).state();
            (state, post((0..n).map(|c| wanted(c, [(0, n - 1)]))))
        },
    },
    Case {
        name: "many consumers, one for each provider of a tree",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(n);
            let state = rows.stocks((0..=n).map(|p| (p, 0))).state();
            (state, post((0..n).map(|c| wanted(c, [(c + 1, 0)]))))
        },
    },
    Case {
        name: "many consumers that remain without allocations because the last provider is unknown",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(0).stock(0, 0);
            let unknown = wanted(n, [(4_711, 0)]);
            let command = post((0..n).map(|c| wanted(c, [(0, 0)])).chain([unknown]));
            (rows.state(), command)
        },
    },
    Case {
        name: "one consumer that releases allocations on all providers of a tree",
        of_size: |n| {
            let rows = Rows::default()
                .classes(1)
                .tree(n)
                .stocks((0..=n).map(|p| (p, 0)))
                .consumer(0, "INSTANCE", (0..=n).map(|p| (p, 0)));
            let consumer = consumer(0);
            let command = Command::DeleteAllocations(DeleteAllocations { consumer });
            (rows.state(), command)
        },
    },
    Case {
        name: "a move of a tree of many classes below another root",
        of_size: |n| {
            let rows = Rows::default()
                .classes(n + 1)
                .tree(n)
                .stocks((0..=n).map(|p| (p, p)))
                .lone(1 << 20);
            let below = ParentUpdate::Set(given(1 << 20));
            (rows.state(), move_below(0, below))
        },
    },
    Case {
        name: "the deletion of a provider in a tree of many classes",
        of_size: |n| {
            let rows = Rows::default()
                .classes(n)
                .tree(n)
                .stocks((1..n).map(|p| (p, p)));
            let uuid = provider(n);
            (
                rows.state(),
                Command::DeleteProvider(DeleteProvider { uuid }),
            )
        },
    },
    Case {
        name: "an import of a tree, and of a consumer of each provider",
        of_size: |n| {
            let state = (Rows::default().classes(n).traits(n).tree(n))
                .stocks((0..=n).map(|p| (p, p.min(n - 1))));
            first_piece((0..n).fold(state, |rows, c| rows.consumer(c, "INSTANCE", [(c, c)])))
        },
    },
    Case {
        name: "an import of two levels below a root",
        of_size: |n| {
            let second = |rows: Rows, c| rows.provider(n + c, Some(ProviderId(c)));
            first_piece((1..=n).fold(Rows::default().tree(n), second))
        },
    },
    Case {
        name: "an import of a chain",
        of_size: |n| {
            let next = |rows: Rows, p: u32| rows.provider(p, p.checked_sub(1).map(ProviderId));
            first_piece((0..n).fold(Rows::default(), next))
        },
    },
    Case {
        name: "an import of a chain of parents that were created after their children",
        of_size: |n| {
            let next = |rows: Rows, p| rows.provider(p, Some(ProviderId(p + 1)));
            first_piece((0..n).fold(Rows::default().lone(n), next))
        },
    },
    Case {
        name: "a claim with many choices, of which only the last has an inventory",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(n).stock(n, 0);
            let choices = (1..=n).map(|p| vec![wanted(0, [(p, 0)])]);
            (rows.state(), Command::Claim(claim(choices)))
        },
    },
    Case {
        name: "a repeated claim of the last of many choices",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(n).stock(n, 0);
            let state = rows.consumer(0, "INSTANCE", [(n, 0)]).state();
            let choices = (1..=n).map(|p| vec![wanted(0, [(p, 0)])]);
            let mut claim = claim(choices);
            claim.claimants[0].generation = ConsumerGeneration::New;
            (state, Command::Claim(claim))
        },
    },
    Case {
        name: "a claim of many consumers, all members of several groups",
        of_size: |n| {
            let state = Rows::default().classes(1).tree(n).stock(0, 0).state();
            let mut claim = claim([(0..n).map(|c| wanted(c, [(0, 0)])).collect()]);
            let group = Group {
                members: (0..n).map(consumer).collect(),
                rule: GroupRule::Apart { most: n },
            };
            claim.groups = vec![group; 4];
            (state, Command::Claim(claim))
        },
    },
    Case {
        name: "several choices in a group of many members",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(0).lone(1 << 20);
            let rows = rows.stock(0, 0).stock(1 << 20, 0);
            let holds = |rows: Rows, c| rows.consumer(c, "INSTANCE", [(0, 0)]);
            let state = (1..=n).fold(rows, holds).state();
            let choices = [0, 0, 0, 0, 1 << 20].map(|p| vec![wanted(0, [(p, 0)])]);
            let mut claim = claim(choices);
            claim.groups.push(Group {
                members: (0..=n).map(consumer).collect(),
                rule: GroupRule::Apart { most: 1 },
            });
            (state, Command::Claim(claim))
        },
    },
    Case {
        name: "a claim below many ceilings",
        of_size: |n| {
            let state = Rows::default().classes(1).tree(0).stock(0, 0).state();
            let mut claim = claim([vec![wanted(0, [(0, 0)])]]);
            claim.ceilings = vec![ceiling(["project".into()]); n as usize];
            (state, Command::Claim(claim))
        },
    },
    Case {
        name: "a claim below the ceiling of many projects, one with many consumer types",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(0).stock(0, 0);
            let holds = |rows: Rows, c| rows.consumer(c, &format!("TYPE_{c}"), [(0, 0)]);
            let state = (1..=n).fold(rows, holds).state();
            let mut claim = claim([vec![wanted(0, [(0, 0)])]]);
            let empty = (0..n).map(|number| ProjectId::from(number.to_string()));
            claim.ceilings = vec![ceiling(empty.chain(["project".into()]))];
            (state, Command::Claim(claim))
        },
    },
    Case {
        name: "a write of many consumers below the limit of a parent with many children",
        of_size: |n| {
            let rows = Rows::default().classes(1).tree(0).stock(0, 0).limits(n);
            (rows.state(), post((0..n).map(|c| wanted(c, [(0, 0)]))))
        },
    },
    Case {
        name: "a replacement of the limits of many projects",
        of_size: |n| {
            let command = Command::ReplaceLimits(ReplaceLimits {
                generation: Generation(1),
                limits: limits(n),
            });
            (Rows::default().limits(n).state(), command)
        },
    },
    Case {
        name: "the removal of a node with many stored outcomes",
        of_size: |n| {
            let mut rows = Rows::default().tree(0);
            let session = SessionRow {
                boot: 1,
                answered_below: 0,
            };
            rows.0.push(Change::PutSession(9, session));
            rows.0.extend((0..n).map(|sequence| {
                Change::PutOutcome(9, u64::from(sequence), Outcome::Done(Reply::Done))
            }));
            let command = Command::RetireNode(RetireNode { node: 9 });
            (rows.state(), command)
        },
    },
];

/// The CPU time of this thread, which excludes other processes.
fn timed(work: impl FnOnce()) -> Duration {
    let taken = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("CPU time is not negative")
    };
    let begun = taken();
    work();
    taken() - begun
}

/// The cost of a command that is alone in its batch, while a reader holds the previous state.
fn cost(case: &Case, size: u32) -> Duration {
    let (state, command) = (case.of_size)(size);
    let stamped = stamped(NOW, None, command);
    let measured = || {
        let mut next = state.clone();
        timed(|| {
            let (outcome, changes) = apply(&state, &stamped);
            let meant = match &outcome {
                Outcome::Done(_) => true,
                Outcome::Refused(refusal) => matches!(
                    refusal,
                    Refusal::InventoryInUse { .. } | Refusal::AllocationProviderNotFound(_)
                ),
                Outcome::AnsweredBefore => false,
            };
            assert!(meant, "{}: {outcome:?}", case.name);
            next.commit(&changes);
        })
    };
    measured().min(measured())
}

/// Checks that the cost does not grow too fast, in one of several attempts.
fn check(name: &str, cost: impl Fn(u32) -> Duration, ratio_max: f64) -> Result<(), String> {
    let mut result = String::new();
    for _ in 0..ATTEMPTS {
        let (small, large) = (cost(SIZE), cost(4 * SIZE));
        let ratio = large.as_secs_f64() / small.as_secs_f64();
        result = format!("{name}: {small:?}, at four times the size {large:?}, {ratio:.1} times");
        if ratio < ratio_max {
            println!("{result}");
            return Ok(());
        }
    }
    Err(result)
}

/// A write that sums the usage of many projects is not applied as a cheap one.
#[test]
fn children_of_a_parent_are_part_of_the_estimate() {
    let steps = |rows: Rows, most| {
        let cluster = Cluster::from(rows.state());
        let stamped = stamped(NOW, None, post([wanted(0, [(0, 0)])]));
        cluster.steps_of_claim(&stamped, most)
    };
    let rows = || Rows::default().classes(1).tree(0).stock(0, 0);
    let [few, many] = [1, 1_000].map(|n| steps(rows().limits(n), usize::MAX).unwrap());
    assert!(many >= few + 999, "{few}, {many}");
    assert_eq!(steps(rows().limits(1_000), 1_000), None);
    assert!(steps(rows(), usize::MAX).unwrap() < few);
}

/// One test for all cases, since concurrent tests would distort the measurements.
#[test]
fn costs_are_not_quadratic() {
    let mut bad = Vec::new();
    for case in &COMMANDS {
        bad.extend(check(case.name, |size| cost(case, size), RATIO_MAX).err());
    }
    bad.extend(undone().err());
    bad.extend(types().err());
    bad.extend(pieces_of_a_chain().err());
    bad.extend(queries());
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Earlier states are reconstructed by undoing later entries.
fn undone() -> Result<(), String> {
    let cost = |size| {
        let (before, command) = first_piece(Rows::default().tree(size));
        let stamped = stamped(NOW, None, command);
        let (_, changes) = apply(&before, &stamped);
        let mut after = before.clone();
        after.commit(&changes);
        let changes = vec![(PartitionId::DEFAULT, changes)];
        let entries = LedgerEntry::for_command(1, &stamped, &Cluster::default(), &changes);
        timed(|| after.commit(&entries[0].undo()))
    };
    check("the undo of an imported tree", cost, RATIO_MAX)
}

/// A backup that is imported may have trees of any depth.
fn pieces_of_a_chain() -> Result<(), String> {
    let cost = |size| {
        let rows = (0..10 * size).fold(Rows::default(), |rows, number| {
            rows.provider(number, number.checked_sub(1).map(ProviderId))
        });
        let state = rows.state();
        timed(|| assert!(state.pieces(1 << 20, 1 << 20).all(|piece| piece.is_ok())))
    };
    check("the split of a chain into commands", cost, RATIO_MAX)
}

/// Clients choose the names of consumer types, so the number of types must not slow down a write.
fn types() -> Result<(), String> {
    let cost = |size| {
        let mut rows = Rows::default().classes(1).tree(0).stock(0, 0);
        for number in 1..=size {
            rows = rows.consumer(number, &format!("TYPE_{number}"), [(0, 0)]);
        }
        let state = rows.state();
        let command = post([wanted(0, [(0, 0)])]);
        let stamped = stamped(NOW, None, command);
        // A single write is too short to measure.
        timed(|| {
            for _ in 0..100 {
                let mut next = state.clone();
                let (_, changes) = apply(&state, &stamped);
                next.commit(&changes);
            }
        })
    };
    let name = "a write in a project of many consumer types";
    check(name, |size| cost(size).min(cost(size)), 2.5)
}

/// Number of providers that pass a filter.
fn found(state: &State, filter: &ProviderFilter) -> u32 {
    let all = state.providers(filter, usize::MAX).unwrap();
    all.unwrap().len() as u32
}

fn capacity_rows(state: &State, by: CapacityBy) -> u32 {
    let report = state.capacity(None, by, usize::MAX).unwrap();
    report.capacity.len() as u32
}

/// Number of consumers that pass a filter.
fn listed(state: &State, filter: &ConsumerFilter) -> u32 {
    let page = state.consumers(filter, None, usize::MAX, usize::MAX);
    page.consumers.len() as u32
}

/// Checks the queries that walk over many rows.
fn queries() -> Vec<String> {
    type Query = fn(&State, u32);
    let state = |n: u32| {
        let mut rows = Rows::default()
            .classes(n)
            .traits(n)
            .tree(n)
            .stocks((0..n).flat_map(|p| [(0, p), (p + 1, p)]));
        for number in 0..n {
            let own = BTreeSet::from([TraitId(number)]);
            (rows.0).push(Change::PutProviderTraits(ProviderId(number + 1), own));
            let member = BTreeSet::from([aggregate(number)]);
            (rows.0).push(Change::PutProviderAggregates(
                ProviderId(number + 1),
                member,
            ));
            rows = rows.consumer(
                number,
                &format!("TYPE_{number}"),
                [(0, 0), (number + 1, number)],
            );
        }
        rows = rows.consumer(n, "INSTANCE", (0..n).map(|p| (p + 1, p)));
        rows.limits(n).state()
    };
    let all: [(&str, Query); 18] = [
        ("all providers", |state, n| {
            assert_eq!(found(state, &ProviderFilter::default()), n + 1);
        }),
        ("the providers of a tree", |state, n| {
            let filter = ProviderFilter {
                in_tree: Some(given(0)),
                ..ProviderFilter::default()
            };
            assert_eq!(found(state, &filter), n + 1);
        }),
        ("providers with any of many traits", |state, n| {
            let any = (0..n).map(|number| Given::from(trait_name(number).to_string()));
            let filter = ProviderFilter {
                required: vec![any.collect()],
                ..ProviderFilter::default()
            };
            assert_eq!(found(state, &filter), n);
        }),
        ("providers of any of many aggregates", |state, n| {
            let filter = ProviderFilter {
                member_of: vec![(0..n).map(aggregate).collect()],
                ..ProviderFilter::default()
            };
            assert_eq!(found(state, &filter), n);
        }),
        ("traits", |state, n| {
            assert_eq!(state.traits(Some(true)).len() as u32, n);
        }),
        ("the inventories and usages of a provider", |state, n| {
            let (_, inventories) = state.inventories(&provider(0)).unwrap();
            let (_, usages) = state.provider_usages(&provider(0)).unwrap();
            assert_eq!((inventories.len(), usages.len()), (n as usize, n as usize));
        }),
        ("the allocations of a provider", |state, n| {
            let provider = provider(0);
            let (_, held) = state.provider_holdings(&provider).unwrap();
            assert_eq!(held.count() as u32, n);
        }),
        ("the allocations of a consumer", |state, n| {
            let held = state.consumer(&consumer(n)).unwrap();
            assert_eq!(held.allocations.len() as u32, n);
        }),
        ("the capacity of all classes", |state, n| {
            assert_eq!(capacity_rows(state, CapacityBy::Class), n);
        }),
        ("the capacity by aggregate", |state, n| {
            assert_eq!(capacity_rows(state, CapacityBy::Aggregate), n);
        }),
        ("the capacity by trait", |state, n| {
            assert_eq!(capacity_rows(state, CapacityBy::Trait), n);
        }),
        ("the capacity by provider", |state, n| {
            assert_eq!(capacity_rows(state, CapacityBy::Provider), 2 * n);
        }),
        ("the capacity by tree", |state, n| {
            assert_eq!(capacity_rows(state, CapacityBy::Tree), n);
        }),
        ("all consumers", |state, n| {
            let filter = ConsumerFilter::default();
            assert_eq!(listed(state, &filter), n + 1);
        }),
        (
            "the consumers of a provider in several trees",
            |state, _| {
                let filter = ConsumerFilter {
                    provider: Some(provider(0)),
                    class: Some(class(0)),
                    several_trees: true,
                    ..ConsumerFilter::default()
                };
                assert_eq!(listed(state, &filter), 0);
            },
        ),
        ("a tree with all that its providers have", |state, n| {
            let tree = state.tree_with(&provider(n)).unwrap();
            assert_eq!(tree.providers.len() as u32, n + 1);
            assert_eq!(tree.providers[0].holders as u32, n);
        }),
        ("the usages of a project", |state, n| {
            let usages = state.usages(&ProjectId::from("project"), None);
            assert_eq!(usages.len() as u32, n + 1);
        }),
        ("the usages of all projects with limits", |state, n| {
            let filter = LimitFilter::default();
            let page = state.limit_usages(&filter, None, usize::MAX, usize::MAX);
            assert_eq!(page.projects.len() as u32, n + 1);
        }),
    ];
    let states: BTreeMap<u32, State> = [SIZE, 4 * SIZE].map(|n| (n, state(n))).into();
    let checked = all.map(|(name, query)| {
        let cost = |size| {
            let once = || timed(|| query(&states[&size], size));
            once().min(once()).min(once())
        };
        check(name, cost, RATIO_MAX)
    });
    checked.into_iter().filter_map(Result::err).collect()
}
