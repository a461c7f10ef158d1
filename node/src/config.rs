//! Everything an operator can choose, in one place. Each setting is a line here, and by that a key
//! of the TOML file, a variable `PLACEMENTD_SECTION_KEY` and a flag `--section-key`; what is set
//! later in this order wins. `placementd --help` prints these lines.

mod api_settings;
mod audit;
mod compress;
mod distance;
mod keystone;
mod load;
mod options;
mod partitions;
mod reads;
mod shared;
mod tls;

use std::path::PathBuf;
use std::time::Duration;

use placement_model::Level;
use placement_raft_store::{NodeName, Site};
use uuid::Uuid;

use crate::http::{PathPrefix, PublicAddress, PublicUrl};
pub(crate) use audit::{AuditMode, Target};
pub(crate) use compress::Compress;
pub(crate) use keystone::{Credentials, Place, base_url};
pub use load::ConfigError;
use options::section;
pub use options::{Kind, Secret, Setting};
pub use partitions::PartitionSection;
pub(crate) use tls::{CertificateFiles, TlsMode};

section! {
    /// The configuration of one node.
    Config {
        /// This node's number in its cluster, 1 or more. A number is never used twice, not even
        /// after its node was removed or lost its disk. Required.
        node_id: u64 = 0,
        /// Directory of this node's data; made if missing. Belongs to one node of one cluster.
        data_dir: PathBuf = PathBuf::from("/var/lib/placementd"),
        /// The nodes that form a new cluster, as `ID=HOST:PEER_PORT`, the same list on each of them;
        /// they wait until all of them are up. Ignored once this node belongs to a cluster. Empty:
        /// this node waits until it is added with `placementctl members add`.
        initial_members: Vec<String> = Vec::new(),
        /// The cluster of this node, a UUID as `placementctl status` shows it; to be set once the cluster
        /// is formed. A node that is given it forms and joins no other: with an empty data directory
        /// (a volume that is not mounted) it waits and says so. Empty: any cluster.
        cluster_id: String = String::new(),
    }
    with {
        /// Where this node stands.
        node: NodeSection,
        /// The REST API.
        api: ApiSection,
        /// Traffic between nodes.
        peer: PeerSection,
        /// The door for operators.
        admin: AdminSection,
        /// The door for monitoring.
        metrics: MetricsSection,
        /// This node's certificate.
        tls: TlsSection,
        /// The most that one request may carry.
        limits: LimitsSection,
        /// Waiting for the cluster.
        cluster: ClusterSection,
        /// The most that one caller may ask.
        callers: CallersSection,
        /// What reads promise.
        reads: ReadsSection,
        /// Who callers are.
        auth: AuthSection,
        /// Asking Keystone.
        keystone: KeystoneSection,
        /// Who may do what.
        policy: PolicySection,
        /// Calls from web pages.
        cors: CorsSection,
        /// The allocation-candidate search.
        candidates: CandidatesSection,
        /// Room on the disk.
        disk: DiskSection,
        /// Backups that this node makes by itself.
        backup: BackupSection,
        /// Copies of these backups in a store that speaks S3.
        backup_s3: BackupS3Section,
        /// Replication.
        raft: RaftSection,
        /// Logging.
        log: LogSection,
        /// Who did what.
        audit: AuditSection,
    }
    lists {
        /// The clouds that this node serves beside the default one.
        partitions: PartitionSection,
    }
}

section! {
    /// `[node]`.
    NodeSection {
        /// What this node is called beside its number, by operators and their tools: letters, digits, dots, dashes and
        /// underscores, and no other node's. Empty: as it was called before, at first `node-NUMBER`.
        name: String = String::new(),
        /// The region in which this node stands: what fails together with no other region. Empty: none is named.
        region: String = String::new(),
        /// The zone in which it stands: what fails together within its region. Empty: none is named.
        zone: String = String::new(),
    }
}

