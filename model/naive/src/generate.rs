//! Random commands that use few names, so that they affect the same objects.

use std::collections::{BTreeMap, BTreeSet};

use placement_model::Level;
use placement_model::command::{
    CapacityRule, Ceiling, Claim, Claimant, Command, ConsumerAllocations, ConsumerGeneration,
    ConsumerTypeUpdate, Counted, CreateInventory, CreateProvider, CreateResourceClass,
    DeleteAllocations, DeleteInventories, DeleteInventory, DeleteProvider, DeleteProviderTraits,
    DeleteResourceClass, DeleteTrait, EnsureResourceClass, EnsureTrait, ExpireHolds, FillPartition,
    Filled, FilledConsumer, FilledProvider, Group, GroupRule, IssueJoinToken, NewHold,
    ParentUpdate, ProviderAmounts, RaiseLevel, RedeemJoinToken, RenameResourceClass, RenewHold,
    ReplaceAllocations, ReplaceInventories, ReplaceLimits, ReplaceProviderAggregates,
    ReplaceProviderTraits, Reshape, ReshapedInventories, RetireNode, RevokeJoinToken,
    SetReplacement, SyncStandards, UpdateInventory, UpdateProvider,
};
use placement_model::query::consumers::ConsumerFilter;
use placement_model::query::resource_providers::ProviderFilter;
use placement_model::state::change::{InventoryRow, LimitsRow, NameRow, Replaced};
use placement_model::types::{
    AggregateUuid, ConsumerTypeName, ConsumerUuid, Generation, Given, Hold, HoldEnd, HoldTerm,
    Inventory, LimitMode, LimitedResource, Limits, ProjectId, ProjectLimits, ProviderName,
    ProviderUuid, ResourceClassName, ResourceLimits, Timestamp, TraitName, UserId,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

/// Placeholder that [`settle`] replaces with the current generation.
pub const RIGHT: Generation = Generation(-7);

/// Placeholder that [`settle`] replaces with the current number of rows.
const RIGHT_ROWS: Filled = Filled {
    providers: u64::MAX,
    consumers: u64::MAX,
};

/// The standard classes that commands use.
pub const STANDARD_CLASSES: [&str; 2] = ["VCPU", "MEMORY_MB"];
/// All classes that commands use.
pub const CLASSES: [&str; 5] = ["VCPU", "MEMORY_MB", "CUSTOM_A", "CUSTOM_B", "CUSTOM_C"];
/// The standard traits that commands use.
pub const STANDARD_TRAITS: [&str; 2] = ["HW_X", "MISC_SHARES_VIA_AGGREGATE"];
/// All traits that commands use.
pub const TRAITS: [&str; 5] = [
    "HW_X",
    "MISC_SHARES_VIA_AGGREGATE",
    "CUSTOM_R",
    "CUSTOM_S",
    "CUSTOM_T",
];

/// All aggregates that commands use.
pub const AGGREGATES: [&str; 3] = ["a1", "a2", "a3"];

/// The UUID of the provider with this number.
pub fn provider_uuid(number: u8) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(
        0xabc0_0000_0000_4000_8000_0000_0000_0000 + u128::from(number),
    ))
}

/// All providers that commands use.
pub fn providers() -> impl Iterator<Item = ProviderUuid> {
    (0..7).map(provider_uuid)
}

/// All consumers that commands use.
pub fn consumers() -> impl Iterator<Item = ConsumerUuid> {
    (0..4).map(|n| ConsumerUuid::from(format!("c0c00000-0000-4000-8000-00000000000{n}")))
}

/// All projects that commands use.
pub fn projects() -> impl Iterator<Item = ProjectId> {
    ["p1", "p2"].into_iter().map(ProjectId::from)
}

/// All users that commands use.
pub fn users() -> impl Iterator<Item = UserId> {
    ["u1", "u2"].into_iter().map(UserId::from)
}

fn provider() -> impl Strategy<Value = ProviderUuid> {
    (0_u8..7).prop_map(provider_uuid)
}

fn provider_name() -> impl Strategy<Value = ProviderName> {
    (0_u8..8).prop_map(|n| ProviderName::try_from(format!("host{n}")).unwrap())
}

