//! Reading the configuration: file, environment, flags; then what the parts must be to each other.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use placement_raft_store::{LABEL_MAX, is_label};
use strsim::levenshtein;

use super::{Config, Kind, Setting};
use crate::permissions::{Exposed, check_secret_file};
use crate::topology::Extent;

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file is not TOML, or a value is of the wrong type.
    #[error("{source_name}: {message}")]
    Malformed {
        /// The file, variable or flag.
        source_name: String,
        /// What is wrong, and where.
        message: String,
    },
    /// Nothing is called this.
    #[error("{path}: unknown setting `{key}`{hint}")]
    Unknown {
        /// The file.
        path: String,
        /// The key.
        key: String,
        /// The nearest known key, in words.
        hint: String,
    },
    /// The value has the right type but cannot be used.
    #[error("`{key}`: {message}")]
    Invalid {
        /// The setting.
        key: String,
        /// Why.
        message: String,
    },
    /// Others can read the secrets in a file.
    #[error("secrets: {0}")]
    Exposed(#[from] Exposed),
}

impl ConfigError {
    pub(super) fn invalid(key: &str, message: impl Into<String>) -> Self {
        Self::Invalid {
            key: key.to_owned(),
            message: message.into(),
        }
    }
}

impl Config {
    /// Reads the file, then the environment, then the flags (`(flag without dashes, text)`), and
    /// validates the whole. Also returns warnings for the log.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let (config, warnings) = Self::read(file, environment, flags)?;
        config.validate()?;
        Ok((config, warnings))
    }

    /// The same for who needs a part of it: nothing is said of what the parts must be.
    pub(crate) fn read(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let settings = Self::settings();
        let mut table = match file {
            Some(path) => read_file(path, &settings)?,
            None => toml::Table::new(),
        };
        let mut warnings = Vec::new();
        for (variable, text) in environment {
            if !variable.starts_with("PLACEMENTD_") || variable == "PLACEMENTD_CONFIG" {
                continue;
            }
            match settings
                .iter()
                .find(|setting| setting.variable() == variable)
            {
                Some(setting) => put(&mut table, setting, &variable, &text)?,
                // Not an error: platforms put variables of their own beside ours.
                None => warnings.push(format!(
                    "the environment variable {variable} names no setting{}",
                    suggestion(&variable, settings.iter().map(Setting::variable))
                )),
            }
        }
        for (flag, text) in flags {
            let name = format!("--{flag}");
            let named = |setting: &&Setting| setting.flag() == flag && setting.kind != Kind::Secret;
            match settings.iter().find(named) {
                Some(setting) => put(&mut table, setting, &name, &text)?,
                None => {
                    return Err(ConfigError::Unknown {
                        path: "command line".to_owned(),
                        hint: suggestion(&flag, settings.iter().map(Setting::flag)),
                        key: name,
                    });
                }
            }
        }
        let chosen: BTreeSet<(String, String)> = (table.iter())
            .filter_map(|(section, keys)| Some((section, keys.as_table()?)))
            .flat_map(|(section, keys)| keys.keys().map(|key| (section.clone(), key.clone())))
            .collect();
        let mut config: Config =
            table
                .try_into()
                .map_err(|error: toml::de::Error| ConfigError::Malformed {
                    source_name: file
                        .map_or("settings".to_owned(), |path| path.display().to_string()),
                    message: error.to_string().trim().replace('\n', ", "),
                })?;
        config.follow_round_trip(|section, key| {
            chosen.contains(&(section.to_owned(), key.to_owned()))
        });
        if let Some(file) = &config.backup_s3.credentials_file {
            check_secret_file(file)?;
        }
        Ok((config, warnings))
    }

    /// What the parts must be, each and to each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.node_id == 0 {
            return Err(ConfigError::invalid(
                "node_id",
                "is required while data_dir belongs to no node and there is no cluster.join: a number from 1 that no other node of \
                 the cluster has or had",
            ));
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(ConfigError::invalid("data_dir", "is empty"));
        }
        for (key, listen, advertise) in [
            ("api", &self.api.listen, &self.api.advertise),
            ("peer", &self.peer.listen, &self.peer.advertise),
            ("admin", &self.admin.listen, &self.admin.advertise),
            ("metrics", &self.metrics.listen, &String::new()),
        ] {
            if listen.is_empty() && matches!(key, "admin" | "metrics") {
                continue;
            }
            check_address(&format!("{key}.listen"), listen, true)?;
            if !advertise.is_empty() {
                check_address(&format!("{key}.advertise"), advertise, false)?;
            } else if is_wildcard(listen) && key != "metrics" {
                return Err(ConfigError::invalid(
                    &format!("{key}.advertise"),
                    format!("is required, since no client can connect to {listen}"),
                ));
            }
        }
        self.validate_sites()?;
        self.public_address()?;
        self.validate_members()?;
        self.validate_distance()?;
        self.validate_raft()?;
        self.compress()?;
        self.validate_limits()?;
        self.validate_backup()?;
        self.read_settings()?;
        self.generation_strategy()?;
        self.auth_strategy()?;
        self.peer_tls()?;
        self.admin_tls()?;
        self.api_tls()?;
        self.validate_audit()?;
        self.validate_partitions()?;
        if !matches!(self.log.format.as_str(), "human" | "json") {
            return Err(ConfigError::invalid(
                "log.format",
                format!("{:?} is neither human nor json", self.log.format),
            ));
        }
        Ok(())
    }

    fn validate_sites(&self) -> Result<(), ConfigError> {
        self.name()?;
        for (key, name) in [("region", &self.node.region), ("zone", &self.node.zone)] {
            if !is_label(name) {
                let words = format!(
                    "{name:?} is not up to {LABEL_MAX} letters, digits, dots, dashes and underscores"
                );
                return Err(ConfigError::invalid(&format!("node.{key}"), words));
            }
        }
        let survive = &self.cluster.survive;
        if !survive.is_empty() && Extent::named(survive).is_none() {
            let words = format!("{survive:?} is none of \"node\", \"zone\" and \"region\"");
            return Err(ConfigError::invalid("cluster.survive", words));
        }
        let mut preferred = self.cluster.leader_preference.iter();
        let is_site = |site: &str| {
            let mut names = site.splitn(2, '/');
            names.all(|name| !name.is_empty() && is_label(name))
        };
        match preferred.find(|site| !is_site(site)) {
            None => Ok(()),
            Some(site) => Err(ConfigError::invalid(
                "cluster.leader_preference",
                format!("{site:?} is neither a region nor REGION/ZONE"),
            )),
        }
    }

    fn validate_members(&self) -> Result<(), ConfigError> {
        self.cluster_id()?;
        for address in &self.cluster.join {
            check_address("cluster.join", address, false)?;
        }
        if self.cluster.joins() && self.cluster.join_token_file.is_none() {
            let message = "is required with cluster.join";
            return Err(ConfigError::invalid("cluster.join_token_file", message));
        }
        if self.cluster.joins() && !self.initial_members.is_empty() {
            let message =
                "cannot stand beside initial_members: a node forms a cluster or joins one";
            return Err(ConfigError::invalid("cluster.join", message));
        }
        let mut members = self.initial_members()?;
        if members.is_empty() {
            return Ok(());
        }
        if !members.iter().any(|(id, _)| *id == self.node_id) {
            return Err(ConfigError::invalid(
                "initial_members",
                format!("does not name this node, {}", self.node_id),
            ));
        }
        let count = members.len();
        members.sort();
        members.dedup_by_key(|(id, _)| *id);
        if members.len() != count {
            return Err(ConfigError::invalid(
                "initial_members",
                "names a node twice",
            ));
        }
        Ok(())
    }

    fn validate_backup(&self) -> Result<(), ConfigError> {
        let backup = &self.backup;
        if let Some(directory) = &backup.directory
            && directory.starts_with(&self.data_dir)
        {
            let message = "must not be within data_dir: what takes the one takes the other";
            return Err(ConfigError::invalid("backup.directory", message));
        }
        for (key, value) in [
            ("backup.every_s", backup.every_s),
            ("backup.keep", backup.keep),
        ] {
            if value == 0 {
                return Err(ConfigError::invalid(key, "must not be 0"));
            }
        }
        self.validate_backup_s3()
    }

    fn validate_backup_s3(&self) -> Result<(), ConfigError> {
        let store = &self.backup_s3;
        if !store.is_used() {
            return Ok(());
        }
        if self.backup.directory.is_none() {
            let message = "needs backup.directory: what is copied is what is there";
            return Err(ConfigError::invalid("backup_s3.bucket", message));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if !store.bucket.chars().all(is_name) {
            let message = format!("{:?} is not the name of a bucket", store.bucket);
            return Err(ConfigError::invalid("backup_s3.bucket", message));
        }
        let endpoint = store.endpoint.as_str();
        let is_url = endpoint.is_empty()
            || (endpoint.starts_with("https://") || endpoint.starts_with("http://"))
                && endpoint
                    .parse::<::http::Uri>()
                    .is_ok_and(|url| url.path() == "/");
        if !is_url || endpoint.contains('@') {
            let message =
                "must be of the form https://HOST or https://HOST:PORT, with nothing behind it";
            return Err(ConfigError::invalid("backup_s3.endpoint", message));
        }
        if store.is_plain() && !store.allow_http {
            return Err(ConfigError::invalid(
                "backup_s3.endpoint",
                "must begin with https:, as whoever is on the way could read the backups; \
                 backup_s3.allow_http permits it",
            ));
        }
        let is_part = |part: &str| !part.is_empty() && part.chars().all(is_name);
        if !store.prefix.is_empty() && !store.prefix.split('/').all(is_part) {
            let message = "must be names of letters, digits and -._, with a slash between each two";
            return Err(ConfigError::invalid("backup_s3.prefix", message));
        }
        for (key, value) in [
            ("backup_s3.log_every_s", store.log_every_s),
            ("backup_s3.timeout_s", store.timeout_s),
        ] {
            if value == 0 {
                return Err(ConfigError::invalid(key, "must not be 0"));
            }
        }
        Ok(())
    }

    fn validate_raft(&self) -> Result<(), ConfigError> {
        let raft = &self.raft;
        if raft.heartbeat_ms == 0 || raft.election_min_ms < 2 * raft.heartbeat_ms {
            return Err(ConfigError::invalid(
                "raft.election_min_ms",
                "must be at least twice raft.heartbeat_ms, which must not be 0: one lost heartbeat \
                 is no reason for an election",
            ));
        }
        let after_ms = self.cluster.autopilot_after_s.saturating_mul(1000);
        if after_ms > 0 && after_ms < 3 * raft.election_max_ms {
            return Err(ConfigError::invalid(
                "cluster.autopilot_after_s",
                "must be 0, or at least three times raft.election_max_ms: a leader that is new has not heard all voters",
            ));
        }
        if raft.election_max_ms <= raft.election_min_ms {
            return Err(ConfigError::invalid(
                "raft.election_max_ms",
                "must be more than raft.election_min_ms: nodes that wake up together elect no leader",
            ));
        }
        for (key, value) in [
            ("raft.snapshot_after", raft.snapshot_after),
            ("raft.append_entries_max", raft.append_entries_max),
            ("raft.append_bytes_max", raft.append_bytes_max as u64),
            (
                "raft.snapshot_chunk_bytes",
                raft.snapshot_chunk_bytes as u64,
            ),
            ("raft.snapshot_timeout_ms", raft.snapshot_timeout_ms),
        ] {
            if value == 0 {
                return Err(ConfigError::invalid(key, "must not be 0"));
            }
        }
        const MESSAGE_MAX: usize = 32 * 1024 * 1024;
        for (key, value) in [
            ("raft.append_bytes_max", raft.append_bytes_max),
            ("raft.snapshot_chunk_bytes", raft.snapshot_chunk_bytes),
        ] {
            if value > MESSAGE_MAX {
                return Err(ConfigError::invalid(
                    key,
                    format!("must be at most {MESSAGE_MAX}"),
                ));
            }
        }
        Ok(())
    }

    fn validate_limits(&self) -> Result<(), ConfigError> {
        const BODY_MAX: usize = 32 * 1024 * 1024;
        if self.api.max_body_bytes == 0 || self.api.max_body_bytes > BODY_MAX {
            return Err(ConfigError::invalid(
                "api.max_body_bytes",
                format!(
                    "must be between 1 and {BODY_MAX}: a body travels between nodes in one message"
                ),
            ));
        }
        self.validate_in_flight()?;
        const COMMAND: RangeInclusive<usize> = 64 * 1024..=32 * 1024 * 1024;
        if !COMMAND.contains(&self.limits.command_bytes) {
            return Err(ConfigError::invalid(
                "limits.command_bytes",
                format!(
                    "must be between {} and {}: nodes have commands of their own, and a command \
                     travels between them as one message, and its rows in one frame of a snapshot, with \
                     what belongs to them",
                    COMMAND.start(),
                    COMMAND.end()
                ),
            ));
        }
        for (key, value) in [
            ("api.max_connections", self.api.max_connections as u64),
            ("api.header_timeout_ms", self.api.header_timeout_ms),
            ("api.body_timeout_ms", self.api.body_timeout_ms),
            ("api.min_bytes_per_s", self.api.min_bytes_per_s),
            ("limits.uri_bytes", self.limits.uri_bytes as u64),
            (
                "limits.query_parameters",
                self.limits.query_parameters as u64,
            ),
            ("limits.json_values", self.limits.json_values as u64),
            ("peer.silence_ms", self.peer.silence_ms),
            ("peer.connect_ms", self.peer.connect_ms),
            ("cluster.wait_ms", self.cluster.wait_ms),
        ] {
            if value == 0 {
                return Err(ConfigError::invalid(key, "must not be 0"));
            }
        }
        Ok(())
    }
}