section! {
    /// `[api]`.
    ApiSection {
        /// Address of the REST API, `host:port`. Also answers `/livez` and `/readyz`.
        listen: String = "127.0.0.1:8778".to_owned(),
        /// The address that clients reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// Path below which the API is served, e.g. `/placement`; empty: at the root. With a prefix,
        /// nothing but it, `/`, `/livez`, `/readyz` and `/openapi.json` is served.
        prefix: String = String::new(),
        /// URL with which `Location` begins, e.g. `https://cloud.example/placement`, where all clients
        /// come through one address; its path begins all links. Empty: what the request says.
        public_url: String = String::new(),
        /// Whether `Forwarded` and `X-Forwarded-Proto`, `-Host`, `-Prefix` and `-For` are believed.
        /// Only behind a proxy that replaces what clients send in them.
        trust_proxy_headers: bool = false,
        /// Whether `GET /` is answered 503 while `/readyz` is, for balancers that ask nothing else.
        root_reflects_readiness: bool = true,
        /// Longest request body, in bytes.
        max_body_bytes: usize = 16 * 1024 * 1024,
        /// Most bytes of bodies and answers at once, in all requests; a body counts eightfold, as reading it
        /// takes that, and the first 64 KiB of each request do not count. Requests beyond it are answered 503.
        in_flight_max_bytes: usize = 256 * 1024 * 1024,
        /// Most connections at once; over further ones only health is told, all else is answered 503.
        max_connections: usize = 4096,
        /// Most connections from one address, or from one /64 network of IPv6; 0: no bound. Behind a proxy
        /// all clients come from one address.
        max_connections_per_address: usize = 1024,
        /// How long a client may take to send the head of a request, from the end of the answer before:
        /// idle connections are closed after it, too, those of HTTP/2 included. In milliseconds.
        header_timeout_ms: u64 = 30_000,
        /// How long a client may take to send a body, in milliseconds.
        body_timeout_ms: u64 = 60_000,
        /// How fast a client must send a body and take an answer, in bytes a second, after the first
        /// ten seconds that it keeps this node waiting.
        min_bytes_per_s: u64 = 1024,
        /// How long a stopping node answers as before while `/readyz` says 503 already, so that balancers send
        /// it nothing more, in milliseconds: two or three of their checks. A node that was drained with
        /// `placementctl drain` does not wait.
        drain_notice_ms: u64 = 5_000,
        /// How long a stopping node waits for requests that are being answered, in milliseconds.
        drain_ms: u64 = 5_000,
        /// Whether clients come by https. `off`; `allow`: those that begin so; `require`: all.
        tls: String = "off".to_owned(),
        /// PEM file with the certificate that clients are shown, and behind it what leads to its authority; unset:
        /// that of `[tls]`. It and its key are read again when they change.
        tls_cert_file: Option<PathBuf> = None,
        /// PEM file with the key of it.
        tls_key_file: Option<PathBuf> = None,
        /// PEM file with the authorities that vouch for the proxies in front; unset: no client shows a certificate.
        /// Whoever shows one of theirs is believed with `[auth] strategy = "proxy"`.
        tls_client_ca_file: Option<PathBuf> = None,
    }
}

section! {
    /// `[peer]`.
    PeerSection {
        /// Address for the other nodes, `host:port`.
        listen: String = "127.0.0.1:18779".to_owned(),
        /// The address that the other nodes reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// A connection that answers nothing for this long while an answer is due is given up,
        /// in milliseconds.
        silence_ms: u64 = 1_000,
        /// How long connecting may take, in milliseconds.
        connect_ms: u64 = 1_000,
        /// Whether log entries, snapshots and writes go to other nodes compressed, where that makes them shorter.
        /// `regions`: to nodes of other regions; `always`; `never`. Nodes that cannot read it are sent all as it is.
        compress: String = "regions".to_owned(),
        /// Whether nodes speak with each other by TLS, with `[tls]`. `off`; `allow`: those that begin so, while
        /// this node itself connects plainly; `prefer`: this node connects so, and takes both; `require`: always.
        /// Change it on a running cluster step by step, on all nodes each.
        tls: String = "off".to_owned(),
    }
}

section! {
    /// `[admin]`.
    AdminSection {
        /// Socket for `placementctl` on this machine, for this process's user alone: a path, below the data
        /// directory if it is relative; empty: none.
        socket: PathBuf = PathBuf::from("admin.sock"),
        /// Address for `placementctl` on other machines, `host:port`, which also answers health checks and
        /// `/metrics`; empty: none.
        listen: String = String::new(),
        /// The address that operators reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// `require`: who has an operator's certificate is obeyed, over TLS, with `[tls]`. `off`: whoever connects.
        tls: String = "off".to_owned(),
        /// Whether `listen` may be another address than loopback although TLS is off.
        plain_beyond_loopback: bool = false,
    }
}

