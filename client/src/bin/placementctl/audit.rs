//! `placementctl consumers audit`: consumers that were forgotten, and a plan to release those that
//! Nova does not know and the hosts that instances hold and are not on.

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
use uuid::Uuid;

use crate::content::{Content, EXTENSIONS};
use crate::files::create;
use crate::held::{Amounts, add_held};
use crate::moment::{seconds, span};
use crate::nova::{INSTANCE, Lists, MIGRATION, Nova, UNTYPED};
use crate::release::{FOUND, PRIVATE, planned};
use crate::render::{Rows, list, pairs, print, warn};

/// What Nova gives the root of a host whose compute service is disabled.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";
/// What a provider has that others use, such as a shared storage: it is no host.
const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";
const SEVERAL: &str = "it holds several hosts, without a migration. Nova's lists of servers and migrations tell whether it was \
                       evacuated, or claimed twice";
const EVACUATED: &str =
    "it was evacuated, and the compute service of its first host has not been back";
const ELSEWHERE: &str = "it holds several hosts without a migration, and Nova's list does not say which of them it is on";
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
    /// Consumers that were changed later than this are not planned, and are no orphans.
    #[arg(long, value_name = "AGE", value_parser = seconds, default_value = "1h")]
    older_than: u64,
    /// Migrations that have held something for longer than this are reported.
    #[arg(long, value_name = "AGE", value_parser = seconds, default_value = "24h")]
    migrations_older_than: u64,
    /// The file, which must not exist, that gets what to release: a line for each orphan, and for
    /// each instance that holds a host that it is not on.
    #[arg(long, value_name = "FILE", requires = "Lists")]
    plan: Option<PathBuf>,
}

pub(crate) async fn run(content: &Content, which: Which) -> anyhow::Result<ExitCode> {
    // An instance is in Nova before it is in Placement: what is here and not there later is an
    // orphan.
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
        warn(note);
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
    /// The providers that are no hosts, as others share them.
    shared: HashSet<String>,
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
        let shared = content.providers(json!({ "required": SHARES })).await?;
        // A provider with room for one more is not used above its capacity, and most have: the
        // others are looked at.
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
            shared: shared.iter().map(uuid).collect(),
            crowded: trees,
            consumers,
        })
    }

    /// The root of the host that an allocation is on; `None` if it is of a shared provider.
    fn host<'a>(&self, allocation: &'a Value) -> Option<&'a Value> {
        let [provider, root] = ["provider", "root"].map(|key| &allocation[key]);
        let is_shared = |one| self.shared.contains(text(one, "uuid"));
        (!is_shared(provider) && !is_shared(root)).then_some(root)
    }

    /// The hosts that a consumer holds something of: their UUIDs, and the names of their roots.
    fn hosts<'a>(&self, consumer: &'a Value) -> BTreeMap<&'a str, &'a str> {
        let held = list(&consumer["allocations"]).iter();
        let hosts = held.filter_map(|allocation| self.host(allocation));
        let named = hosts.map(|host| (text(host, "uuid"), text(host, "name")));
        named.collect()
    }

    /// The hosts that migrations hold something of.
    fn migrating<'a>(&'a self, nova: &Nova) -> Migrating<'a> {
        let mut migrating = Migrating::new();
        let all = self.consumers.iter();
        for migration in all.filter(|one| nova.judge(one).0 == MIGRATION) {
            let list = nova.migrations.as_ref();
            let server = list.and_then(|list| list.server_of(id(migration)?));
            for host in self.hosts(migration).into_keys() {
                let of_host = migrating.entry(host).or_default();
                of_host.push((server, text(migration, "project_id")));
            }
        }
        migrating
    }
}

