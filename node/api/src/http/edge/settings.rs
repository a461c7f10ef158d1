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
use crate::http::errors::ApiError;
use crate::keystone::KeystoneSection;
use crate::settings::{Invalid, Text, is_loopback, settings};

/// What a byte of a body counts among the bytes in flight: reading it takes that much memory.
pub(crate) const BODY_COST: usize = 8;

settings! {
    /// The REST API.
    ApiSection {
        /// Address of the REST API, `host:port`. Also answers `/livez` and `/readyz`.
        listen: String = "127.0.0.1:8778".to_owned(),
        /// The address that clients reach, `host:port`; empty: the one listened on.
        advertise: String = String::new(),
        /// Path below which the API is served, e.g. `/placement`; empty: at the root. With a prefix,
        /// nothing but it, `/`, `/livez`, `/readyz` and `/openapi.json` is served.
        prefix: Text<PathPrefix> = Text::default(),
        /// URL with which `Location` begins, such as `https://cloud.example/placement`, where all clients
        /// use one address; its path begins all links. Unset: what the request says.
        public_url: Option<Text<PublicUrl>> = None,
        /// Whether `Forwarded` and `X-Forwarded-Proto`, `-Host`, `-Prefix` and `-For` are trusted.
        /// Only behind a proxy that replaces what clients send in them.
        trust_proxy_headers: bool = false,
        /// Most connections at once; over further ones only health checks are answered, all else is answered
        /// 503. One address, or one /64 network of IPv6, may have a quarter of them, and all of them where
        /// `trust_proxy_headers` is set, as all clients then connect from the proxy's.
        max_connections: usize = 4096,
        /// How long a stopping node answers requests while `/readyz` is 503, so that balancers send
        /// it nothing more, in milliseconds: two or three of their checks. A node that was drained with
        /// `placementctl drain` does not wait.
        drain_notice_ms: u64 = 5_000,
        /// Whether clients use TLS. `off`; `allow`: accept both; `require`: always.
        tls: ApiTls = ApiTls::Off,
        /// PEM file with the certificate of the API, followed by intermediate certificates; unset:
        /// that of `[tls]`. It and its key are read again when they change.
        tls_cert_file: Option<PathBuf> = None,
        /// PEM file with its key.
        tls_key_file: Option<PathBuf> = None,
        /// PEM file with the authorities of the proxies' certificates; unset: no client is asked for one.
        /// With `[auth] strategy = "proxy"` a client with such a certificate is trusted.
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

/// Everything that is different for APIs: what an operator chooses, and constants that tests choose smaller.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// What `Placement-Node` says behind this node's number: where it stands (`[node]`).
    pub site: String,
    /// The partition, unless it is the default one (`[[partitions]] name`).
    pub partition: Option<String>,
    /// How much all callers of the partition may ask (`[[partitions]] in_flight`).
    pub whole: CallerLimits,
    /// Longest request body that is read, in bytes. A body travels between nodes in one message, of 32 MiB.
    pub max_body_bytes: usize,
    /// The most that one request may carry.
    pub limits: RequestLimits,
    /// How much each user may ask (`[callers]`).
    pub users: CallerLimits,
    /// How much may be asked from each address (`[callers]`).
    pub addresses: CallerLimits,
    /// How long reading a body may take.
    pub body_timeout: Duration,
    /// How fast a body has to come, in bytes a second, after the first ten seconds.
    pub min_bytes_per_s: u64,
    /// Most bytes of bodies and answers at once, twice what the longest body takes.
    pub in_flight_max_bytes: usize,
    /// Where clients reach the API (`[api] prefix`, `public_url`, `trust_proxy_headers`).
    pub public: PublicAddress,
    /// What reads promise when the client does not say.
    pub reads: ReadsSection,
    /// How callers are identified (`[auth]`).
    pub auth: AuthStrategy,
    /// Who may do what (`[policy]`).
    pub policy: PolicySettings,
    /// Which web pages may call the API (`[cors]`).
    pub cors: CorsSettings,
    /// Limits and order of the allocation-candidate search (`[candidates]`).
    pub candidates: CandidateSettings,
}

/// How fast a client must send a body and take an answer, in bytes a second, after the first ten seconds that it
/// keeps this node waiting: slower than any link, and a bound for those that hold connections on purpose.
pub const MIN_BYTES_PER_S: u64 = 1024;

impl Default for ApiSettings {
    fn default() -> Self {
        const MAX_BODY_BYTES: usize = 16 << 20;
        let callers = CallersSection::default();
        Self {
            site: String::new(),
            partition: None,
            whole: CallerLimits::of(0, 0),
            max_body_bytes: MAX_BODY_BYTES,
            limits: RequestLimits::default(),
            users: callers.users(),
            addresses: callers.addresses(),
            body_timeout: Duration::from_secs(60),
            min_bytes_per_s: MIN_BYTES_PER_S,
            in_flight_max_bytes: 2 * BODY_COST * MAX_BODY_BYTES,
            public: PublicAddress::default(),
            reads: ReadsSection::default(),
            auth: AuthStrategy::NoAuth2,
            policy: PolicySettings::default(),
            cors: CorsSettings::default(),
            candidates: CandidateSettings::default(),
        }
    }
}

settings! {
    /// Rate limits of one caller. Requests above one of them are answered 429 with `Retry-After` and its name; 0: no
    /// bound. Each node counts for itself.
    CallersSection {
        /// Most requests a second of one user; so many may come at once, and 2048 of them be answered at once. All
        /// of Nova is one user.
        user_per_s: u64 = 20_000,
        /// Most requests a second from one address, or from one /64 network of IPv6; so many may come at once, and
        /// 1024 of them be answered at once.
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

/// The most that one request may carry. A command costs every node of the cluster memory and the time in which it
/// applies no other, so it is bounded before it is made. No client of Placement comes near these: one that does
/// is broken.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// Longest path with its query, in bytes. `http` takes no more than 65,534.
    pub uri_bytes: usize,
    /// Parameters in a query.
    pub query_parameters: usize,
    /// Groups of a request for allocation candidates.
    pub request_groups: usize,
    /// Values of all kinds in a body.
    pub json_values: usize,
    /// Inventories, of all providers of a body.
    pub inventories: usize,
    /// Traits of a provider.
    pub traits: usize,
    /// Aggregates of a provider.
    pub aggregates: usize,
    /// Providers that a reshape gives inventories.
    pub providers: usize,
    /// Consumers.
    pub consumers: usize,
    /// Allocations: a class of a provider for a consumer is one.
    pub allocations: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            uri_bytes: 32 << 10,
            query_parameters: 1_000,
            request_groups: 200,
            json_values: 500_000,
            inventories: 10_000,
            traits: 1_000,
            aggregates: 1_000,
            providers: 1_000,
            consumers: 10_000,
            allocations: 100_000,
        }
    }
}

