//! `placementctl consumers audit`: consumers that were forgotten, and a plan to release those that Nova does not know.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use clap::Args;
use http::StatusCode;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::content::{Content, EXTENSIONS};
use crate::files::create;
use crate::held::{Amounts, add_held};
use crate::moment::{seconds, span};
use crate::nova::{INSTANCE, Lists, MIGRATION, Nova, UNTYPED};
use crate::release::{FOUND, PRIVATE, planned};
use crate::render::{Rows, list, pairs, print};

/// What Nova gives the root of a host whose compute service is disabled.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";
/// The exit code if the lists of Nova do not say all.
const INCOMPLETE: u8 = 2;

#[derive(Args)]
#[command(
    after_help = "Exits with 0 if nothing was found, with 3 if something was, with 2 if Nova's lists are \
                  incomplete or no node answers, and with 1 if it failed."
)]
pub(crate) struct Which {
    #[command(flatten)]
    lists: Lists,
    /// Consumers that were changed later than this are no orphans.
    #[arg(long, value_name = "AGE", value_parser = seconds, default_value = "1h")]
    older_than: u64,
    /// Migrations that have held something for longer than this are reported.
    #[arg(long, value_name = "AGE", value_parser = seconds, default_value = "24h")]
    migrations_older_than: u64,
    /// The file, which must not exist, that gets the orphans to release, one a line.
    #[arg(long, value_name = "FILE", requires = "Lists")]
    plan: Option<PathBuf>,
}

pub(crate) async fn run(content: &Content, which: Which) -> anyhow::Result<ExitCode> {
    // An instance is in Nova before it is in Placement: what is here and not there later is an orphan.
    let placement = Placement::read(content).await?;
    let nova = which.lists.read(SystemTime::now(), which.older_than)?;
    let mut audit = Audit::default();
    let ages = (which.older_than, which.migrations_older_than);
    audit.judge(&placement, &nova, ages, OffsetDateTime::now_utc());
    if let Some(plan) = &which.plan {
        let lines = audit.planned.iter().map(|one| format!("{one}\n"));
        let written = create(plan, PRIVATE)?.write_all(lines.collect::<String>().as_bytes());
        written.with_context(|| format!("cannot write {}", plan.display()))?;
    }
    for note in &audit.notes {
        eprintln!("placementctl: {note}");
    }
    let code = match (audit.is_incomplete, audit.findings.is_empty()) {
        (true, _) => INCOMPLETE,
        (_, false) => FOUND,
        _ => 0,
    };
    let columns = "finding consumer:uuid type age resources providers roots why +project:project_id +user:user_id \
                   +generation +updated_at";
    let rows = Rows::new(columns, audit.findings);
    print(&content.source.output.rows(rows)?)?;
    Ok(code.into())
}

/// What Placement has.
#[derive(Default)]
struct Placement {
    consumers: Vec<Value>,
    /// The roots of disabled hosts.
    disabled: HashSet<String>,
    /// Trees in which a provider may be used above its capacity.
    crowded: Vec<Value>,
}

impl Placement {
    async fn read(content: &Content) -> anyhow::Result<Self> {
        let consumers = content.consumers(&Value::Null).await?;
        // For each class the providers that something is held of, with their roots.
        let mut held: BTreeMap<&String, BTreeMap<String, String>> = BTreeMap::new();
        for one in consumers.iter().flat_map(|one| list(&one["allocations"])) {
            for (class, _) in pairs(&one["resources"]) {
                let providers = held.entry(class).or_default();
                providers.insert(uuid(&one["provider"]), uuid(&one["root"]));
            }
        }
        let disabled = content.providers(json!({ "required": DISABLED })).await?;
        // A provider with room for one more is not used above its capacity, and most have: the others are looked at.
        let mut crowded = BTreeSet::new();
        for (class, mut holding) in held {
            let filters = json!({ "resources": format!("{class}:1") });
            for roomy in content.providers(filters).await? {
                holding.remove(&uuid(&roomy));
            }
            crowded.extend(holding.into_values());
        }
        let mut trees = Vec::new();
        for root in crowded {
            match content.get(&format!("{EXTENSIONS}/trees/{root}")).await {
                Err(gone) if gone.status() == Some(StatusCode::NOT_FOUND) => {}
                tree => trees.push(tree?),
            }
        }
        Ok(Self {
            disabled: disabled.iter().map(uuid).collect(),
            crowded: trees,
            consumers,
        })
    }
}

/// What was found.
#[derive(Default)]
struct Audit {
    findings: Vec<Value>,
    planned: Vec<Value>,
    /// What to say of the whole.
    notes: Vec<String>,
    is_incomplete: bool,
}

