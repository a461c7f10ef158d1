//! The settings of the API, and what it has as constants.

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
use crate::backend::Consistency;
use crate::keystone::KeystoneSection;
use crate::settings::{Invalid, Text, is_loopback, settings};

/// What a byte of a body counts once all have come: parsing takes that much memory.
pub(crate) const BODY_COST: usize = 8;
/// Longest body that is read.
const BODY_BYTES_MAX: usize = 16 << 20;

/// How fast a client must send a body and take an answer, in bytes a second, beyond [`GRACE`]:
/// slower than any link of a cloud, and a bound for clients that hold memory on purpose.
pub const MIN_BYTES_PER_S: u64 = 64 * 1024;
/// How long a client may keep this node waiting for a body, or with an answer, however little it
/// sends or takes.
pub const GRACE: Duration = Duration::from_secs(10);

settings! {
    /// The REST API.
    ApiSection {
        /// Address of the REST API, `host:port`. Also answers `/livez` and `/readyz`.
        listen: String = "127.0.0.1:8778".to_owned(),
        /// The address that clients reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// Path below which the API is served, e.g. `/placement`; empty: at the root. With a
        /// prefix, nothing but it, `/`, `/livez`, `/readyz` and `/openapi.json` is served.
        prefix: Text<PathPrefix> = Text::default(),
        /// URL with which `Location` begins, such as `https://cloud.example/placement`, where all
        /// clients use one address; its path begins all links. Unset: what the request says.
        public_url: Option<Text<PublicUrl>> = None,
        /// Whether `Forwarded` and `X-Forwarded-Proto`, `-Host`, `-Prefix` and `-For` are trusted.
        /// Only behind a proxy that replaces what clients send in them.
        trust_proxy_headers: bool = false,
        /// Most connections at once; over further ones only health checks are answered, all else is
        /// answered
        /// 503. One address, or one /64 network of IPv6, may have a quarter of them, and all of
        ///      them where `trust_proxy_headers` is set, as all clients then connect from the
        ///      proxy's.
        max_connections: usize = 4096,
        /// How long a stopping node answers requests while `/readyz` is 503, so that balancers send
        /// it nothing more, in milliseconds: two or three of their checks. A node that was drained
        /// with `placementctl drain` does not wait.
        drain_notice_ms: u64 = 5_000,
        /// Whether clients use TLS. `off`; `allow`: accept both; `require`: always.
        tls: ApiTls = ApiTls::Off,
        /// PEM file with the certificate of the API, followed by intermediate certificates; unset:
        /// that of `[tls]`. It and its key are read again when they change.
        tls_cert_file: Option<PathBuf> = None,
        /// PEM file with its key.
        tls_key_file: Option<PathBuf> = None,
        /// PEM file with the authorities of the proxies' certificates; unset: no client is asked
        /// for one. With `[auth] strategy = "proxy"` a client with such a certificate is trusted.
        tls_client_ca_file: Option<PathBuf> = None,
    }
}

/// Whether clients of the REST API connect by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiTls {
    /// No.
    Off,
    /// Those that begin so.
    Allow,
    /// All.
    Require,
}

impl ApiSection {
    /// How many connections one address may have.
    pub fn max_connections_per_address(&self) -> usize {
        match self.trust_proxy_headers {
            true => usize::MAX,
            false => self.max_connections.div_ceil(4),
        }
    }

    /// `prefix`, `public_url` and `trust_proxy_headers`.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn public_address(&self) -> Result<PublicAddress, Invalid> {
        let prefix = self.prefix.0.clone();
        let url = self.public_url.as_ref().map(|url| url.0.clone());
        if let Some(url) = &url
            && !url.path.as_str().ends_with(prefix.as_str())
        {
            return Err(Invalid::new(
                "api.public_url",
                format!("its path must end with api.prefix, {prefix}: nothing else is served"),
            ));
        }
        Ok(PublicAddress {
            prefix,
            url,
            trust_proxy_headers: self.trust_proxy_headers,
        })
    }
}

/// Everything that is different for APIs.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// What `Placement-Node` says behind this node's number: where it stands (`[node]`).
    pub site: String,
    /// The partition, unless it is the default one (`[[partitions]] name`).
    pub partition: Option<String>,
    /// How much all callers of the partition may ask (`[[partitions]] in_flight`).
    pub whole: CallerLimits,
    /// The most that one request may carry.
    pub limits: RequestLimits,
    /// How much each user may ask (`[callers]`).
    pub users: CallerLimits,
    /// How much may be asked from each address (`[callers]`).
    pub addresses: CallerLimits,
    /// Where clients reach the API (`[api] prefix`, `public_url`, `trust_proxy_headers`).
    pub public: PublicAddress,
    /// What reads promise when the client does not say.
    pub reads: ReadsSection,
    /// How callers are identified (`[auth]`).
    pub auth: AuthSection,
    /// Who may do what (`[policy]`).
    pub policy: PolicySettings,
    /// Which web pages may call the API (`[cors]`).
    pub cors: CorsSettings,
    /// Limits and order of the allocation-candidate search (`[candidates]`).
    pub candidates: CandidateSettings,
}