/// Usually a provider that may exist, sometimes a spelling that identifies no provider.
fn given() -> impl Strategy<Value = Given<ProviderUuid>> {
    prop_oneof![
        20 => (0_u8..4).prop_map(|n| Given::from(provider_uuid(n).to_string())),
        10 => provider().prop_map(|uuid| Given::from(uuid.to_string())),
        1 => provider().prop_map(|uuid| Given::from(uuid.to_string().to_uppercase())),
    ]
}

fn class() -> impl Strategy<Value = ResourceClassName> {
    prop_oneof![30 => select(&CLASSES[..2]), 10 => select(&CLASSES[2..4]), 1 => Just("CUSTOM_C")]
        .prop_map(|name| name.parse().unwrap())
}

/// Usually a class that may exist, sometimes a malformed name.
fn given_class() -> impl Strategy<Value = Given<ResourceClassName>> {
    prop_oneof![40 => class().prop_map(Given::Valid), 1 => Just(Given::from("vcpu"))]
}

fn given_trait() -> impl Strategy<Value = Given<TraitName>> {
    prop_oneof![40 => trait_().prop_map(Given::Valid), 1 => Just(Given::from(" HW_X"))]
}

fn trait_() -> impl Strategy<Value = TraitName> {
    select(&TRAITS[..]).prop_map(|name| name.parse().unwrap())
}

fn aggregates() -> impl Strategy<Value = BTreeSet<AggregateUuid>> {
    btree_set(select(&AGGREGATES[..]).prop_map(AggregateUuid::from), 0..3)
}

fn inventory() -> impl Strategy<Value = Inventory> {
    let ratio = select(&[0.5, 1.0, 1.0, 1.5, 4.0][..]);
    let units = || prop_oneof![4 => 1_u32..20, 1 => 20_u32..70];
    (
        units(),
        0_u32..4,
        select(&[1_u32, 1, 1, 2][..]),
        units(),
        select(&[1_u32, 1, 1, 2][..]),
        ratio,
    )
        .prop_map(inventory_of)
}

/// Makes an inventory from total, reserved, min_unit, max_unit, step_size and allocation_ratio.
pub(crate) fn inventory_of(parts: (u32, u32, u32, u32, u32, f64)) -> Inventory {
    let (total, reserved, min_unit, max_unit, step_size, allocation_ratio) = parts;
    Inventory {
        total,
        reserved,
        min_unit,
        max_unit,
        step_size,
        allocation_ratio,
    }
}

fn inventories() -> impl Strategy<Value = BTreeMap<Given<ResourceClassName>, Inventory>> {
    btree_map(given_class(), inventory(), 0..4)
}

fn generation() -> impl Strategy<Value = Generation> {
    prop_oneof![12 => Just(RIGHT), 1 => (0_i64..4).prop_map(Generation)]
}

fn capacity_rule() -> impl Strategy<Value = CapacityRule> {
    prop_oneof![
        Just(CapacityRule::Positive),
        Just(CapacityRule::NotNegative)
    ]
}

fn consumer() -> impl Strategy<Value = ConsumerUuid> {
    select(consumers().collect::<Vec<_>>())
}

fn amounts() -> impl Strategy<Value = Vec<ProviderAmounts>> {
    let resources = btree_map(given_class(), 1_u64..6, 1..3);
    btree_map(given(), resources, 0..=2).prop_map(|all| {
        let amounts = |(provider, resources)| ProviderAmounts {
            provider,
            resources,
        };
        all.into_iter().map(amounts).collect()
    })
}

fn consumer_allocations() -> impl Strategy<Value = ConsumerAllocations> {
    let generation = prop_oneof![
        8 => Just(ConsumerGeneration::Expect(RIGHT)),
        2 => Just(ConsumerGeneration::Unchecked),
        1 => Just(ConsumerGeneration::New),
        1 => (0_i64..3).prop_map(|n| ConsumerGeneration::Expect(Generation(n))),
    ];
    let consumer_type = prop_oneof![
        Just(ConsumerTypeUpdate::Keep),
        select(&["INSTANCE", "MIGRATION"][..])
            .prop_map(|name| ConsumerTypeUpdate::Set(name.parse::<ConsumerTypeName>().unwrap())),
    ];
    let project = select(projects().collect::<Vec<_>>());
    let user = select(users().collect::<Vec<_>>());
    (
        consumer(),
        amounts(),
        project,
        user,
        generation,
        consumer_type,
    )
        .prop_map(
            |(consumer, allocations, project, user, generation, consumer_type)| {
                ConsumerAllocations {
                    consumer,
                    allocations,
                    project,
                    user,
                    generation,
                    consumer_type,
                }
            },
        )
}