/// By the UUID of a host the server of each migration that holds something of it, and its project,
/// which is all that is known of a migration that Nova's list lacks.
type Migrating<'a> = BTreeMap<&'a str, Vec<(Option<Uuid>, &'a str)>>;

/// What was found.
#[derive(Default)]
struct Audit {
    findings: Vec<Value>,
    planned: Vec<Value>,
    /// What to say of the whole.
    notes: Vec<String>,
    is_incomplete: bool,
}

/// How many consumers of a kind Nova has, and how many not; those that its lists say nothing of
/// count as neither.
type Tallies<'a> = BTreeMap<&'a str, [usize; 3]>;

impl Audit {
    /// `ages`: from when on consumers may be orphans, and migrations are old, in seconds.
    fn judge(&mut self, placement: &Placement, nova: &Nova, ages: (u64, u64), now: OffsetDateTime) {
        let migrating = placement.migrating(nova);
        let mut tallies = Tallies::new();
        for consumer in &placement.consumers {
            let ((kind, is_known), age) = (nova.judge(consumer), age(consumer, now));
            if list(&consumer["allocations"]).is_empty() {
                self.find(consumer, age, "empty", "it holds nothing");
            }
            if [INSTANCE, UNTYPED].contains(&kind) && is_known != Some(false) {
                self.several_hosts(placement, consumer, (age, ages.0), nova, &migrating);
            }
            let mut find = |finding, why| self.find(consumer, age, finding, why);
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
                    self.orphan(placement, consumer, age, nova);
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
            // A list of one project, or a page of it, makes orphans of all others. Few migrations
            // go on at a time.
            let is_doubtful = kind != MIGRATION && *unknown > instances;
            if *unknown > 0 && (is_doubtful || nova.may_be_cut(kind)) {
                self.is_incomplete = true;
                let is_other = |one: &Value| one["type"].as_str().unwrap_or(UNTYPED) != kind;
                self.planned.retain(is_other);
                self.notes.push(format!(
                    "no {kind} is planned: Nova's lists lack {unknown} of these, and have {instances} instances. \
                     They may be of one project, cut off, or empty: list the servers of --all-projects, without --limit"
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

    /// Looks at an instance that may hold several hosts. Nova gives what a server holds of its
    /// former host to the migration, so only an evacuated one holds two: until the compute service
    /// of the first host is back. Another one was claimed twice, as the answer to the first claim
    /// was lost; that is planned if Nova says which host it is on.
    fn several_hosts(
        &mut self,
        placement: &Placement,
        consumer: &Value,
        (age, age_min): (u64, u64),
        nova: &Nova,
        migrating: &Migrating<'_>,
    ) {
        let (hosts, server) = (placement.hosts(consumer), id(consumer));
        let project = text(consumer, "project_id");
        let is_its_own = |(of, holder): &(Option<Uuid>, &str)| match of {
            Some(of) => Some(*of) == server,
            None => *holder == project,
        };
        let mut migrations = hosts
            .keys()
            .filter_map(|host| migrating.get(host))
            .flatten();
        if hosts.len() < 2 || migrations.any(is_its_own) {
            return;
        }
        let lists = nova.servers.as_ref().zip(nova.migrations.as_ref());
        let about = lists
            .zip(server)
            .and_then(|((servers, migrations), server)| {
                Some((servers.hosts_of(server), migrations.under_way(server)?))
            });
        // A server in a cell that is down has no host.
        let Some((own, under_way)) = about.filter(|(own, _)| !own.is_empty()) else {
            return self.find(consumer, age, "evacuated", SEVERAL);
        };
        let is_held = |name: &String| hosts.values().any(|held| *held == name);
        let mut here = under_way.iter().filter(|one| one.hosts.iter().any(is_held));
        if let Some(migration) = here.next() {
            if migration.is_evacuation {
                self.find(consumer, age, "evacuated", EVACUATED);
            }
            return;
        }
        let mut live = hosts
            .iter()
            .filter(|(_, name)| own.iter().any(|own| own == **name));
        let (Some((live, name)), None) = (live.next(), live.next()) else {
            return self.find(consumer, age, "doubled", ELSEWHERE);
        };
        let why = format!("it is on {name}, and holds several hosts without a migration");
        self.find(consumer, age, "doubled", &why);
        if under_way.is_empty() && age >= age_min {
            let is_kept = |one: &Value| {
                let host = placement.host(one);
                host.is_none_or(|host| text(host, "uuid") == *live)
            };
            self.planned.push(planned(consumer, &why, is_kept));
        }
    }

    /// Nova does not know it. It is planned unless it may be of a cell that is down.
    fn orphan(&mut self, placement: &Placement, consumer: &Value, age: u64, nova: &Nova) {
        let why = match consumer["type"].is_null() {
            true => {
                "Nova does not know it; it has no type: it may be another service's, such as Zun's"
            }
            false => "Nova does not know it",
        };
        self.find(consumer, age, "orphan", why);
        let hosts = placement.hosts(consumer);
        let is_up = nova.servers.as_ref().is_some_and(|servers| {
            let are_named = !hosts.is_empty() && hosts.values().all(|name| servers.names(name));
            servers.down == 0 || are_named
        });
        if is_up && !list(&consumer["allocations"]).is_empty() {
            self.planned.push(planned(consumer, why, |_| false));
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

fn id(consumer: &Value) -> Option<Uuid> {
    text(consumer, "uuid").parse().ok()
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;
    use crate::nova::{Migrations, Servers};

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

    /// A list of servers that are on this host, and of some in a cell that is down.
    fn servers(ids: &[u128], host: &str, down: &[u128]) -> Option<Servers> {
        let up = ids
            .iter()
            .map(|id| json!({"ID": Uuid::from_u128(*id), "Host": host}));
        let down = down
            .iter()
            .map(|id| json!({"ID": Uuid::from_u128(*id), "Status": "UNKNOWN"}));
        let all: Vec<_> = up.chain(down).collect();
        Some(Servers::parse(json!(all).to_string().as_bytes()).unwrap())
    }

    /// A migration of a server, as a list of Nova has it.
    fn moved(id: u128, server: u128, kind: &str, status: &str, [from, to]: [&str; 2]) -> Value {
        json!({"UUID": Uuid::from_u128(id), "Server UUID": Uuid::from_u128(server), "Type": kind, "Status": status,
               "Source Node": from, "Dest Node": to})
    }

    fn migrations(all: &[Value]) -> Option<Migrations> {
        Some(Migrations::parse(json!(all).to_string().as_bytes()).unwrap())
    }

    fn by(servers: Option<Servers>, migrations: Option<Migrations>) -> Nova {
        Nova {
            servers,
            migrations,
        }
    }

    fn judged(consumers: Vec<Value>, nova: &Nova) -> Audit {
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
        let known = || servers(&[1, 5], "a", &[]);
        let moving = || migrations(&[moved(2, 1, "resize", "finished", ["bb", "a"])]);
        let audit = judged(all(), &by(known(), moving()));
        let expected = [("old_migration", "2"), ("orphan", "3"), ("doubled", "5")];
        assert_eq!(found(&audit), expected);
        assert_eq!(audit.planned.len(), 2);
        assert_eq!(audit.planned[0]["type"], Value::Null);
        let reason = audit.planned[0]["reason"].as_str().unwrap();
        assert!(reason.contains("no type"), "{reason}");

        let by_servers = judged(all(), &by(known(), None));
        assert_eq!(found(&by_servers), [("evacuated", "1"), ("evacuated", "5")]);
        let [note] = &by_servers.notes[..] else {
            panic!("{:?}", by_servers.notes);
        };
        assert!(note.contains("3 without a type") && note.contains("--migrations-command"));

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

    /// On hosts 1 and 2, and on a storage that all share.
    fn on_shared_storage(id: u128, hosts: &[&str]) -> Value {
        instance(id, &[hosts, &["storage"]].concat())
    }

    fn judged_on_shared_storage(consumers: Vec<Value>, nova: &Nova) -> Audit {
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
    fn a_migration_of_another_server_on_the_same_storage_hides_nothing() {
        let consumers = || {
            let mut migration = on_shared_storage(3, &["ccc"]);
            migration["type"] = json!("MIGRATION");
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
    fn of_a_doubled_instance_only_what_is_elsewhere_is_planned() {
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
            ["a", "bb", "storage"].map(|name| Uuid::from_u128(name.len() as u128).to_string());
        let providers = |key: &str| pairs(&line[key]).map(|(id, _)| id.clone()).collect();
        let (all, kept): (Vec<String>, Vec<String>) =
            (providers("allocations"), providers("keeps"));
        assert_eq!(all, [first, second.clone(), storage.clone()]);
        assert_eq!(kept, [second, storage]);

        let hold = |status| moved(7, 1, "live-migration", status, ["a", "ccc"]);
        // Nova names a host that Placement calls otherwise, or a migration is under way, here or
        // elsewhere.
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
        young[0]["updated_at"] = json!("2026-11-26T19:30:00Z");
        let nova = by(servers(&[1], "bb", &[]), migrations(&[]));
        let audit = judged_on_shared_storage(young, &nova);
        assert_eq!(found(&audit), [("doubled", "1")]);
        assert!(audit.planned.is_empty());
    }

    #[test]
    fn shared_storage_is_no_host_of_a_cell_that_is_down() {
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
        assert_eq!(audit.planned[0]["consumer"], json!(Uuid::from_u128(2)));
    }

    #[test]
    fn old_migrations_empty_consumers_and_those_of_disabled_hosts_are_found() {
        let old = consumer(1, json!("MIGRATION"), "2026-11-25T19:59:59Z", &["a"]);
        let placement = Placement {
            consumers: vec![old, instance(2, &[])],
            shared: HashSet::new(),
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
        let audit = judged(all, &by(servers(&[1], "a", &[]), None));
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
        let audit = judged(all, &by(servers(&[1], "a", &[3]), None));
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
        let page: Vec<u128> = (1..=2).chain(1001..1999).collect();
        for known in [&[1][..], &page] {
            let audit = judged(all(), &by(servers(known, "a", &[]), None));
            assert!(audit.is_incomplete && audit.planned.is_empty());
        }
    }
}