/// How many consumers of a kind Nova has, and how many not; those that its lists say nothing of count as neither.
type Tallies<'a> = BTreeMap<&'a str, [usize; 3]>;

impl Audit {
    /// `ages`: from when on consumers may be orphans, and migrations are old, in seconds.
    fn judge(&mut self, placement: &Placement, nova: &Nova, ages: (u64, u64), now: OffsetDateTime) {
        let migrations = placement.consumers.iter();
        let migrations = migrations.filter(|one| nova.judge(one).0 == MIGRATION);
        let migrating: HashSet<(&str, String)> = migrations
            .flat_map(|one| roots(one).map(|root| (text(one, "project_id"), uuid(root))))
            .collect();
        let mut tallies = Tallies::new();
        for consumer in &placement.consumers {
            let ((kind, is_known), age) = (nova.judge(consumer), age(consumer, now));
            let project = text(consumer, "project_id");
            let is_migrating = |root| migrating.contains(&(project, uuid(root)));
            let mut find = |finding, why| self.find(consumer, age, finding, why);
            if list(&consumer["allocations"]).is_empty() {
                find("empty", "it holds nothing");
            }
            let may_be_instance = [INSTANCE, UNTYPED].contains(&kind);
            let has_several = may_be_instance && consumer["trees"].as_u64() > Some(1);
            if has_several && !roots(consumer).any(is_migrating) {
                find("evacuated", "it holds several hosts, without a migration");
            }
            if kind == MIGRATION && age > ages.1 {
                find("old_migration", "no migration takes so long");
            }
            if roots(consumer).any(|root| placement.disabled.contains(&uuid(root))) {
                find("disabled_host", "its host is disabled");
            }
            let [known, unknown, others] = tallies.entry(kind).or_default();
            match is_known {
                Some(true) => *known += 1,
                Some(false) if age >= ages.0 => {
                    *unknown += 1;
                    self.orphan(consumer, age, nova);
                }
                Some(false) => {}
                None => *others += 1,
            }
        }
        self.over_capacity(placement);
        self.weigh(&tallies, nova);
    }

    /// Plans nothing by lists that may lack something, and says so.
    fn weigh(&mut self, tallies: &Tallies<'_>, nova: &Nova) {
        let instances = tallies.get(INSTANCE).map_or(0, |[known, ..]| *known);
        for (&kind, [_, unknown, others]) in tallies {
            if *others > 0 && nova.servers.is_some() {
                self.notes.push(match kind {
                    UNTYPED => format!(
                        "not judged: {others} without a type that are no servers of Nova. They may be migrations, \
                         which --migrations-command lists"
                    ),
                    _ => format!("not judged by Nova's lists: {others} of type {kind}"),
                });
            }
            // A list of one project, or a page of it, makes orphans of all others. Few migrations go on at a time.
            let is_doubtful = kind != MIGRATION && *unknown > instances;
            if *unknown > 0 && (is_doubtful || nova.may_be_cut(kind)) {
                self.is_incomplete = true;
                let is_other = |one: &Value| one["type"].as_str().unwrap_or(UNTYPED) != kind;
                self.planned.retain(is_other);
                self.notes.push(format!(
                    "no {kind} is planned: Nova's lists lack {unknown} of these, and have {instances} instances. \
                     They may be of one project, cut off, or empty: list all, as with --all-projects --limit -1"
                ));
            }
        }
        let down = nova.servers.as_ref().map_or(0, |list| list.down);
        if down > 0 {
            self.is_incomplete = true;
            self.notes.push(format!(
                "a cell is down: {down} servers have the status UNKNOWN. Orphans on hosts that no server of the list \
                 names may belong to it, and are not planned"
            ));
        }
    }

    fn find(&mut self, consumer: &Value, age: u64, finding: &str, why: &str) {
        let (mut sum, mut item) = (Amounts::new(), consumer.clone());
        add_held(&mut sum, consumer);
        let names = |key: &str| -> BTreeSet<&str> {
            let held = list(&consumer["allocations"]).iter();
            held.map(|one| text(&one[key], "name")).collect()
        };
        (item["finding"], item["why"]) = (json!(finding), json!(why));
        (item["age"], item["resources"]) = (json!(span(age)), json!(sum));
        (item["providers"], item["roots"]) = (json!(names("provider")), json!(names("root")));
        self.findings.push(item);
    }

    /// Nova does not know it. It is planned unless it may be of a cell that is down.
    fn orphan(&mut self, consumer: &Value, age: u64, nova: &Nova) {
        let why = match consumer["type"].is_null() {
            true => {
                "Nova does not know it; it has no type: it may be another service's, such as Zun's"
            }
            false => "Nova does not know it",
        };
        self.find(consumer, age, "orphan", why);
        let is_up = nova.servers.as_ref().is_some_and(|servers| {
            let is_named = |root| servers.hosts.contains(text(root, "name"));
            servers.down == 0 || roots(consumer).all(is_named)
        });
        if is_up && roots(consumer).next().is_some() {
            self.planned.push(planned(consumer, why));
        }
    }

