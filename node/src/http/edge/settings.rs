//! The settings of the API, as the configuration file names them. Their defaults are the
//! configuration's.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use placement_model::query::candidates::GenerationStrategy;

use super::public_address::PublicAddress;
use crate::doors::Consistency;
use crate::http::errors::ApiError;

/// What a byte of a body counts among the bytes in flight: reading it takes that much memory.
pub(crate) const BODY_COST: usize = 8;

/// Everything an operator can choose about the API.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// What `Placement-Node` says behind this node's number: where it stands (`[node]`).
    pub site: String,
    /// The partition, unless it is the default one (`[[partitions]] name`).
    pub partition: Option<String>,
    /// How much all callers of the partition may ask (`[[partitions]] in_flight`).
    pub whole: CallerLimits,
    /// Longest request body that is read, in bytes (`[api] max_body_bytes`).
    pub max_body_bytes: usize,
    /// The most that one request may carry (`[limits]`).
    pub limits: RequestLimits,
    /// How much each user may ask (`[callers]`).
    pub users: CallerLimits,
    /// How much may be asked from each address (`[callers]`).
    pub addresses: CallerLimits,
    /// How long reading a body may take (`[api] body_timeout_ms`).
    pub body_timeout: Duration,
    /// How fast a body has to come (`[api] min_bytes_per_s`).
    pub min_bytes_per_s: u64,
    /// Most bytes of bodies and answers at once (`[api] in_flight_max_bytes`).
    pub in_flight_max_bytes: usize,
    /// Where clients reach the API (`[api] prefix`, `public_url`, `trust_proxy_headers`).
    pub public: PublicAddress,
    /// Whether `/` is 503 while this node is not ready (`[api] root_reflects_readiness`).
    pub root_reflects_readiness: bool,
    /// What reads promise when the client does not say.
    pub reads: ReadSettings,
    /// How callers are identified (`[auth]`).
    pub auth: AuthSettings,
    /// Who may do what (`[policy]`).
    pub policy: PolicySettings,
    /// Which web pages may call the API (`[cors]`).
    pub cors: CorsSettings,
    /// Limits and order of the allocation-candidate search (`[candidates]`).
    pub candidates: CandidateSettings,
}

/// How much one caller may ask of a node; 0: no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerLimits {
    /// Requests that are being answered at once.
    pub in_flight: usize,
    /// Requests in a second; so many may come at once.
    pub per_s: u64,
}

/// `[limits]`: the most that one request may carry. A command costs every node of the cluster memory
/// and the time in which it applies no other, so it is bounded before it is made.
#[derive(Debug, Clone)]
pub struct RequestLimits {
    /// `uri_bytes`: longest path with its query.
    pub uri_bytes: usize,
    /// `query_parameters`.
    pub query_parameters: usize,
    /// `request_groups` of a request for allocation candidates.
    pub request_groups: usize,
    /// `json_values`: values of all kinds in a body.
    pub json_values: usize,
    /// `inventories`, of all providers of a body.
    pub inventories: usize,
    /// `traits` of a provider.
    pub traits: usize,
    /// `aggregates` of a provider.
    pub aggregates: usize,
    /// `providers` that a reshape gives inventories.
    pub providers: usize,
    /// `consumers`.
    pub consumers: usize,
    /// `allocations`: a class of a provider for a consumer is one.
    pub allocations: usize,
}

/// What a request carries many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Carried {
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
    pub(in crate::http) fn admit(&self, carried: Carried, count: usize) -> Result<(), ApiError> {
        let (key, most) = match carried {
            Carried::RequestGroups => ("request_groups", self.request_groups),
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

/// `[auth]`.
#[derive(Debug, Clone)]
pub struct AuthSettings {
    /// `strategy`.
    pub strategy: AuthStrategy,
}

/// How callers are identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthStrategy {
    /// `noauth2`: the token is believed.
    NoAuth2,
    /// `proxy`: what the proxy in front says is believed.
    Proxy {
        /// Where it comes from (`proxy_addresses`).
        addresses: Vec<IpNet>,
    },
    /// `keystone`: Keystone is asked.
    Keystone(KeystoneSettings),
}

/// What of `[keystone]` the API itself needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeystoneSettings {
    /// `www_authenticate_uri`: where clients get tokens.
    pub www_authenticate_uri: String,
    /// `service_token_roles`: a service with one of them may come with a token that has expired.
    pub service_token_roles: Vec<String>,
    /// `service_token_roles_required`: a service token without any of them is refused.
    pub service_token_roles_required: bool,
}

/// `[policy]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySettings {
    /// `file`: rules in oslo.policy's YAML syntax that override the defaults; re-read when it changes.
    pub file: Option<PathBuf>,
    /// `policy_dirs`: directories with more of such files, which override it.
    pub directories: Vec<PathBuf>,
    /// `enforce_new_defaults`: false adds the rules of before 2023 (any admin) to the defaults.
    pub enforce_new_defaults: bool,
    /// `enforce_scope`: refuses system-scoped tokens.
    pub enforce_scope: bool,
}

/// `[cors]`.
#[derive(Debug, Clone)]
pub struct CorsSettings {
    /// `allowed_origin`: origins whose pages may call the API; empty: no CORS at all. `*` is every origin.
    pub allowed_origin: Vec<String>,
    /// `allow_headers`: request headers that such pages may send.
    pub allow_headers: Vec<String>,
    /// `allow_methods`.
    pub allow_methods: Vec<String>,
    /// `expose_headers`: response headers that such pages may read.
    pub expose_headers: Vec<String>,
    /// `allow_credentials`.
    pub allow_credentials: bool,
    /// `max_age`: how long a preflight may be remembered, in seconds.
    pub max_age_s: Option<u64>,
}

/// `[candidates]`.
#[derive(Debug, Clone)]
pub struct CandidateSettings {
    /// `randomize`: answers in random order, and with a limit from a random place on, so that it does not
    /// always favour the same providers. Roots are drawn, not candidates: see `DESIGN.md`.
    pub randomize: bool,
    /// `max`: at most this many allocation requests, also when the client asks for more; `None`: no bound.
    pub max: Option<usize>,
    /// `generation_strategy`.
    pub generation_strategy: GenerationStrategy,
    /// `concurrency`: so many searches at once.
    pub concurrency: usize,
    /// `queue`: so many more wait.
    pub queue: usize,
    /// `deadline_ms`: a search that takes longer, from the request on, is ended.
    pub deadline: Duration,
    /// `memory_max_bytes`: a search whose answer takes more is ended.
    pub memory_max_bytes: usize,
}

/// What reads promise when the client does not say (`[reads]`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadSettings {
    /// Those that return a generation, or that a quota is reckoned from.
    pub usual: Consistency,
    /// Those that only advise: allocation candidates, names of traits and resource classes.
    pub advisory: Consistency,
    /// Whether answers carry a cookie by which a client reads what it has written and seen, whichever node it asks.
    pub session_cookie: bool,
}