/// One consumer that requests small amounts from one provider, which often succeeds.
fn modest_allocations() -> impl Strategy<Value = Vec<ConsumerAllocations>> {
    let resources = btree_map(select(&STANDARD_CLASSES[..]), 1_u64..5, 1..=2);
    (consumer_allocations(), 0_u8..4, resources).prop_map(|(mut one, number, resources)| {
        let resources = resources
            .into_iter()
            .map(|(name, n)| (name.parse().unwrap(), n))
            .collect();
        let provider = Given::from(provider_uuid(number).to_string());
        one.allocations = vec![ProviderAmounts {
            provider,
            resources,
        }];
        vec![one]
    })
}

/// Each consumer once, as in a JSON object.
fn many_allocations() -> impl Strategy<Value = Vec<ConsumerAllocations>> {
    vec(consumer_allocations(), 0..4).prop_map(|mut all| {
        let mut seen = BTreeSet::new();
        all.retain(|one| seen.insert(one.consumer.clone()));
        all
    })
}

fn reshaped() -> impl Strategy<Value = Vec<ReshapedInventories>> {
    btree_map(given(), (generation(), inventories()), 0..3).prop_map(|all| {
        let one = |(provider, (generation, inventories))| ReshapedInventories {
            provider,
            generation,
            inventories,
        };
        all.into_iter().map(one).collect()
    })
}

fn provider_command() -> impl Strategy<Value = Command> {
    let parent = prop_oneof![
        Just(ParentUpdate::Keep),
        Just(ParentUpdate::Clear),
        given().prop_map(ParentUpdate::Set),
    ];
    prop_oneof![
        4 => (provider(), provider_name(), proptest::option::of(given()))
            .prop_map(|(uuid, name, parent)| Command::CreateProvider(CreateProvider { uuid, name, parent })),
        3 => (provider(), provider_name(), parent, any::<bool>()).prop_map(
            |(uuid, name, parent, may_reparent)| Command::UpdateProvider(UpdateProvider {
                uuid,
                name,
                parent,
                may_reparent,
            })
        ),
        1 => provider().prop_map(|uuid| Command::DeleteProvider(DeleteProvider { uuid })),
    ]
}

fn inventory_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        3 => (provider(), generation(), inventories(), capacity_rule()).prop_map(
            |(provider, generation, inventories, capacity_rule)| Command::ReplaceInventories(ReplaceInventories {
                provider,
                generation,
                inventories,
                capacity_rule,
            })
        ),
        3 => (provider(), given_class(), inventory(), capacity_rule()).prop_map(
            |(provider, resource_class, inventory, capacity_rule)| Command::CreateInventory(CreateInventory {
                provider,
                resource_class,
                inventory,
                capacity_rule,
            })
        ),
        2 => (provider(), generation(), given_class(), inventory(), capacity_rule()).prop_map(
            |(provider, generation, resource_class, inventory, capacity_rule)| {
                Command::UpdateInventory(UpdateInventory {
                    provider,
                    generation,
                    resource_class,
                    inventory,
                    capacity_rule,
                })
            }
        ),
        1 => (provider(), given_class()).prop_map(|(provider, resource_class)| {
            Command::DeleteInventory(DeleteInventory { provider, resource_class })
        }),
        1 => provider().prop_map(|provider| Command::DeleteInventories(DeleteInventories { provider })),
    ]
}

fn belongings_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        3 => (provider(), generation(), btree_set(given_trait(), 0..4)).prop_map(
            |(provider, generation, traits)| Command::ReplaceProviderTraits(ReplaceProviderTraits {
                provider,
                generation,
                traits,
            })
        ),
        1 => provider().prop_map(|provider| Command::DeleteProviderTraits(DeleteProviderTraits { provider })),
        3 => (provider(), proptest::option::of(generation()), aggregates()).prop_map(
            |(provider, generation, aggregates)| Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
                provider,
                generation,
                aggregates,
            })
        ),
    ]
}

