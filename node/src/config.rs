//! The configuration. Each module declares its own table; this module combines them, reads them
//! from file, environment and flags (later ones override earlier ones), and validates them
//! together. `placementd config sample` and `docs/configuration.md` print the same declarations.

mod cluster_id;
mod document;
mod load;
mod shared;

use std::collections::BTreeSet;
use std::path::PathBuf;

use uuid::Uuid;

use crate::admin::AdminSection;
use crate::logging::LogSection;
use crate::metrics::MetricsSection;
pub use crate::partitions::PartitionSection;
use crate::traces::TraceSection;
use crate::web::WebSection;
pub use cluster_id::{ClusterId, NoClusterId};
pub(crate) use document::sample;
pub use load::ConfigError;
use placement_api::http::{
    ApiSection, ApiSettings, ApiTls, AuthSection, CallersSection, CandidateSettings, CorsSettings,
    FitSection, ReadsSection, check_fits,
};
use placement_api::keystone::KeystoneSection;
use placement_audit::AuditSection;
use placement_base::settings::{Invalid, Setting, Text, check_address, settings};
use placement_cluster::bucket::BackupS3Section;
use placement_cluster::{
    self, BackupSection, ClusterSection, DiskSection, InitialMember, NodeSection, RaftSection,
};
use placement_peer::tls::{AdminTls, ListenerTls, PeerTls, TlsSection};
use placement_peer::transport::PeerSection;
use placement_policy::PolicySettings;

/// Names of the lists of tables, which have no variables and no flags.
const LISTS: [&str; 2] = ["partitions", "fits"];

settings! {
    /// Settings at the top of the file, outside tables.
    Config {
        /// This node's number in its cluster, 1 or more. A number is never reused, not even after
        /// its node was removed or lost its disk. Required, unless the node joins with a token.
        node_id: u64 = 0,
        /// Directory of this node's data; created if missing. It belongs to one node of one
        /// cluster.
        data_dir: PathBuf = PathBuf::from("/var/lib/placementd"),
        /// The nodes that form a new cluster, as `ID=HOST:PEER_PORT`, the same list on each of
        /// them; they wait until all of them are up. Ignored once this node belongs to a cluster.
        /// Empty: this node joins with a token (`[cluster] join`), or waits for `placementctl
        /// init`.
        initial_members: Vec<Text<InitialMember>> = Vec::new(),
        /// The cluster of this node, a UUID as shown by `placementctl status`; set it once the
        /// cluster is formed. The node then neither forms nor joins another cluster: with an empty
        /// data directory (for example because a volume is not mounted) it waits and logs the
        /// reason. Unset: any cluster.
        cluster_id: Option<Text<ClusterId>> = None,
    }
    with {
        node: NodeSection,
        api: ApiSection,
        peer: PeerSection,
        admin: AdminSection,
        metrics: MetricsSection,
        web: WebSection,
        tls: TlsSection,
        cluster: ClusterSection,
        callers: CallersSection,
        reads: ReadsSection,
        auth: AuthSection,
        keystone: KeystoneSection,
        policy: PolicySettings,
        cors: CorsSettings,
        candidates: CandidateSettings,
        disk: DiskSection,
        backup: BackupSection,
        backup_s3: BackupS3Section,
        raft: RaftSection,
        log: LogSection,
        trace: TraceSection,
        audit: AuditSection,
    }
    lists {
        partitions: PartitionSection,
        fits: FitSection,
    }
}

impl Config {
    /// All settings, in the order of the file.
    pub fn settings() -> Vec<Setting> {
        let tables = Self::tables("").into_iter();
        tables.flat_map(|table| table.settings).collect()
    }