/// `ID=HOST:PORT`.
pub(super) fn member(text: &str) -> Result<(u64, String), ConfigError> {
    let wrong = || {
        ConfigError::invalid(
            "initial_members",
            format!("{text:?} is not of the form ID=HOST:PORT"),
        )
    };
    let (id, address) = text.split_once('=').ok_or_else(wrong)?;
    let id = id
        .trim()
        .parse::<u64>()
        .ok()
        .filter(|id| *id > 0)
        .ok_or_else(wrong)?;
    let address = address.trim();
    check_address("initial_members", address, false)?;
    Ok((id, address.to_owned()))
}

pub(super) fn check_address(key: &str, address: &str, zero_port: bool) -> Result<(), ConfigError> {
    let wrong = |message: &str| ConfigError::invalid(key, format!("{address:?}: {message}"));
    let (host, port) = address
        .rsplit_once(':')
        .ok_or_else(|| wrong("not of the form host:port"))?;
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    match port.parse::<u16>() {
        Ok(0) if !zero_port => Err(wrong("port 0 cannot be connected to")),
        Ok(_) => Ok(()),
        Err(_) => Err(wrong("the port is not a number from 0 to 65535")),
    }
}

/// Whether nobody on another machine reaches it.
pub(super) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || (host.parse::<IpAddr>()).is_ok_and(|address| address.is_loopback())
}

