//! `placementctl consumers audit`: finds leaked allocations and plans their release. It plans the
//! release of consumers that Nova does not know, and of allocations of an instance on hosts where
//! the instance does not run.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use http::StatusCode;
use placement_wire::consumers::{Consumer, ConsumerAllocation};
use placement_wire::trees::{NamedProvider, Tree};
use placement_wire::upstream::Provider;
use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::content::{Content, EXTENSIONS};
use crate::held::{Amounts, add_held};
use crate::moment::{seconds, span};
use crate::nova::{HOLD, INSTANCE, Lists, MIGRATION, Nova, UNTYPED};
use crate::plan;
use crate::release::Release;
use crate::render::{Rows, print, warn};

/// Trait that Nova sets on the root provider of a host whose compute service is disabled.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";
/// Trait of a provider that shares its resources, such as shared storage. Such a provider is not a
/// host.
const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";
const SEVERAL: &str = "it has allocations on several hosts and no migration. Pass Nova's lists of servers and migrations to \
                       distinguish an evacuation from a double claim";
const EVACUATED: &str =
    "it was evacuated, and the compute service of its former host has not restarted since";
const ELSEWHERE: &str = "it has allocations on several hosts and no migration, and the server's host in Nova's list of \
                         servers matches none of these hosts, or more than one";

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 = nothing found; 3 = findings; 2 = Nova's lists are incomplete, or no node answers; \
                  1 = other error."
)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    lists: Lists,
    /// Minimum age of an orphan, which is a consumer that Nova does not know. Consumers that
    /// changed more recently are neither reported as orphans nor planned for release.
    #[arg(long, value_name = "AGE", value_parser = seconds, default_value = "1h")]
    older_than: u64,
    /// Report migrations that have held allocations for longer than this.
    #[arg(long, value_name = "AGE", value_parser = seconds, default_value = "24h")]
    migrations_older_than: u64,
    /// Write a plan for `consumers release` to this new file: one line for each orphan and for each
    /// instance with allocations on a host where it does not run.
    #[arg(long, value_name = "FILE", requires = "Lists")]
    plan: Option<PathBuf>,
}

pub(crate) async fn run(content: &Content, args: AuditArgs) -> anyhow::Result<ExitCode> {
    // Nova records an instance before it claims resources in Placement, so a consumer that is read
    // here and missing from the later list of Nova is an orphan.
    let placement = Placement::read(content).await?;
    let nova = args.lists.read(SystemTime::now(), args.older_than)?;
    let mut audit = Audit::default();
    let ages = (args.older_than, args.migrations_older_than);
    audit.judge(&placement, &nova, ages, OffsetDateTime::now_utc());
    if let Some(file) = &args.plan {
        plan::write(file, &audit.planned)?;
    }
    for note in &audit.notes {
        warn(note);
    }
    let code = plan::exit_code(audit.is_incomplete, !audit.findings.is_empty());
    print(&content.source.output.rows(listed(audit.findings))?)?;
    Ok(code)
}

/// The data read from Placement.
#[derive(Default)]
struct Placement {
    consumers: Vec<Consumer<'static>>,
    /// UUIDs of the root providers of disabled hosts.
    disabled: HashSet<String>,
    /// UUIDs of sharing providers, which are not hosts.
    shared: HashSet<String>,
    /// Trees that may contain a provider used above its capacity.
    crowded: Vec<Tree<'static>>,
}

impl Placement {
    async fn read(content: &Content) -> anyhow::Result<Self> {
        let consumers = content.consumers(&Value::Null).await?;
        // Providers with allocations and their roots, by class.
        let mut held: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for one in consumers.iter().flat_map(|one| &one.allocations) {
            for class in one.resources.keys() {
                let providers = held.entry(class).or_default();
                providers.insert(&one.provider.uuid, &one.root.uuid);
            }
        }
        let disabled = content.providers(json!({ "required": DISABLED })).await?;
        let shared = content.providers(json!({ "required": SHARES })).await?;
        // A provider with room for one more unit is not over capacity. Most have room; only the
        // others are inspected.
        let mut crowded = BTreeSet::new();
        for (class, mut holding) in held {
            let filters = json!({ "resources": format!("{class}:1") });
            for roomy in content.providers(filters).await? {
                holding.remove(&*roomy.uuid);
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
            disabled: uuids(disabled),
            shared: uuids(shared),
            crowded: trees,
            consumers,
        })
    }