    /// The configuration in the form of a file, including defaults.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a table of texts, numbers, flags and lists can be written")
    }

    fn table(&self) -> toml::Table {
        toml::Table::try_from(self).expect("a table of texts, numbers, flags and lists")
    }

    /// The settings, as `section.key`, whose value in `other` differs.
    pub fn differs_in(&self, other: &Self) -> Vec<String> {
        let (ours, theirs) = (self.table(), other.table());
        let (own, given) = (&self.keystone, &other.keystone);
        let mut paths: Vec<String> = (Self::settings().iter())
            .filter(|setting| match setting.path().as_str() {
                // The tables do not contain secrets.
                "keystone.password" => own.password != given.password,
                "keystone.application_credential_secret" => {
                    own.application_credential_secret != given.application_credential_secret
                }
                _ => value(&ours, setting) != value(&theirs, setting),
            })
            .map(Setting::path)
            .collect();
        for list in LISTS {
            if ours.get(list) != theirs.get(list) {
                paths.push(list.to_owned());
            }
        }
        paths
    }

    /// The part for the cluster.
    pub(crate) fn for_cluster(&self) -> placement_cluster::Settings {
        placement_cluster::Settings {
            node_id: self.node_id,
            data_dir: self.data_dir.clone(),
            initial_members: self.initial_members.clone(),
            cluster_id: self.cluster_id(),
            api_requires_tls: self.api.tls == ApiTls::Require,
            admin_requires_tls: self.admin.tls == AdminTls::Require,
            node: self.node.clone(),
            cluster: self.cluster.clone(),
            disk: self.disk.clone(),
            backup: self.backup.clone(),
            backup_s3: self.backup_s3.clone(),
            raft: self.raft.clone(),
        }
    }

    /// The part for the API.
    ///
    /// # Errors
    /// The settings contradict each other.
    pub fn api_settings(&self) -> Result<ApiSettings, Invalid> {
        let site = self.node.site();
        let named = [("region", site.region), ("zone", site.zone)];
        let named = named.iter().filter(|(_, name)| !name.is_empty());
        self.auth.check(&self.api, &self.keystone)?;
        Ok(ApiSettings {
            site: named.map(|(key, name)| format!("; {key}={name}")).collect(),
            callers: self.callers.clone(),
            public: self.api.public_address()?,
            reads: self.reads.clone(),
            auth: self.auth.clone(),
            policy: self.policy.clone(),
            cors: self.cors.clone(),
            candidates: self.candidates.clone(),
            fits: self.fits.clone(),
            ..ApiSettings::default()
        })
    }

    /// The listeners that use TLS, and the files that they use.
    ///
    /// # Errors
    /// A file is not set.
    pub(crate) fn secured(&self) -> Result<ListenerTls, Invalid> {
        let api = &self.api;
        let own = (api.tls_cert_file.as_deref(), api.tls_key_file.as_deref());
        Ok(ListenerTls {
            peer: match self.peer.tls {
                PeerTls::Off => None,
                mode => Some((mode, self.tls.cluster_files()?)),
            },
            admin: self.admin.certificates(&self.tls)?,
            api: match api.tls {
                ApiTls::Off => None,
                mode => {
                    let authorities = api.tls_client_ca_file.clone();
                    let files = self.tls.for_clients(own, authorities)?;
                    Some((mode == ApiTls::Allow, files))
                }
            },
            web: self.web.certificates(self.auth.strategy, own, &self.tls)?,
        })
    }

    /// The cluster to which this node is bound, if it is.
    pub fn cluster_id(&self) -> Option<Uuid> {
        self.cluster_id.as_ref().map(|id| id.0.0)
    }

    /// Checks each table, and the tables together.
    ///
    /// # Errors
    /// The setting that is invalid, and valid values.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.node_id == 0 {
            let message = "a node needs a number, 1 or more, that no other node of its cluster has \
                or has had, such as --node-id 1; `placementd config sample` prints all settings";
            return Err(Invalid::new("node_id", message));
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(Invalid::new("data_dir", "is empty"));
        }
        self.validate_listeners()?;
        self.node.check()?;
        self.validate_members()?;
        self.raft.check()?;
        self.cluster.check(&self.raft)?;
        self.backup.check(&self.data_dir, &self.backup_s3)?;
        self.api_settings()?;
        self.secured()?;
        self.trace.check()?;
        self.audit.check(&self.data_dir)?;
        check_fits(&self.fits)?;
        self.validate_partitions()
    }

    /// The listening and the advertised address of each listener.
    fn listeners(&self) -> [(&'static str, &str, &str); 5] {
        [
            ("api", &self.api.listen, &self.api.advertise),
            ("peer", &self.peer.listen, &self.peer.advertise),
            ("admin", &self.admin.listen, &self.admin.advertise),
            ("metrics", &self.metrics.listen, ""),
            ("web", &self.web.listen, ""),
        ]
    }

    fn validate_listeners(&self) -> Result<(), Invalid> {
        for (key, listen, advertise) in self.listeners() {
            if listen.is_empty() && matches!(key, "admin" | "metrics" | "web") {
                continue;
            }
            check_address(&format!("{key}.listen"), listen, true)?;
            let is_wildcard = listen.starts_with("0.0.0.0:") || listen.starts_with("[::]:");
            let path = format!("{key}.advertise");
            if !advertise.is_empty() {
                check_address(&path, advertise, false)?;
            } else if is_wildcard && !matches!(key, "metrics" | "web") {
                let others = match key {
                    "peer" => "other nodes",
                    "admin" => "operators",
                    _ => "clients",
                };
                let (_, port) = listen.rsplit_once(':').unwrap_or_default();
                let message = format!(
                    "is required, because {others} cannot connect to {listen}: set an address of \
                     this node that they reach, such as 10.0.0.1:{port}"
                );
                return Err(Invalid::new(&path, message));
            }
        }
        match self.api.max_connections {
            0 => Err(Invalid::new("api.max_connections", "must not be 0")),
            _ => Ok(()),
        }
    }

    fn validate_members(&self) -> Result<(), Invalid> {
        let invalid = |message: String| Err(Invalid::new("initial_members", message));
        let mut ids = BTreeSet::new();
        for member in &self.initial_members {
            if !ids.insert(member.id) {
                return invalid(format!(
                    "contains node {} twice: give each node a number of its own",
                    member.id
                ));
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        if self.cluster.joins() {
            let message =
                "cannot be set together with initial_members: a node forms a cluster or joins one";
            return Err(Invalid::new("cluster.join", message));
        }
        if ids.contains(&self.node_id) {
            return Ok(());
        }
        let named: Vec<String> = ids.iter().map(u64::to_string).collect();
        let (own, named) = (self.node_id, named.join(", "));
        invalid(format!(
            "names {named}, but not this node: add \"{own}=HOST:PEER_PORT\" on all nodes, or correct \
             node_id, which is {own}"
        ))
    }

    fn validate_partitions(&self) -> Result<(), Invalid> {
        for (place, partition) in self.partitions.iter().enumerate() {
            partition.check(&self.partitions[..place])?;
            let address = partition.listen.as_str();
            let can_clash = !address.is_empty() && !address.ends_with(":0");
            let mut others = self.listeners().into_iter();
            let taken = others.find(|(_, listen, _)| can_clash && *listen == address);
            if let Some((key, ..)) = taken {
                let message = format!("{address} is already {key}.listen");
                return Err(partition.invalid("listen", &message));
            }
            let open = self.auth.check_open("partitions.listen", address);
            open.map_err(|open| partition.invalid("listen", &open.message))?;
        }
        Ok(())
    }
}

/// The value of a setting in a configuration.
fn value<'a>(table: &'a toml::Table, setting: &Setting) -> Option<&'a toml::Value> {
    match setting.section {
        "" => table.get(setting.key),
        section => table.get(section)?.get(setting.key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(name: &str, listen: &str) -> PartitionSection {
        PartitionSection {
            name: name.to_owned(),
            listen: listen.to_owned(),
            ..PartitionSection::default()
        }
    }

    fn refused(partitions: Vec<PartitionSection>) -> Option<String> {
        let config = Config {
            node_id: 1,
            partitions,
            ..Config::default()
        };
        config.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn a_node_without_a_number_names_the_next_step() {
        let missing = Config::default().validate().unwrap_err().to_string();
        for words in ["`node_id`: ", "--node-id 1", "`placementd config sample`"] {
            assert!(missing.contains(words), "{missing}");
        }
    }

    #[test]
    fn partitions_with_listeners_of_their_own_are_accepted() {
        let two = ["north", "south"].map(|name| partition(name, "127.0.0.1:0"));
        assert_eq!(refused(two.to_vec()), None);
        assert_eq!(refused(vec![partition("north", "")]), None);
    }

    #[test]
    fn invalid_partition_table_is_refused_with_the_reason() {
        let listen = |name: &str| partition(name, "127.0.0.1:9000");
        for (partitions, words) in [
            (vec![partition("default", "")], "[api]"),
            (vec![partition("North", "")], "partition name"),
            (vec![listen("north"), partition("north", "")], "given twice"),
            (
                vec![listen("north"), listen("south")],
                "the listener of partition north",
            ),
            (vec![partition("a", "127.0.0.1:8778")], "already api.listen"),
            (
                vec![partition("a", "10.0.0.1:8778")],
                "noauth2 trusts every caller",
            ),
            (vec![partition("a", "nowhere")], "host:port"),
        ] {
            let error = refused(partitions.clone());
            assert!(
                error.as_ref().is_some_and(|error| error.contains(words)),
                "{partitions:?}: {error:?}"
            );
        }
    }
}