/// What a request carries many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carried {
    RequestGroups,
    Inventories,
    Traits,
    Aggregates,
    Providers,
    Consumers,
    Allocations,
}

impl RequestLimits {
    /// # Errors
    /// 400 if there is more of it than is allowed.
    pub(crate) fn admit(&self, carried: Carried, count: usize) -> Result<(), ApiError> {
        let (key, most) = match carried {
            Carried::RequestGroups => ("request groups", self.request_groups),
            Carried::Inventories => ("inventories", self.inventories),
            Carried::Traits => ("traits", self.traits),
            Carried::Aggregates => ("aggregates", self.aggregates),
            Carried::Providers => ("providers", self.providers),
            Carried::Consumers => ("consumers", self.consumers),
            Carried::Allocations => ("allocations", self.allocations),
        };
        if count > most {
            return Err(ApiError::over_limit(key, most));
        }
        Ok(())
    }
}

settings! {
    /// Authentication of callers.
    AuthSection {
        /// How callers are identified: `keystone` validates their tokens with Keystone, `proxy` trusts the
        /// proxy in front, and `noauth2` trusts every caller.
        strategy: Strategy = Strategy::Noauth2,
        /// Whether `noauth2` may be used on an address that other machines reach: every client that reaches it is
        /// admin.
        noauth2_beyond_loopback: bool = false,
        /// Addresses and networks of the proxies whose headers `proxy` trusts, e.g. `10.0.0.5,10.1.0.0/16`.
        proxy_addresses: Vec<Text<Network>> = Vec::new(),
    }
}

/// `[auth] strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
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

/// How callers are identified.
#[derive(Debug, Clone, PartialEq)]
pub enum AuthStrategy {
    /// `noauth2`: the token is believed.
    NoAuth2,
    /// `proxy`: what the proxy in front says is believed.
    Proxy {
        /// Where it comes from (`proxy_addresses`).
        addresses: Vec<IpNet>,
    },
    /// `keystone`: Keystone is asked.
    Keystone,
}

impl AuthSection {
    /// How callers of an API of these settings are identified.
    ///
    /// # Errors
    /// The settings that the strategy needs are missing or wrong.
    pub fn strategy(
        &self,
        api: &ApiSection,
        keystone: &KeystoneSection,
    ) -> Result<AuthStrategy, Invalid> {
        match self.strategy {
            Strategy::Noauth2 => {
                self.check_open("auth.strategy", &api.listen)?;
                self.check_open("auth.strategy", &api.advertise)?;
                Ok(AuthStrategy::NoAuth2)
            }
            Strategy::Proxy
                if self.proxy_addresses.is_empty() && api.tls_client_ca_file.is_none() =>
            {
                Err(Invalid::new(
                    "auth.proxy_addresses",
                    "or api.tls_client_ca_file is required: how the proxy is known that checks who is calling",
                ))
            }
            Strategy::Proxy => Ok(AuthStrategy::Proxy {
                addresses: (self.proxy_addresses.iter().map(|network| network.0.0)).collect(),
            }),
            Strategy::Keystone => {
                keystone.check()?;
                Ok(AuthStrategy::Keystone)
            }
        }
    }