    fn over_capacity(&mut self, placement: &Placement) {
        for tree in &placement.crowded {
            let providers = list(&tree["providers"]);
            for one in providers {
                for (class, inventory) in pairs(&one["inventories"]) {
                    let (used, capacity) = (&inventory["used"], &inventory["capacity"]);
                    if used.as_u64() > capacity.as_u64() {
                        let why = format!("{used} of {capacity} are used");
                        self.findings.push(json!({
                            "finding": "over_capacity", "providers": [one["name"]], "roots": [providers[0]["name"]],
                            "resources": { class: used }, "why": why,
                        }));
                    }
                }
            }
        }
    }
}

/// For how long a consumer has been as it is, in seconds; 0 if that is not known.
fn age(consumer: &Value, now: OffsetDateTime) -> u64 {
    let at = OffsetDateTime::parse(text(consumer, "updated_at"), &Rfc3339);
    at.map_or(0, |at| (now - at).whole_seconds().try_into().unwrap_or(0))
}

fn roots(consumer: &Value) -> impl Iterator<Item = &Value> {
    let held = list(&consumer["allocations"]).iter();
    held.map(|one| &one["root"])
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

fn uuid(provider: &Value) -> String {
    text(provider, "uuid").to_owned()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::nova::List;

    const NOW: &str = "2026-11-26T20:00:00Z";

    /// A consumer that holds a processor of each of these hosts.
    fn consumer(id: u128, kind: Value, at: &str, hosts: &[&str]) -> Value {
        let host = |name: &&str| json!({"uuid": Uuid::from_u128(name.len() as u128), "name": name});
        let held =
            |name| json!({"provider": host(name), "root": host(name), "resources": {"VCPU": 1}});
        json!({
            "uuid": Uuid::from_u128(id), "type": kind, "project_id": "p", "user_id": "u", "generation": 3,
            "updated_at": at, "trees": hosts.len(), "allocations": hosts.iter().map(held).collect::<Vec<_>>(),
        })
    }

    fn instance(id: u128, hosts: &[&str]) -> Value {
        consumer(id, json!("INSTANCE"), "2026-11-25T20:00:00Z", hosts)
    }

    fn list_of(ids: &[u128], hosts: &[&str]) -> List {
        List {
            ids: ids.iter().copied().map(Uuid::from_u128).collect(),
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            ..List::default()
        }
    }

    fn judged(consumers: Vec<Value>, nova: &Nova) -> Audit {
        let placement = Placement {
            consumers,
            ..Placement::default()
        };
        let mut audit = Audit::default();
        let now = OffsetDateTime::parse(NOW, &Rfc3339).unwrap();
        audit.judge(&placement, nova, (3600, 86_400), now);
        audit
    }

    fn found(audit: &Audit) -> Vec<(&str, &str)> {
        let findings = audit.findings.iter();
        let last = |id| &text(id, "uuid")[35..];
        findings
            .map(|one| (text(one, "finding"), last(one)))
            .collect()
    }

    #[test]
    fn consumers_without_a_type_are_what_the_list_is_that_has_them() {
        let untyped = |id, hosts: &[&str]| consumer(id, Value::Null, "2026-11-25T19:00:00Z", hosts);
        let all = || {
            vec![
                untyped(1, &["a", "bb"]),
                untyped(2, &["bb"]),
                untyped(3, &["a"]),
                consumer(4, Value::Null, "2026-11-26T19:30:00Z", &["a"]),
                untyped(5, &["a", "ccc"]),
            ]
        };
        let lists = |migrations: Option<&[u128]>| Nova {
            servers: Some(list_of(&[1, 5], &["a"])),
            migrations: migrations.map(|ids| list_of(ids, &[])),
        };
        let audit = judged(all(), &lists(Some(&[2])));
        // The migration is one of both instances' project, and holds a host of the first.
        let expected = [("old_migration", "2"), ("orphan", "3"), ("evacuated", "5")];
        assert_eq!(found(&audit), expected);
        assert_eq!(audit.planned.len(), 1);
        assert_eq!(audit.planned[0]["type"], Value::Null);
        let reason = audit.planned[0]["reason"].as_str().unwrap();
        assert!(reason.contains("no type"), "{reason}");

        let by_servers = judged(all(), &lists(None));
        assert_eq!(found(&by_servers), [("evacuated", "1"), ("evacuated", "5")]);
        let [note] = &by_servers.notes[..] else {
            panic!("{:?}", by_servers.notes);
        };
        assert!(note.contains("3 without a type") && note.contains("--migrations-command"));

        let without_migrations = judged(all(), &lists(Some(&[])));
        assert_eq!(without_migrations.planned.len(), 2);
        assert!(!without_migrations.is_incomplete);
        let without_servers = Nova {
            servers: Some(list_of(&[], &["a"])),
            ..lists(Some(&[2]))
        };
        let audit = judged(all(), &without_servers);
        assert!(found(&audit).contains(&("orphan", "3")));
        assert!(audit.is_incomplete && audit.planned.is_empty());
    }

    #[test]
    fn an_instance_on_two_hosts_without_a_migration_was_evacuated() {
        let migration = consumer(2, json!("MIGRATION"), NOW, &["a"]);
        let moving = vec![instance(1, &["a", "bb"]), migration];
        assert_eq!(found(&judged(moving, &Nova::default())), []);
        let migration = consumer(2, json!("MIGRATION"), NOW, &["ccc"]);
        let others = vec![instance(1, &["a", "bb"]), instance(3, &["a"]), migration];
        let audit = judged(others, &Nova::default());
        assert_eq!(found(&audit), [("evacuated", "1")]);
        let finding = &audit.findings[0];
        assert_eq!(
            (&finding["age"], &finding["roots"]),
            (&json!("1 d 0 h"), &json!(["a", "bb"]))
        );
        assert_eq!(finding["resources"], json!({"VCPU": 2}));
    }

    #[test]
    fn old_migrations_empty_consumers_and_those_of_disabled_hosts_are_found() {
        let old = consumer(1, json!("MIGRATION"), "2026-11-25T19:59:59Z", &["a"]);
        let placement = Placement {
            consumers: vec![old, instance(2, &[])],
            disabled: HashSet::from([Uuid::from_u128(1).to_string()]),
            crowded: vec![json!({"providers": [{"name": "a", "inventories": {
                "VCPU": {"used": 9, "capacity": 8}, "DISK_GB": {"used": 8, "capacity": 8}}}]})],
        };
        let mut audit = Audit::default();
        let now = OffsetDateTime::parse(NOW, &Rfc3339).unwrap();
        audit.judge(&placement, &Nova::default(), (0, 86_400), now);
        let over = audit.findings.pop().unwrap();
        assert_eq!(
            (&over["finding"], &over["why"]),
            (&json!("over_capacity"), &json!("9 of 8 are used"))
        );
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
    fn only_old_consumers_of_nova_s_types_are_orphans() {
        let young = consumer(2, json!("INSTANCE"), "2026-11-26T19:30:00Z", &["a"]);
        let other = consumer(4, json!("BLAZAR"), "2026-11-25T20:00:00Z", &["a"]);
        let unknown = consumer(5, Value::Null, "2026-11-25T20:00:00Z", &["a"]);
        let all = vec![
            instance(1, &["a"]),
            young,
            instance(3, &["a"]),
            other,
            unknown,
        ];
        let servers = Some(list_of(&[1], &[]));
        let audit = judged(
            all,
            &Nova {
                servers,
                migrations: None,
            },
        );
        assert_eq!(found(&audit), [("orphan", "3")]);
        assert_eq!(audit.planned.len(), 1);
        assert_eq!(audit.notes.len(), 2, "{:?}", audit.notes);
        assert!(!audit.is_incomplete);
    }

    #[test]
    fn a_cell_that_is_down_keeps_what_may_be_its_own() {
        let all = vec![
            instance(1, &["a"]),
            instance(2, &["a"]),
            instance(3, &["bb"]),
            instance(4, &["bb"]),
        ];
        let mut servers = list_of(&[1, 3], &["a"]);
        servers.down = 1;
        let audit = judged(
            all,
            &Nova {
                servers: Some(servers),
                migrations: None,
            },
        );
        assert_eq!(found(&audit), [("orphan", "2"), ("orphan", "4")]);
        assert_eq!(audit.planned.len(), 1);
        assert_eq!(audit.planned[0]["consumer"], json!(Uuid::from_u128(2)));
        assert!(audit.is_incomplete && audit.notes[0].contains("a cell is down"));
    }

    #[test]
    fn by_a_list_that_lacks_most_or_may_be_cut_off_nothing_is_planned() {
        let all = || {
            vec![
                instance(1, &["a"]),
                instance(2, &["a"]),
                instance(3, &["a"]),
            ]
        };
        for (known, is_cut) in [(&[1][..], false), (&[1, 2], true)] {
            let list = list_of(known, &[]);
            let servers = Some(List { is_cut, ..list });
            let migrations = None;
            let audit = judged(
                all(),
                &Nova {
                    servers,
                    migrations,
                },
            );
            assert!(audit.is_incomplete && audit.planned.is_empty());
        }
    }
}
