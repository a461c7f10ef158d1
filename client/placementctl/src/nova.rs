//! Lists of servers and migrations from Nova.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use clap::Args;
use placement_wire::consumers::Consumer;
use serde_json::{Deserializer, Value};
use uuid::Uuid;

use crate::files::read;
use crate::render::list;

pub(crate) const INSTANCE: &str = "INSTANCE";
/// Kind of the consumers of holds, which Nova does not know.
pub(crate) const HOLD: &str = "hold";
pub(crate) const MIGRATION: &str = "MIGRATION";
/// Kind of a consumer that has no type and is in no list.
pub(crate) const UNTYPED: &str = "consumer without a type";
/// Default of Nova's maximum page size (`[api] max_limit`), to which Nova reduces any larger
/// `limit`.
const PAGE: usize = 1000;
/// Keys of the host names of a server, by compute service and by hypervisor, in the API and in CLI
/// tables.
const HOSTS: [&str; 5] = [
    "host",
    "Host",
    "OS-EXT-SRV-ATTR:host",
    "OS-EXT-SRV-ATTR:hypervisor_hostname",
    "hypervisor_hostname",
];
/// The same keys for the source and the destination of a migration.
const ENDS: [&str; 8] = [
    "source_compute",
    "source_node",
    "dest_compute",
    "dest_node",
    "Source Compute",
    "Source Node",
    "Dest Compute",
    "Dest Node",
];
/// Final states of a migration. The state `done` is not final: an evacuation keeps it until its
/// former host has restarted and cleaned up.
const OVER: [&str; 6] = [
    "completed",
    "confirmed",
    "reverted",
    "cancelled",
    "failed",
    "error",
];

/// Options for Nova's lists of servers and migrations.
#[derive(Args)]
pub(crate) struct Lists {
    /// All servers of Nova in JSON: `-` for standard input, or a file. A regular file is refused if
    /// it was written before this command finished reading Placement, so prefer --servers-command.
    #[arg(long, value_name = "FILE", conflicts_with = "servers_command")]
    servers: Option<PathBuf>,
    /// Shell command that lists all servers of Nova in JSON. It runs after this command has read
    /// Placement.
    #[arg(long, value_name = "COMMAND")]
    servers_command: Option<String>,
    /// File with all migrations of Nova in JSON. A list of servers is required as well, as it shows
    /// whether a cell is down: Nova silently omits the migrations of that cell.
    #[arg(long, value_name = "FILE", conflicts_with = "migrations_command")]
    migrations: Option<PathBuf>,
    /// Shell command that lists all migrations of Nova in JSON.
    #[arg(long, value_name = "COMMAND")]
    migrations_command: Option<String>,
}

#[derive(Default)]
pub(crate) struct Nova {
    pub(crate) servers: Option<Servers>,
    pub(crate) migrations: Option<Migrations>,
}

/// Parsed list of servers.
#[derive(Default)]
pub(crate) struct Servers {
    /// Host names of each server.
    hosts_of: HashMap<Uuid, Vec<String>>,
    /// Host names of all servers.
    hosts: HashSet<String>,
    /// Number of servers in a cell that is down.
    pub(crate) down: usize,
    /// Whether the list may be truncated: its length is a multiple of the page size.
    is_cut: bool,
}

/// Parsed list of migrations.
#[derive(Default)]
pub(crate) struct Migrations {
    /// Server of each migration.
    server_of: HashMap<Uuid, Uuid>,
    /// Unfinished migrations of each server.
    under_way: HashMap<Uuid, Vec<Migration>>,
    /// Whether the list may be truncated: its length is a multiple of the page size.
    is_cut: bool,
}

pub(crate) struct Migration {
    pub(crate) is_evacuation: bool,
    /// Host names of source and destination, as far as Nova knows them.
    pub(crate) hosts: Vec<String>,
}