fn name_command() -> impl Strategy<Value = Command> {
    prop_oneof![
        3 => trait_().prop_map(|name| Command::EnsureTrait(EnsureTrait { name })),
        1 => trait_().prop_map(|name| Command::DeleteTrait(DeleteTrait { name })),
        2 => class().prop_map(|name| Command::CreateResourceClass(CreateResourceClass { name })),
        2 => class().prop_map(|name| Command::EnsureResourceClass(EnsureResourceClass { name })),
        1 => (class(), class())
            .prop_map(|(name, new_name)| Command::RenameResourceClass(RenameResourceClass { name, new_name })),
        1 => class().prop_map(|name| Command::DeleteResourceClass(DeleteResourceClass { name })),
    ]
}

/// Random commands of all kinds.
pub fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        3 => provider_command(),
        4 => inventory_command(),
        2 => belongings_command(),
        2 => name_command(),
        6 => many_allocations().prop_map(|consumers| Command::ReplaceAllocations(ReplaceAllocations { consumers })),
        6 => modest_allocations().prop_map(|consumers| Command::ReplaceAllocations(ReplaceAllocations { consumers })),
        1 => consumer().prop_map(|consumer| Command::DeleteAllocations(DeleteAllocations { consumer })),
        2 => shrink(),
        1 => (1_u64..12).prop_map(|node| Command::RetireNode(RetireNode { node })),
        1 => (0_u32..4).prop_map(|to| Command::RaiseLevel(RaiseLevel { to: Level(to) })),
        1 => join_command(),
        2 => (reshaped(), many_allocations())
            .prop_map(|(inventories, allocations)| Command::Reshape(Reshape { inventories, allocations })),
        2 => fill(inventory().boxed(), (1_u64..6).boxed()),
        3 => claim().prop_map(Command::Claim),
        1 => (consumer(), hold_term()).prop_map(|(consumer, term)| Command::RenewHold(RenewHold { consumer, term })),
        1 => Just(Command::ExpireHolds(ExpireHolds {})),
        1 => replace_limits().prop_map(Command::ReplaceLimits),
    ]
}

/// Small limits of the projects of [`projects`], and of a project above them.
pub fn replace_limits() -> impl Strategy<Value = ReplaceLimits> {
    let mode = select(&[LimitMode::Report, LimitMode::Enforce][..]);
    let types = ["INSTANCE", "MIGRATION"].map(|name| Some(name.parse().unwrap()));
    let types = btree_set(select([&types[..], &[None]].concat()), 1..4);
    (
        generation(),
        mode,
        types,
        resource_limits(),
        limited_projects(),
    )
        .prop_map(
            |(generation, mode, types, defaults, projects)| ReplaceLimits {
                generation,
                limits: Limits {
                    mode,
                    types,
                    defaults,
                    projects,
                },
            },
        )
}

/// A project is below another one, or both are below a third one, or none is.
fn limited_projects() -> impl Strategy<Value = BTreeMap<ProjectId, ProjectLimits>> {
    let parents = select(
        &[
            [None, None],
            [None, Some("p1")],
            [Some("p0"), None],
            [Some("p0"), Some("p0")],
        ][..],
    );
    (parents, vec(resource_limits(), 3)).prop_map(|([of_p1, of_p2], limits)| {
        let parents = [("p0", None), ("p1", of_p1), ("p2", of_p2)];
        let own = |((project, parent), limits): ((&str, Option<&str>), _)| {
            let parent = parent.map(ProjectId::from);
            (ProjectId::from(project), ProjectLimits { parent, limits })
        };
        parents.into_iter().zip(limits).map(own).collect()
    })
}

/// Limits of few resources, some of which are unlimited.
fn resource_limits() -> impl Strategy<Value = ResourceLimits> {
    let highest = prop_oneof![
        3 => (class().prop_map(LimitedResource::Class), 0_u64..16),
        1 => (Just(LimitedResource::Consumers), 0_u64..4),
    ];
    let limit = (highest, proptest::bool::weighted(0.9))
        .prop_map(|((resource, highest), is_limited)| (resource, is_limited.then_some(highest)));
    vec(limit, 0..3).prop_map(|limits| limits.into_iter().collect())
}