section! {
    /// `[metrics]`.
    MetricsSection {
        /// Address for `/metrics`, `/livez` and `/readyz` alone, `host:port`, without TLS; empty: none.
        listen: String = String::new(),
    }
}

section! {
    /// `[tls]`: what this node and the others of its cluster know each other by. `placementctl tls` makes it.
    TlsSection {
        /// PEM file with the authorities of this cluster: they vouch for its nodes and operators, and for nobody
        /// else. These three files are read again when they change.
        ca_file: Option<PathBuf> = None,
        /// PEM file with this node's certificate, for `node-ID.placement.internal` and `peer.placement.internal`,
        /// and behind it what leads to an authority.
        cert_file: Option<PathBuf> = None,
        /// PEM file with the key of it.
        key_file: Option<PathBuf> = None,
    }
}

section! {
    /// `[limits]`. What is over one of them is answered 400, 414 for the URL and 413 for the command, with
    /// its name.
    LimitsSection {
        /// Longest URL, in bytes. Above 65,534 it is refused in any case.
        uri_bytes: usize = 32 * 1024,
        /// Most parameters in a query string.
        query_parameters: usize = 1_000,
        /// Most groups in a request for allocation candidates.
        request_groups: usize = 200,
        /// Most JSON values in a body: texts, numbers, lists, objects.
        json_values: usize = 500_000,
        /// Most inventories in a body, of all its providers together.
        inventories: usize = 10_000,
        /// Most traits of a provider in a body.
        traits: usize = 1_000,
        /// Most aggregates of a provider in a body.
        aggregates: usize = 1_000,
        /// Most providers that one reshape gives inventories.
        providers: usize = 1_000,
        /// Most consumers in a body.
        consumers: usize = 10_000,
        /// Most allocations in a body: a class of a provider for a consumer is one.
        allocations: usize = 100_000,
        /// Longest record of a command in the log, in bytes; one that is longer is answered 413. Between
        /// 64 KiB and 32 MiB.
        command_bytes: usize = 4 * 1024 * 1024,
    }
}

section! {
    /// `[callers]`. What is over one of them is answered 429 with `Retry-After` and its name; 0: no bound. All of it
    /// holds for each node by itself.
    CallersSection {
        /// Most requests of one user that are being answered at once. All of Nova is one user.
        user_in_flight: usize = 2048,
        /// Most requests a second of one user; so many may come at once.
        user_per_s: u64 = 20_000,
        /// Most requests from one address, or from one /64 network of IPv6, that are being answered at once.
        address_in_flight: usize = 1024,
        /// Most requests a second from one address; so many may come at once.
        address_per_s: u64 = 20_000,
    }
}

section! {
    /// `[cluster]`.
    ClusterSection {
        /// How long a request waits for a leader, for its write's outcome or for its read's promise
        /// before it is answered 503, in milliseconds.
        wait_ms: u64 = 5_000,
        /// `/readyz` fails when this node is further behind what it knows to be committed, in log
        /// entries.
        ready_lag_max: u64 = 10_000,
        /// How long writes may have to wait behind others, in milliseconds. When a node, or the leader,
        /// has more than it has lately carried out within that time, further ones are answered 503 at
        /// once, so that those who wait are answered while they wait. 0: no bound.
        backlog_ms: u64 = 1_000,
        /// Most bytes of writes that the leader has and has not answered; further ones are answered 503.
        backlog_bytes: usize = 64 * 1024 * 1024,
        /// Highest feature level to which this node agrees; 0: the highest that its version knows.
        /// Set on one node, it keeps the way back to the version before open for all of them while
        /// an upgrade is tried. What the cluster has reached already is not affected.
        level_max: u64 = 0,
        /// Nodes of a cluster that this node is to join while its data directory is empty: their addresses for other
        /// nodes, `host:port`. Names are looked up anew each time. Once it belongs to a cluster, this counts for nothing.
        join: Vec<String> = Vec::new(),
        /// File with the token for that, which `placementctl join-token create` has shown.
        join_token_file: Option<PathBuf> = None,
        /// How long a voter may not be heard before a learner of its zone, or else of its region, that has caught up gets
        /// its vote, in seconds; the voter stays a member without one. Never while a majority would not be heard
        /// afterwards. 0: an operator decides.
        autopilot_after_s: u64 = 0,
        /// Where the leader is to be: regions, or `REGION/ZONE`, the best first, the same list on each node.
        /// Leadership moves there while a voter there is heard, has caught up and is not drained; never without.
        leader_preference: Vec<String> = Vec::new(),
        /// Which single loss the voters are to survive: `node`, `zone` or `region`, the same on each node. A change of
        /// them that would make such a loss stop the cluster is refused without `--force`. Empty: none is refused.
        survive: String = String::new(),
    }
}