    /// Root provider of the host of an allocation; `None` for a sharing provider.
    fn host<'a>(&self, allocation: &'a ConsumerAllocation<'a>) -> Option<&'a NamedProvider<'a>> {
        let ConsumerAllocation { provider, root, .. } = allocation;
        let is_shared = |one: &NamedProvider<'_>| self.shared.contains(&*one.uuid);
        (!is_shared(provider) && !is_shared(root)).then_some(root)
    }

    /// Hosts on which a consumer has allocations: UUID and name of each root provider.
    fn hosts<'a>(&self, consumer: &'a Consumer<'a>) -> BTreeMap<&'a str, &'a str> {
        let held = consumer.allocations.iter();
        let hosts = held.filter_map(|allocation| self.host(allocation));
        hosts.map(|host| (&*host.uuid, &*host.name)).collect()
    }

    /// Hosts on which migrations have allocations.
    fn migrating<'a>(&'a self, nova: &Nova) -> Migrating<'a> {
        let mut migrating = Migrating::new();
        let all = self.consumers.iter();
        for migration in all.filter(|one| nova.judge(one).0 == MIGRATION) {
            let list = nova.migrations.as_ref();
            let server = list.and_then(|list| list.server_of(id(migration)?));
            for host in self.hosts(migration).into_keys() {
                let of_host = migrating.entry(host).or_default();
                of_host.push((server, &*migration.project_id));
            }
        }
        migrating
    }
}