    /// Whether everyone who reaches this address may be believed; `key` is named if not.
    ///
    /// # Errors
    /// Other machines reach it.
    pub fn check_open(&self, key: &str, address: &str) -> Result<(), Invalid> {
        let is_believing = self.strategy == Strategy::Noauth2 && !self.noauth2_beyond_loopback;
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
        /// Rules in oslo.policy's YAML syntax that override the defaults; re-read when it changes. Unset: no
        /// file is looked for. One that is named and cannot be used is refused.
        file: Option<PathBuf> = None,
        /// Directories with more such files. Those of each are read in the order of their names, and what is
        /// read later overrides what was read before.
        policy_dirs: Vec<PathBuf> = Vec::new(),
        /// Whether only the new defaults apply; otherwise the rules of before 2023 (any admin) apply too.
        enforce_new_defaults: bool = true,
        /// Whether system-scoped tokens are refused.
        enforce_scope: bool = true,
    }
}

settings! {
    /// Calls from web pages. The methods and headers that they may use and read are those of the API.
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
        /// Searches that wait for their turn; further ones are answered 503. Longer queues than this only make
        /// clients wait that give up.
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
        /// What a read promises when the client does not say: `linearizable`, `bounded;max=SECONDS` or `local`; or
        /// by what is read: with `regional;max=SECONDS` allocation candidates, traits and resource classes are
        /// bounded and all else is linearizable; with `edge;max=SECONDS`, of more than one second, all is bounded,
        /// and local while this node is cut off, when it stays ready. `regional` and `edge` alone: 0.25 and 2 seconds.
        default: Text<ReadPromise> = Text::default(),
        /// Whether answers carry a cookie, `placement-session`, by which clients that keep cookies read what they have
        /// written and seen, whichever node of one host name they are sent to.
        session_cookie: bool = false,
    }
    fixed {
        /// How often an idle node asks the leader how far it should be, in milliseconds; bounds what
        /// `Placement-Staleness` can say. 0: never.
        probe_ms: u64 = 1_000,
    }
}

/// `[reads] default`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum ReadPromise {
    /// All reads see what was written before.
    #[default]
    Linearizable,
    /// They see what was written so long ago.
    Bounded(Duration),
    /// They see what this node has.
    Local,
    /// Those that only advise are bounded.
    Regional(Duration),
    /// All are bounded, and local while this node is cut off.
    Edge(Duration),
}

impl ReadPromise {
    /// What is promised for reads that return a generation, or that a quota is reckoned from.
    pub(crate) fn usual(self) -> Consistency {
        match self {
            Self::Linearizable | Self::Regional(_) => Consistency::Linearizable,
            _ => self.advisory(),
        }
    }

    /// What is promised for those that only advise: allocation candidates, names of traits and resource classes.
    pub(crate) fn advisory(self) -> Consistency {
        match self {
            Self::Linearizable => Consistency::Linearizable,
            Self::Bounded(bound) | Self::Regional(bound) => Consistency::Bounded(bound),
            Self::Local => Consistency::Local,
            Self::Edge(bound) => Consistency::BoundedOrLocal(bound),
        }
    }

    /// Whether a node goes on answering while it is cut off.
    pub fn answers_cut_off(self) -> bool {
        matches!(self, Self::Edge(_))
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
        match (name, bound) {
            ("linearizable", None) => Ok(Self::Linearizable),
            ("local", None) => Ok(Self::Local),
            ("bounded", Some(bound)) => Ok(Self::Bounded(bound)),
            ("regional", bound) => Ok(Self::Regional(bound.unwrap_or(Duration::from_millis(250)))),
            ("edge", bound) => Ok(Self::Edge(bound.unwrap_or(Duration::from_secs(2)))),
            _ => Err(FORM),
        }
    }
}

impl fmt::Display for ReadPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, bound) = match self {
            Self::Linearizable => return f.write_str("linearizable"),
            Self::Local => return f.write_str("local"),
            Self::Bounded(bound) => ("bounded", bound),
            Self::Regional(bound) => ("regional", bound),
            Self::Edge(bound) => ("edge", bound),
        };
        write!(f, "{name};max={}", bound.as_secs_f64())
    }
}
