//! Settings of the table `[keystone]`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::documents::Credentials;
use placement_base::settings::{Invalid, Secret, settings};

settings! {
    /// Connection to Keystone, for `[auth] strategy = "keystone"`. Most settings have the names of
    /// `[keystone_authtoken]`. This service authenticates either as a user with a password or with
    /// an application credential.
    KeystoneSection {
        /// URL of Keystone, with or without a version such as `/v3`; several, separated by commas,
        /// are tried in turn.
        auth_url: String = String::new(),
        /// User name of this service.
        username: String = String::new(),
        /// Password of the user. It cannot be set by a flag, because other users of the machine can
        /// see flags.
        password: Secret = Secret::default(),
        /// Domain name of the user.
        user_domain_name: String = "Default".to_owned(),
        /// Project in which the user may validate tokens.
        project_name: String = "service".to_owned(),
        /// Domain name of the project.
        project_domain_name: String = "Default".to_owned(),
        /// Id of an application credential, instead of user and password.
        application_credential_id: String = String::new(),
        /// Secret of the application credential. It cannot be set by a flag.
        application_credential_secret: Secret = Secret::default(),
        /// URL where clients get tokens, for the header of a 401; empty: `auth_url`.
        www_authenticate_uri: String = String::new(),
        /// PEM file with the CA certificates for Keystone; unset: this machine's trusted CAs.
        cafile: Option<PathBuf> = None,
        /// Keystone endpoint in the catalog that validates tokens: `internal`, `public` or `admin`.
        /// If the catalog has none, `auth_url` is used.
        interface: Interface = Interface::Internal,
        /// Region of that endpoint; empty: any region.
        region_name: String = String::new(),
        /// Roles with which a service (`X-Service-Token`) may use an expired user token.
        service_token_roles: Vec<String> = vec!["service".to_owned()],
        /// Whether a service token without any of these roles is rejected.
        service_token_roles_required: bool = true,
        /// Time for which a valid token is cached, in seconds, never beyond its expiry. The node
        /// accepts a revoked token for up to this time. An invalid token is cached for at most 5 s.
        /// 0: Keystone validates each request.
        token_cache_time_s: u64 = 300,
    }
}

/// Interface of a service endpoint in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    Internal,
    Public,
    Admin,
}

impl Interface {
    /// The name in the catalog.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Public => "public",
            Self::Admin => "admin",
        }
    }
}

impl KeystoneSection {
    /// Checks the settings that are needed to contact Keystone.
    ///
    /// # Errors
    /// A setting is missing or invalid.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let invalid =
            |key: &str, message: &str| Err(Invalid::new(&format!("keystone.{key}"), message));
        let is_url = |url: &String| {
            let url = url.parse::<http::Uri>().ok();
            url.is_some_and(|url| {
                matches!(url.scheme_str(), Some("http" | "https"))
                    && (url.authority()).is_some_and(|host| !host.as_str().contains('@'))
                    && url.query().is_none()
            })
        };
        let urls = self.auth_urls();
        if urls.is_empty() || !urls.iter().all(is_url) {
            let message = "must be of the form https://HOST:PORT/PATH, as in Keystone's endpoint";
            return invalid("auth_url", message);
        }
        if self.has_application_credential() != self.username.is_empty() {
            let message = "exactly one of username and application_credential_id is required";
            return invalid("username", message);
        }
        if self.has_application_credential() && self.application_credential_secret.is_empty() {
            return invalid("application_credential_secret", "is required");
        }
        if !self.has_application_credential() && self.password.is_empty() {
            return invalid("password", "is required");
        }
        let uri = self.authenticate_uri();
        if uri.contains('"') || http::HeaderValue::from_str(&uri).is_err() {
            return invalid("www_authenticate_uri", "is not a valid header value");
        }
        Ok(())
    }

    /// URL where clients get tokens.
    pub(crate) fn authenticate_uri(&self) -> String {
        match self.www_authenticate_uri.as_str() {
            "" => base_url(self.auth_url.split(',').next().unwrap_or_default()),
            uri => uri.to_owned(),
        }
    }

    /// Base URLs that end with `/v3`, in the order in which they are tried.
    pub fn auth_urls(&self) -> Vec<String> {
        let urls = self.auth_url.split(',').map(str::trim);
        urls.filter(|url| !url.is_empty()).map(base_url).collect()
    }

    /// Whether this service authenticates with an application credential instead of a password.
    pub(super) fn has_application_credential(&self) -> bool {
        !self.application_credential_id.is_empty()
    }

    /// The configured credentials of this service.
    pub(super) fn credentials(&self) -> Credentials {
        if self.has_application_credential() {
            Credentials::Application {
                id: self.application_credential_id.clone(),
                secret: self.application_credential_secret.clone(),
            }
        } else {
            Credentials::Password {
                user: self.username.clone(),
                user_domain: self.user_domain_name.clone(),
                password: self.password.clone(),
                project: self.project_name.clone(),
                project_domain: self.project_domain_name.clone(),
            }
        }
    }

    /// This service's identity at Keystone, for the log.
    pub(super) fn who(&self) -> String {
        if self.has_application_credential() {
            format!("ApplicationCredential({})", self.application_credential_id)
        } else {
            format!("Password({})", self.username)
        }
    }
}

/// The base URL of version 3 for a URL with any version: catalogs of old clouds have `/v2.0`.
pub(super) fn base_url(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let base = match url.rsplit_once('/') {
        Some((base, last)) if is_version(last) => base,
        _ => url,
    };
    format!("{}/v3", base.trim_end_matches('/'))
}

/// Whether a path segment is a version, such as `v3` or `v2.0`.
fn is_version(segment: &str) -> bool {
    let Some(numbers) = segment.strip_prefix('v') else {
        return false;
    };
    let mut numbers = numbers.split('.');
    numbers.all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
