use std::slice::from_ref;

use placement_wire::Capacity;
use placement_wire::holds::Hold;
use placement_wire::trees::{TreeInventory, TreeProvider};

use super::*;
use crate::nova::{Migrations, Servers};

const NOW: &str = "2026-11-26T20:00:00Z";

/// A consumer with one VCPU on each of these hosts.
pub(crate) fn consumer(
    id: u128,
    kind: Option<&str>,
    at: &str,
    hosts: &[&str],
) -> Consumer<'static> {
    let host = |name: &str| NamedProvider {
        uuid: Uuid::from_u128(name.len() as u128).to_string().into(),
        name: name.to_owned().into(),
    };
    let held = |name: &&str| ConsumerAllocation {
        provider: host(name),
        root: host(name),
        resources: [("VCPU".into(), 1)].into(),
    };
    Consumer {
        uuid: Uuid::from_u128(id).to_string().into(),
        r#type: kind.map(|kind| kind.to_owned().into()),
        project_id: "p".into(),
        user_id: "u".into(),
        generation: 3,
        updated_at: Some(at.to_owned().into()),
        trees: hosts.len() as u64,
        allocations: hosts.iter().map(held).collect(),
        hold: None,
    }
}

fn instance(id: u128, hosts: &[&str]) -> Consumer<'static> {
    consumer(id, Some(INSTANCE), "2026-11-25T20:00:00Z", hosts)
}

/// A list of servers on this host, and of servers in a cell that is down.
pub(crate) fn servers(ids: &[u128], host: &str, down: &[u128]) -> Option<Servers> {
    let up = ids
        .iter()
        .map(|id| json!({"ID": Uuid::from_u128(*id), "Host": host}));
    let down = down
        .iter()
        .map(|id| json!({"ID": Uuid::from_u128(*id), "Status": "UNKNOWN"}));
    let all: Vec<_> = up.chain(down).collect();
    Some(Servers::parse(json!(all).to_string().as_bytes()).unwrap())
}

/// A migration of a server in the format of Nova's list.
pub(crate) fn moved(
    id: u128,
    server: u128,
    kind: &str,
    status: &str,
    [from, to]: [&str; 2],
) -> Value {
    json!({"UUID": Uuid::from_u128(id), "Server UUID": Uuid::from_u128(server), "Type": kind, "Status": status,
           "Source Node": from, "Dest Node": to})
}

pub(crate) fn migrations(all: &[Value]) -> Option<Migrations> {
    Some(Migrations::parse(json!(all).to_string().as_bytes()).unwrap())
}

pub(crate) fn by(servers: Option<Servers>, migrations: Option<Migrations>) -> Nova {
    Nova {
        servers,
        migrations,
    }
}

fn judged(consumers: Vec<Consumer<'static>>, nova: &Nova) -> Audit {
    audited(
        Placement {
            consumers,
            ..Placement::default()
        },
        nova,
    )
}

fn audited(placement: Placement, nova: &Nova) -> Audit {
    let mut audit = Audit::default();
    let now = OffsetDateTime::parse(NOW, &Rfc3339).unwrap();
    audit.judge(&placement, nova, (3600, 86_400), now);
    audit
}

fn found(audit: &Audit) -> Vec<(&str, &str)> {
    let findings = audit.findings.iter();
    findings
        .map(|one| (one.finding, &one.consumer.as_ref().unwrap().uuid[35..]))
        .collect()
}

