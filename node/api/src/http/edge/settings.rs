//! The settings of the API, and its fixed limits.

use placement_policy::PolicySettings;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use placement_model::query::candidates::GenerationStrategy;
use serde::{Deserialize, Serialize};

use super::public_address::{PathPrefix, PublicAddress, PublicUrl};
use crate::keystone::KeystoneSection;
use placement_base::backend::Consistency;
use placement_base::settings::{Invalid, Text, is_loopback, settings};

/// Bytes of memory charged per byte of a complete body, as parsing needs that much.
pub(crate) const BODY_COST: usize = 8;
/// Maximum size of a request body, in bytes.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Minimum rate at which a client must send a body and receive an answer, in bytes per second,
/// after [`GRACE`]. Any link in a cloud is faster. The minimum limits how long a malicious client
/// can occupy memory.
pub const MIN_BYTES_PER_S: u64 = 64 * 1024;
/// How long this node waits for a client that sends or receives less than [`MIN_BYTES_PER_S`].
pub const GRACE: Duration = Duration::from_secs(10);

settings! {
    /// The REST API.
    ApiSection {
        /// Address of the REST API, `host:port`. Also answers `/livez` and `/readyz`.
        listen: String = "127.0.0.1:8778".to_owned(),
        /// The address that clients reach, `host:port`; empty: the address of `listen`.
        advertise: String = String::new(),
        /// Path below which the API is served, e.g. `/placement`; empty: at the root. In any case
        /// `/`, `/livez`, `/readyz` and `/openapi.json` are served at the root.
        prefix: Text<PathPrefix> = Text::default(),
        /// URL at which all clients reach the API, such as `https://cloud.example/placement`. The
        /// header `Location` of a response begins with this URL, and the links in a response body
        /// begin with its path. Unset: both are derived from the request.
        public_url: Option<Text<PublicUrl>> = None,
        /// Whether `Forwarded` and `X-Forwarded-Proto`, `-Host`, `-Prefix` and `-For` are trusted.
        /// Set it only behind a proxy that replaces these headers of clients.
        trust_proxy_headers: bool = false,
        /// Maximum number of connections. Connections beyond the limit get 503 for all requests
        /// except health checks. One address (or one /64 network of IPv6) may have a quarter of the
        /// connections. With `trust_proxy_headers` it may have all of them, because all clients
        /// connect from the proxy's address.
        max_connections: usize = 4096,
        /// How long a stopping node answers requests while `/readyz` is 503, so that load balancers
        /// stop sending requests to it, in milliseconds: two or three intervals of their health
        /// checks. A node that was drained with `placementctl drain` does not wait.
        drain_notice_ms: u64 = 5_000,
        /// Whether clients use TLS. `off`: never; `allow`: connections with and without TLS are
        /// accepted; `require`: only connections with TLS are accepted.
        tls: ApiTls = ApiTls::Off,
        /// PEM file with the certificate of the API, followed by intermediate certificates; unset:
        /// the certificate of `[tls]`. It is re-read with its key when they change.
        tls_cert_file: Option<PathBuf> = None,
        /// PEM file with the key of `tls_cert_file`.
        tls_key_file: Option<PathBuf> = None,
        /// PEM file with the CAs of the proxies' certificates; unset: no client certificate is
        /// requested. With `[auth] strategy = "proxy"` a client with such a certificate is trusted.
        tls_client_ca_file: Option<PathBuf> = None,
    }
}

/// Use of TLS by clients of the REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiTls {
    /// Only connections without TLS.
    Off,
    /// Connections with and without TLS.
    Allow,
    /// Only connections with TLS.
    Require,
}

impl ApiSection {
    /// Maximum number of connections from one address.
    pub fn max_connections_per_address(&self) -> usize {
        if self.trust_proxy_headers {
            usize::MAX
        } else {
            self.max_connections.div_ceil(4)
        }
    }