/// Claims of one or two consumers with few choices, ceilings and groups.
pub fn claim() -> impl Strategy<Value = Claim> {
    let claimants = vec(consumer_allocations(), 1..3).prop_map(|mut all| {
        let mut seen = BTreeSet::new();
        all.retain(|one| seen.insert(one.consumer.clone()));
        all
    });
    let choice = vec(choice_for_one(), 2);
    (
        claimants,
        vec(choice, 1..6),
        vec(ceiling(), 0..3),
        vec(group(), 0..3),
        proptest::option::weighted(0.4, new_hold()),
    )
        .prop_map(|(claimants, mut choices, ceilings, groups, hold)| {
            for choice in &mut choices {
                choice.truncate(claimants.len());
            }
            let claimant = |one: ConsumerAllocations| Claimant {
                consumer: one.consumer,
                project: one.project,
                user: one.user,
                consumer_type: one.consumer_type,
                generation: one.generation,
            };
            Claim {
                claimants: claimants.into_iter().map(claimant).collect(),
                choices,
                ceilings,
                groups,
                hold,
            }
        })
}

fn new_hold() -> impl Strategy<Value = NewHold> {
    (btree_set(consumer(), 0..3), hold_term())
        .prop_map(|(kept_for, term)| NewHold { kept_for, term })
}

/// Mostly short leases: the times of commands are seconds apart.
fn hold_term() -> impl Strategy<Value = HoldTerm> {
    prop_oneof![
        4 => (1_u32..6).prop_map(|seconds| HoldTerm::Lease { seconds }),
        1 => time().prop_map(HoldTerm::Due),
        1 => Just(HoldTerm::Open),
        1 => Just(HoldTerm::Lease { seconds: u32::MAX }),
    ]
}

/// Usually small amounts of one provider, sometimes any amounts.
fn choice_for_one() -> impl Strategy<Value = Vec<ProviderAmounts>> {
    let resources = btree_map(select(&STANDARD_CLASSES[..]), 1_u64..9, 1..=2);
    let small = (0_u8..5, resources).prop_map(|(number, resources)| {
        let named = |(name, units): (&str, u64)| (Given::from(name), units);
        vec![ProviderAmounts {
            provider: Given::from(provider_uuid(number).to_string()),
            resources: resources.into_iter().map(named).collect(),
        }]
    });
    prop_oneof![8 => small, 1 => amounts()]
}

fn ceiling() -> impl Strategy<Value = Ceiling> {
    let types = ["INSTANCE", "MIGRATION"].map(|name| Some(name.parse().unwrap()));
    let types = btree_set(select([&types[..], &[None]].concat()), 1..3);
    let of = prop_oneof![
        2 => given_class().prop_map(Counted::Units),
        1 => Just(Counted::Consumers),
    ];
    (
        btree_set(select(projects().collect::<Vec<_>>()), 1..3),
        proptest::option::weighted(0.6, types),
        of,
        0_u64..16,
    )
        .prop_map(|(projects, types, of, limit)| Ceiling {
            projects,
            types,
            of,
            limit,
        })
}

fn group() -> impl Strategy<Value = Group> {
    let rule = prop_oneof![
        2 => (1_u32..3).prop_map(|most| GroupRule::Apart { most }),
        1 => Just(GroupRule::Together),
    ];
    (btree_set(consumer(), 1..4), rule).prop_map(|(members, rule)| Group { members, rule })
}

fn time() -> impl Strategy<Value = Timestamp> {
    (0_i64..100).prop_map(Timestamp)
}

/// Rows of another cluster, some of which conflict with existing rows.
fn fill(
    inventory: BoxedStrategy<Inventory>,
    amount: BoxedStrategy<u64>,
) -> impl Strategy<Value = Command> {
    let after = prop_oneof![
        20 => Just(RIGHT_ROWS),
        1 => Just(Filled { providers: 1, consumers: 1 }),
    ];
    let classes = vec((class(), time()).prop_map(name_row), 0..3);
    let traits = vec((trait_(), time()).prop_map(name_row), 0..3);
    let parents = vec((provider(), provider()), 0..2);
    (
        after,
        classes,
        traits,
        vec(filled_provider(inventory), 0..4),
        parents,
        vec(filled_consumer(amount), 0..3),
    )
        .prop_map(
            |(after, resource_classes, traits, providers, parents, consumers)| {
                Command::FillPartition(FillPartition {
                    after,
                    resource_classes,
                    traits,
                    providers,
                    parents,
                    consumers,
                })
            },
        )
}