impl Nova {
    /// The kind of a consumer, and whether Nova knows it; `None` if the lists do not cover it. Nova
    /// sets consumer types from microversion 1.38 on; a consumer without a type gets the kind of
    /// the list that contains it.
    pub(crate) fn judge<'a>(&self, consumer: &'a Consumer<'a>) -> (&'a str, Option<bool>) {
        let id: Option<Uuid> = consumer.uuid.parse().ok();
        let servers = self.servers.as_ref().map(|list| &list.hosts_of);
        let migrations = self.migrations.as_ref().map(|list| &list.server_of);
        let server = servers.and_then(|servers| Some(servers.contains_key(&id?)));
        let migration = migrations.and_then(|migrations| Some(migrations.contains_key(&id?)));
        let (kind, is_known) = match consumer.r#type.as_deref() {
            None if server == Some(true) => (INSTANCE, server),
            None if migration == Some(true) => (MIGRATION, migration),
            None => (UNTYPED, server.and(migration)),
            Some(INSTANCE) => (INSTANCE, server),
            Some(MIGRATION) => (MIGRATION, migration),
            Some(other) => (other, None),
        };
        // The consumer of a hold is not a server.
        if consumer.hold.is_some() && is_known != Some(true) {
            return (HOLD, None);
        }
        (kind, is_known)
    }

    /// Why the lists may be incomplete, if they lack `lacking` consumers of a kind and contain
    /// `instances` instances.
    pub(crate) fn doubt(&self, kind: &str, lacking: usize, instances: usize) -> Option<String> {
        // With a list of one project or one page, all other consumers would look like orphans. Few
        // migrations run at a time, so their number proves nothing.
        let is_doubtful = kind != MIGRATION && lacking > instances;
        (lacking > 0 && (is_doubtful || self.may_be_cut(kind))).then(|| {
            format!(
                "Nova's lists lack {lacking} of them and contain {instances} instances, so the lists may be empty, \
                 truncated, or limited to one project. List servers with --all-projects and without --limit"
            )
        })
    }

    /// A note if a cell is down.
    pub(crate) fn outage(&self) -> Option<String> {
        let down = self.servers.as_ref().map_or(0, |list| list.down);
        (down > 0).then(|| format!("a cell is down: {down} servers have the status UNKNOWN"))
    }

    /// A note about consumers without a type that are skipped since the lists do not contain them.
    pub(crate) fn about_untyped(&self, count: usize) -> String {
        let why = match self.migrations {
            None => "are not servers of Nova. They may be migrations: use --migrations-command",
            Some(_) => "Nova's lists do not contain",
        };
        format!("skipped {count} consumers without a type that {why}")
    }

    /// Whether a list that covers this kind may be truncated. An empty list of servers counts as
    /// truncated. An empty list of migrations counts as truncated only if `kind` is migrations,
    /// since some clouds have no migrations.
    fn may_be_cut(&self, kind: &str) -> bool {
        let servers = self.servers.as_ref().filter(|_| kind != MIGRATION);
        let migrations = self.migrations.as_ref().filter(|_| kind != INSTANCE);
        servers.is_some_and(|list| list.is_cut || list.hosts_of.is_empty())
            || migrations
                .is_some_and(|list| list.is_cut || kind == MIGRATION && list.server_of.is_empty())
    }
}

impl Servers {
    /// Whether a server of the list is on this host.
    pub(crate) fn names(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// Host names of a server; empty if its cell is down.
    pub(crate) fn hosts_of(&self, server: Uuid) -> &[String] {
        self.hosts_of.get(&server).map_or(&[], Vec::as_slice)
    }
}

impl Migrations {
    /// Server of a migration.
    pub(crate) fn server_of(&self, migration: Uuid) -> Option<Uuid> {
        self.server_of.get(&migration).copied()
    }