section! {
    /// `[reads]`.
    ReadsSection {
        /// What a read promises when the client does not say: `linearizable`, `bounded;max=SECONDS`
        /// or `local`.
        default: String = "linearizable".to_owned(),
        /// The same by what is read. `strict`: `default` for all. `regional`: allocation candidates, traits and resource
        /// classes are bounded, all else is linearizable. `edge`: all is bounded, and local while this node is cut off,
        /// when it stays ready.
        profile: String = "strict".to_owned(),
        /// The bound of these profiles, in milliseconds; 0: 250 for `regional`, 2000 for `edge`, which is to be more than
        /// `probe_ms`.
        bound_ms: u64 = 0,
        /// Whether answers carry a cookie, `placement-session`, by which clients that keep cookies read what they have
        /// written and seen, whichever node of one host name they are sent to.
        session_cookie: bool = false,
        /// How often an idle node asks the leader how far it should be, in milliseconds; bounds
        /// what `Placement-Staleness` can say. 0: never.
        probe_ms: u64 = 1_000,
    }
}

section! {
    /// `[disk]`.
    DiskSection {
        /// Room below which a disk counts as nearly full, in bytes. While those of a majority are, writes
        /// that need room are answered 507, and what takes away is carried out. 0: never.
        min_free_bytes: u64 = 256 * 1024 * 1024,
        /// How long one call to the disk may take before the process ends, so that the others are not
        /// kept waiting by a node that is neither well nor gone, in milliseconds. A tenth of it costs
        /// a leader its office. 0: for ever.
        hung_after_ms: u64 = 30_000,
    }
}

section! {
    /// `[backup]`.
    BackupSection {
        /// Directory for backups of this node and for the log since the oldest of them; each cluster and node
        /// has a directory of its own below it. On another disk than `data_dir`. Empty: none are made.
        directory: Option<PathBuf> = None,
        /// How often a backup is made, in seconds.
        every_s: u64 = 3_600,
        /// How many backups are kept; the oldest goes once a new one is whole and was read again.
        keep: u64 = 24,
    }
}

section! {
    /// `[backup_s3]`. The credentials are `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if there is one,
    /// `AWS_SESSION_TOKEN` of the environment, or in a file; none of them is a setting.
    BackupS3Section {
        /// Bucket of a store that speaks S3 (Ceph's RGW, MinIO, AWS), into which what is in `[backup] directory`
        /// is copied. It has to exist. Empty: into none.
        bucket: String = String::new(),
        /// URL of the store, e.g. `https://rgw.example:7480`. Empty: AWS, in `region`.
        endpoint: String = String::new(),
        /// Region that requests are signed for; the store says which, and most say this one.
        region: String = "us-east-1".to_owned(),
        /// Path in the bucket below which the copies are; each cluster and node has one of its own below it.
        prefix: String = String::new(),
        /// Whether the bucket stands in the path of URLs, as most stores want it, or in the name of the host.
        path_style: bool = true,
        /// Whether `endpoint` may begin with `http:`: whoever is on the way can read the backups then.
        allow_http: bool = false,
        /// PEM file with the certificates of those who may vouch for the store; unset: those that this
        /// machine trusts.
        ca_file: Option<PathBuf> = None,
        /// File with `aws_access_key_id = …` and `aws_secret_access_key = …`, as AWS's tools have it; unset: the
        /// credentials are those of the environment.
        credentials_file: Option<PathBuf> = None,
        /// How often the newest part of the log is copied if there is more of it, in seconds. What is lost with
        /// all nodes is what was written since.
        log_every_s: u64 = 10,
        /// How long one request to the store may take before it is given up, in seconds; 8 MiB are the most
        /// that one carries.
        timeout_s: u64 = 60,
    }
}