fn is_wildcard(address: &str) -> bool {
    address.starts_with("0.0.0.0:") || address.starts_with("[::]:")
}

fn read_file(path: &Path, settings: &[Setting]) -> Result<toml::Table, ConfigError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        path: name.clone(),
        error,
    })?;
    let table: toml::Table =
        text.parse()
            .map_err(|error: toml::de::Error| ConfigError::Malformed {
                source_name: name.clone(),
                message: at_its_line(&text, &error),
            })?;
    let known = || settings.iter().map(Setting::path);
    let unknown = |key: String| ConfigError::Unknown {
        path: name.clone(),
        hint: suggestion(&key, known()),
        key,
    };
    for (key, value) in &table {
        let is_section = settings.iter().any(|setting| setting.section == key);
        match value {
            toml::Value::Table(inner) if is_section => {
                for inner_key in inner.keys() {
                    let dotted = format!("{key}.{inner_key}");
                    if !known().any(|path| path == dotted) {
                        return Err(unknown(dotted));
                    }
                }
            }
            _ if is_section => {
                return Err(ConfigError::invalid(
                    key,
                    "is a table: write it as `[section]`",
                ));
            }
            _ if known().any(|path| path == *key) => {}
            toml::Value::Array(_) if key == "partitions" => {}
            _ if key == "partitions" => {
                let words = "is a list of tables: write each as `[[partitions]]`";
                return Err(ConfigError::invalid(key, words));
            }
            _ => return Err(unknown(key.clone())),
        }
    }
    let is_set = |setting: &Setting| {
        let section = table.get(setting.section);
        section.is_some_and(|section| section.get(setting.key).is_some())
    };
    let mut secrets = settings.iter().filter(|one| one.kind == Kind::Secret);
    if secrets.any(is_set) {
        check_secret_file(path)?;
    }
    Ok(table)
}