fn name_row<N>((name, updated_at): (N, Timestamp)) -> NameRow<N> {
    NameRow { name, updated_at }
}

fn filled_provider(inventory: BoxedStrategy<Inventory>) -> impl Strategy<Value = FilledProvider> {
    let row = (inventory, time()).prop_map(|(inventory, updated_at)| InventoryRow {
        inventory,
        updated_at,
    });
    (
        provider(),
        provider_name(),
        -1_i64..4,
        proptest::option::weighted(0.3, provider()),
        (time(), time()),
        btree_map(class(), row, 0..3),
        btree_set(trait_(), 0..2),
        aggregates(),
    )
        .prop_map(
            |(
                uuid,
                name,
                generation,
                parent,
                (created_at, updated_at),
                inventories,
                traits,
                aggregates,
            )| {
                FilledProvider {
                    uuid,
                    name,
                    generation: Generation(generation),
                    parent,
                    created_at,
                    updated_at,
                    inventories,
                    traits,
                    aggregates,
                }
            },
        )
}

fn filled_consumer(amount: BoxedStrategy<u64>) -> impl Strategy<Value = FilledConsumer> {
    let amounts = btree_map(class(), amount, 1..3);
    let allocations = btree_map((0_u8..4).prop_map(provider_uuid), amounts, 0..2);
    (
        consumer_allocations(),
        allocations,
        0_i64..4,
        time(),
        any::<bool>(),
        proptest::option::weighted(0.2, time()),
    )
        .prop_map(
            |(one, allocations, generation, updated_at, has_type, lease)| FilledConsumer {
                uuid: one.consumer,
                generation: Generation(generation),
                project: one.project,
                user: one.user,
                consumer_type: has_type.then(|| "INSTANCE".parse().unwrap()),
                allocations,
                updated_at,
                hold: lease.map(|until| {
                    Box::new(Hold {
                        kept_for: BTreeSet::new(),
                        end: HoldEnd::Lease(until),
                    })
                }),
            },
        )
}

/// Join commands of few nodes with few tokens.
fn join_command() -> impl Strategy<Value = Command> {
    let token = || (0..3_u8).prop_map(|token| token.to_string());
    let node = || 1_u64..6;
    let replaces = || {
        let replaced = (node(), any::<bool>()).prop_map(|(node, stays)| Replaced {
            node,
            name: String::new(),
            votes: true,
            stays,
            though_reachable: false,
        });
        proptest::option::of(replaced)
    };
    prop_oneof![
        (token(), 0_u64..3, replaces()).prop_map(|(token, seconds, replaces)| {
            Command::IssueJoinToken(IssueJoinToken {
                token,
                seconds,
                above: 1,
                replaces,
                expires_at: placement_model::types::Timestamp::default(),
            })
        }),
        node().prop_map(|node| Command::RevokeJoinToken(RevokeJoinToken { node })),
        (node(), token(), token()).prop_map(|(node, token, nonce)| {
            Command::RedeemJoinToken(RedeemJoinToken { node, token, nonce })
        }),
        (node(), replaces())
            .prop_map(|(by, replaces)| Command::SetReplacement(SetReplacement { by, replaces })),
    ]
}