#[test]
fn untyped_consumers_get_the_type_of_the_list_that_contains_them() {
    let untyped = |id, hosts: &[&str]| consumer(id, None, "2026-11-25T19:00:00Z", hosts);
    let all = || {
        vec![
            untyped(1, &["a", "bb"]),
            untyped(2, &["bb"]),
            untyped(3, &["a"]),
            consumer(4, None, "2026-11-26T19:30:00Z", &["a"]),
            untyped(5, &["a", "ccc"]),
        ]
    };
    let known = || servers(&[1, 5], "a", &[]);
    let moving = || migrations(&[moved(2, 1, "resize", "finished", ["bb", "a"])]);
    let audit = judged(all(), &by(known(), moving()));
    let expected = [("old_migration", "2"), ("orphan", "3"), ("doubled", "5")];
    assert_eq!(found(&audit), expected);
    assert_eq!(audit.planned.len(), 2);
    assert_eq!(audit.planned[0].of.r#type, None);
    let reason = &audit.planned[0].reason;
    assert!(reason.contains("no type"), "{reason}");

    let by_servers = judged(all(), &by(known(), None));
    assert_eq!(found(&by_servers), [("evacuated", "1"), ("evacuated", "5")]);
    let [note] = &by_servers.notes[..] else {
        panic!("{:?}", by_servers.notes);
    };
    assert!(note.contains("3 consumers without a type") && note.contains("--migrations-command"));

    let without_migrations = judged(all(), &by(known(), migrations(&[])));
    let orphans = [("orphan", "2"), ("orphan", "3")];
    assert!(
        orphans
            .iter()
            .all(|one| found(&without_migrations).contains(one))
    );
    assert!(!without_migrations.is_incomplete);
    let audit = judged(all(), &by(servers(&[], "", &[]), moving()));
    assert!(found(&audit).contains(&("orphan", "3")));
    assert!(audit.is_incomplete && audit.planned.is_empty());
}

#[test]
fn holds_are_no_orphans() {
    let hold = Consumer {
        hold: Some(Hold::default()),
        ..instance(9, &["a"])
    };
    let audit = judged(
        vec![instance(1, &["a"]), hold],
        &by(servers(&[1], "a", &[]), None),
    );
    assert_eq!(found(&audit), []);
    let [note] = &audit.notes[..] else {
        panic!("{:?}", audit.notes);
    };
    assert!(note.starts_with("skipped 1 holds"), "{note}");
}

#[test]
fn an_instance_on_two_hosts_without_a_migration_counts_as_evacuated() {
    let migration = consumer(2, Some(MIGRATION), NOW, &["a"]);
    let moving = vec![instance(1, &["a", "bb"]), migration];
    assert_eq!(found(&judged(moving, &Nova::default())), []);
    let migration = consumer(2, Some(MIGRATION), NOW, &["ccc"]);
    let others = vec![instance(1, &["a", "bb"]), instance(3, &["a"]), migration];
    let audit = judged(others, &Nova::default());
    assert_eq!(found(&audit), [("evacuated", "1")]);
    let finding = &audit.findings[0];
    let roots = ["a", "bb"].map(str::to_owned);
    assert_eq!(finding.age.as_deref(), Some("1 d 0 h"));
    assert_eq!(finding.roots, roots.into());
    assert_eq!(finding.resources, [("VCPU".to_owned(), 2)].into());
}

/// An instance on these hosts and on a shared storage.
fn on_shared_storage(id: u128, hosts: &[&str]) -> Consumer<'static> {
    instance(id, &[hosts, &["storage"]].concat())
}

fn judged_on_shared_storage(consumers: Vec<Consumer<'static>>, nova: &Nova) -> Audit {
    let shared = Uuid::from_u128("storage".len() as u128);
    audited(
        Placement {
            consumers,
            shared: HashSet::from([shared.to_string()]),
            ..Placement::default()
        },
        nova,
    )
}

#[test]
fn migration_of_another_server_on_shared_storage_does_not_hide_an_evacuation() {
    let consumers = || {
        let mut migration = on_shared_storage(3, &["ccc"]);
        migration.r#type = Some(MIGRATION.into());
        let evacuated = on_shared_storage(1, &["a", "bb"]);
        vec![evacuated, on_shared_storage(2, &["dddd"]), migration]
    };
    let resize = moved(3, 2, "resize", "finished", ["ccc", "dddd"]);
    let evacuation = |status| moved(4, 1, "evacuation", status, ["a", "bb"]);
    let known = || servers(&[1, 2], "bb", &[]);
    let with = |more: &[Value]| {
        let all = [from_ref(&resize), more].concat();
        judged_on_shared_storage(consumers(), &by(known(), migrations(&all)))
    };
    for audit in [
        judged_on_shared_storage(consumers(), &Nova::default()),
        with(&[evacuation("done")]),
    ] {
        assert_eq!(found(&audit), [("evacuated", "1")]);
        assert!(audit.planned.is_empty());
    }
    for more in [&[][..], &[evacuation("completed")]] {
        let audit = with(more);
        assert_eq!(found(&audit), [("doubled", "1")]);
        assert_eq!(audit.planned.len(), 1);
    }
}

#[test]
fn only_allocations_on_the_wrong_host_are_planned_for_a_doubled_instance() {
    let consumers = || vec![on_shared_storage(1, &["a", "bb"])];
    let judged = |host, all: &[Value]| {
        let nova = by(servers(&[1], host, &[]), migrations(all));
        judged_on_shared_storage(consumers(), &nova)
    };
    let audit = judged("bb", &[]);
    assert_eq!(found(&audit), [("doubled", "1")]);
    let [line] = &audit.planned[..] else {
        panic!("{:?}", audit.planned);
    };
    let [first, second, storage] =
        ["a", "bb", "storage"].map(|name| Uuid::from_u128(name.len() as u128));
    let all: Vec<Uuid> = line.of.allocations.keys().copied().collect();
    let kept: Vec<Uuid> = line.keeps.keys().copied().collect();
    assert_eq!(all, [first, second, storage]);
    assert_eq!(kept, [second, storage]);

    let hold = |status| moved(7, 1, "live-migration", status, ["a", "ccc"]);
    // Nova's host name differs from the provider name, or a migration is in progress, on these
    // hosts or elsewhere.
    for (host, list, finding) in [
        ("bb.example", vec![], Some("doubled")),
        ("bb", vec![hold("running")], None),
        (
            "bb",
            vec![moved(7, 1, "resize", "migrating", ["x", "y"])],
            Some("doubled"),
        ),
    ] {
        let audit = judged(host, &list);
        let findings = found(&audit)
            .iter()
            .map(|(finding, _)| *finding)
            .collect::<Vec<_>>();
        assert_eq!(findings, finding.into_iter().collect::<Vec<_>>());
        assert!(audit.planned.is_empty(), "{host}");
    }
    assert_eq!(judged("bb", &[hold("completed")]).planned.len(), 1);
    let mut young = consumers();
    young[0].updated_at = Some("2026-11-26T19:30:00Z".into());
    let nova = by(servers(&[1], "bb", &[]), migrations(&[]));
    let audit = judged_on_shared_storage(young, &nova);
    assert_eq!(found(&audit), [("doubled", "1")]);
    assert!(audit.planned.is_empty());
}

