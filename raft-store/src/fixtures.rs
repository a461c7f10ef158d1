//! Tests that data written by released versions stays readable. `tests/fixtures` contains such data
//! and is never rewritten after a release. A new field of a record adds a line or a file to the
//! fixtures; a new version of the record adds a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use openraft::entry::RaftEntry;
use placement_model::command::{
    CapacityRule, Ceiling, Claim, Claimant, ConsumerAllocations, ConsumerGeneration,
    ConsumerTypeUpdate, Counted, CreateInventory, CreatePartition, CreateProvider,
    CreateResourceClass, DeleteAllocations, DeleteInventories, DeleteInventory, DeletePartition,
    DeleteProvider, DeleteProviderTraits, DeleteResourceClass, DeleteTrait, EnsureResourceClass,
    EnsureTrait, ExpireHolds, FillPartition, Filled, FilledConsumer, FilledProvider, Group,
    GroupRule, IssueJoinToken, NewHold, ParentUpdate, ProviderAmounts, RaiseLevel, RedeemJoinToken,
    RenameResourceClass, RenewHold, ReplaceAllocations, ReplaceInventories, ReplaceLimits,
    ReplaceProviderAggregates, ReplaceProviderTraits, Reshape, ReshapedInventories, RetireNode,
    RevokeJoinToken, RoutePartition, SetReplacement, SyncStandards, UpdateInventory,
    UpdateProvider, WriteId,
};
use placement_model::ledger::{LedgerEntry, Names, RowChange};
use placement_model::outcome::{Provider, RefusedChoice, Shortage};
use placement_model::state::change::{
    Amount, Amounts, ConsumerRow, Counters, InventoryRow, JoinRow, LimitsRow, NameRow,
    PartitionRow, ProviderId, ProviderRow, Replaced, ResourceClassId, Routing, SessionRow, TraitId,
};
use placement_model::types::{
    AggregateUuid, ConsumerUuid, Generation, Given, Hold, HoldEnd, HoldTerm, Inventory,
    LimitExcess, LimitMode, LimitedResource, Limits, PartitionId, ProjectLimits, ProviderUuid,
    Route, Routes, Timestamp,
};
use placement_model::{Change, Command, Level, Outcome, Refusal, Reply, Stamped, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::data_dir::create;
use crate::identity::Identity;
use crate::logged::LoggedCommand;
use crate::machine::{AppliedRecord, Floor, LedgerRecord};
use crate::options::StoreOptions;
use crate::store::open;
use crate::tables::{self, Table};
use crate::types::{
    Entry, LogId, Member, Membership, Payload, Site, SnapshotMeta, StoredMembership, Vote,
};
use crate::wire::{
    self, RecordVersion, WireEntry, WireLogId, WireMembership, WireSnapshotMeta,
    WireStoredMembership, WireVote,
};

/// Environment variable: if set, the tests write the fixture files.
const WRITE: &str = "PLACEMENT_WRITE_FIXTURES";

/// The record version of the fixtures. The version of the feature `rehearsal` has no fixtures,
/// because it is never released.
const VERSION: RecordVersion = RecordVersion::FIRST;

fn writes() -> bool {
    std::env::var_os(WRITE).is_some()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/record-1")
        .join(name)
}

/// Checks that a fixture equals `written`, this binary's encoding of the same values, and returns
/// its lines. A line has a label and bytes in hexadecimal.
fn fixture(name: &str, written: &[(String, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    let path = path(name);
    if writes() {
        let line = |(label, bytes): &(String, Vec<u8>)| format!("{label} {}\n", hex(bytes));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, written.iter().map(line).collect::<String>()).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let line = |line: &str| {
        let (label, bytes) = line.rsplit_once(' ').unwrap();
        (label.to_owned(), unhex(bytes))
    };
    let read: Vec<_> = text.lines().map(line).collect();
    assert_eq!(
        read.len(),
        written.len(),
        "{name} has as many lines as this test has values"
    );
    for ((label, old), (_, new)) in read.iter().zip(written) {
        assert_eq!(
            hex(old),
            hex(new),
            "{label}: this binary encodes version {VERSION} differently from older binaries. If \
             they can read the new bytes, add a line for them to the fixture; otherwise the record \
             needs a new version byte."
        );
    }
    read
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text
        .bytes()
        .map(|digit| char::from(digit).to_digit(16).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap())
        .collect()
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(name: &str, values: &[(&str, T)]) {
    let encode = |value: &T| wire::encode(VERSION, value);
    check_written(name, values, encode);
}

fn check_written<T: DeserializeOwned + PartialEq + Debug>(
    name: &str,
    values: &[(&str, T)],
    encode: impl Fn(&T) -> Vec<u8>,
) {
    let written: Vec<_> = values
        .iter()
        .map(|(label, value)| ((*label).to_owned(), encode(value)))
        .collect();
    for ((label, bytes), (_, value)) in fixture(name, &written).iter().zip(values) {
        assert_eq!(wire::decode::<T>(bytes).as_ref(), Ok(value), "{label}");
    }
}

fn name<N: std::str::FromStr<Err: Debug>>(text: &str) -> N {
    text.parse().unwrap()
}

fn provider_uuid(number: u128) -> ProviderUuid {
    ProviderUuid(Uuid::from_u128(number))
}

fn inventory() -> Inventory {
    Inventory {
        total: 64,
        reserved: 2,
        min_unit: 1,
        max_unit: 32,
        step_size: 1,
        allocation_ratio: 16.5,
    }
}

fn consumer_allocations() -> ConsumerAllocations {
    ConsumerAllocations {
        consumer: ConsumerUuid::from("5D0DC45D-8b6a-4ae5-9e07-2d05b3a5b0a4"),
        allocations: vec![ProviderAmounts {
            provider: Given::from("00000000-0000-0000-0000-000000000001"),
            resources: BTreeMap::from([(name("MEMORY_MB"), 512), (name("VCPU"), 2)]),
        }],
        project: "project".into(),
        user: "user".into(),
        generation: ConsumerGeneration::Expect(Generation(-1)),
        consumer_type: ConsumerTypeUpdate::Set(name("INSTANCE")),
    }
}

fn class<N: std::str::FromStr<Err: Debug>>() -> N {
    name("CUSTOM_GOLD")
}

/// One command of each kind.
fn commands() -> Vec<Command> {
    let (provider, generation) = (provider_uuid(1), Generation(4));
    let capacity_rule = CapacityRule::NotNegative;
    vec![
        Command::SyncStandards(SyncStandards {
            resource_classes: vec![name("VCPU"), name("MEMORY_MB")],
            traits: BTreeSet::from([name("HW_CPU_X86_AVX2")]),
        }),
        Command::CreateProvider(CreateProvider {
            uuid: provider,
            name: "cn1 – ü".to_owned().try_into().unwrap(),
            parent: Some(Given::from("not canonical")),
        }),
        Command::UpdateProvider(UpdateProvider {
            uuid: provider,
            name: "cn2".to_owned().try_into().unwrap(),
            parent: ParentUpdate::Set(Given::from("x")),
            may_reparent: true,
        }),
        Command::DeleteProvider(DeleteProvider { uuid: provider }),
        Command::ReplaceInventories(ReplaceInventories {
            provider,
            generation,
            inventories: BTreeMap::from([(class(), inventory())]),
            capacity_rule: CapacityRule::Positive,
        }),
        Command::CreateInventory(CreateInventory {
            provider,
            resource_class: class(),
            inventory: inventory(),
            capacity_rule,
        }),
        Command::UpdateInventory(UpdateInventory {
            provider,
            generation,
            resource_class: class(),
            inventory: inventory(),
            capacity_rule,
        }),
        Command::DeleteInventory(DeleteInventory {
            provider,
            resource_class: class(),
        }),
        Command::DeleteInventories(DeleteInventories { provider }),
        Command::ReplaceProviderTraits(ReplaceProviderTraits {
            provider,
            generation,
            traits: BTreeSet::from([name("CUSTOM_FAST"), name("HW_NIC_SRIOV")]),
        }),
        Command::DeleteProviderTraits(DeleteProviderTraits { provider }),
        Command::ReplaceProviderAggregates(ReplaceProviderAggregates {
            provider,
            generation: Some(generation),
            aggregates: BTreeSet::from([AggregateUuid::from("Agg-1")]),
        }),
        Command::EnsureTrait(EnsureTrait {
            name: name("CUSTOM_FAST"),
        }),
        Command::DeleteTrait(DeleteTrait {
            name: name("CUSTOM_FAST"),
        }),
        Command::CreateResourceClass(CreateResourceClass { name: class() }),
        Command::EnsureResourceClass(EnsureResourceClass { name: class() }),
        Command::RenameResourceClass(RenameResourceClass {
            name: class(),
            new_name: name("CUSTOM_SILVER"),
        }),
        Command::DeleteResourceClass(DeleteResourceClass { name: class() }),
        Command::ReplaceAllocations(ReplaceAllocations {
            consumers: vec![consumer_allocations()],
        }),
        Command::DeleteAllocations(DeleteAllocations {
            consumer: ConsumerUuid::from("c"),
        }),
        Command::Reshape(Reshape {
            inventories: vec![ReshapedInventories {
                provider: Given::from("x"),
                generation,
                inventories: BTreeMap::new(),
            }],
            allocations: vec![ConsumerAllocations {
                generation: ConsumerGeneration::New,
                consumer_type: ConsumerTypeUpdate::Keep,
                ..consumer_allocations()
            }],
        }),
        Command::RetireNode(RetireNode { node: 4 }),
        Command::RaiseLevel(RaiseLevel { to: Level(2) }),
        Command::CreatePartition(CreatePartition {
            name: "north".parse().unwrap(),
            routes: Routes::default(),
        }),
        Command::RoutePartition(RoutePartition {
            name: "north".parse().unwrap(),
            routes: routes(),
        }),
        Command::DeletePartition(DeletePartition {
            name: "north".parse().unwrap(),
            force: true,
        }),
        Command::IssueJoinToken(IssueJoinToken {
            token: "c0ffee".to_owned(),
            seconds: 3600,
            above: 3,
            replaces: Some(replaced()),
            expires_at: Timestamp(1_800_000_000_000_000),
        }),
        Command::RevokeJoinToken(RevokeJoinToken { node: 4 }),
        Command::RedeemJoinToken(RedeemJoinToken {
            node: 4,
            token: "c0ffee".to_owned(),
            nonce: "f00d".to_owned(),
        }),
        Command::SetReplacement(SetReplacement {
            by: 4,
            replaces: None,
        }),
        fill(),
        claim(),
    ]
}

/// The commands of holds.
fn commands_of_holds() -> Vec<Command> {
    vec![
        held(claim()),
        Command::RenewHold(RenewHold {
            consumer: consumer_allocations().consumer,
            term: HoldTerm::Lease { seconds: 600 },
        }),
        Command::RenewHold(RenewHold {
            consumer: consumer_allocations().consumer,
            term: HoldTerm::Open,
        }),
        Command::ExpireHolds(ExpireHolds {}),
        Command::FillPartition(FillPartition {
            consumers: vec![FilledConsumer {
                hold: holder(HoldEnd::Open).hold,
                ..filled_consumer()
            }],
            ..FillPartition::default()
        }),
    ]
}

/// The commands of limits.
fn commands_of_limits() -> Vec<Command> {
    let replace = |generation, limits| {
        Command::ReplaceLimits(ReplaceLimits {
            generation: Generation(generation),
            limits,
        })
    };
    vec![replace(0, Limits::default()), replace(1, limits())]
}

/// Limits of a project, of its parent and of all others.
fn limits() -> Limits {
    let class = |text| LimitedResource::Class(name(text));
    let child = ProjectLimits {
        parent: Some("parent".into()),
        limits: BTreeMap::from([(class("VCPU"), Some(200)), (class("MEMORY_MB"), None)]),
    };
    Limits {
        mode: LimitMode::Enforce,
        types: BTreeSet::from([None, Some(name("INSTANCE"))]),
        defaults: BTreeMap::from([(LimitedResource::Consumers, Some(20))]),
        projects: BTreeMap::from([
            ("parent".into(), ProjectLimits::default()),
            ("project".into(), child),
        ]),
    }
}

/// A claim whose allocations are a hold.
fn held(mut claim: Command) -> Command {
    if let Command::Claim(claim) = &mut claim {
        claim.hold = Some(NewHold {
            kept_for: BTreeSet::from([ConsumerUuid::from("vm")]),
            term: HoldTerm::Due(Timestamp(1_800_000_000_123_456)),
        });
    }
    claim
}

/// A consumer whose allocations are a hold.
fn holder(end: HoldEnd) -> ConsumerRow {
    ConsumerRow {
        generation: Generation(1),
        project: "project".into(),
        user: "user".into(),
        consumer_type: None,
        allocations: Amounts::from_iter([Amount {
            provider: ProviderId(0),
            class: ResourceClassId(0),
            units: 1,
        }]),
        updated_at: Timestamp(1_800_000_000_123_456),
        hold: Some(Box::new(Hold {
            kept_for: BTreeSet::from([ConsumerUuid::from("vm")]),
            end,
        })),
    }
}

fn claim() -> Command {
    let consumer = consumer_allocations();
    let members = BTreeSet::from([consumer.consumer.clone()]);
    Command::Claim(Claim {
        claimants: vec![Claimant {
            consumer: consumer.consumer,
            project: consumer.project,
            user: consumer.user,
            consumer_type: consumer.consumer_type,
            generation: ConsumerGeneration::New,
        }],
        choices: vec![vec![consumer.allocations], vec![Vec::new()]],
        ceilings: vec![
            Ceiling {
                projects: BTreeSet::from(["project".into()]),
                types: Some(BTreeSet::from([None, Some(name("INSTANCE"))])),
                of: Counted::Units(name("VCPU")),
                limit: 200,
            },
            Ceiling {
                projects: BTreeSet::new(),
                types: None,
                of: Counted::Consumers,
                limit: u64::MAX,
            },
        ],
        groups: vec![
            Group {
                members: members.clone(),
                rule: GroupRule::Apart { most: 2 },
            },
            Group {
                members,
                rule: GroupRule::Together,
            },
        ],
        hold: None,
    })
}

fn filled_consumer() -> FilledConsumer {
    FilledConsumer {
        uuid: ConsumerUuid::from("c"),
        generation: Generation(1),
        project: "project".into(),
        user: "user".into(),
        consumer_type: Some(name("INSTANCE")),
        allocations: BTreeMap::from([(provider_uuid(2), BTreeMap::from([(class(), 2)]))]),
        updated_at: Timestamp(1_700_000_000_123_456),
        hold: None,
    }
}

fn fill() -> Command {
    let at = Timestamp(1_700_000_000_123_456);
    let row = InventoryRow {
        inventory: inventory(),
        updated_at: at,
    };
    let provider = FilledProvider {
        uuid: provider_uuid(2),
        name: "cn1 – ü".to_owned().try_into().unwrap(),
        generation: Generation(7),
        parent: Some(provider_uuid(1)),
        created_at: at,
        updated_at: Timestamp(at.0 + 1),
        inventories: BTreeMap::from([(class(), row)]),
        traits: BTreeSet::from([name("CUSTOM_FAST")]),
        aggregates: BTreeSet::from([AggregateUuid::from("Agg-1")]),
    };
    Command::FillPartition(FillPartition {
        after: Filled {
            providers: 1,
            consumers: 0,
        },
        resource_classes: vec![NameRow {
            name: class(),
            updated_at: at,
        }],
        traits: vec![NameRow {
            name: name("CUSTOM_FAST"),
            updated_at: at,
        }],
        providers: vec![provider],
        parents: vec![(provider_uuid(3), provider_uuid(2))],
        consumers: vec![filled_consumer()],
    })
}

fn routes() -> Routes {
    let host = Route::Host("south.example".parse().unwrap());
    let prefix = Route::Prefix("/south/placement".parse().unwrap());
    vec![host, prefix].try_into().unwrap()
}

fn replaced() -> Replaced {
    Replaced {
        node: 3,
        name: "db-c".to_owned(),
        votes: true,
        stays: false,
        though_reachable: true,
    }
}

fn members() -> Membership {
    let member = |id| Member {
        api: format!("http://192.0.2.{id}:8778"),
        peer: format!("192.0.2.{id}:8779"),
        admin: format!("192.0.2.{id}:8780"),
        site: Box::new(Site {
            region: "north".to_owned(),
            zone: String::new(),
        }),
        name: Box::new(format!("db-{id}").parse().unwrap()),
    };
    let voters = vec![BTreeSet::from([1, 2]), BTreeSet::from([1, 2, 3])];
    Membership::new(
        voters,
        BTreeMap::from([1, 2, 3, 4].map(|id| (id, member(id)))),
    )
    .unwrap()
}

fn log_id(index: u64) -> LogId {
    WireLogId {
        term: 3,
        node: 2,
        index,
    }
    .into()
}

fn entries() -> Vec<Entry> {
    let write_id = WriteId {
        origin: 2,
        boot: 5,
        sequence: 1000,
        answered_below: 998,
    };
    let encoded = |stamped| Payload::Normal(LoggedCommand::encoded(VERSION, stamped));
    let command = |(number, command): (usize, Command)| {
        let stamped = Stamped {
            partition: PartitionId::DEFAULT,
            routes: 0,
            at: Timestamp(1_800_000_000_123_456),
            write_id: (number > 0).then_some(write_id),
            command,
            request_id: None,
        };
        encoded(stamped)
    };
    let elsewhere = Stamped {
        partition: PartitionId(7),
        routes: 3,
        at: Timestamp(1_800_000_000_123_456),
        write_id: Some(write_id),
        command: Command::EnsureTrait(EnsureTrait {
            name: name("CUSTOM_FAST"),
        }),
        request_id: None,
    };
    let asked_for = Stamped {
        request_id: Some(Uuid::from_u128(0x7e9)),
        ..elsewhere.clone()
    };
    [Payload::Blank, Payload::Membership(members())]
        .into_iter()
        .chain(commands().into_iter().enumerate().map(command))
        .chain([encoded(elsewhere), encoded(asked_for)])
        .chain(commands_of_holds().into_iter().enumerate().map(command))
        .chain(commands_of_limits().into_iter().enumerate().map(command))
        .zip(10..)
        .map(|(payload, index)| Entry::new(log_id(index), payload))
        .collect()
}

#[test]
fn log_entries() {
    let label = |entry: &Entry| match &entry.payload {
        Payload::Blank => "Blank",
        Payload::Membership(_) => "Membership",
        Payload::Normal(logged) => logged.stamped().command.name(),
    };
    let written: Vec<_> = entries()
        .iter()
        .map(|entry| {
            let bytes = wire::encode(VERSION, &WireEntry::from(entry));
            (label(entry).to_owned(), bytes)
        })
        .collect();
    let lines = fixture("log-entries.hex", &written);
    for ((label, bytes), entry) in lines.iter().zip(entries()) {
        let read = wire::decode::<WireEntry>(bytes)
            .unwrap()
            .into_entry()
            .unwrap();
        assert_eq!(read, entry, "{label}");
    }
}

#[test]
fn votes() {
    let vote = |committed| WireVote {
        term: 9,
        node: 3,
        committed,
    };
    check(
        "votes.hex",
        &[("asked-for", vote(false)), ("granted", vote(true))],
    );
    assert_eq!(Vote::from(vote(true)), Vote::new_committed(9, 3));
}

#[test]
fn places_in_the_log() {
    check(
        "log-ids.hex",
        &[
            ("first", WireLogId::from(&log_id(0))),
            ("last", (&log_id(u64::MAX)).into()),
        ],
    );
}

#[test]
fn memberships() {
    let stored = StoredMembership::new(Some(log_id(11)), members());
    let wire = WireStoredMembership::from(&stored);
    let none = WireStoredMembership {
        set_by: None,
        membership: WireMembership::default(),
    };
    check(
        "memberships.hex",
        &[("none", none), ("joint", wire.clone())],
    );
    assert_eq!(StoredMembership::try_from(wire), Ok(stored));
}

#[test]
fn snapshot_coverage() {
    let last_membership = StoredMembership::new(Some(log_id(11)), members());
    let meta = SnapshotMeta {
        last_log_id: Some(log_id(500)),
        last_membership,
    };
    check(
        "snapshot-meta.hex",
        &[("meta", WireSnapshotMeta::from(&meta))],
    );
}

#[test]
fn applied_records() {
    let stored = StoredMembership::new(Some(log_id(11)), members());
    let record = |last_stamp| AppliedRecord {
        last: Some((&log_id(500)).into()),
        membership: (&stored).into(),
        digest: "00112233445566778899aabbccddeeff".to_owned(),
        last_stamp,
    };
    check(
        "applied.hex",
        &[
            ("without-a-stamp", record(None)),
            (
                "with-a-stamp",
                record(Some(Timestamp(1_800_000_000_123_456))),
            ),
        ],
    );
}

#[test]
fn identities() {
    let identity = Identity {
        cluster: Uuid::from_u128(7),
        epoch: 3,
        node: 2,
    };
    check_written(
        "identity.hex",
        &[("identity", identity)],
        wire::encode_named,
    );
}

/// A row for each table, and a deletion.
fn changes() -> Vec<Change> {
    let at = Timestamp(1_800_000_000_123_456);
    let outcome = Outcome::Refused(Refusal::ProviderGenerationConflict {
        provider: provider_uuid(2),
        given: Generation(1),
        actual: Generation(2),
    });
    let reply = Reply::Provider(Provider {
        uuid: provider_uuid(2),
        name: "child".to_owned().try_into().unwrap(),
        generation: Generation(0),
        parent: Some(provider_uuid(1)),
        root: provider_uuid(1),
        modified: at,
    });
    let provider = |uuid, text: &str, parent| ProviderRow {
        uuid: provider_uuid(uuid),
        name: text.to_owned().try_into().unwrap(),
        generation: Generation(3),
        parent,
        created_at: at,
        updated_at: Timestamp(at.0 + 1),
    };
    vec![
        Change::PutCounters(Counters {
            provider: 2,
            resource_class: 1,
            trait_: 1,
        }),
        Change::PutResourceClass(
            ResourceClassId(0),
            NameRow {
                name: name("VCPU"),
                updated_at: at,
            },
        ),
        Change::PutTrait(
            TraitId(0),
            NameRow {
                name: name("CUSTOM_FAST"),
                updated_at: at,
            },
        ),
        Change::PutProvider(ProviderId(0), provider(1, "root", None)),
        Change::PutInventory(
            ProviderId(0),
            ResourceClassId(0),
            InventoryRow {
                inventory: inventory(),
                updated_at: at,
            },
        ),
        Change::PutProviderTraits(ProviderId(0), BTreeSet::from([TraitId(0)])),
        Change::PutProviderAggregates(
            ProviderId(0),
            BTreeSet::from([AggregateUuid::from("Agg-1")]),
        ),
        Change::PutProvider(ProviderId(1), provider(2, "child", Some(ProviderId(0)))),
        Change::PutConsumer(
            ConsumerUuid::from("5D0DC45D-8b6a-4ae5-9e07-2d05b3a5b0a4"),
            ConsumerRow {
                generation: Generation(1),
                project: "project".into(),
                user: "user".into(),
                consumer_type: Some(name("INSTANCE")),
                allocations: Amounts::from_iter([Amount {
                    provider: ProviderId(0),
                    class: ResourceClassId(0),
                    units: 2,
                }]),
                updated_at: at,
                hold: None,
            },
        ),
        Change::PutSession(
            2,
            SessionRow {
                boot: 5,
                answered_below: 998,
            },
        ),
        Change::PutOutcome(2, 999, outcome),
        Change::PutOutcome(2, 1000, Outcome::Done(reply)),
    ]
}

fn join_row() -> JoinRow {
    JoinRow {
        token: "c0ffee".to_owned(),
        until: Timestamp(1_700_000_000_000_000),
        nonce: Some("f00d".to_owned()),
        replaces: Some(replaced()),
        expires_at: Timestamp(1_700_000_000_000_000),
    }
}

/// At least one row of each table, with partitions.
pub(crate) fn rows_of_all_tables() -> Vec<(PartitionId, Change)> {
    let own = |change| (PartitionId::DEFAULT, change);
    let mut changes: Vec<_> = changes().into_iter().map(own).collect();
    changes.push(own(Change::PutLevel(Level(2))));
    let at = Timestamp(1_800_000_000_123_456);
    for (deleted_at, routing) in [
        (None, Routing::default()),
        (
            Some(Timestamp(at.0 + 5)),
            Routing {
                routes: routes(),
                changes: 3,
            },
        ),
    ] {
        let row = PartitionRow {
            name: "north".parse().unwrap(),
            created_at: at,
            deleted_at,
            routing,
        };
        changes.push(own(Change::PutPartition(PartitionId(7), row)));
    }
    let row = NameRow {
        name: name("CUSTOM_FAST"),
        updated_at: at,
    };
    changes.push((PartitionId(7), Change::PutTrait(TraitId(0), row)));
    changes.push(own(Change::PutJoin(4, join_row())));
    let outcomes = (1001..).zip(outcomes_of_claims());
    changes
        .extend(outcomes.map(|(sequence, outcome)| own(Change::PutOutcome(2, sequence, outcome))));
    let ends = [HoldEnd::Lease(at), HoldEnd::Due(at), HoldEnd::Open];
    for (number, end) in ends.into_iter().enumerate() {
        let consumer = ConsumerUuid::from(format!("hold {number}"));
        changes.push(own(Change::PutConsumer(consumer, holder(end))));
    }
    let limits = LimitsRow {
        generation: Generation(2),
        updated_at: at,
        limits: limits(),
    };
    changes.push(own(Change::PutLimits(Box::new(limits))));
    let outcomes = (1008..).zip(outcomes_of_limits());
    changes
        .extend(outcomes.map(|(sequence, outcome)| own(Change::PutOutcome(2, sequence, outcome))));
    changes
}

fn outcomes_of_limits() -> [Outcome; 5] {
    let excess = |resource| LimitExcess {
        project: "parent".into(),
        resource,
        used: 18,
        requested: 22,
        limit: 20,
    };
    let consumers = || excess(LimitedResource::Consumers);
    let claimed = Reply::Claimed {
        choice: 3,
        repeated: false,
    };
    let over = |reply, excesses| Reply::OverLimits {
        reply: Box::new(reply),
        excesses,
    };
    let class = excess(LimitedResource::Class(name("VCPU")));
    [
        Outcome::Done(Reply::LimitsWritten {
            generation: Generation(2),
        }),
        Outcome::Done(over(Reply::Done, vec![consumers(), class])),
        Outcome::Done(over(claimed, vec![consumers()])),
        Outcome::Refused(Refusal::OverLimit(consumers())),
        Outcome::Refused(Refusal::LimitsGenerationConflict {
            given: Generation(1),
            actual: Generation(2),
        }),
    ]
}

fn outcomes_of_claims() -> [Outcome; 7] {
    let claimed = Reply::Claimed {
        choice: 3,
        repeated: true,
    };
    let no_room = Refusal::ClaimRefused(vec![RefusedChoice {
        choice: 1,
        refusal: Refusal::AllocationCapacity(provider_uuid(2), class()),
        shortage: Some(Shortage {
            requested: 4,
            free: 3,
        }),
    }]);
    let over = Refusal::OverCeiling {
        ceiling: 1,
        used: 198,
        requested: 4,
        limit: 200,
    };
    let group = Refusal::GroupBroken {
        group: 1,
        root: provider_uuid(1),
        members: 2,
    };
    [
        Outcome::Done(claimed),
        Outcome::Refused(no_room),
        Outcome::Refused(over),
        Outcome::Refused(group),
        Outcome::Refused(Refusal::HoldNotFound(ConsumerUuid::from("vm"))),
        Outcome::Refused(Refusal::HoldIsDue(ConsumerUuid::from("vm"))),
        Outcome::Refused(Refusal::TooManyHolds(ConsumerUuid::from("vm"))),
    ]
}

#[test]
fn rows() {
    let changes = rows_of_all_tables();
    let row =
        |(partition, change): &(PartitionId, Change)| tables::row(VERSION, *partition, change);
    let written: Vec<_> = changes
        .iter()
        .map(|change| {
            let row = row(change);
            (
                format!("{} {}", row.table.name(), hex(&row.key)),
                row.value.unwrap(),
            )
        })
        .collect();
    let lines = fixture("rows.hex", &written);
    for ((label, value), change) in lines.iter().zip(changes.clone()) {
        let (table, key) = label.split_once(' ').unwrap();
        let table = Table::ALL
            .into_iter()
            .find(|known| known.name() == table)
            .unwrap();
        assert_eq!(
            tables::read(table, &unhex(key), value),
            Ok(change),
            "{label}"
        );
    }
    let tables: BTreeSet<_> = changes
        .iter()
        .map(|change| row(change).table.tag())
        .collect();
    assert_eq!(tables.len(), Table::ALL.len(), "a row for each table");
}

/// Rows in ledger entries are encoded differently from rows in tables.
#[test]
fn ledger() {
    let floor = |index| Floor {
        index,
        at: Timestamp(1_800_000_000_123_456),
    };
    let made = |after: Change| RowChange {
        before: Change::Delete(after.key()),
        after,
    };
    let is_other = |change: &Change| {
        use Change::{PutCounters, PutOutcome, PutSession};
        matches!(change, PutCounters(_) | PutSession(..) | PutOutcome(..))
    };
    let rows = changes().into_iter().filter(|change| !is_other(change));
    let entry = LedgerEntry {
        index: 500,
        at: floor(500).at,
        partition: PartitionId(7),
        verb: "ReplaceAllocations".into(),
        request_id: None,
        rows: rows.map(made).collect(),
        names: Names {
            providers: BTreeMap::from([(ProviderId(0), provider_uuid(1))]),
            classes: BTreeMap::from([(ResourceClassId(0), name("VCPU"))]),
            traits: BTreeMap::from([(TraitId(0), name("CUSTOM_FAST"))]),
        },
    };
    let asked_for = LedgerEntry {
        request_id: Some(Uuid::from_u128(0x7e9)),
        ..entry.clone()
    };
    check(
        "ledger-entries.hex",
        &[("by-itself", entry), ("asked-for", asked_for)],
    );
    let record = |up_to, pieces: &[(Floor, u64)]| LedgerRecord {
        floor: floor(400),
        up_to,
        pieces: pieces.iter().copied().collect(),
    };
    check(
        "ledger.hex",
        &[
            ("new", record(None, &[])),
            (
                "in-pieces",
                record(Some(520), &[(floor(450), 9000), (floor(500), 70_000)]),
            ),
        ],
    );
}

#[tokio::test]
async fn snapshots() {
    let last_stamp = Some(Timestamp(1_800_000_000_123_456));
    let dir = tempfile::TempDir::new().unwrap();
    let identity = Identity {
        cluster: Uuid::from_u128(7),
        epoch: 3,
        node: 2,
    };
    create(dir.path(), identity).unwrap();
    let store = open(StoreOptions::new(dir.path())).unwrap();
    let last_membership = StoredMembership::new(Some(log_id(11)), members());
    let meta = SnapshotMeta {
        last_log_id: Some(log_id(500)),
        last_membership,
    };
    let mut state = State::default();
    state.commit(&changes());
    let path = path("snapshot");
    let applied = crate::AppliedState {
        cluster: Arc::new(state.clone().into()),
        last: meta.last_log_id,
        membership: meta.last_membership.clone().into(),
        last_stamp,
    };
    let built = store.snapshots.write_down(&applied).unwrap();
    let written = fs::read(built.file.path()).unwrap();
    if writes() {
        fs::write(&path, &written).unwrap();
    }
    assert!(
        written == fs::read(&path).unwrap(),
        "this binary encodes a snapshot differently from older binaries"
    );
    let mut receiver = store.snapshots.receive().unwrap();
    receiver.write(&fs::read(&path).unwrap()).unwrap();
    let file = store
        .snapshots
        .verify(&meta, receiver.finish().unwrap())
        .unwrap();
    let mut machine = store.machine;
    let file = crate::SnapshotData::File(file);
    openraft::storage::RaftStateMachine::install_snapshot(&mut machine, &meta, file)
        .await
        .unwrap();
    let applied = store.views.current();
    assert_eq!(applied.digest(), state.digest());
    assert_eq!(applied.last_stamp, last_stamp);
    let rows: Vec<_> = applied.cluster.default_partition().rows().collect();
    for change in changes() {
        assert!(rows.contains(&change), "{change:?}");
    }
    assert_eq!(rows.len(), changes().len());
}
