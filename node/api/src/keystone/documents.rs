//! Request and response bodies of Keystone's API, version 3.

use std::time::SystemTime;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::access_rules::AccessRules;
use placement_audit::identity::{CallingService, Identity};
use placement_base::settings::Secret;

/// A token after its validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Identity of the token. Its roles include implied ones. Keystone marks the admin project only
    /// if `[resource] admin_project_name` names one.
    pub identity: Identity,
    /// The requests it is limited to, if its application credential has access rules.
    pub(crate) access_rules: Option<AccessRules>,
    pub(crate) expires_at: SystemTime,
}

impl Token {
    /// Whether access rules limit the token to some requests.
    pub fn is_restricted(&self) -> bool {
        self.access_rules.is_some()
    }

    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires_at <= now
    }
}

/// Response to the creation or validation of a token.
#[derive(Deserialize)]
pub(super) struct TokenDocument {
    token: Document,
}

#[derive(Deserialize)]
struct Document {
    expires_at: String,
    user: Owned,
    project: Option<Owned>,
    domain: Option<Named>,
    system: Option<System>,
    #[serde(default)]
    roles: Vec<Role>,
    #[serde(default = "default_is_admin_project")]
    is_admin_project: bool,
    application_credential: Option<UsedCredential>,
    #[serde(default)]
    catalog: Vec<Service>,
}

fn default_is_admin_project() -> bool {
    true
}

#[derive(Deserialize)]
struct UsedCredential {
    access_rules: Option<AccessRules>,
}

#[derive(Deserialize)]
struct Owned {
    #[serde(deserialize_with = "not_empty")]
    id: String,
    name: Option<String>,
    domain: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(deserialize_with = "not_empty")]
    id: String,
}

/// Rejects an empty id, which indicates a damaged response.
fn not_empty<'de, D: Deserializer<'de>>(id: D) -> Result<String, D::Error> {
    let id = String::deserialize(id)?;
    if id.is_empty() {
        Err(D::Error::custom("an empty id"))
    } else {
        Ok(id)
    }
}

#[derive(Deserialize)]
struct System {
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
struct Role {
    name: String,
}

#[derive(Deserialize)]
struct Service {
    r#type: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    interface: String,
    region_id: Option<String>,
    url: String,
}

/// An error response of Keystone.
#[derive(Deserialize)]
pub(super) struct Refusal {
    #[serde(rename = "error")]
    _error: Reason,
}

#[derive(Deserialize)]
struct Reason {
    #[serde(rename = "message")]
    _message: String,
}

impl Refusal {
    /// Whether a body is an error response of Keystone. Other services that answer at a wrong path
    /// send other forms, even as JSON.
    pub(super) fn is(body: &[u8]) -> bool {
        serde_json::from_slice::<Self>(body).is_ok()
    }
}

impl TokenDocument {
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        // serde's own message may contain parts of the body.
        let unreadable = |error: serde_json::Error| {
            format!(
                "not a token response, at line {} column {}",
                error.line(),
                error.column()
            )
        };
        serde_json::from_slice(body).map_err(unreadable)
    }

    pub(super) fn expires_at(&self) -> Result<SystemTime, String> {
        let text = &self.token.expires_at;
        OffsetDateTime::parse(text, &Rfc3339)
            .map(SystemTime::from)
            .map_err(|error| format!("invalid expires_at of a token: {error}"))
    }

    /// URL of Keystone's own endpoint with this interface in the catalog.
    pub(super) fn identity_endpoint(&self, interface: &str, region: &str) -> Option<&str> {
        let services = self.token.catalog.iter();
        let endpoints = services
            .filter(|service| service.r#type == "identity")
            .flat_map(|service| &service.endpoints);
        let is_there = |endpoint: &&Endpoint| {
            region.is_empty() || endpoint.region_id.as_deref() == Some(region)
        };
        let mut found = endpoints.filter(is_there);
        let found = found.find(|endpoint| endpoint.interface == interface)?;
        Some(&found.url)
    }

    pub(super) fn into_token(self) -> Result<Token, String> {
        let expires_at = self.expires_at()?;
        let document = self.token;
        let id = |named: Named| named.id;
        let (project_id, project_name, project_domain_id) = match document.project {
            Some(project) => (Some(project.id), project.name, project.domain.map(id)),
            None => (None, None, None),
        };
        let is_for_the_system = document.system.is_some_and(|system| system.all);
        let credential = document.application_credential;
        Ok(Token {
            identity: Identity {
                user_id: document.user.id,
                user_name: document.user.name,
                project_id,
                project_name,
                domain_id: document.domain.map(id),
                system_scope: is_for_the_system.then(|| "all".to_owned()),
                user_domain_id: document.user.domain.map(id),
                project_domain_id,
                roles: document.roles.into_iter().map(|role| role.name).collect(),
                is_admin_project: document.is_admin_project,
                service: CallingService::default(),
            },
            access_rules: credential.and_then(|used| used.access_rules),
            expires_at,
        })
    }
}

/// Credentials for a token.
#[derive(Debug)]
#[expect(missing_docs, reason = "the names are Keystone's own")]
pub enum Credentials {
    /// Password of a user, for a project. User and project names are unique within their domains.
    Password {
        user: String,
        user_domain: String,
        password: Secret,
        project: String,
        project_domain: String,
    },
    /// Application credential, which belongs to one project.
    Application { id: String, secret: Secret },
}

impl Credentials {
    /// The request body for a token.
    pub(super) fn question(&self) -> Value {
        match self {
            Self::Application { id, secret } => json!({"auth": {"identity": {
                "methods": ["application_credential"],
                "application_credential": {"id": id, "secret": secret.reveal()},
            }}}),
            Self::Password {
                user,
                user_domain,
                password,
                project,
                project_domain,
            } => json!({"auth": {
                "identity": {
                    "methods": ["password"],
                    "password": {"user": {
                        "name": user,
                        "domain": {"name": user_domain},
                        "password": password.reveal(),
                    }},
                },
                "scope": {"project": {"name": project, "domain": {"name": project_domain}}},
            }}),
        }
    }
}

#[cfg(test)]
mod tests;
