//! Where Keystone is, and who this service is to it.

use std::fmt;

use super::{ConfigError, KeystoneSection};

/// Where Keystone is, and who this service is to it.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// Base URLs, `/v3` at their end; tried in turn.
    pub(crate) auth_urls: Vec<String>,
    pub(crate) credentials: Credentials,
    /// Which endpoint of the catalog is asked about tokens.
    pub(crate) interface: String,
    /// Of which region; empty: of any.
    pub(crate) region_name: String,
}

impl Place {
    /// Whether it is asked by TLS, at least at one of its addresses.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.auth_urls.iter().any(|url| url.starts_with("https:"))
    }
}

/// Who this service is to Keystone.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// A user with a password, in a project.
    Password {
        /// Its name.
        username: String,
        /// Its password.
        password: String,
        /// The name of its domain.
        user_domain_name: String,
        /// The name of the project.
        project_name: String,
        /// The name of the project's domain.
        project_domain_name: String,
    },
    /// An application credential.
    ApplicationCredential {
        /// Its id.
        id: String,
        /// Its secret.
        secret: String,
    },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { username, .. } => write!(f, "Password({username})"),
            Self::ApplicationCredential { id, .. } => write!(f, "ApplicationCredential({id})"),
        }
    }
}

impl KeystoneSection {
    /// Where Keystone is, and who this service is to it (`[keystone]`). There is one URL at least.
    pub(crate) fn place(&self) -> Result<Place, ConfigError> {
        let invalid = |key: &str, message: &str| {
            Err(ConfigError::invalid(&format!("keystone.{key}"), message))
        };
        let urls = self.auth_url.split(',').map(str::trim);
        let auth_urls: Vec<String> = (urls.filter(|url| !url.is_empty()).map(base_url)).collect();
        let is_url = |url: &String| {
            let url = url.parse::<http::Uri>().ok();
            url.is_some_and(|url| {
                matches!(url.scheme_str(), Some("http" | "https"))
                    && (url.authority()).is_some_and(|host| !host.as_str().contains('@'))
                    && url.query().is_none()
            })
        };
        if auth_urls.is_empty() || !auth_urls.iter().all(is_url) {
            let message = "must be of the form https://HOST:PORT/PATH, as in Keystone's endpoint";
            return invalid("auth_url", message);
        }
        if self.timeout_ms == 0 {
            return invalid("timeout_ms", "must not be 0");
        }
        let has_credential = !self.application_credential_id.is_empty();
        let credentials = match (has_credential, self.username.is_empty()) {
            (true, true) => {
                if self.application_credential_secret.is_empty() {
                    return invalid("application_credential_secret", "is required");
                }
                Credentials::ApplicationCredential {
                    id: self.application_credential_id.clone(),
                    secret: self.application_credential_secret.reveal().to_owned(),
                }
            }
            (false, false) => {
                if self.password.is_empty() {
                    return invalid("password", "is required");
                }
                Credentials::Password {
                    username: self.username.clone(),
                    password: self.password.reveal().to_owned(),
                    user_domain_name: self.user_domain_name.clone(),
                    project_name: self.project_name.clone(),
                    project_domain_name: self.project_domain_name.clone(),
                }
            }
            _ => {
                let message = "or application_credential_id is required, and only one of them";
                return invalid("username", message);
            }
        };
        Ok(Place {
            auth_urls,
            credentials,
            interface: self.interface.clone(),
            region_name: self.region_name.clone(),
        })
    }
}

/// The base of version 3, whatever of it is given.
pub(crate) fn base_url(url: &str) -> String {
    let url = url.trim().trim_end_matches('/');
    let base = url.strip_suffix("/v3").unwrap_or(url);
    format!("{base}/v3")
}