    /// Unfinished migrations of a server; `None` if the list may be truncated.
    pub(crate) fn under_way(&self, server: Uuid) -> Option<&[Migration]> {
        let all = self.under_way.get(&server).map_or(&[][..], Vec::as_slice);
        (!self.is_cut).then_some(all)
    }
}

impl Lists {
    /// Reads the lists. `since`: the time at which Placement had been read. A list from a pipe has
    /// no modification time, so it is accepted only if consumers younger than an hour are skipped
    /// (`older_than`, in seconds).
    pub(crate) fn read(&self, since: SystemTime, older_than: u64) -> anyhow::Result<Nova> {
        ensure!(
            older_than >= 3600 || self.servers.is_none() && self.migrations.is_none(),
            "--older-than below 1h needs --servers-command: the time at which another program began to create a list is \
             unknown"
        );
        let (file, command) = (&self.servers, &self.servers_command);
        let servers = taken(file, command, since, "servers", Servers::parse)?;
        let (file, command) = (&self.migrations, &self.migrations_command);
        let migrations = taken(file, command, since, "migrations", Migrations::parse)?;
        ensure!(
            servers.is_some() || migrations.is_none(),
            "--migrations needs --servers: only the list of servers shows whether a cell is down"
        );
        Ok(Nova {
            servers,
            migrations,
        })
    }
}

fn taken<L>(
    file: &Option<PathBuf>,
    command: &Option<String>,
    since: SystemTime,
    what: &str,
    parse: fn(&[u8]) -> anyhow::Result<L>,
) -> anyhow::Result<Option<L>> {
    let bytes = match (file, command) {
        (Some(file), _) => newer(file, since, what)?,
        (_, Some(command)) => output(command)?,
        _ => return Ok(None),
    };
    let list = parse(&bytes).with_context(|| format!("the list of {what}"))?;
    Ok(Some(list))
}

/// The content of a file. Fails if the file was written before `since`.
fn newer(file: &Path, since: SystemTime, what: &str) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let path = if file == Path::new("-") {
        Path::new("/dev/stdin")
    } else {
        file
    };
    let about = path
        .metadata()
        .with_context(|| format!("cannot read {name}"))?;
    if about.is_file() && about.modified()? < since {
        bail!(
            "{name} was written before Placement was read: an instance that was created since is missing from it \
             and would look like an orphan. Let placementctl run the command that creates the list: \
             --{what}-command 'openstack … list … -f json'"
        );
    }
    read(file)
}

/// Standard output of a shell command.
fn output(command: &str) -> anyhow::Result<Vec<u8>> {
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", command]).stderr(Stdio::inherit());
    let output = (shell.output()).with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed: {}",
        output.status
    );
    Ok(output.stdout)
}

impl Servers {
    pub(crate) fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut found = Self::default();
        found.is_cut = each(bytes, "servers", |id, entry| {
            found.down += usize::from(entry.status() == Some("UNKNOWN"));
            let hosts = entry.all(&HOSTS);
            found.hosts.extend(hosts.clone());
            found.hosts_of.insert(id, hosts);
            Ok(())
        })?;
        Ok(found)
    }
}

