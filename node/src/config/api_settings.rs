//! What the API is told of the configuration, and so the defaults of its settings.

use std::net::IpAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use placement_model::query::candidates::GenerationStrategy;

use super::load::is_loopback;
use super::{Config, ConfigError};
use crate::http::{
    ApiSettings, AuthSettings, AuthStrategy, BODY_COST, CallerLimits, CandidateSettings,
    CorsSettings, KeystoneSettings, PolicySettings, RequestLimits,
};

impl Config {
    /// What the API is told of all this.
    pub fn api_settings(&self) -> Result<ApiSettings, ConfigError> {
        let site = self.site();
        let named = [("region", site.region), ("zone", site.zone)];
        let named = named.iter().filter(|(_, name)| !name.is_empty());
        Ok(ApiSettings {
            site: named.map(|(key, name)| format!("; {key}={name}")).collect(),
            partition: None,
            whole: CallerLimits {
                in_flight: 0,
                per_s: 0,
            },
            max_body_bytes: self.api.max_body_bytes,
            limits: RequestLimits {
                uri_bytes: self.limits.uri_bytes,
                query_parameters: self.limits.query_parameters,
                request_groups: self.limits.request_groups,
                json_values: self.limits.json_values,
                inventories: self.limits.inventories,
                traits: self.limits.traits,
                aggregates: self.limits.aggregates,
                providers: self.limits.providers,
                consumers: self.limits.consumers,
                allocations: self.limits.allocations,
            },
            users: CallerLimits {
                in_flight: self.callers.user_in_flight,
                per_s: self.callers.user_per_s,
            },
            addresses: CallerLimits {
                in_flight: self.callers.address_in_flight,
                per_s: self.callers.address_per_s,
            },
            body_timeout: Duration::from_millis(self.api.body_timeout_ms),
            min_bytes_per_s: self.api.min_bytes_per_s,
            in_flight_max_bytes: self.api.in_flight_max_bytes,
            public: self.public_address()?,
            root_reflects_readiness: self.api.root_reflects_readiness,
            reads: self.read_settings()?,
            auth: AuthSettings {
                strategy: self.auth_strategy()?,
            },
            policy: self.policy_settings(),
            cors: CorsSettings {
                allowed_origin: self.cors.allowed_origin.clone(),
                allow_headers: self.cors.allow_headers.clone(),
                allow_methods: self.cors.allow_methods.clone(),
                expose_headers: self.cors.expose_headers.clone(),
                allow_credentials: self.cors.allow_credentials,
                max_age_s: Some(self.cors.max_age_s),
            },
            candidates: CandidateSettings {
                randomize: self.candidates.randomize,
                max: (self.candidates.max > 0).then_some(self.candidates.max),
                generation_strategy: self.generation_strategy()?,
                concurrency: match self.candidates.concurrency {
                    0 => std::thread::available_parallelism().map_or(1, NonZero::get),
                    chosen => chosen,
                },
                queue: self.candidates.queue,
                deadline: Duration::from_millis(self.candidates.deadline_ms),
                memory_max_bytes: self.candidates.memory_max_bytes,
            },
        })
    }

    /// Who may do what (`[policy]`).
    pub(crate) fn policy_settings(&self) -> PolicySettings {
        PolicySettings {
            file: self.policy.file.clone(),
            directories: self.policy.policy_dirs.iter().map(PathBuf::from).collect(),
            enforce_new_defaults: self.policy.enforce_new_defaults,
            enforce_scope: self.policy.enforce_scope,
        }
    }

    /// How callers are identified (`[auth]`).
    pub(crate) fn auth_strategy(&self) -> Result<AuthStrategy, ConfigError> {
        match self.auth.strategy.as_str() {
            "noauth2" => self.noauth2(),
            "proxy" => self.proxy(),
            "keystone" => self.keystone(),
            other => Err(ConfigError::invalid(
                "auth.strategy",
                format!("{other:?} is not known; there are keystone, proxy and noauth2"),
            )),
        }
    }

    fn noauth2(&self) -> Result<AuthStrategy, ConfigError> {
        let reached = [&self.api.listen, &self.api.advertise];
        let mut reached = reached.into_iter().filter(|address| !address.is_empty());
        if let Some(address) = reached.find(|address| !is_loopback(address))
            && !self.auth.noauth2_beyond_loopback
        {
            return Err(ConfigError::invalid(
                "auth.strategy",
                format!(
                    "noauth2 believes whoever asks, and others reach {address}: use keystone or proxy, or set \
                     auth.noauth2_beyond_loopback if all who reach it may do everything"
                ),
            ));
        }
        Ok(AuthStrategy::NoAuth2)
    }

    fn proxy(&self) -> Result<AuthStrategy, ConfigError> {
        let invalid = |message: String| ConfigError::invalid("auth.proxy_addresses", message);
        let network = |text: &String| {
            let text = text.trim();
            let one = text.parse::<IpAddr>().map(IpNet::from);
            one.or_else(|_| text.parse::<IpNet>())
                .map_err(|_| invalid(format!("{text:?} is neither an address nor a network")))
        };
        let addresses: Vec<IpNet> =
            (self.auth.proxy_addresses.iter().map(network)).collect::<Result<_, _>>()?;
        if addresses.is_empty() && self.api.tls_client_ca_file.is_none() {
            return Err(invalid(
                "or api.tls_client_ca_file is required: how the proxy is known that checks who is calling"
                    .to_owned(),
            ));
        }
        Ok(AuthStrategy::Proxy { addresses })
    }

    fn keystone(&self) -> Result<AuthStrategy, ConfigError> {
        let place = self.keystone.place()?;
        let www_authenticate_uri = match self.keystone.www_authenticate_uri.as_str() {
            "" => place.auth_urls[0].clone(),
            uri if !uri.contains('"') && http::HeaderValue::from_str(uri).is_ok() => uri.to_owned(),
            _ => {
                let message = "cannot be told in a header";
                return Err(ConfigError::invalid(
                    "keystone.www_authenticate_uri",
                    message,
                ));
            }
        };
        Ok(AuthStrategy::Keystone(KeystoneSettings {
            www_authenticate_uri,
            service_token_roles: self.keystone.service_token_roles.clone(),
            service_token_roles_required: self.keystone.service_token_roles_required,
        }))
    }

    /// The longest body has to have room.
    pub(super) fn validate_in_flight(&self) -> Result<(), ConfigError> {
        let least = BODY_COST * self.api.max_body_bytes;
        if self.api.in_flight_max_bytes >= least {
            return Ok(());
        }
        Err(ConfigError::invalid(
            "api.in_flight_max_bytes",
            format!("must be at least {least}, {BODY_COST} times api.max_body_bytes"),
        ))
    }

    pub(super) fn generation_strategy(&self) -> Result<GenerationStrategy, ConfigError> {
        match self.candidates.generation_strategy.as_str() {
            "depth-first" => Ok(GenerationStrategy::DepthFirst),
            "breadth-first" => Ok(GenerationStrategy::BreadthFirst),
            other => Err(ConfigError::invalid(
                "candidates.generation_strategy",
                format!("{other:?} is neither depth-first nor breadth-first"),
            )),
        }
    }
}

impl Default for ApiSettings {
    fn default() -> Self {
        let config = Config::default();
        config.api_settings().expect("the defaults are valid")
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        ApiSettings::default().policy
    }
}

impl Default for CorsSettings {
    fn default() -> Self {
        ApiSettings::default().cors
    }
}

impl Default for CandidateSettings {
    fn default() -> Self {
        ApiSettings::default().candidates
    }
}