section! {
    /// `[auth]`.
    AuthSection {
        /// How callers are identified: `keystone` asks Keystone whose their tokens are, `proxy` believes the
        /// proxy in front, and `noauth2` believes whoever asks.
        strategy: String = "noauth2".to_owned(),
        /// Whether `noauth2` may be used on an address that other machines reach: whoever reaches it is admin.
        noauth2_beyond_loopback: bool = false,
        /// Addresses and networks of the proxies whose headers `proxy` believes, e.g. `10.0.0.5,10.1.0.0/16`.
        proxy_addresses: Vec<String> = Vec::new(),
    }
}

section! {
    /// `[keystone]`, for `[auth] strategy = "keystone"`. Most are those of `[keystone_authtoken]`. This service is
    /// either a user with a password or an application credential.
    KeystoneSection {
        /// Keystone's URL, with or without `/v3`; several, separated by commas, are tried in turn.
        auth_url: String = String::new(),
        /// This service's user.
        username: String = String::new(),
        /// Its password. Not a flag: other users of a machine see those.
        password: Secret = Secret::default(),
        /// The domain of the user.
        user_domain_name: String = "Default".to_owned(),
        /// The project in which the user may ask about tokens.
        project_name: String = "service".to_owned(),
        /// The domain of the project.
        project_domain_name: String = "Default".to_owned(),
        /// Id of an application credential, in place of user and password.
        application_credential_id: String = String::new(),
        /// Its secret. Not a flag.
        application_credential_secret: Secret = Secret::default(),
        /// Where clients get tokens, as 401 tells them; empty: `auth_url`.
        www_authenticate_uri: String = String::new(),
        /// PEM file with the certificates of those who may vouch for Keystone; unset: those that this machine
        /// trusts.
        cafile: Option<PathBuf> = None,
        /// Which of Keystone's endpoints in the catalog is asked about tokens: `internal`, `public` or `admin`.
        /// If there is none, `auth_url` is asked.
        interface: String = "internal".to_owned(),
        /// Of which region; empty: of any.
        region_name: String = String::new(),
        /// Roles with which a service may come (`X-Service-Token`) with a user's token that has expired by then.
        service_token_roles: Vec<String> = vec!["service".to_owned()],
        /// Whether a service token without any of these roles is refused.
        service_token_roles_required: bool = true,
        /// How long what Keystone said of a token counts, in seconds; never beyond the token's end. A token that is
        /// revoked may be used for so long. That Keystone does not know a token counts for 5 s at most. 0: each request is
        /// asked about.
        token_cache_time_s: u64 = 300,
        /// How long one question may take before the next URL is tried, in milliseconds.
        timeout_ms: u64 = 5_000,
    }
}

section! {
    /// `[policy]`.
    PolicySection {
        /// Rules in oslo.policy's YAML syntax that override the defaults; re-read when it changes. Unset: no
        /// file is looked for. One that is named and cannot be used is refused.
        file: Option<PathBuf> = None,
        /// Directories with more such files. Those of each are read in the order of their names, and what is
        /// read later overrides what was read before.
        policy_dirs: Vec<String> = Vec::new(),
        /// Whether the new defaults alone count; otherwise the rules of before 2023 count too.
        enforce_new_defaults: bool = true,
        /// Whether system-scoped tokens are refused.
        enforce_scope: bool = true,
    }
}

section! {
    /// `[cors]`.
    CorsSection {
        /// Origins whose web pages may call the API; empty: none, `*`: all.
        allowed_origin: Vec<String> = Vec::new(),
        /// Request headers that such pages may send.
        allow_headers: Vec<String> = [
            "X-Auth-Token", "X-Openstack-Request-Id", "X-Identity-Status", "X-Roles", "X-Service-Catalog",
            "X-User-Id", "X-Tenant-Id", "OpenStack-API-Version",
        ].map(str::to_owned).to_vec(),
        /// Methods that such pages may use.
        allow_methods: Vec<String> = ["GET", "PUT", "POST", "DELETE", "PATCH"].map(str::to_owned).to_vec(),
        /// Response headers that such pages may read.
        expose_headers: Vec<String> = [
            "X-Auth-Token", "X-Openstack-Request-Id", "X-Subject-Token", "X-Service-Token",
            "OpenStack-API-Version",
        ].map(str::to_owned).to_vec(),
        /// Whether such pages may send credentials.
        allow_credentials: bool = true,
        /// How long a preflight answer may be remembered, in seconds.
        max_age_s: u64 = 3_600,
    }
}