/// Replaces placeholders in a command with the current generations and numbers of rows.
pub fn settle(
    command: &mut Command,
    of_provider: impl Fn(&ProviderUuid) -> Option<Generation>,
    of_consumer: impl Fn(&ConsumerUuid) -> Option<Generation>,
    limits: Option<&LimitsRow>,
) {
    let right = |uuid: &ProviderUuid| of_provider(uuid).unwrap_or_default();
    let settle_consumer = |consumer: &ConsumerUuid, generation: &mut ConsumerGeneration| {
        if *generation == ConsumerGeneration::Expect(RIGHT) {
            let right = of_consumer(consumer);
            *generation = right.map_or(ConsumerGeneration::New, ConsumerGeneration::Expect);
        }
    };
    let settle_consumers = |consumers: &mut [ConsumerAllocations]| {
        for one in consumers {
            settle_consumer(&one.consumer, &mut one.generation);
        }
    };
    match command {
        Command::FillPartition(fill) if fill.after == RIGHT_ROWS => {
            let providers = providers().filter(|uuid| of_provider(uuid).is_some());
            let consumers = consumers().filter(|uuid| of_consumer(uuid).is_some());
            fill.after = Filled {
                providers: providers.count() as u64,
                consumers: consumers.count() as u64,
            };
        }
        Command::ReplaceInventories(ReplaceInventories {
            provider,
            generation,
            ..
        })
        | Command::UpdateInventory(UpdateInventory {
            provider,
            generation,
            ..
        })
        | Command::ReplaceProviderTraits(ReplaceProviderTraits {
            provider,
            generation,
            ..
        })
        | Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
            provider,
            generation: Some(generation),
            ..
        }) if *generation == RIGHT => {
            *generation = right(provider);
        }
        Command::ReplaceAllocations(ReplaceAllocations { consumers }) => {
            settle_consumers(consumers);
        }
        Command::Reshape(Reshape {
            inventories,
            allocations,
        }) => {
            for reshaped in inventories.iter_mut().filter(|one| one.generation == RIGHT) {
                let provider = reshaped.provider.valid();
                reshaped.generation = provider.map(right).unwrap_or_default();
            }
            settle_consumers(allocations);
        }
        Command::Claim(claim) => {
            for claimant in &mut claim.claimants {
                settle_consumer(&claimant.consumer, &mut claimant.generation);
            }
        }
        Command::ReplaceLimits(ReplaceLimits { generation, .. }) if *generation == RIGHT => {
            *generation = limits.map(|row| row.generation).unwrap_or_default();
        }
        _ => {}
    }
}

/// Shrinks an inventory, often below its usage.
fn shrink() -> impl Strategy<Value = Command> {
    (0_u8..4, select(&STANDARD_CLASSES[..]), 1_u32..4).prop_map(|(number, name, total)| {
        Command::UpdateInventory(UpdateInventory {
            provider: provider_uuid(number),
            generation: RIGHT,
            resource_class: name.parse().unwrap(),
            inventory: Inventory { total, ..PLAIN },
            capacity_rule: CapacityRule::Positive,
        })
    })
}

const PLAIN: Inventory = Inventory {
    total: 20,
    reserved: 0,
    min_unit: 1,
    max_unit: 20,
    step_size: 1,
    allocation_ratio: 1.0,
};

/// Commands that create two trees with inventories in an empty cloud.
pub fn initial_cloud() -> Vec<Command> {
    let parents = [None, Some(0), Some(0), None, Some(2)];
    let mut commands = Vec::new();
    for (number, parent) in (0_u8..).zip(parents) {
        let uuid = provider_uuid(number);
        commands.push(Command::CreateProvider(CreateProvider {
            uuid,
            name: ProviderName::try_from(format!("host{number}")).unwrap(),
            parent: parent.map(|number| Given::from(provider_uuid(number).to_string())),
        }));
        let inventories = STANDARD_CLASSES
            .map(|name| (name.parse().unwrap(), PLAIN))
            .into();
        let capacity_rule = CapacityRule::Positive;
        commands.push(Command::ReplaceInventories(ReplaceInventories {
            provider: uuid,
            generation: RIGHT,
            inventories,
            capacity_rule,
        }));
    }
    commands
}

/// A filter of consumers, usually with one or two conditions.
pub fn consumer_filter() -> impl Strategy<Value = ConsumerFilter> {
    use proptest::option::weighted;
    let types = ["INSTANCE", "MIGRATION"].map(|name| Some(name.parse().unwrap()));
    let types = select([&types[..], &[None]].concat());
    (
        weighted(0.4, provider()),
        weighted(0.2, select(projects().collect::<Vec<_>>())),
        weighted(0.2, select(users().collect::<Vec<_>>())),
        weighted(0.2, types),
        weighted(0.3, class()),
        weighted(0.2, (1_i64..100).prop_map(|s| Timestamp(s * 1_000_000))),
        proptest::bool::weighted(0.3),
        proptest::bool::weighted(0.2),
    )
        .prop_map(
            |(
                provider,
                project,
                user,
                consumer_type,
                class,
                updated_until,
                several_trees,
                held,
            )| {
                ConsumerFilter {
                    provider,
                    project,
                    user,
                    consumer_type,
                    class,
                    updated_until,
                    several_trees,
                    held,
                }
            },
        )
}

