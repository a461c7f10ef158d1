//! `[keystone]`.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::settings::{Invalid, Secret, settings};

settings! {
    /// Where Keystone is, for `[auth] strategy = "keystone"`. Most are those of `[keystone_authtoken]`. This service is
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
        interface: Interface = Interface::Internal,
        /// Of which region; empty: of any.
        region_name: String = String::new(),
        /// Roles with which a service may come (`X-Service-Token`) with a user's token that has expired by then.
        service_token_roles: Vec<String> = vec!["service".to_owned()],
        /// Whether a service token without any of these roles is refused.
        service_token_roles_required: bool = true,
        /// How long Keystone's answer about a token counts, in seconds; never beyond the token's end. A token that is
        /// revoked may be used for so long. That Keystone does not know a token counts for 5 s at most. 0: each request is
        /// asked about.
        token_cache_time_s: u64 = 300,
    }
}

/// Which of a service's endpoints in the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    Internal,
    Public,
    Admin,
}

impl Interface {
    /// As the catalog names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Public => "public",
            Self::Admin => "admin",
        }
    }
}

/// Where Keystone is, and who this service is to it.
#[derive(Debug, Clone)]
pub struct Place {
    /// Base URLs, `/v3` at their end; tried in turn.
    pub auth_urls: Vec<String>,
    pub(crate) credentials: Credentials,
    /// Which endpoint of the catalog is asked about tokens.
    pub(crate) interface: Interface,
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
    /// Whether Keystone can be asked with these.
    ///
    /// # Errors
    /// One is missing or wrong.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        self.place()?;
        let uri = self.authenticate_uri();
        if uri.contains('"') || http::HeaderValue::from_str(&uri).is_err() {
            let message = "cannot stand in a header";
            return Err(Invalid::new("keystone.www_authenticate_uri", message));
        }
        Ok(())
    }

    /// Where clients get tokens.
    pub(crate) fn authenticate_uri(&self) -> String {
        match self.www_authenticate_uri.as_str() {
            "" => base_url(self.auth_url.split(',').next().unwrap_or_default()),
            uri => uri.to_owned(),
        }
    }

    /// Where Keystone is, and who this service is to it (`[keystone]`). There is one URL at least.
    pub fn place(&self) -> Result<Place, Invalid> {
        let invalid =
            |key: &str, message: &str| Err(Invalid::new(&format!("keystone.{key}"), message));
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
            interface: self.interface,
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
