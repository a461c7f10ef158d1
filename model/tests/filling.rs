//! Import of the rows of one partition into another: rows and their order are the same for any size
//! of the pieces, and a row that cannot be imported is named in the refusal.

#![allow(clippy::unwrap_used)] // test code, helpers included

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::str::FromStr;

use placement_model::command::{
    Command, CreatePartition, EnsureTrait, FillPartition, Filled, FilledConsumer, FilledProvider,
    RoutePartition, SyncStandards,
};
use placement_model::outcome::{ImportConflict, Outcome, Refusal, Reply};
use placement_model::query::pieces::UncopyableRow;
use placement_model::state::change::{
    Amount, Change, ConsumerRow, InventoryRow, NameRow, ProviderId, ProviderRow, ResourceClassId,
    TraitId,
};
use placement_model::types::{
    Generation, Inventory, PartitionId, ProviderUuid, Route, Routes, Timestamp, TraitName,
};
use placement_model::{Cluster, LedgerEntry, Level, Stamped, State, apply};
use placement_naive::cases::cases;
use placement_naive::generate::{self, STANDARD_CLASSES, STANDARD_TRAITS};
use placement_naive::{Naive, NaiveCluster, named, stamped};
use proptest::collection::vec;
use proptest::prelude::*;

const NORTH: PartitionId = PartitionId(1);

/// A cluster with a partition that contains only standard names, and its naive model.
struct ModelPair {
    cluster: Cluster,
    naive: NaiveCluster,
    now: i64,
}

impl ModelPair {
    fn new() -> Self {
        let mut pair = Self {
            cluster: Cluster::default(),
            naive: NaiveCluster::default(),
            now: 0,
        };
        let standards = Command::SyncStandards(SyncStandards {
            resource_classes: STANDARD_CLASSES.map(|name| name.parse().unwrap()).to_vec(),
            traits: STANDARD_TRAITS.map(|name| name.parse().unwrap()).into(),
        });
        pair.run(PartitionId::DEFAULT, standards);
        let create = CreatePartition {
            name: "north".parse().unwrap(),
            routes: Routes::default(),
        };
        let made = pair.run(PartitionId::DEFAULT, Command::CreatePartition(create));
        assert_eq!(made, Outcome::Done(Reply::Partition(NORTH)));
        pair
    }

    fn run(&mut self, partition: PartitionId, mut command: Command) -> Outcome {
        let state = self.cluster.partition(partition).unwrap();
        generate::settle(
            &mut command,
            |uuid| state.provider(uuid).map(|one| one.generation),
            |uuid| state.consumer(uuid).map(|one| one.generation),
            state.limits(),
        );
        self.now += 1;
        let stamped = Stamped {
            partition,
            routes: self.cluster.routing(partition).changes,
            ..stamped(Timestamp(1_000 + self.now), None, command)
        };
        let (outcome, changes) = self.cluster.apply(&stamped);
        assert_eq!(self.naive.apply(&stamped), outcome, "{stamped:?}");
        let before = self.cluster.clone();
        self.cluster.commit(&changes);
        check_undo(&before, &stamped, &self.cluster, &changes);
        outcome
    }

    fn north(&self) -> &State {
        self.cluster.partition(NORTH).unwrap()
    }

    fn fill(&mut self, fill: FillPartition) -> Outcome {
        self.run(NORTH, Command::FillPartition(fill))
    }
}

/// Checks the ledger entries of a command, and that they can be undone.
fn check_undo(
    before: &Cluster,
    stamped: &Stamped,
    after: &Cluster,
    changes: &placement_model::cluster::ClusterChanges,
) {
    for entry in LedgerEntry::for_command(1, stamped, before, changes) {
        let Some(was) = before.partition(entry.partition) else {
            continue;
        };
        let mut undone = after.partition(entry.partition).unwrap().clone();
        undone.commit(&entry.undo());
        assert_eq!(content(&undone), content(was), "{entry:?}");
        assert!(undone.agrees_with_recount());
    }
}