impl Migrations {
    pub(crate) fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut found = Self::default();
        found.is_cut = each(bytes, "migrations", |id, entry| {
            let server = entry.uuid(&["instance_uuid", "Server UUID"]);
            let server = server.context("it names no server")?;
            found.server_of.insert(id, server);
            if !entry.status().is_some_and(|status| OVER.contains(&status)) {
                let kind = entry.first(&["migration_type", "Type"]);
                found.under_way.entry(server).or_default().push(Migration {
                    is_evacuation: kind == Some("evacuation"),
                    hosts: entry.all(&ENDS),
                });
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// An entry of a list, with the keys of the API or of a CLI table.
struct Entry<'a>(&'a Value);

impl Entry<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0[key].as_str().filter(|text| !text.is_empty())
    }

    fn first(&self, keys: &[&str]) -> Option<&str> {
        keys.iter().find_map(|key| self.text(key))
    }

    fn all(&self, keys: &[&str]) -> Vec<String> {
        let texts = keys.iter().filter_map(|key| self.text(key));
        texts.map(str::to_owned).collect()
    }

    fn uuid(&self, keys: &[&str]) -> Option<Uuid> {
        self.first(keys)?.parse().ok()
    }

    fn status(&self) -> Option<&str> {
        self.first(&["status", "Status"])
    }
}

/// Passes each entry of a list to `take`. The input is one or several tables of `openstack … list
/// -f json` or responses of Nova's API. Returns whether Nova may have truncated it: its length is a
/// multiple of the page size.
fn each(
    bytes: &[u8],
    what: &str,
    mut take: impl FnMut(Uuid, Entry<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<bool> {
    let mut is_cut = false;
    for json in Deserializer::from_slice(bytes).into_iter::<Value>() {
        let json = json.context("it is not JSON")?;
        let links = list(&json[format!("{what}_links")]);
        ensure!(
            links.is_empty(),
            "it is one of several pages: list all entries"
        );
        let all = json.get(what).unwrap_or(&json);
        ensure!(all.is_array(), "it is not a list of objects");
        let all = list(all);
        is_cut |= !all.is_empty() && all.len().is_multiple_of(PAGE);
        for (at, one) in all.iter().enumerate() {
            let entry = Entry(one);
            if entry.status() == Some("DELETED") {
                continue;
            }
            // A migration has a numeric `id` as well.
            let id = entry.uuid(&["uuid", "UUID"]);
            let id = id.or_else(|| entry.uuid(&["id", "ID"])).with_context(|| {
                format!("entry {at} has no UUID: list migrations with compute API 2.59 or later")
            })?;
            take(id, entry).with_context(|| format!("entry {at}"))?;
        }
    }
    Ok(is_cut)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn servers(list: Value) -> anyhow::Result<Servers> {
        Servers::parse(list.to_string().as_bytes())
    }

    fn migrations(list: Value) -> anyhow::Result<Migrations> {
        Migrations::parse(list.to_string().as_bytes())
    }

    fn may_be_cut(servers: Servers) -> bool {
        let servers = Some(servers);
        let nova = Nova {
            servers,
            ..Nova::default()
        };
        nova.may_be_cut(INSTANCE)
    }

    #[test]
    fn cli_tables_and_api_responses_are_parsed() {
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let table = json!([{"ID": one, "Status": "ACTIVE", "Host": "a"}, {"ID": two, "Status": "UNKNOWN", "Host": null}]);
        let answer = json!({"servers": [
            {"id": one, "status": "ACTIVE", "OS-EXT-SRV-ATTR:host": "a"}, {"id": two, "status": "UNKNOWN"}]});
        for list in [table, answer] {
            let list = servers(list).unwrap();
            assert_eq!(list.hosts_of(one), ["a".to_owned()]);
            assert!(list.hosts_of.contains_key(&two) && list.hosts_of(two).is_empty());
            assert!(list.names("a") && !list.names("b"));
            assert_eq!(list.down, 1);
        }
        let answer = json!({"migrations": [
            {"id": 7, "uuid": one, "instance_uuid": three, "status": "done", "migration_type": "evacuation",
             "source_compute": "a", "source_node": "a.example", "dest_compute": "b", "dest_node": null},
            {"id": 8, "uuid": two, "instance_uuid": three, "status": "completed", "source_compute": "b"}]});
        let table = json!([
            {"Id": 7, "UUID": one, "Server UUID": three, "Status": "done", "Type": "evacuation",
             "Source Compute": "a", "Source Node": "a.example", "Dest Compute": "b", "Dest Node": null},
            {"Id": 8, "UUID": two, "Server UUID": three, "Status": "completed", "Source Compute": "b"}]);
        for list in [answer, table] {
            let list = migrations(list).unwrap();
            assert_eq!(list.server_of(two), Some(three));
            let [evacuation] = list.under_way(three).unwrap() else {
                panic!("one is completed");
            };
            assert!(evacuation.is_evacuation);
            assert_eq!(evacuation.hosts, ["a", "a.example", "b"]);
            assert!(list.under_way(one).unwrap().is_empty());
        }
    }

    #[test]
    fn several_lists_are_read_and_soft_deleted_servers_count() {
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let all = json!([{ "ID": one }]).to_string();
        let deleted =
            json!([{"ID": two, "Status": "SOFT_DELETED"}, {"ID": three, "Status": "DELETED"}]);
        let both = Servers::parse(format!("{all}\n{deleted}").as_bytes()).unwrap();
        let ids: HashSet<Uuid> = both.hosts_of.keys().copied().collect();
        assert_eq!(ids, HashSet::from([one, two]));
        let page: Vec<Value> = (0..1000)
            .map(|id| json!({ "id": Uuid::from_u128(id) }))
            .collect();
        assert!(may_be_cut(servers(json!(page)).unwrap()) && !may_be_cut(both));
    }

    #[test]
    fn incomplete_lists_are_refused() {
        let page = json!({"servers": [], "servers_links": [{"rel": "next"}]});
        for (list, reason) in [
            (page, "one of several pages"),
            (json!({"error": 1}), "not a list"),
            (json!([{"Id": 7}]), "entry 0 has no UUID"),
        ] {
            let error = servers(list).err().unwrap().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(Servers::parse(b"ID,Host").is_err());
        assert!(may_be_cut(servers(json!([])).unwrap()));
        let of_no_server = migrations(json!([{ "UUID": Uuid::nil() }])).err().unwrap();
        assert_eq!(format!("{of_no_server:#}"), "entry 0: it names no server");
    }

    #[test]
    fn a_list_older_than_the_placement_data_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let hour = std::time::Duration::from_secs(3600);
        let now = SystemTime::now();
        assert!(newer(file.path(), now - hour, "servers").is_ok());
        let error = newer(file.path(), now + hour, "servers").unwrap_err();
        assert!(error.to_string().contains("--servers-command"), "{error}");
    }
}
