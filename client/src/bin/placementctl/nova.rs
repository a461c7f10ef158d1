//! What Nova has, as its lists of servers and migrations say.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::{Deserializer, Value};
use uuid::Uuid;

use crate::files::read;
use crate::render::list;

pub(crate) const INSTANCE: &str = "INSTANCE";
pub(crate) const MIGRATION: &str = "MIGRATION";
/// The kind of those without a type that no list has.
pub(crate) const UNTYPED: &str = "consumer without a type";
/// Nova ends a page there, whatever was asked for (`[api] max_limit`).
const PAGE: usize = 1000;
/// The names of the compute service and of the hypervisor, in the API and in tables.
const HOSTS: &str =
    "host Host OS-EXT-SRV-ATTR:host OS-EXT-SRV-ATTR:hypervisor_hostname hypervisor_hostname";

/// Where Nova's lists come from.
#[derive(Args)]
pub(crate) struct Lists {
    /// All servers of Nova in JSON, listed after Placement has been read; `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "servers_command")]
    servers: Option<PathBuf>,
    /// The command that lists them, for the shell. It runs once Placement has been read.
    #[arg(long, value_name = "COMMAND")]
    servers_command: Option<String>,
    /// All migrations of Nova, as of `--servers`, which it needs: Nova leaves those of a cell that is down out without
    /// a word.
    #[arg(long, value_name = "FILE", conflicts_with = "migrations_command")]
    migrations: Option<PathBuf>,
    /// The command that lists them.
    #[arg(long, value_name = "COMMAND")]
    migrations_command: Option<String>,
}

#[derive(Default)]
pub(crate) struct Nova {
    pub(crate) servers: Option<List>,
    pub(crate) migrations: Option<List>,
}

/// The entries of a list.
#[derive(Default)]
pub(crate) struct List {
    pub(crate) ids: HashSet<Uuid>,
    /// The hosts that are named.
    pub(crate) hosts: HashSet<String>,
    /// How many are in a cell that is down.
    pub(crate) down: usize,
    /// It has as many entries as whole pages.
    pub(crate) is_cut: bool,
}

impl Nova {
    /// What a consumer is, and whether Nova has it, if the lists say so. Nova gives its consumers no type unless it
    /// speaks 1.38: then they are what the list is that has them.
    pub(crate) fn judge<'a>(&self, consumer: &'a Value) -> (&'a str, Option<bool>) {
        let id: Option<Uuid> = consumer["uuid"].as_str().and_then(|id| id.parse().ok());
        let has = |list: &Option<List>| Some(list.as_ref()?.ids.contains(&id?));
        let (server, migration) = (has(&self.servers), has(&self.migrations));
        match consumer["type"].as_str() {
            None if server == Some(true) => (INSTANCE, server),
            None if migration == Some(true) => (MIGRATION, migration),
            None => (UNTYPED, server.and(migration)),
            Some(INSTANCE) => (INSTANCE, server),
            Some(MIGRATION) => (MIGRATION, migration),
            Some(other) => (other, None),
        }
    }

    /// Whether Nova may have cut a list off that has consumers of this kind. Clouds without migrations exist.
    pub(crate) fn may_be_cut(&self, kind: &str) -> bool {
        let servers = self.servers.as_ref().filter(|_| kind != MIGRATION);
        let migrations = self.migrations.as_ref().filter(|_| kind != INSTANCE);
        servers.is_some_and(List::may_be_cut)
            || migrations
                .is_some_and(|list| list.is_cut || kind == MIGRATION && list.ids.is_empty())
    }
}

impl Lists {
    /// Reads the lists; Placement was read until `since`. What comes through a pipe has no time: it is taken only if
    /// consumers younger than an hour (`older_than`, in seconds) are left out.
    pub(crate) fn read(&self, since: SystemTime, older_than: u64) -> anyhow::Result<Nova> {
        ensure!(
            older_than >= 3600 || self.servers.is_none() && self.migrations.is_none(),
            "an --older-than below 1h needs --servers-command: of a list that was made elsewhere it is not \
             known when it was begun"
        );
        let servers = taken(&self.servers, &self.servers_command, since, "servers")?;
        let command = &self.migrations_command;
        let migrations = taken(&self.migrations, command, since, "migrations")?;
        ensure!(
            servers.is_some() || migrations.is_none(),
            "--migrations needs --servers too: only the list of servers shows whether a cell is down"
        );
        Ok(Nova {
            servers,
            migrations,
        })
    }
}

fn taken(
    file: &Option<PathBuf>,
    command: &Option<String>,
    since: SystemTime,
    what: &str,
) -> anyhow::Result<Option<List>> {
    let bytes = match (file, command) {
        (Some(file), _) => newer(file, since, what)?,
        (_, Some(command)) => output(command)?,
        _ => return Ok(None),
    };
    let list = List::parse(&bytes);
    list.map(Some)
        .with_context(|| format!("the list of {what}"))
}