section! {
    /// `[candidates]`.
    CandidatesSection {
        /// Whether candidates are answered in random order, with a limit from a random root on.
        randomize: bool = false,
        /// Most allocation requests in one answer, also when the client asks for more; 0: no bound.
        max: usize = 0,
        /// `depth-first` or `breadth-first` (fair over the providers).
        generation_strategy: String = "depth-first".to_owned(),
        /// Most searches at once; 0: as many as this machine has processors. Half as many long lists
        /// (of providers, of a provider's allocations) are made beside them.
        concurrency: usize = 0,
        /// Most searches, and most long lists, that wait for their turn; further ones are answered 503.
        queue: usize = 128,
        /// Longest search, in milliseconds from when its request came in; a list waits no longer for its turn.
        deadline_ms: u64 = 10_000,
        /// Most memory for one answer, in bytes.
        memory_max_bytes: usize = 128 * 1024 * 1024,
    }
}

section! {
    /// `[raft]`.
    RaftSection {
        /// The longest round trip between two voters, in milliseconds. The times `heartbeat_ms`, `election_min_ms`,
        /// `election_max_ms`, `[peer] silence_ms` and `connect_ms` follow it where they are not set, and a node does
        /// not start with ones that are too short for it. 0: up to 125 ms, for which the defaults are made.
        round_trip_ms: u64 = 0,
        /// How often a leader makes itself heard, in milliseconds.
        heartbeat_ms: u64 = 250,
        /// Shortest silence of the leader before an election, in milliseconds.
        election_min_ms: u64 = 1_000,
        /// Longest silence of the leader before an election, in milliseconds. A node that heard a
        /// leader waits this long, and then a random part of the time between the shortest and this.
        election_max_ms: u64 = 1_500,
        /// The state is brought to the disk after this many log entries, and the log cut behind it; that of a
        /// large state (over 16 MiB) when the log has half its size.
        snapshot_after: u64 = 20_000,
        /// Log entries kept although the log could be cut behind them, so that a node that was briefly away
        /// need not be sent the whole state.
        log_keep: u64 = 20_000,
        /// Most log entries in one message.
        append_entries_max: u64 = 1_000,
        /// Most bytes of log entries in one message; one entry always fits.
        append_bytes_max: usize = 4 * 1024 * 1024,
        /// Bytes of a snapshot per message.
        snapshot_chunk_bytes: usize = 1024 * 1024,
        /// How fast a snapshot is sent to another node at most, in bytes a second; 0: as fast as half of
        /// what link and disks can bear, which is never exceeded.
        snapshot_bytes_per_s: u64 = 64 * 1024 * 1024,
        /// How long sending and installing a snapshot may take, in milliseconds; the next attempt goes on
        /// where this one ended.
        snapshot_timeout_ms: u64 = 600_000,
        /// A learner may be promoted once it lacks no more than this many log entries.
        promote_lag_max: u64 = 1_000,
    }
}

section! {
    /// `[log]`.
    LogSection {
        /// `human` or `json`.
        format: String = "human".to_owned(),
        /// What is logged, e.g. `info`, `debug` or `info,placement_node=debug`. By default openraft
        /// keeps quiet, as it repeats what this node says of its peers and of leadership.
        level: String = "info,openraft=error".to_owned(),
    }
}

section! {
    /// `[audit]`.
    AuditSection {
        /// Where a record of each write, of each refused request and of each operator's action goes, as a line of JSON:
        /// `none`, `file` or `stderr`.
        to: String = "none".to_owned(),
        /// The file; made if missing, for its owner alone. Its directory has to be there. SIGHUP opens it again, for
        /// logrotate.
        file: PathBuf = PathBuf::from("/var/log/placementd/audit.log"),
        /// `strict`: a write is acknowledged once its record is on the disk (standard error: once it is written), and
        /// answered 503 while none can be kept (a full disk, one that hangs). `best-effort`: a write waits for nothing,
        /// and a crash or a full disk takes records. Reads and other nodes go on in any case.
        mode: String = "strict".to_owned(),
    }
}

impl ClusterSection {
    /// Whether this node is to join a cluster if it has no data.
    pub(crate) fn joins(&self) -> bool {
        !self.join.is_empty()
    }
}

impl BackupS3Section {
    /// Whether copies are made.
    pub fn is_used(&self) -> bool {
        !self.bucket.is_empty()
    }

    /// Whether what goes over can be read on the way.
    pub(crate) fn is_plain(&self) -> bool {
        self.endpoint.starts_with("http://")
    }