/// The rows of placement as text, with their positions in their table. Limits are not imported.
fn content(state: &State) -> BTreeMap<String, String> {
    let mut rows = Naive::load(state.rows()).rows();
    rows.retain(|name, _| !name.starts_with("partition") && name != "level" && name != "limits");
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn imported_rows_are_equal_for_any_piece_size(
        commands in vec(generate::command(), 1..60),
        bytes in 1_usize..2_000,
    ) {
        let mut pair = ModelPair::new();
        for command in generate::initial_cloud().into_iter().chain(commands) {
            pair.run(PartitionId::DEFAULT, command);
        }
        let from = pair.cluster.default_partition().clone();
        let pieces: Vec<_> = from.pieces(bytes, usize::MAX).collect();
        for piece in pieces {
            let piece = piece.unwrap();
            prop_assert_eq!(pair.fill(piece.clone()), Outcome::Done(Reply::Done));
            // The command is sent again under another write id.
            let digest = pair.cluster.digest();
            let adds = piece.rows_after() != piece.after;
            match pair.fill(piece) {
                Outcome::Refused(Refusal::PartitionNotEmpty { .. }) => prop_assert!(adds),
                outcome => prop_assert_eq!((outcome, adds), (Outcome::Done(Reply::Done), false)),
            }
            prop_assert_eq!(pair.cluster.digest(), digest);
        }
        prop_assert!(pair.cluster.agrees_with_recount());
        let mut expected = content(&from);
        expected.remove("retired nodes");
        let mut found = content(pair.north());
        found.remove("retired nodes");
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn candidates_keep_their_order(
        (cloud, request) in cases(false),
        bytes in 1_usize..2_000,
    ) {
        let from = cloud.state();
        let mut to = State::default();
        for piece in from.pieces(bytes, usize::MAX) {
            let command = Command::FillPartition(piece.unwrap());
            let (outcome, changes) = apply(&to, &stamped(Timestamp(1), None, command));
            prop_assert_eq!(outcome, Outcome::Done(Reply::Done));
            to.commit(&changes);
        }
        let answers = |state: &State| format!("{:?}", named::candidates(state, &request));
        prop_assert_eq!(answers(&to), answers(&from));
    }
}

fn uuid(number: u8) -> ProviderUuid {
    generate::provider_uuid(number)
}

fn provider(number: u8) -> FilledProvider {
    FilledProvider {
        uuid: uuid(number),
        name: format!("host{number}").try_into().unwrap(),
        generation: Generation(7),
        parent: None,
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
        inventories: BTreeMap::from([("VCPU".parse().unwrap(), row(8))]),
        traits: BTreeSet::new(),
        aggregates: BTreeSet::new(),
    }
}

fn row(step_size: u32) -> InventoryRow {
    let inventory = Inventory {
        total: 0,
        reserved: 1,
        min_unit: 1,
        max_unit: 1,
        step_size,
        allocation_ratio: -1.0,
    };
    InventoryRow {
        inventory,
        updated_at: Timestamp(3),
    }
}

fn consumer(name: &str, class: &str, units: u64) -> FilledConsumer {
    let amounts = BTreeMap::from([(class.parse().unwrap(), units)]);
    FilledConsumer {
        uuid: name.to_owned().into(),
        generation: Generation(3),
        project: "p".into(),
        user: "u".into(),
        consumer_type: None,
        allocations: BTreeMap::from([(uuid(1), amounts)]),
        updated_at: Timestamp(4),
        hold: None,
    }
}

#[test]
fn invalid_row_is_named_and_nothing_is_imported() {
    let mut pair = ModelPair::new();
    let first = FillPartition {
        providers: vec![provider(1), provider(2)],
        consumers: vec![consumer("over the capacity", "VCPU", 99)],
        ..FillPartition::default()
    };
    assert_eq!(pair.fill(first.clone()), Outcome::Done(Reply::Done));
    let after = Filled {
        providers: 2,
        consumers: 1,
    };
    let next = || FillPartition {
        after,
        ..FillPartition::default()
    };
    let of = |change: &dyn Fn(&mut FilledProvider)| {
        let mut new = provider(3);
        change(&mut new);
        let providers = vec![new];
        FillPartition {
            providers,
            ..next()
        }
    };
    let holds = |one: FilledConsumer| FillPartition {
        consumers: vec![one],
        ..next()
    };
    let hangs = |child, parent| FillPartition {
        parents: vec![(uuid(child), uuid(parent))],
        ..next()
    };
    let unfit = |number, why| Refusal::ProviderUnfit(uuid(number), why);
    let idle = |name: &str, why| Refusal::ConsumerUnfit(name.to_owned().into(), why);
    let there = "over the capacity";
    let cases = [
        (
            of(&|it| it.uuid = uuid(1)),
            unfit(1, ImportConflict::Exists),
        ),
        (
            of(&|it| it.name = provider(1).name),
            unfit(3, ImportConflict::NameTaken),
        ),
        (
            of(&|it| it.parent = Some(uuid(4))),
            unfit(3, ImportConflict::Dangling),
        ),
        (
            of(&|it| it.parent = Some(uuid(3))),
            unfit(3, ImportConflict::Dangling),
        ),
        (
            of(&|it| {
                it.traits.insert("CUSTOM_NONE".parse().unwrap());
            }),
            unfit(3, ImportConflict::Dangling),
        ),
        (
            of(&|it| {
                it.inventories
                    .insert("CUSTOM_NONE".parse().unwrap(), row(1));
            }),
            unfit(3, ImportConflict::Dangling),
        ),
        (
            of(&|it| {
                it.inventories.insert("VCPU".parse().unwrap(), row(0));
            }),
            unfit(3, ImportConflict::OutOfRange),
        ),
        (
            FillPartition {
                providers: vec![provider(3), provider(3)],
                ..next()
            },
            unfit(3, ImportConflict::Exists),
        ),
        (hangs(1, 9), unfit(1, ImportConflict::Dangling)),
        (hangs(1, 1), unfit(1, ImportConflict::Parent)),
        (
            FillPartition {
                parents: vec![(uuid(1), uuid(2)), (uuid(2), uuid(1))],
                ..next()
            },
            unfit(2, ImportConflict::Parent),
        ),
        (
            holds(consumer(there, "VCPU", 1)),
            idle(there, ImportConflict::Exists),
        ),
        (
            holds(consumer("c", "MEMORY_MB", 1)),
            idle("c", ImportConflict::Dangling),
        ),
        (
            holds(consumer("c", "VCPU", 0)),
            idle("c", ImportConflict::OutOfRange),
        ),
        (
            holds(consumer("c", "VCPU", 1 << 31)),
            idle("c", ImportConflict::OutOfRange),
        ),
        (
            first,
            Refusal::PartitionNotEmpty {
                has: after,
                expected: Filled::default(),
            },
        ),
    ];
    let before = pair.cluster.digest();
    for (fill, refusal) in cases {
        assert_eq!(pair.fill(fill), Outcome::Refused(refusal));
        assert_eq!(pair.cluster.digest(), before);
    }
}

#[test]
fn parents_sent_twice_are_imported_once() {
    let mut pair = ModelPair::new();
    let providers = FillPartition {
        providers: [1, 2, 3].map(provider).into(),
        ..FillPartition::default()
    };
    pair.fill(providers.clone());
    let parents = || FillPartition {
        after: providers.rows_after(),
        parents: vec![(uuid(1), uuid(2)), (uuid(2), uuid(3))],
        ..FillPartition::default()
    };
    assert_eq!(pair.fill(parents()), Outcome::Done(Reply::Done));
    let digest = pair.cluster.digest();
    assert_eq!(pair.fill(parents()), Outcome::Done(Reply::Done));
    assert_eq!(pair.cluster.digest(), digest);
}

#[test]
fn partition_in_use_rejects_import() {
    let mut pair = ModelPair::new();
    let fill = || FillPartition {
        traits: vec![name_row("CUSTOM_A")],
        ..FillPartition::default()
    };
    let into_default = pair.run(PartitionId::DEFAULT, Command::FillPartition(fill()));
    let routed = |id| Outcome::Refused(Refusal::PartitionRouted(id));
    assert_eq!(into_default, routed(PartitionId::DEFAULT));
    let mut route = |routes: Vec<Route>| {
        let route = RoutePartition {
            name: "north".parse().unwrap(),
            routes: routes.try_into().unwrap(),
        };
        pair.run(PartitionId::DEFAULT, Command::RoutePartition(route));
        pair.fill(fill())
    };
    let prefix = Route::Prefix("/north".parse().unwrap());
    assert_eq!(route(vec![prefix]), routed(NORTH));
    assert_eq!(route(Vec::new()), Outcome::Done(Reply::Done));
    let name = "CUSTOM_A".parse().unwrap();
    let again = pair.run(NORTH, Command::EnsureTrait(EnsureTrait { name }));
    let modified = Timestamp(5);
    let created = false;
    assert_eq!(again, Outcome::Done(Reply::Named { created, modified }));
}

#[test]
fn row_too_long_for_a_command_is_named() {
    let mut pair = ModelPair::new();
    let names = (0..100).map(|number| name_row(&format!("CUSTOM_{number:0100}")));
    let traits: Vec<NameRow<TraitName>> = names.collect();
    let host = FilledProvider {
        traits: traits.iter().map(|row| row.name.clone()).collect(),
        ..provider(1)
    };
    let providers = vec![host, provider(2)];
    pair.fill(FillPartition {
        traits,
        providers,
        ..FillPartition::default()
    });
    let pieces: Vec<_> = pair.north().pieces(500, 5_000).collect();
    let wrong: Vec<_> = pieces
        .iter()
        .filter_map(|piece| piece.as_ref().err())
        .collect();
    let [UncopyableRow::TooLong(row, _, 5_000)] = wrong[..] else {
        panic!("{wrong:?}");
    };
    assert_eq!(*row, format!("resource provider {}", uuid(1)));
    assert!(pair.north().pieces(500, 50_000).all(|piece| piece.is_ok()));
}

#[test]
fn row_with_unrepresentable_time_is_named() {
    let host = format!("resource provider {}", uuid(1));
    type Timed<'a> = (&'a str, fn(&mut FillPartition, Timestamp));
    let rows: [Timed<'_>; 6] = [
        ("resource class VCPU", |fill, at| {
            fill.resource_classes[0].updated_at = at
        }),
        ("trait CUSTOM_A", |fill, at| fill.traits[0].updated_at = at),
        (&host, |fill, at| fill.providers[0].created_at = at),
        (&host, |fill, at| fill.providers[0].updated_at = at),
        (&host, |fill, at| {
            let mut inventories = fill.providers[0].inventories.values_mut();
            inventories.next().unwrap().updated_at = at;
        }),
        ("consumer c", |fill, at| fill.consumers[0].updated_at = at),
    ];
    for (name, put) in rows {
        for (at, is_shown) in [
            (i64::MIN, false),
            (-1, false),
            (0, true),
            (Timestamp::LAST.0, true),
            (Timestamp::LAST.0 + 1, false),
            (i64::MAX, false),
        ] {
            let mut fill = FillPartition {
                resource_classes: vec![name_row("VCPU")],
                traits: vec![name_row("CUSTOM_A")],
                providers: vec![provider(1)],
                consumers: vec![consumer("c", "VCPU", 1)],
                ..FillPartition::default()
            };
            put(&mut fill, Timestamp(at));
            let mut pair = ModelPair::new();
            assert_eq!(pair.fill(fill), Outcome::Done(Reply::Done));
            let pieces = pair.north().pieces(usize::MAX, usize::MAX);
            let wrong: Vec<_> = pieces.filter_map(Result::err).collect();
            let named = (!is_shown).then(|| UncopyableRow::Time(name.to_owned()));
            assert_eq!(wrong, named.into_iter().collect::<Vec<_>>());
        }
    }
}