#[test]
fn shared_storage_does_not_count_as_a_host_of_a_down_cell() {
    let consumers = vec![
        on_shared_storage(1, &["a"]),
        on_shared_storage(2, &["a"]),
        on_shared_storage(3, &["bb"]),
        on_shared_storage(4, &[]),
        on_shared_storage(7, &["a"]),
        on_shared_storage(8, &["a"]),
        on_shared_storage(9, &["bb"]),
    ];
    let nova = by(servers(&[1, 7, 8], "a", &[9]), None);
    let audit = judged_on_shared_storage(consumers, &nova);
    let orphans = [("orphan", "2"), ("orphan", "3"), ("orphan", "4")];
    assert_eq!(found(&audit), orphans);
    assert_eq!(audit.planned.len(), 1);
    assert_eq!(audit.planned[0].of.consumer, Uuid::from_u128(2));
}

#[test]
fn old_migrations_empty_consumers_and_disabled_hosts_are_found() {
    let old = consumer(1, Some(MIGRATION), "2026-11-25T19:59:59Z", &["a"]);
    let inventory = |used| TreeInventory {
        used,
        capacity: Capacity::from(8),
        ..TreeInventory::default()
    };
    let host = TreeProvider {
        name: "a".into(),
        inventories: [
            ("VCPU".into(), inventory(9)),
            ("DISK_GB".into(), inventory(8)),
        ]
        .into(),
        ..TreeProvider::default()
    };
    let crowded = Tree {
        providers: vec![host],
        ..Tree::default()
    };
    let placement = Placement {
        consumers: vec![old, instance(2, &[])],
        shared: HashSet::new(),
        disabled: HashSet::from([Uuid::from_u128(1).to_string()]),
        crowded: vec![crowded],
    };
    let mut audit = Audit::default();
    let now = OffsetDateTime::parse(NOW, &Rfc3339).unwrap();
    audit.judge(&placement, &Nova::default(), (0, 86_400), now);
    let over = audit.findings.pop().unwrap();
    assert_eq!((over.finding, &*over.why), ("over_capacity", "9 of 8 used"));
    assert_eq!(
        found(&audit),
        [
            ("old_migration", "1"),
            ("disabled_host", "1"),
            ("empty", "2")
        ]
    );
}

#[test]
fn only_old_consumers_of_nova_types_are_orphans() {
    let young = consumer(2, Some(INSTANCE), "2026-11-26T19:30:00Z", &["a"]);
    let other = consumer(4, Some("BLAZAR"), "2026-11-25T20:00:00Z", &["a"]);
    let unknown = consumer(5, None, "2026-11-25T20:00:00Z", &["a"]);
    let all = vec![
        instance(1, &["a"]),
        young,
        instance(3, &["a"]),
        other,
        unknown,
    ];
    let audit = judged(all, &by(servers(&[1], "a", &[]), None));
    assert_eq!(found(&audit), [("orphan", "3")]);
    assert_eq!(audit.planned.len(), 1);
    assert_eq!(audit.notes.len(), 2, "{:?}", audit.notes);
    assert!(!audit.is_incomplete);
}

#[test]
fn consumers_that_may_belong_to_a_down_cell_are_not_planned() {
    let all = vec![
        instance(1, &["a"]),
        instance(2, &["a"]),
        instance(3, &["bb"]),
        instance(4, &["bb"]),
    ];
    let audit = judged(all, &by(servers(&[1], "a", &[3]), None));
    assert_eq!(found(&audit), [("orphan", "2"), ("orphan", "4")]);
    assert_eq!(audit.planned.len(), 1);
    assert_eq!(audit.planned[0].of.consumer, Uuid::from_u128(2));
    assert!(audit.is_incomplete && audit.notes[0].contains("a cell is down"));
}

#[test]
fn nothing_is_planned_from_an_incomplete_list() {
    let all = || {
        vec![
            instance(1, &["a"]),
            instance(2, &["a"]),
            instance(3, &["a"]),
        ]
    };
    let page: Vec<u128> = (1..=2).chain(1001..1999).collect();
    for known in [&[1][..], &page] {
        let audit = judged(all(), &by(servers(known, "a", &[]), None));
        assert!(audit.is_incomplete && audit.planned.is_empty());
    }
}
