//! Logins, validations and revocations of a made-up Keystone, without a listener. The unit tests of
//! `placement-api` include this file by its path, as that crate does not depend on this one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Users and their tokens. The password of a user is `password of NAME`, its application credential
/// `credential of NAME`, and the secret of the credential `secret of NAME`.
pub struct Identities {
    /// Users who can log in, and their roles.
    users: BTreeMap<String, String>,
    /// Expiry of issued tokens, in RFC 3339.
    expires_at: String,
    /// User and expiry of a token that no login issued.
    unissued: fn(&str) -> Option<(String, String)>,
    /// Issued tokens that are valid, and their users.
    pub tokens: Mutex<BTreeMap<String, String>>,
    /// Revoked tokens.
    pub revoked: Mutex<BTreeSet<String>>,
    /// Number of issued tokens, so that each is unique.
    given: AtomicUsize,
    /// Whether logins are rejected.
    pub closed: AtomicBool,
    /// Additional fields in the token documents of some users.
    pub also: Mutex<BTreeMap<String, Value>>,
}

impl Identities {
    /// Users with one role each, whose tokens expire then.
    pub fn new(
        users: &[(&str, &str)],
        expires_at: String,
        unissued: fn(&str) -> Option<(String, String)>,
    ) -> Self {
        let users = users
            .iter()
            .map(|(user, role)| ((*user).to_owned(), (*role).to_owned()));
        Self {
            users: users.collect(),
            expires_at,
            unissued,
            tokens: Mutex::default(),
            revoked: Mutex::default(),
            given: AtomicUsize::default(),
            closed: AtomicBool::default(),
            also: Mutex::default(),
        }
    }

    /// Answers a request for `/v3/auth/tokens`.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let headers = request.headers().clone();
        let (own, subject) = (
            text(&headers, "x-auth-token"),
            text(&headers, "x-subject-token"),
        );
        match *request.method() {
            Method::POST => {
                let body = request
                    .into_body()
                    .collect()
                    .await
                    .expect("a node sends its whole request")
                    .to_bytes();
                let auth = serde_json::from_slice(&body).expect("a login is JSON");
                self.log_in(&auth)
            }
            Method::DELETE => {
                assert_eq!(own, subject, "a user may revoke only its own token");
                self.tokens.lock().remove(&subject);
                self.revoked.lock().insert(subject);
                answer(StatusCode::NO_CONTENT, None)
            }
            _ if !self.tokens.lock().contains_key(&own) => answer(StatusCode::UNAUTHORIZED, None),
            _ => {
                let knows_rules = text(&headers, "openstack-identity-access-rules") == "1";
                // A service that does not enforce access rules would accept such a token for every
                // request.
                let document = self.document(&subject).filter(|document| {
                    let rules = &document["token"]["application_credential"]["access_rules"];
                    knows_rules || rules.is_null()
                });
                match document {
                    Some(document) => answer(StatusCode::OK, Some(document)),
                    None => answer(StatusCode::NOT_FOUND, Some(unknown())),
                }
            }
        }
    }

    fn log_in(&self, auth: &Value) -> Response<Full<Bytes>> {
        let Some(user) = self.user_of(&auth["auth"]) else {
            return answer(StatusCode::UNAUTHORIZED, None);
        };
        let token = {
            let mut tokens = self.tokens.lock();
            let number = self.given.fetch_add(1, Ordering::Relaxed);
            let token = format!("token-{number}");
            tokens.insert(token.clone(), user);
            token
        };
        let mut answer = answer(StatusCode::CREATED, self.document(&token));
        let token = token.parse().expect("it is ASCII");
        answer.headers_mut().insert("x-subject-token", token);
        answer
    }

    /// The user of these credentials, if they are valid.
    fn user_of(&self, auth: &Value) -> Option<String> {
        let identity = &auth["identity"];
        let (by, secret, prefix, expected) = match identity["methods"][0].as_str()? {
            "password" => {
                let user = &identity["password"]["user"];
                let scope = &auth["scope"]["project"];
                let is_default = |of: &Value| of["domain"]["name"] == "Default";
                let is_scoped = scope["name"] == "service" && is_default(scope) && is_default(user);
                is_scoped.then_some(())?;
                (&user["name"], &user["password"], "", "password")
            }
            _ => {
                let used = &identity["application_credential"];
                (&used["id"], &used["secret"], "credential of ", "secret")
            }
        };
        let user = by.as_str()?.strip_prefix(prefix)?;
        let is_valid = self.users.contains_key(user)
            && *secret == format!("{expected} of {user}")
            && !self.closed.load(Ordering::Relaxed);
        is_valid.then(|| user.to_owned())
    }

    /// Document of a valid token.
    fn document(&self, token: &str) -> Option<Value> {
        if self.revoked.lock().contains(token) {
            return None;
        }
        let issued = self.tokens.lock().get(token).cloned();
        let (user, expires_at) = match issued {
            Some(user) => (user, self.expires_at.clone()),
            None => (self.unissued)(token)?,
        };
        let id: String = user.chars().filter(char::is_ascii_alphanumeric).collect();
        let role = self.users.get(&user).map_or("member", String::as_str);
        let mut document = json!({
            "user": {"id": id, "domain": {"id": "default"}},
            "project": {"id": "service", "domain": {"id": "default"}},
            "roles": [{"name": role}],
            "expires_at": expires_at,
        });
        if let Some(Value::Object(also)) = self.also.lock().get(&user) {
            let document = document.as_object_mut().expect("it is an object");
            document.extend(also.clone());
        }
        Some(json!({ "token": document }))
    }
}

/// Keystone's answer about a token that it does not know.
fn unknown() -> Value {
    json!({"error": {"code": 404, "title": "Not Found", "message": "Could not find token: ."}})
}

fn text(headers: &HeaderMap, name: &str) -> String {
    let value = headers.get(name).map_or(&[][..], |value| value.as_bytes());
    String::from_utf8_lossy(value).into_owned()
}

fn answer(status: StatusCode, body: Option<Value>) -> Response<Full<Bytes>> {
    let body = body.map_or_else(Full::default, |body| Full::from(body.to_string()));
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}