    /// The address from `prefix`, `public_url` and `trust_proxy_headers`.
    ///
    /// # Errors
    /// The path of `public_url` does not end with `prefix`.
    pub fn public_address(&self) -> Result<PublicAddress, Invalid> {
        let prefix = self.prefix.0.clone();
        let url = self.public_url.as_ref().map(|url| url.0.clone());
        if let Some(url) = &url
            && !url.path.as_str().ends_with(prefix.as_str())
        {
            return Err(Invalid::new(
                "api.public_url",
                format!(
                    "its path must end with {prefix}, the value of api.prefix: clients can reach \
                     the API only below that path"
                ),
            ));
        }
        Ok(PublicAddress {
            prefix,
            url,
            trust_proxy_headers: self.trust_proxy_headers,
        })
    }
}

/// The settings of one API.
#[derive(Default, Debug, Clone)]
pub struct ApiSettings {
    /// Region and zone (`[node]`), appended to this node's number in `Placement-Node`.
    pub site: String,
    /// The partition, unless it is the default one (`[[partitions]] name`).
    pub partition: Option<String>,
    /// Maximum number of requests in flight of all callers of the partition together
    /// (`[[partitions]] in_flight`); 0: no limit.
    pub in_flight: usize,
    /// Limits of a single request.
    pub limits: RequestLimits,
    /// Limits of each user and each address (`[callers]`).
    pub callers: CallersSection,
    /// The address at which clients reach the API (`[api] prefix`, `public_url`,
    /// `trust_proxy_headers`).
    pub public: PublicAddress,
    /// Default consistency of reads (`[reads]`).
    pub reads: ReadsSection,
    /// How callers are authenticated (`[auth]`).
    pub auth: AuthSection,
    /// How callers are authorized (`[policy]`).
    pub policy: PolicySettings,
    /// Which web pages may call the API (`[cors]`).
    pub cors: CorsSettings,
    /// Limits and order of the allocation-candidate search (`[candidates]`).
    pub candidates: CandidateSettings,
    /// The named queries (`[[fits]]`).
    pub fits: Vec<FitSection>,
}

settings! {
    /// A named query, for example of a flavor: `GET /placementd/v1/fits`, `placementctl fits` and
    /// the metric `placement_fits` have the number of times that it fits. These tables exist only
    /// in the file, and should be equal on all nodes.
    FitSection {
        /// Name of the query, for example the name of a flavor. Required.
        name: String = String::new(),
        /// Query string of `GET /allocation_candidates` at the newest microversion, such as
        /// `resources=VCPU:4,MEMORY_MB:8192&required=!COMPUTE_STATUS_DISABLED`. Required.
        query: String = String::new(),
    }
}

settings! {
    /// Limits on the requests in flight of one caller. A request above a limit gets 429 with the
    /// name of the limit; 0: no limit. Each node counts only its own requests.
    CallersSection {
        /// Maximum number of requests in flight of one user. All Nova services together are one
        /// user.
        user_in_flight: usize = 2048,
        /// Maximum number of requests in flight from one address, or from one /64 network of IPv6.
        address_in_flight: usize = 1024,
    }
}

settings! {
    /// Limits of a single request. A command uses memory on every node of the cluster and blocks
    /// all other commands while it is applied, so its size is limited in advance. No correct client
    /// of Placement comes near these limits.
    RequestLimits {}
    fixed {
        /// Maximum length of the path with its query, in bytes. The crate `http` allows at most
        /// 65,534.
        uri_bytes: usize = 32 << 10,
        /// Maximum number of query parameters.
        query_parameters: usize = 1_000,
        /// Maximum number of groups in a request for allocation candidates.
        request_groups: usize = 200,
        /// Maximum size of a body, in bytes. It travels between nodes in one message of at most 32
        /// MiB.
        body_bytes: usize = BODY_BYTES_MAX,
        /// Time limit for reading a body.
        body_timeout: Duration = Duration::from_secs(60),
        /// Maximum bytes of memory for the bodies of all requests in flight, and the same again for
        /// their answers: twice the memory that the longest body needs.
        in_flight_bytes: usize = 2 * BODY_COST * BODY_BYTES_MAX,
        /// Maximum number of JSON values of all kinds in a body.
        json_values: usize = 500_000,
        /// Maximum number of inventories of all providers in a body.
        inventories: usize = 10_000,
        /// Maximum number of traits of a provider.
        traits: usize = 1_000,
        /// Maximum number of aggregates of a provider.
        aggregates: usize = 1_000,
        /// Maximum number of providers with inventories in a reshape.
        providers: usize = 1_000,
        /// Maximum number of consumers in a body.
        consumers: usize = 10_000,
        /// Maximum number of allocations in a body; each class of a provider for a consumer is one.
        allocations: usize = 100_000,
    }
}