/// A filter of providers, usually with few conditions.
pub fn filter() -> impl Strategy<Value = ProviderFilter> {
    use proptest::option::weighted;
    let name = weighted(
        0.1,
        provider_name().prop_map(|name| name.as_str().to_owned()),
    );
    (
        name,
        weighted(0.1, given()),
        weighted(0.2, given()),
        vec(aggregates(), 0..2),
        aggregates(),
        vec(btree_set(given_trait(), 1..3), 0..2),
        btree_set(given_trait(), 0..2),
        btree_map(given_class(), 1_u64..6, 0..2),
    )
        .prop_map(
            |(name, uuid, in_tree, member_of, not_member_of, required, forbidden, resources)| {
                ProviderFilter {
                    name,
                    uuid,
                    in_tree,
                    member_of,
                    not_member_of,
                    required,
                    forbidden,
                    resources,
                }
            },
        )
}

/// Commands that the edge would reject: numbers at their limits, duplicate names, empty lists.
pub fn hostile_command() -> impl Strategy<Value = Command> {
    let number = || select(&[0_u32, 1, 2, u32::MAX - 1, u32::MAX][..]);
    let ratio = select(
        &[
            0.0,
            -0.0,
            -1.0,
            1.0,
            1e308,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            f64::NAN,
        ][..],
    );
    let inventory = (number(), number(), number(), number(), number(), ratio)
        .prop_map(inventory_of)
        .boxed();
    let amount = select(&[0_u64, 1, 1 << 31, 1 << 63, u64::MAX][..]).boxed();
    let resources = btree_map(given_class(), amount.clone(), 0..3);
    let amounts = (given(), resources).prop_map(|(provider, resources)| ProviderAmounts {
        provider,
        resources,
    });
    let consumer = (consumer_allocations(), vec(amounts, 0..4)).prop_map(|(mut one, amounts)| {
        one.allocations = amounts;
        one.generation = ConsumerGeneration::Unchecked;
        one
    });
    let consumers = vec(consumer, 0..5).boxed();
    let claim = (claim(), vec(vec(consumers.clone(), 0..2), 0..3)).prop_map(|(mut claim, more)| {
        // Wrong numbers of entries, repeated claimants, and limits that no sum reaches.
        let allocations = |all: Vec<ConsumerAllocations>| {
            let of_each = all.into_iter().map(|one| one.allocations);
            of_each.collect::<Vec<_>>()
        };
        claim
            .choices
            .extend(more.into_iter().flatten().map(allocations));
        claim.claimants.extend(claim.claimants.clone());
        for claimant in &mut claim.claimants {
            claimant.generation = ConsumerGeneration::Unchecked;
        }
        for ceiling in &mut claim.ceilings {
            ceiling.limit = u64::MAX - ceiling.limit % 2;
        }
        claim
    });
    let generation = prop_oneof![
        Just(RIGHT),
        select(&[i64::MIN, -1, 0, i64::MAX][..]).prop_map(Generation),
    ]
    .boxed();
    let reshaped = (
        given(),
        generation.clone(),
        btree_map(given_class(), inventory.clone(), 0..3),
    )
        .prop_map(|(provider, generation, inventories)| ReshapedInventories {
            provider,
            generation,
            inventories,
        });
    prop_oneof![
        2 => command(),
        2 => fill(inventory.clone(), amount),
        2 => (provider(), generation, btree_map(given_class(), inventory, 0..4), capacity_rule())
            .prop_map(|(provider, generation, inventories, capacity_rule)| {
                Command::ReplaceInventories(ReplaceInventories { provider, generation, inventories, capacity_rule })
            }),
        2 => consumers.clone().prop_map(|consumers| Command::ReplaceAllocations(ReplaceAllocations { consumers })),
        2 => claim.prop_map(Command::Claim),
        1 => (vec(reshaped, 0..3), consumers)
            .prop_map(|(inventories, allocations)| Command::Reshape(Reshape { inventories, allocations })),
        1 => Just(Command::SyncStandards(SyncStandards {
            resource_classes: vec!["CUSTOM_C".parse().unwrap(); 2],
            traits: BTreeSet::from(["CUSTOM_NEW".parse().unwrap()]),
        })),
        1 => provider().prop_map(|uuid| Command::CreateProvider(CreateProvider {
            uuid,
            name: ProviderName::try_from(String::new()).unwrap(),
            parent: Some(Given::from("")),
        })),
    ]
}