/// What is wrong with a file, and where. Not the line itself, which may hold a secret.
fn at_its_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.unwrap_or_default().matches('\n').count() + 1;
    format!("line {line}: {}", error.message())
}

fn put(
    table: &mut toml::Table,
    setting: &Setting,
    source: &str,
    text: &str,
) -> Result<(), ConfigError> {
    let value = setting
        .parse(text)
        .map_err(|message| ConfigError::Malformed {
            source_name: source.to_owned(),
            message,
        })?;
    let target = match setting.section {
        "" => table,
        section => table
            .entry(section)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .expect("sections were checked to be tables"),
    };
    target.insert(setting.key.to_owned(), value);
    Ok(())
}

/// The known name that is nearest to `name`, in words; empty if none is near.
fn suggestion(name: &str, known: impl Iterator<Item = String>) -> String {
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
    known
        .map(|candidate| {
            let whole = levenshtein(name, &candidate);
            // The right key in the wrong section is near, too.
            let key = levenshtein(&last(name), &last(&candidate)) + 1;
            (whole.min(key), candidate)
        })
        .min()
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(2))
        .map(|(_, candidate)| format!("; did you mean `{candidate}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(
        text: &str,
        env: &[(&str, &str)],
        flags: &[(&str, &str)],
    ) -> Result<Config, ConfigError> {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), text).unwrap();
        let own = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect::<Vec<_>>()
        };
        Config::load(Some(file.path()), own(env), own(flags)).map(|(config, _)| config)
    }

    #[test]
    fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
        let file = "node_id = 1\n[api]\nlisten = \"127.0.0.1:1\"\nmax_connections = 7\nheader_timeout_ms = 9";
        let config = load(
            file,
            &[
                ("PLACEMENTD_API_LISTEN", "127.0.0.1:2"),
                ("PLACEMENTD_API_MAX_CONNECTIONS", "8"),
                ("HOME", "/"),
            ],
            &[("api-listen", "127.0.0.1:3")],
        )
        .unwrap();
        assert_eq!(config.api.listen, "127.0.0.1:3");
        assert_eq!(config.api.max_connections, 8);
        assert_eq!(config.api.header_timeout_ms, 9);
        assert_eq!(config.raft.heartbeat_ms, 250);
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known_one() {
        let error = load("node_id = 1\n[api]\nlistn = \"127.0.0.1:1\"", &[], &[]).unwrap_err();
        assert!(
            error.to_string().contains("did you mean `api.listen`"),
            "{error}"
        );
        let error = load("nod_id = 1", &[], &[]).unwrap_err();
        assert!(
            error.to_string().contains("did you mean `node_id`"),
            "{error}"
        );
        let error = load("node_id = 1\nmax_body_bytes = 4", &[], &[]).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("did you mean `api.max_body_bytes`"),
            "{error}"
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_names_its_key() {
        let error = load("node_id = 1\n[api]\nmax_body_bytes = \"big\"", &[], &[]).unwrap_err();
        assert!(error.to_string().contains("max_body_bytes"), "{error}");
        let error = load("node_id = 1", &[("PLACEMENTD_NODE_ID", "one")], &[]).unwrap_err();
        assert!(error.to_string().contains("PLACEMENTD_NODE_ID"), "{error}");
    }

    #[test]
    fn what_cannot_work_is_refused_before_it_is_tried() {
        for (text, key) in [
            ("", "node_id"),
            (
                "node_id = 1\n[api]\nlisten = \"0.0.0.0:80\"",
                "api.advertise",
            ),
            ("node_id = 1\n[peer]\nlisten = \"localhost\"", "peer.listen"),
            (
                "node_id = 1\ninitial_members = [\"2=h:1\"]",
                "initial_members",
            ),
            (
                "node_id = 1\ninitial_members = [\"1=h:1\", \"1=h:2\"]",
                "initial_members",
            ),
            ("node_id = 1\ncluster_id = \"mine\"", "cluster_id"),
            (
                "node_id = 1\n[raft]\nelection_min_ms = 300",
                "raft.election_min_ms",
            ),
            (
                "node_id = 1\n[raft]\nelection_max_ms = 1000",
                "raft.election_max_ms",
            ),
            // Its rows would not fit into a frame of a snapshot.
            (
                "node_id = 1\n[limits]\ncommand_bytes = 67108864",
                "limits.command_bytes",
            ),
            ("node_id = 1\n[api]\nprefix = \"placement\"", "api.prefix"),
            ("node_id = 1\n[api]\nprefix = \"/a//b\"", "api.prefix"),
            (
                "node_id = 1\n[api]\npublic_url = \"cloud.example\"",
                "api.public_url",
            ),
            (
                "node_id = 1\n[api]\nprefix = \"/placement\"\npublic_url = \"https://cloud.example\"",
                "api.public_url",
            ),
            (
                "node_id = 1\n[backup_s3]\nbucket = \"b\"",
                "backup.directory",
            ),
            (
                "node_id = 1\n[backup]\ndirectory = \"/b\"\n[backup_s3]\nbucket = \"b\"\n\
                 endpoint = \"http://rgw:7480\"",
                "backup_s3.allow_http",
            ),
            (
                "node_id = 1\n[backup]\ndirectory = \"/b\"\n[backup_s3]\nbucket = \"b\"\n\
                 endpoint = \"https://key:secret@rgw\"",
                "backup_s3.endpoint",
            ),
            (
                "node_id = 1\n[backup]\ndirectory = \"/b\"\n[backup_s3]\nbucket = \"b/c\"",
                "backup_s3.bucket",
            ),
            ("node_id = 1\n[reads]\ndefault = \"fast\"", "reads.default"),
            ("node_id = 1\n[reads]\nprofile = \"fast\"", "reads.profile"),
            (
                "node_id = 1\n[reads]\nprofile = \"edge\"\ndefault = \"local\"",
                "reads.default",
            ),
            (
                "node_id = 1\n[cluster]\nsurvive = \"rack\"",
                "cluster.survive",
            ),
            (
                "node_id = 1\n[api]\nlisten = \"10.0.0.1:8778\"",
                "auth.noauth2_beyond_loopback",
            ),
            (
                "node_id = 1\n[api]\nadvertise = \"cloud.example:8778\"",
                "auth.noauth2_beyond_loopback",
            ),
            ("node_id = 1\n[auth]\nstrategy = \"none\"", "auth.strategy"),
            (
                "node_id = 1\n[auth]\nstrategy = \"proxy\"",
                "auth.proxy_addresses",
            ),
            (
                "node_id = 1\n[auth]\nstrategy = \"proxy\"\nproxy_addresses = [\"10.0.0.0/33\"]",
                "auth.proxy_addresses",
            ),
            (
                "node_id = 1\n[auth]\nstrategy = \"keystone\"",
                "keystone.auth_url",
            ),
            (
                "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"keystone:5000\"",
                "keystone.auth_url",
            ),
            (
                "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"http://k:5000\"",
                "keystone.username",
            ),
            (
                "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"http://k:5000\"\n\
                 username = \"placement\"",
                "keystone.password",
            ),
            ("node_id = 1\n[log]\nformat = \"xml\"", "log.format"),
            ("node_id = 1\n[audit]\nto = \"kafka\"", "audit.to"),
            ("node_id = 1\n[audit]\nmode = \"hope\"", "audit.mode"),
            (
                "node_id = 1\ndata_dir = \"/d\"\n[audit]\nto = \"file\"\nfile = \"/d/a\"",
                "audit.file",
            ),
        ] {
            let error = load(text, &[], &[]).unwrap_err();
            assert!(error.to_string().contains(key), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_secret_is_shown_nowhere() {
        let text = "node_id = 1\n[auth]\nstrategy = \"keystone\"\n[keystone]\n\
                    auth_url = \"https://k/identity, http://k2:5000/v3/\"\nusername = \"placement\"\n";
        let environment = [("PLACEMENTD_KEYSTONE_PASSWORD", "hidden")];
        let config = load(text, &environment, &[]).unwrap();
        assert_eq!(
            config.keystone.place().unwrap().auth_urls,
            ["https://k/identity/v3", "http://k2:5000/v3"]
        );
        for shown in [format!("{config:?}"), config.to_toml()] {
            assert!(!shown.contains("hidden"), "{shown}");
        }
        let other = [("PLACEMENTD_KEYSTONE_PASSWORD", "hidden-2")];
        let other = load(text, &other, &[]).unwrap();
        assert_eq!(config.differs_in(&other), ["keystone.password"]);
        let flag = load(text, &[], &[("keystone-password", "hidden")]).unwrap_err();
        assert!(matches!(flag, ConfigError::Unknown { .. }), "{flag}");
        for wrong in [
            "password = 777hidden",
            "password = 777",
            "password = [\"hidden\"]",
        ] {
            let error = load(&format!("{text}{wrong}\n"), &[], &[]).unwrap_err();
            let words = error.to_string();
            assert!(
                !words.contains("hidden") && !words.contains("777"),
                "{words}"
            );
        }
    }

    #[test]
    fn what_check_config_prints_is_the_same_configuration() {
        let chosen = "node_id = 7\n[api]\nprefix = \"/placement\"\n\
                      public_url = \"https://cloud.example/placement\"\n\
                      trust_proxy_headers = true\nroot_reflects_readiness = false\n";
        for text in ["node_id = 1\n", chosen] {
            let config = load(text, &[], &[]).unwrap();
            let again = load(&config.to_toml(), &[], &[]).unwrap();
            assert_eq!(again, config);
            assert_eq!(config.differs_in(&again), Vec::<String>::new());
        }
    }

    #[test]
    fn a_difference_is_named_by_its_setting() {
        let before = load("node_id = 1\n", &[], &[]).unwrap();
        let after = "node_id = 1\n[log]\nlevel = \"warn\"\n[policy]\nfile = \"p\"\n";
        let after = load(after, &[], &[]).unwrap();
        assert_eq!(before.differs_in(&after), ["policy.file", "log.level"]);
    }

    #[test]
    fn every_setting_is_documented_and_numbers_carry_their_unit() {
        for setting in Config::settings() {
            assert!(setting.doc.len() > 10, "{}", setting.path());
            let units = [
                ("_bytes_per_s", "bytes a second"),
                ("_per_s", "a second"),
                ("_ms", "milliseconds"),
                ("_s", "seconds"),
                ("_bytes", "bytes"),
            ];
            let suffixed = |(suffix, _): &&(&str, &str)| setting.key.ends_with(suffix);
            if let Some((_, unit)) = units.iter().find(suffixed) {
                assert!(
                    setting.doc.to_lowercase().contains(unit),
                    "{}",
                    setting.path()
                );
            }
        }
    }
}