settings! {
    /// Authentication of callers.
    AuthSection {
        /// How callers are authenticated: `keystone` validates their tokens with Keystone, `proxy`
        /// trusts the proxy in front, and `noauth2` trusts every caller.
        strategy: AuthStrategy = AuthStrategy::Noauth2,
        /// Whether `noauth2` is allowed on an address that other machines can reach: every client
        /// that reaches it can act as admin.
        noauth2_beyond_loopback: bool = false,
        /// Addresses and networks of the proxies whose headers `proxy` trusts, e.g.
        /// `10.0.0.5,10.1.0.0/16`.
        proxy_addresses: Vec<Text<Network>> = Vec::new(),
    }
}

/// The value of `[auth] strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the setting documents the values")]
pub enum AuthStrategy {
    Noauth2,
    Proxy,
    Keystone,
}

/// An IP address or a network in CIDR notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let one = text.parse::<IpAddr>().map(IpNet::from);
        one.or_else(|_| text.parse())
            .map(Self)
            .map_err(|_| "neither an address nor a network")
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AuthSection {
    /// Checks whether callers of an API with these settings can be authenticated.
    ///
    /// # Errors
    /// A setting that the strategy needs is missing or wrong.
    pub fn check(&self, api: &ApiSection, keystone: &KeystoneSection) -> Result<(), Invalid> {
        match self.strategy {
            AuthStrategy::Noauth2 => {
                self.check_open("auth.strategy", &api.listen)?;
                self.check_open("auth.strategy", &api.advertise)
            }
            AuthStrategy::Proxy
                if self.proxy_addresses.is_empty() && api.tls_client_ca_file.is_none() =>
            {
                Err(Invalid::new(
                    "auth.proxy_addresses",
                    "or api.tls_client_ca_file is required, to recognize the authenticating proxy",
                ))
            }
            AuthStrategy::Proxy => Ok(()),
            AuthStrategy::Keystone => keystone.check(),
        }
    }

    /// Whether the address belongs to a proxy that authenticates callers.
    pub(crate) fn is_proxy(&self, address: &IpAddr) -> bool {
        let mut networks = self.proxy_addresses.iter();
        self.strategy == AuthStrategy::Proxy && networks.any(|one| one.0.0.contains(address))
    }

    /// Checks that `noauth2` is not open to other machines; the error names the setting `key`.
    ///
    /// # Errors
    /// `noauth2` is in use and other machines can reach `address`.
    pub fn check_open(&self, key: &str, address: &str) -> Result<(), Invalid> {
        let is_believing = self.strategy == AuthStrategy::Noauth2 && !self.noauth2_beyond_loopback;
        if !is_believing || address.is_empty() || is_loopback(address) {
            return Ok(());
        }
        Err(Invalid::new(
            key,
            format!(
                "noauth2 trusts every caller, and other machines reach {address}: use keystone or proxy, or set \
                 auth.noauth2_beyond_loopback if everyone who reaches it may do everything"
            ),
        ))
    }
}

settings! {
    /// Calls from web pages. Pages may use the methods and headers of the API.
    CorsSettings {
        /// Origins whose web pages may call the API; empty: no origin, `*`: every origin.
        allowed_origin: Vec<String> = Vec::new(),
    }
}

