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
pub(super) struct Answer {
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
    match id.is_empty() {
        true => Err(D::Error::custom("an empty id")),
        false => Ok(id),
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

impl Answer {
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
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::keystone::KeystoneSection;

    fn answer(token: &Value) -> Answer {
        Answer::read(json!({ "token": token }).to_string().as_bytes()).unwrap()
    }

    fn document() -> Value {
        json!({
            "methods": ["password"],
            "user": {"id": "u", "name": "nova", "domain": {"id": "default", "name": "Default"}},
            "audit_ids": ["x"],
            "expires_at": "2027-01-02T03:04:05.000000Z",
            "issued_at": "2027-01-02T02:04:05.000000Z",
            "project": {"id": "p", "name": "service", "domain": {"id": "pd", "name": "D"}},
            "is_domain": false,
            "roles": [{"id": "1", "name": "admin"}, {"id": "2", "name": "member"}],
        })
    }

    #[test]
    fn a_token_of_a_project_is_read() {
        let token = answer(&document()).into_token().unwrap();
        let expires_at = UNIX_EPOCH + Duration::from_secs(1_798_859_045);
        let expected = Token {
            identity: Identity {
                user_id: "u".to_owned(),
                user_name: Some("nova".to_owned()),
                project_name: Some("service".to_owned()),
                user_domain_id: Some("default".to_owned()),
                project_id: Some("p".to_owned()),
                project_domain_id: Some("pd".to_owned()),
                roles: vec!["admin".to_owned(), "member".to_owned()],
                is_admin_project: true,
                ..Identity::default()
            },
            access_rules: None,
            expires_at,
        };
        assert_eq!(token, expected);
        assert!(token.has_expired(expires_at));
        assert!(!token.has_expired(expires_at - Duration::from_secs(1)));
    }

    #[test]
    fn system_domain_and_unscoped_tokens_differ() {
        let mut of = document();
        of.as_object_mut().unwrap().remove("project");
        of["roles"] = Value::Null;
        of.as_object_mut().unwrap().remove("roles");
        let unscoped = answer(&of).into_token().unwrap().identity;
        assert_eq!((unscoped.project_id, unscoped.domain_id), (None, None));
        assert!(unscoped.system_scope.is_none() && unscoped.roles.is_empty());
        of["domain"] = json!({"id": "d", "name": "D"});
        assert_eq!(
            answer(&of)
                .into_token()
                .unwrap()
                .identity
                .domain_id
                .as_deref(),
            Some("d")
        );
        of["system"] = json!({"all": true});
        let of_the_system = answer(&of).into_token().unwrap().identity;
        assert_eq!(of_the_system.system_scope.as_deref(), Some("all"));
    }

    #[test]
    fn a_token_says_whether_its_project_is_the_admin_project() {
        let mut of = document();
        for expected in [true, false] {
            of["is_admin_project"] = json!(expected);
            let token = answer(&of).into_token().unwrap();
            assert_eq!(token.identity.is_admin_project, expected);
        }
        of["is_admin_project"] = json!("False");
        let unclear = json!({ "token": of }).to_string();
        assert!(Answer::read(unclear.as_bytes()).is_err());
    }

    #[test]
    fn malformed_answer_is_refused_without_being_shown() {
        for body in [
            "",
            "{}",
            "[\"secret\"]",
            "{\"token\": {\"user\": \"secret\"}}",
        ] {
            let refused = Answer::read(body.as_bytes()).err().unwrap();
            assert!(!refused.contains("secret"), "{refused}");
        }
        let mut timeless = document();
        timeless["expires_at"] = json!("soon");
        assert!(answer(&timeless).into_token().is_err());
    }

    #[test]
    fn answer_with_an_empty_id_is_refused() {
        let mut of = document();
        of["domain"] = json!({"id": "d"});
        for place in [
            "/user/id",
            "/user/domain/id",
            "/project/id",
            "/project/domain/id",
            "/domain/id",
        ] {
            let mut empty = json!({ "token": of });
            assert!(Answer::read(empty.to_string().as_bytes()).is_ok());
            *empty.pointer_mut(&format!("/token{place}")).unwrap() = json!("");
            assert!(
                Answer::read(empty.to_string().as_bytes()).is_err(),
                "{place}"
            );
        }
    }

    proptest! {
        #[test]
        fn damaged_answer_causes_no_panic_and_grants_no_admin_role(
            at in any::<proptest::sample::Index>(),
            cut in 0..4_usize,
            put in proptest::collection::vec(any::<u8>(), 0..6),
        ) {
            let mut token = document();
            token["roles"] = json!([{"id": "2", "name": "reader"}]);
            let mut bytes = json!({ "token": token }).to_string().into_bytes();
            let at = at.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, put);
            if let Ok(answer) = Answer::read(&bytes) {
                let _ = (answer.expires_at(), answer.identity_endpoint("internal", "one"));
                if let Ok(token) = answer.into_token() {
                    prop_assert!(!token.identity.user_id.is_empty());
                    prop_assert!(!token.identity.roles.iter().any(|role| role == "admin"));
                }
            }
        }
    }

    #[test]
    fn keystone_endpoint_is_found_in_the_catalog() {
        let mut of = document();
        let endpoint = |interface: &str, region: &str, url: &str| json!({"interface": interface, "region_id": region, "url": url});
        of["catalog"] = json!([
            {"type": "placement", "endpoints": [endpoint("internal", "one", "http://p")]},
            {"type": "identity", "endpoints": [
                endpoint("public", "one", "http://public"),
                endpoint("internal", "one", "http://one"),
                endpoint("internal", "two", "http://two"),
            ]},
        ]);
        let answer = answer(&of);
        assert_eq!(
            answer.identity_endpoint("internal", "two"),
            Some("http://two")
        );
        assert_eq!(answer.identity_endpoint("internal", ""), Some("http://one"));
        assert_eq!(answer.identity_endpoint("admin", ""), None);
    }

    #[test]
    fn secrets_are_shown_to_keystone_alone() {
        let section = |text: &str| toml::from_str::<KeystoneSection>(text).unwrap();
        let password = section("username = 'placement'\npassword = 'hidden'\n");
        let application =
            section("application_credential_id = 'id'\napplication_credential_secret = 'hidden'\n");
        for section in [&password, &application] {
            let shown = format!("{section:?} {} {:?}", section.who(), section.credentials());
            assert!(!shown.contains("hidden"), "{shown}");
        }
        assert_eq!(
            password.credentials().question(),
            json!({"auth": {
                "identity": {"methods": ["password"], "password": {"user": {
                    "name": "placement", "domain": {"name": "Default"}, "password": "hidden"}}},
                "scope": {"project": {"name": "service", "domain": {"name": "Default"}}},
            }})
        );
        assert_eq!(
            application.credentials().question(),
            json!({"auth": {"identity": {
                "methods": ["application_credential"],
                "application_credential": {"id": "id", "secret": "hidden"},
            }}})
        );
    }
}