    /// The URL of the bucket's host; `None`: AWS's.
    pub(crate) fn endpoint(&self) -> Option<String> {
        let (scheme, host) = self.endpoint.split_once("://")?;
        let host = host.trim_end_matches('/');
        Some(match self.path_style {
            true => format!("{scheme}://{host}"),
            false => format!("{scheme}://{}.{host}", self.bucket),
        })
    }
}

impl Config {
    /// Every setting, in the order of the file.
    pub fn settings() -> Vec<Setting> {
        let mut settings = Vec::new();
        Self::list("", &mut settings);
        settings
    }

    /// Where this node stands (`[node]`).
    pub(crate) fn site(&self) -> Site {
        Site {
            region: self.node.region.clone(),
            zone: self.node.zone.clone(),
        }
    }

    /// What it is called (`[node] name`); empty if that is not said.
    pub(crate) fn name(&self) -> Result<NodeName, ConfigError> {
        let name = self.node.name.parse();
        name.map_err(|wrong: String| ConfigError::invalid("node.name", wrong))
    }

    /// The configuration as a file would give it, defaults included.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a table of texts, numbers, flags and lists can be written")
    }

    /// The settings, as `section.key`, that `other` gives another value.
    pub fn differs_in(&self, other: &Self) -> Vec<String> {
        let table = |config: &Self| {
            toml::Table::try_from(config).expect("a table of texts, numbers, flags and lists")
        };
        let (ours, theirs) = (table(self), table(other));
        let value = |table: &toml::Table, setting: &Setting| match setting.section {
            "" => table.get(setting.key).cloned(),
            section => table.get(section)?.get(setting.key).cloned(),
        };
        let (own, given) = (&self.keystone, &other.keystone);
        let secrets_differ = |setting: &Setting| match setting.key {
            "password" => own.password != given.password,
            key => {
                key == "application_credential_secret"
                    && own.application_credential_secret != given.application_credential_secret
            }
        };
        (Self::settings().iter())
            .filter(|setting| match setting.kind {
                Kind::Secret => secrets_differ(setting),
                _ => value(&ours, setting) != value(&theirs, setting),
            })
            .map(Setting::path)
            .chain((self.partitions != other.partitions).then(|| "partitions".to_owned()))
            .collect()
    }

    /// How long a request waits for the cluster.
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.cluster.wait_ms)
    }

    /// The highest feature level to which this node agrees.
    pub(crate) fn level_max(&self) -> Level {
        match u32::try_from(self.cluster.level_max) {
            Ok(0) | Err(_) => Level::NEWEST,
            Ok(level) => Level::NEWEST.min(Level(level)),
        }
    }

    /// The cluster that this node is bound to, if it is.
    pub fn cluster_id(&self) -> Result<Option<Uuid>, ConfigError> {
        if self.cluster_id.is_empty() {
            return Ok(None);
        }
        match Uuid::try_parse(&self.cluster_id) {
            Ok(cluster) if !cluster.is_nil() => Ok(Some(cluster)),
            _ => Err(ConfigError::invalid(
                "cluster_id",
                format!("{:?} is not the UUID of a cluster", self.cluster_id),
            )),
        }
    }

    /// The initial members as `(id, peer address)`.
    pub fn initial_members(&self) -> Result<Vec<(u64, String)>, ConfigError> {
        self.initial_members
            .iter()
            .map(|text| load::member(text))
            .collect()
    }

    /// `[api] prefix`, `public_url` and `trust_proxy_headers`.
    pub fn public_address(&self) -> Result<PublicAddress, ConfigError> {
        let prefix: PathPrefix =
            (self.api.prefix.parse()).map_err(|why| ConfigError::invalid("api.prefix", why))?;
        let url = match self.api.public_url.as_str() {
            "" => None,
            text => Some(
                text.parse::<PublicUrl>()
                    .map_err(|why| ConfigError::invalid("api.public_url", why))?,
            ),
        };
        if let Some(url) = &url
            && !url.path.as_str().ends_with(prefix.as_str())
        {
            return Err(ConfigError::invalid(
                "api.public_url",
                format!("its path must end with api.prefix, {prefix}: nothing else is served"),
            ));
        }
        Ok(PublicAddress {
            prefix,
            url,
            trust_proxy_headers: self.api.trust_proxy_headers,
        })
    }
}