settings! {
    /// The allocation-candidate search.
    CandidateSettings {
        /// Whether candidates are returned in random order. If the request has a limit, the search
        /// also starts at a random root, so that the selected candidates vary.
        randomize: bool = false,
        /// Maximum number of allocation requests in one answer, even if the client requests more;
        /// 0: no limit.
        max: usize = 0,
        /// Order of the search. `depth-first`: all candidates of a host, then those of the next
        /// host. `breadth-first`: one candidate of each host in turn.
        generation_strategy: GenerationStrategy = GenerationStrategy::DepthFirst,
    }
    fixed {
        /// Maximum number of searches that run at once; each uses a whole processor.
        concurrency: usize = std::thread::available_parallelism().map_or(1, NonZero::get),
        /// Maximum number of searches that wait; further ones get 503. In a longer queue, clients
        /// would time out before their search begins.
        queue: usize = 128,
        /// Time limit of a search, counted from the authentication of the caller, including the
        /// wait in the queue.
        deadline: Duration = Duration::from_secs(10),
        /// Maximum memory for one answer, in bytes: some 100,000 candidates.
        memory_max_bytes: usize = 128 << 20,
    }
}

settings! {
    /// Consistency of reads.
    ReadsSection {
        /// Default consistency of reads. `linearizable`, `bounded;max=SECONDS` or `local`: for all
        /// reads. `regional;max=SECONDS`: bounded for allocation candidates, traits and resource
        /// classes, linearizable for all other reads. `edge;max=SECONDS` (more than one second):
        /// bounded for all reads. While this node is cut off from the cluster, its reads are local
        /// and `/readyz` still returns 200. Without `max`, `regional` means 0.25 seconds and `edge`
        /// 2 seconds.
        default: Text<ReadPromise> = Text::default(),
    }
    fixed {
        /// How often an idle node asks the leader for the current log position, in milliseconds;
        /// this interval bounds the precision of `Placement-Staleness`. 0: never.
        probe_ms: u64 = 1_000,
    }
}

/// `[reads] default`: the consistency of reads whose request does not select one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadPromise {
    /// Consistency of reads that return a generation or that quotas depend on.
    pub(crate) usual: Consistency,
    /// Consistency of advisory reads: allocation candidates, names of traits and resource classes.
    pub(crate) advisory: Consistency,
}

impl From<Consistency> for ReadPromise {
    /// The same consistency for all reads.
    fn from(promise: Consistency) -> Self {
        Self {
            usual: promise,
            advisory: promise,
        }
    }
}

impl Default for ReadPromise {
    fn default() -> Self {
        Consistency::Linearizable.into()
    }
}

impl ReadPromise {
    /// Whether a node keeps answering while it is cut off from the cluster.
    pub fn answers_cut_off(self) -> bool {
        matches!(self.usual, Consistency::BoundedOrLocal(_))
    }
}

impl FromStr for ReadPromise {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "is not one of linearizable, local, bounded;max=SECONDS, regional;max=SECONDS, edge;max=SECONDS";
        let (name, bound) = match text.split_once(";max=") {
            None => (text, None),
            Some((name, seconds)) => {
                let seconds = seconds.parse().map_err(|_| FORM)?;
                let bound = Duration::try_from_secs_f64(seconds).map_err(|_| FORM)?;
                (name, Some(bound))
            }
        };
        let bound_or = |ms| bound.unwrap_or(Duration::from_millis(ms));
        Ok(match (name, bound) {
            ("linearizable", None) => Self::default(),
            ("local", None) => Consistency::Local.into(),
            ("bounded", Some(bound)) => Consistency::Bounded(bound).into(),
            ("regional", _) => Self {
                usual: Consistency::Linearizable,
                advisory: Consistency::Bounded(bound_or(250)),
            },
            ("edge", _) => Consistency::BoundedOrLocal(bound_or(2_000)).into(),
            _ => return Err(FORM),
        })
    }
}

impl fmt::Display for ReadPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bound) = match self.advisory {
            Consistency::Linearizable | Consistency::Session(_) => {
                return f.write_str("linearizable");
            }
            Consistency::Local => return f.write_str("local"),
            Consistency::Bounded(bound) if self.usual == self.advisory => ("bounded", bound),
            Consistency::Bounded(bound) => ("regional", bound),
            Consistency::BoundedOrLocal(bound) => ("edge", bound),
        };
        write!(f, "{name};max={}", bound.as_secs_f64())
    }
}