impl Default for ApiSettings {
    fn default() -> Self {
        let callers = CallersSection::default();
        Self {
            site: String::new(),
            partition: None,
            whole: CallerLimits::of(0, 0),
            limits: RequestLimits::default(),
            users: callers.users(),
            addresses: callers.addresses(),
            public: PublicAddress::default(),
            reads: ReadsSection::default(),
            auth: AuthSection::default(),
            policy: PolicySettings::default(),
            cors: CorsSettings::default(),
            candidates: CandidateSettings::default(),
        }
    }
}

settings! {
    /// Rate limits of one caller. Requests above one of them are answered 429 with its name; 0: no
    /// bound. Each node counts for itself.
    CallersSection {
        /// Most requests a second of one user; so many may come at once, and 2048 of them be
        /// answered at once. All of Nova is one user.
        user_per_s: u64 = 20_000,
        /// Most requests a second from one address, or from one /64 network of IPv6; so many may
        /// come at once, and 1024 of them be answered at once.
        address_per_s: u64 = 20_000,
    }
}

impl CallersSection {
    /// What one user may ask.
    pub fn users(&self) -> CallerLimits {
        CallerLimits::of(self.user_per_s, 2048)
    }

    /// What may be asked from one address.
    pub fn addresses(&self) -> CallerLimits {
        CallerLimits::of(self.address_per_s, 1024)
    }
}

/// How much one caller may ask of a node; 0: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerLimits {
    /// Requests that are being answered at once.
    pub in_flight: usize,
    /// Requests in a second; so many may come at once.
    pub per_s: u64,
}

impl CallerLimits {
    /// The bound of requests that are being answered holds where that of a second does.
    fn of(per_s: u64, in_flight: usize) -> Self {
        let in_flight = if per_s == 0 { 0 } else { in_flight };
        Self { in_flight, per_s }
    }
}

settings! {
    /// The most that one request may carry. A command costs every node of the cluster memory and
    /// the time in which it applies no other, so it is bounded before it is made. No client of
    /// Placement comes near these: one that does is broken.
    RequestLimits {}
    fixed {
        /// Longest path with its query, in bytes. `http` takes no more than 65,534.
        uri_bytes: usize = 32 << 10,
        /// Parameters in a query.
        query_parameters: usize = 1_000,
        /// Groups of a request for allocation candidates.
        request_groups: usize = 200,
        /// Longest body that is read, in bytes. It travels between nodes in one message, of 32 MiB.
        body_bytes: usize = BODY_BYTES_MAX,
        /// How long reading a body may take.
        body_timeout: Duration = Duration::from_secs(60),
        /// Bytes of the bodies of all requests at once, and as many of their answers: twice what
        /// the longest body takes.
        in_flight_bytes: usize = 2 * BODY_COST * BODY_BYTES_MAX,
        /// Values of all kinds in a body.
        json_values: usize = 500_000,
        /// Inventories, of all providers of a body.
        inventories: usize = 10_000,
        /// Traits of a provider.
        traits: usize = 1_000,
        /// Aggregates of a provider.
        aggregates: usize = 1_000,
        /// Providers that a reshape gives inventories.
        providers: usize = 1_000,
        /// Consumers.
        consumers: usize = 10_000,
        /// Allocations: a class of a provider for a consumer is one.
        allocations: usize = 100_000,
    }
}

settings! {
    /// Authentication of callers.
    AuthSection {
        /// How callers are identified: `keystone` validates their tokens with Keystone, `proxy`
        /// trusts the proxy in front, and `noauth2` trusts every caller.
        strategy: AuthStrategy = AuthStrategy::Noauth2,
        /// Whether `noauth2` may be used on an address that other machines reach: every client that
        /// reaches it is admin.
        noauth2_beyond_loopback: bool = false,
        /// Addresses and networks of the proxies whose headers `proxy` trusts, e.g.
        /// `10.0.0.5,10.1.0.0/16`.
        proxy_addresses: Vec<Text<Network>> = Vec::new(),
    }
}

/// `[auth] strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the setting says it")]
pub enum AuthStrategy {
    Noauth2,
    Proxy,
    Keystone,
}