/// For each host, the server and the project of each migration that has allocations on it. The
/// server is `None` if Nova's list lacks the migration.
type Migrating<'a> = BTreeMap<&'a str, Vec<(Option<Uuid>, &'a str)>>;

/// Result of an audit.
#[derive(Default)]
struct Audit {
    findings: Vec<AuditFinding>,
    planned: Vec<Release>,
    /// Notes about the audit as a whole, printed on standard error.
    notes: Vec<String>,
    is_incomplete: bool,
}

/// Numbers of consumers by kind: known to Nova, unknown to Nova, and not covered by its lists.
type Tallies<'a> = BTreeMap<&'a str, [usize; 3]>;

impl Audit {
    /// `ages`, in seconds: minimum age of an orphan, and of an old migration.
    fn judge(&mut self, placement: &Placement, nova: &Nova, ages: (u64, u64), now: OffsetDateTime) {
        let migrating = placement.migrating(nova);
        let mut tallies = Tallies::new();
        for consumer in &placement.consumers {
            let ((kind, is_known), age) = (nova.judge(consumer), age(consumer, now));
            if consumer.allocations.is_empty() {
                self.find(consumer, age, "empty", "it has no allocations");
            }
            if [INSTANCE, UNTYPED].contains(&kind) && is_known != Some(false) {
                self.several_hosts(placement, consumer, (age, ages.0), nova, &migrating);
            }
            let mut find = |finding, why| self.find(consumer, age, finding, why);
            if kind == MIGRATION && age > ages.1 {
                find("old_migration", "it is older than --migrations-older-than");
            }
            let mut roots = consumer.allocations.iter().map(|one| &one.root);
            if roots.any(|root| placement.disabled.contains(&*root.uuid)) {
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

    /// Removes the planned releases of consumer types for which Nova's lists may be incomplete.
    /// Adds a note for each such type, for each type with skipped consumers, and for cells that are
    /// down.
    fn weigh(&mut self, tallies: &Tallies<'_>, nova: &Nova) {
        let instances = tallies.get(INSTANCE).map_or(0, |[known, ..]| *known);
        for (&kind, [_, unknown, others]) in tallies {
            if *others > 0 && nova.servers.is_some() {
                self.notes.push(match kind {
                    UNTYPED => nova.about_untyped(*others),
                    HOLD => format!("skipped {others} holds: `placementctl holds list` shows them"),
                    _ => format!(
                        "skipped {others} consumers of type {kind}, which Nova's lists do not cover"
                    ),
                });
            }
            if let Some(doubt) = nova.doubt(kind, *unknown, instances) {
                self.is_incomplete = true;
                let is_other = |one: &Release| one.of.r#type.as_deref().unwrap_or(UNTYPED) != kind;
                self.planned.retain(is_other);
                let note = format!("no {kind} is planned for release: {doubt}");
                self.notes.push(note);
            }
        }
        if let Some(outage) = nova.outage() {
            self.is_incomplete = true;
            self.notes.push(format!(
                "{outage}. Orphans on hosts without a listed server may belong to that cell and are not planned for release"
            ));
        }
    }

    fn find(&mut self, consumer: &Consumer<'static>, age: u64, finding: &'static str, why: &str) {
        let mut resources = Amounts::new();
        add_held(&mut resources, &consumer.allocations);
        let held = || consumer.allocations.iter();
        self.findings.push(AuditFinding {
            consumer: Some(consumer.clone()),
            finding,
            why: why.to_owned(),
            age: Some(span(age)),
            resources,
            providers: held().map(|one| one.provider.name.to_string()).collect(),
            roots: held().map(|one| one.root.name.to_string()).collect(),
        });
    }

    /// Inspects an instance with allocations on several hosts. A regular migration moves the
    /// allocations on the former host to the migration, so only two cases remain: an evacuated
    /// instance, until the compute service of its former host restarts, and an instance that was
    /// claimed twice because the response to the first claim was lost. The second case is planned
    /// for release if Nova shows the host of the instance.
    fn several_hosts(
        &mut self,
        placement: &Placement,
        consumer: &Consumer<'static>,
        (age, age_min): (u64, u64),
        nova: &Nova,
        migrating: &Migrating<'_>,
    ) {
        let (hosts, server) = (placement.hosts(consumer), id(consumer));
        let project = &*consumer.project_id;
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
        // A server in a cell that is down has no host in the list.
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
        let why = format!(
            "it runs on {name} and also has allocations on other hosts, without a migration"
        );
        self.find(consumer, age, "doubled", &why);
        if under_way.is_empty() && age >= age_min {
            let is_kept = |one: &ConsumerAllocation<'_>| {
                let host = placement.host(one);
                host.is_none_or(|host| host.uuid == *live)
            };
            self.planned
                .extend(Release::of_listed(consumer, &why, is_kept));
        }
    }

    /// Reports a consumer that Nova does not know. Plans its release unless it may belong to a cell
    /// that is down.
    fn orphan(
        &mut self,
        placement: &Placement,
        consumer: &Consumer<'static>,
        age: u64,
        nova: &Nova,
    ) {
        let why = match consumer.r#type {
            None => {
                "Nova does not know it; it has no type and may belong to another service, such as Zun"
            }
            Some(_) => "Nova does not know it",
        };
        self.find(consumer, age, "orphan", why);
        let hosts = placement.hosts(consumer);
        let is_up = nova.servers.as_ref().is_some_and(|servers| {
            let are_named = !hosts.is_empty() && hosts.values().all(|name| servers.names(name));
            servers.down == 0 || are_named
        });
        if is_up && !consumer.allocations.is_empty() {
            self.planned
                .extend(Release::of_listed(consumer, why, |_| false));
        }
    }

    fn over_capacity(&mut self, placement: &Placement) {
        for tree in &placement.crowded {
            let root = tree.providers.first().map(|root| root.name.to_string());
            for one in &tree.providers {
                for (class, inventory) in &one.inventories {
                    let (used, capacity) = (inventory.used, inventory.capacity);
                    if capacity.is_exceeded_by(used) {
                        self.findings.push(AuditFinding {
                            consumer: None,
                            finding: "over_capacity",
                            why: format!("{used} of {capacity} used"),
                            age: None,
                            resources: [(class.to_string(), used)].into(),
                            providers: [one.name.to_string()].into(),
                            roots: root.clone().into_iter().collect(),
                        });
                    }
                }
            }
        }
    }
}

/// A finding of the audit: a consumer, or a provider used above its capacity.
#[derive(Serialize)]
struct AuditFinding {
    #[serde(flatten)]
    consumer: Option<Consumer<'static>>,
    finding: &'static str,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<String>,
    resources: Amounts,
    /// Names of the providers with these allocations.
    providers: BTreeSet<String>,
    /// Names of their root providers.
    roots: BTreeSet<String>,
}

impl AuditFinding {
    fn map_consumer<T>(&self, map: impl FnOnce(&Consumer<'static>) -> T) -> Option<T> {
        self.consumer.as_ref().map(map)
    }
}

/// A row for each finding.
fn listed(findings: Vec<AuditFinding>) -> Rows<AuditFinding> {
    Rows::new(findings)
        .if_none("no findings")
        .column("finding", |row| row.finding)
        .column("consumer", |row| row.map_consumer(|one| one.uuid.clone()))
        .column("type", |row| {
            row.map_consumer(|one| one.r#type.clone()).flatten()
        })
        .column("age", |row| row.age.clone())
        .column("resources", |row| row.resources.clone())
        .column("providers", |row| row.providers.clone())
        .column("roots", |row| row.roots.clone())
        .column("why", |row| row.why.clone())
        .wide("project", |row| {
            row.map_consumer(|one| one.project_id.clone())
        })
        .wide("user", |row| row.map_consumer(|one| one.user_id.clone()))
        .wide("generation", |row| row.map_consumer(|one| one.generation))
        .wide("updated_at", |row| {
            row.map_consumer(|one| one.updated_at.clone()).flatten()
        })
}

/// Seconds since the last change of a consumer; 0 if unknown.
fn age(consumer: &Consumer<'_>, now: OffsetDateTime) -> u64 {
    let at = OffsetDateTime::parse(consumer.updated_at.as_deref().unwrap_or_default(), &Rfc3339);
    at.map_or(0, |at| (now - at).whole_seconds().try_into().unwrap_or(0))
}

fn uuids(providers: Vec<Provider>) -> HashSet<String> {
    providers.into_iter().map(|one| one.uuid).collect()
}

fn id(consumer: &Consumer<'_>) -> Option<Uuid> {
    consumer.uuid.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests;