fn name_row<N: FromStr<Err: Debug>>(name: &str) -> NameRow<N> {
    NameRow {
        name: name.parse().unwrap(),
        updated_at: Timestamp(5),
    }
}

/// A backup file may have been modified.
#[test]
fn rows_that_no_cluster_can_have_written_are_rejected() {
    let level = |to| Change::PutLevel(Level(to));
    let holds = |units| {
        let amount = |provider| Amount {
            provider: ProviderId(provider),
            class: ResourceClassId(0),
            units,
        };
        let row = ConsumerRow {
            generation: Generation(1),
            project: "project".into(),
            user: "user".into(),
            consumer_type: None,
            allocations: [0, 1].map(amount).into_iter().collect(),
            updated_at: Timestamp(0),
            hold: None,
        };
        Change::PutConsumer("consumer".to_owned().into(), row)
    };
    let last = Change::PutTrait(TraitId(u32::MAX), name_row("CUSTOM_A"));
    let of_class = |id| Change::PutResourceClass(ResourceClassId(id), name_row("CUSTOM_A"));
    let of_trait = |id| Change::PutTrait(TraitId(id), name_row("CUSTOM_A"));
    let provider = |id, number, name: &str| {
        let row = ProviderRow {
            uuid: uuid(number),
            name: name.to_owned().try_into().unwrap(),
            generation: Generation(0),
            parent: None,
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        };
        Change::PutProvider(ProviderId(id), row)
    };
    for rows in [
        vec![of_class(1), of_class(2)],
        vec![of_trait(1), of_trait(2)],
        vec![provider(1, 1, "cmp"), provider(2, 2, "cmp")],
        vec![provider(1, 1, "cmp-1"), provider(2, 1, "cmp-2")],
        vec![last],
        vec![level(3), level(1)],
        vec![holds(u64::MAX)],
        vec![holds(1 << 32)],
    ] {
        let rows = rows.into_iter().map(|row| (PartitionId::DEFAULT, row));
        let damage = Cluster::load(rows).err().unwrap();
        assert_eq!(damage.rows, 1);
    }
}