/// An address or a network.
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
    /// Whether callers of an API of these settings can be identified.
    ///
    /// # Errors
    /// The settings that the strategy needs are missing or wrong.
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
                    "or api.tls_client_ca_file is required: how the proxy is known that checks who is calling",
                ))
            }
            AuthStrategy::Proxy => Ok(()),
            AuthStrategy::Keystone => keystone.check(),
        }
    }

    /// Whether requests from this address are those of a proxy that identifies callers.
    pub(crate) fn is_proxy(&self, address: &IpAddr) -> bool {
        let mut networks = self.proxy_addresses.iter();
        self.strategy == AuthStrategy::Proxy && networks.any(|one| one.0.0.contains(address))
    }

    /// Whether everyone who reaches this address may be believed; `key` is named if not.
    ///
    /// # Errors
    /// Other machines reach it.
    pub fn check_open(&self, key: &str, address: &str) -> Result<(), Invalid> {
        let is_believing = self.strategy == AuthStrategy::Noauth2 && !self.noauth2_beyond_loopback;
        if !is_believing || address.is_empty() || is_loopback(address) {
            return Ok(());
        }
        Err(Invalid::new(
            key,
            format!(
                "noauth2 believes every caller, and others reach {address}: use keystone or proxy, or set \
                 auth.noauth2_beyond_loopback if all who reach it may do everything"
            ),
        ))
    }
}

settings! {
    /// Authorization.
    PolicySettings {
        /// Rules in oslo.policy's YAML syntax that override the defaults; re-read when it changes.
        /// Unset: no file is looked for. One that is named and cannot be used is refused.
        file: Option<PathBuf> = None,
        /// Directories with more such files. Those of each are read in the order of their names,
        /// and what is read later overrides what was read before.
        policy_dirs: Vec<PathBuf> = Vec::new(),
        /// Whether only the new defaults apply; otherwise the rules of before 2023 (any admin)
        /// apply too.
        enforce_new_defaults: bool = true,
        /// Whether system-scoped tokens are refused.
        enforce_scope: bool = true,
    }
}

settings! {
    /// Calls from web pages. The methods and headers that they may use and read are those of the
    /// API.
    CorsSettings {
        /// Origins whose web pages may call the API; empty: none, `*`: all.
        allowed_origin: Vec<String> = Vec::new(),
    }
}

settings! {
    /// The allocation-candidate search.
    CandidateSettings {
        /// Whether candidates are answered in random order, with a limit from a random root on.
        randomize: bool = false,
        /// Most allocation requests in one answer, also when the client asks for more; 0: no bound.
        max: usize = 0,
        /// `depth-first` or `breadth-first` (fair over the providers).
        generation_strategy: GenerationStrategy = GenerationStrategy::DepthFirst,
    }
    fixed {
        /// Searches at once: each keeps a processor busy.
        concurrency: usize = std::thread::available_parallelism().map_or(1, NonZero::get),
        /// Searches that wait for their turn; further ones are answered 503. Longer queues than
        /// this only make clients wait that give up.
        queue: usize = 128,
        /// The longest search, from when its request came in: clients of Placement wait no longer.
        deadline: Duration = Duration::from_secs(10),
        /// Most memory for one answer, some 100,000 candidates.
        memory_max_bytes: usize = 128 << 20,
    }
}

settings! {
    /// What reads promise.
    ReadsSection {
        /// What a read promises when the client does not say: `linearizable`, `bounded;max=SECONDS`
        /// or `local`; or by what is read: with `regional;max=SECONDS` allocation candidates,
        /// traits and resource classes are bounded and all else is linearizable; with
        /// `edge;max=SECONDS`, of more than one second, all is bounded, and local while this node
        /// is cut off, when it stays ready. `regional` and `edge` alone: 0.25 and 2 seconds.
        default: Text<ReadPromise> = Text::default(),
        /// Whether answers carry a cookie, `placement-session`, by which clients that keep cookies
        /// read what they have written and seen, whichever node of one host name they are sent to.
        session_cookie: bool = false,
    }
    fixed {
        /// How often an idle node asks the leader how far it should be, in milliseconds; bounds
        /// what `Placement-Staleness` can say. 0: never.
        probe_ms: u64 = 1_000,
    }
}

/// `[reads] default`: what reads promise when the client does not say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadPromise {
    /// Of reads that return a generation, or that a quota is reckoned from.
    pub(crate) usual: Consistency,
    /// Of those that only advise: allocation candidates, names of traits and resource classes.
    pub(crate) advisory: Consistency,
}

impl From<Consistency> for ReadPromise {
    /// The same promise for all reads.
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
    /// Whether a node goes on answering while it is cut off.
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