/// The content of a file that was not written before.
fn newer(file: &Path, since: SystemTime, what: &str) -> anyhow::Result<Vec<u8>> {
    let name = file.display();
    let path = match file == Path::new("-") {
        true => Path::new("/dev/stdin"),
        false => file,
    };
    let about = path.metadata();
    let about = about.with_context(|| format!("cannot read {name}"))?;
    if about.is_file() && about.modified()? < since {
        bail!(
            "{name} was written before Placement was read: an instance that has been built since is not in it, \
             and would look like an orphan. Have placementctl list them at the right moment: \
             --{what}-command 'openstack … list … -f json'"
        );
    }
    read(file)
}

/// What a command of the shell prints.
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

impl List {
    /// Reads tables of `openstack … list -f json`, or answers of Nova's API, one after the other.
    fn parse(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for json in Deserializer::from_slice(bytes).into_iter() {
            found.add(&json.context("it is not JSON")?)?;
        }
        Ok(found)
    }

    fn add(&mut self, json: &Value) -> anyhow::Result<()> {
        let mut all = json;
        for key in ["servers", "migrations"] {
            let links = list(&json[format!("{key}_links")]);
            ensure!(links.is_empty(), "it is one page of several: list all");
            all = json.get(key).unwrap_or(all);
        }
        ensure!(all.is_array(), "it is no list of objects");
        let all = list(all);
        self.is_cut |= !all.is_empty() && all.len().is_multiple_of(PAGE);
        for (at, one) in all.iter().enumerate() {
            let text = |key: &str| one[key].as_str().filter(|text| !text.is_empty());
            let status = ["status", "Status"].into_iter().find_map(text);
            if status == Some("DELETED") {
                continue;
            }
            // A migration has a number as well.
            let id = ["uuid", "UUID", "id", "ID"].into_iter().find_map(text);
            let id = id.and_then(|id| id.parse().ok());
            self.ids.insert(id.with_context(|| {
                format!("entry {at} has no UUID: migrations have one with compute API 2.59")
            })?);
            self.down += usize::from(status == Some("UNKNOWN"));
            let hosts = HOSTS.split(' ').filter_map(text);
            self.hosts.extend(hosts.map(str::to_owned));
        }
        Ok(())
    }

    /// Whether Nova may have cut it off.
    fn may_be_cut(&self) -> bool {
        self.is_cut || self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(list: Value) -> anyhow::Result<List> {
        List::parse(list.to_string().as_bytes())
    }

    #[test]
    fn tables_and_answers_of_the_api_are_understood() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let table = json!([{"ID": one, "Status": "ACTIVE", "Host": "a"}, {"ID": two, "Status": "UNKNOWN", "Host": null}]);
        let answer = json!({"servers": [
            {"id": one, "status": "ACTIVE", "OS-EXT-SRV-ATTR:host": "a"}, {"id": two, "status": "UNKNOWN"}]});
        for list in [table, answer] {
            let list = parse(list).unwrap();
            assert_eq!(list.ids, HashSet::from([one, two]));
            assert_eq!(list.hosts, HashSet::from(["a".to_owned()]));
            assert_eq!(list.down, 1);
        }
        for list in [
            json!({"migrations": [{"id": 7, "uuid": one}]}),
            json!([{"Id": 7, "UUID": one}]),
        ] {
            assert_eq!(parse(list).unwrap().ids, HashSet::from([one]));
        }
    }

    #[test]
    fn lists_follow_each_other_and_servers_that_wait_to_be_reclaimed_exist() {
        let [one, two, three] = [1, 2, 3].map(Uuid::from_u128);
        let all = json!([{ "ID": one }]).to_string();
        let deleted =
            json!([{"ID": two, "Status": "SOFT_DELETED"}, {"ID": three, "Status": "DELETED"}]);
        let both = List::parse(format!("{all}\n{deleted}").as_bytes()).unwrap();
        assert_eq!(both.ids, HashSet::from([one, two]));
        let page: Vec<Value> = (0..1000)
            .map(|id| json!({ "id": Uuid::from_u128(id) }))
            .collect();
        assert!(parse(json!(page)).unwrap().may_be_cut() && !both.may_be_cut());
    }

    #[test]
    fn what_is_no_whole_list_is_refused() {
        let page = json!({"servers": [], "servers_links": [{"rel": "next"}]});
        for (list, reason) in [
            (page, "one page of several"),
            (json!({"error": 1}), "no list"),
            (json!([{"Id": 7}]), "entry 0 has no UUID"),
        ] {
            let error = parse(list).err().unwrap().to_string();
            assert!(error.contains(reason), "{error}");
        }
        assert!(List::parse(b"ID,Host").is_err());
        assert!(parse(json!([])).unwrap().may_be_cut());
    }

    #[test]
    fn a_file_that_is_older_than_the_reading_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let hour = std::time::Duration::from_secs(3600);
        let now = SystemTime::now();
        assert!(newer(file.path(), now - hour, "servers").is_ok());
        let error = newer(file.path(), now + hour, "servers").unwrap_err();
        assert!(error.to_string().contains("--servers-command"), "{error}");
    }
}
