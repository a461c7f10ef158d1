//! Asking Keystone: with a token of this service's own, which is renewed before it ends.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use tokio::sync::Mutex;

use super::documents::{Answer, Credentials, Token};
use super::settings::{KeystoneSection, base_url};
use crate::outgoing::Outgoing;
use crate::world::Clock;

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
/// Says that access rules of application credentials are enforced here. Without it Keystone does not know tokens
/// that have some.
const ACCESS_RULES: HeaderName = HeaderName::from_static("openstack-identity-access-rules");
/// How long before its end a token is renewed.
const RENEWAL: Duration = Duration::from_secs(120);
/// How soon after a login the next is tried: with a wrong password a crowd of requests would have Keystone lock
/// this service's user out.
const LOGIN_PAUSE: Duration = Duration::from_secs(1);

/// Keystone gave no answer that could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Away(pub(crate) String);

/// This service's standing with Keystone.
pub(super) struct Session {
    pub(super) section: KeystoneSection,
    outgoing: Outgoing,
    clock: Arc<dyn Clock>,
    /// Held during a login, so that a crowd of requests waits for one.
    login: Mutex<Option<LastLogin>>,
}

struct LastLogin {
    /// When it ended, monotonic.
    at: Duration,
    outcome: Result<Own, Away>,
}

/// A token of this service.
#[derive(Clone)]
struct Own {
    token: HeaderValue,
    renew_at: SystemTime,
    /// Where tokens are validated: that of the catalog first.
    urls: Vec<String>,
}

impl Session {
    pub(super) fn new(section: KeystoneSection, outgoing: Outgoing, clock: Arc<dyn Clock>) -> Self {
        Self {
            section,
            outgoing,
            clock,
            login: Mutex::default(),
        }
    }

    /// What Keystone reports of a token. `None`: it does not know the token, or no longer does.
    pub(super) async fn validate(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Token>, Away> {
        // What no header can carry Keystone never issued.
        let Ok(mut subject) = HeaderValue::from_str(token) else {
            return Ok(None);
        };
        subject.set_sensitive(true);
        let path = match may_have_expired {
            true => "/auth/tokens?nocatalog=1&allow_expired=1",
            false => "/auth/tokens?nocatalog=1",
        };
        let mut refused: Option<HeaderValue> = None;
        loop {
            let own = self.own(refused.as_ref()).await?;
            let question = |url: &str| {
                let question = Request::builder().method(Method::GET);
                let question = (question.uri(format!("{url}{path}")))
                    .header(AUTH_TOKEN, &own.token)
                    .header(SUBJECT_TOKEN, &subject)
                    .header(ACCESS_RULES, "1");
                question.body(Full::default())
            };
            let answer = self.ask(&own.urls, question).await?;
            match answer.status() {
                StatusCode::OK => {
                    let read = Answer::read(answer.body()).and_then(Answer::into_token);
                    return read.map(Some).map_err(Away);
                }
                StatusCode::NOT_FOUND => return Ok(None),
                // Its own token was revoked, or Keystone has other keys.
                StatusCode::UNAUTHORIZED if refused.is_none() => refused = Some(own.token),
                status => {
                    return Err(Away(format!(
                        "it answers {status} when it is asked about a token"
                    )));
                }
            }
        }
    }

    /// A token of this service's own, another one than that which was `refused`.
    async fn own(&self, refused: Option<&HeaderValue>) -> Result<Own, Away> {
        let mut login = self.login.lock().await;
        if let Some(last) = &*login {
            let lately = self.clock.monotonic().saturating_sub(last.at) < LOGIN_PAUSE;
            match &last.outcome {
                Ok(own) if refused != Some(&own.token) && self.clock.now() < own.renew_at => {
                    return Ok(own.clone());
                }
                Ok(_) if lately => {
                    let words = "it takes no token that it has just given this service";
                    return Err(Away(words.to_owned()));
                }
                Err(away) if lately => return Err(away.clone()),
                _ => {}
            }
        }
        let outcome = self.log_in().await;
        *login = Some(LastLogin {
            at: self.clock.monotonic(),
            outcome: outcome.clone(),
        });
        outcome
    }

    /// Asks for a token; gives Keystone's answer.
    async fn issue(&self, whom: &Credentials) -> Result<Response<Bytes>, Away> {
        let login = Bytes::from(whom.question().to_string());
        let question = |url: &str| {
            let question = Request::builder().method(Method::POST);
            let question = (question.uri(format!("{url}/auth/tokens")))
                .header(CONTENT_TYPE, "application/json")
                .header(ACCEPT, "application/json");
            question.body(Full::new(login.clone()))
        };
        self.ask(&self.section.auth_urls(), question).await
    }

    /// A token for a user. `None`: Keystone does not accept the credentials.
    pub(super) async fn token_for(&self, whom: &Credentials) -> Result<Option<String>, Away> {
        let answer = self.issue(whom).await?;
        match answer.status() {
            StatusCode::CREATED => {
                let token = issued(&answer)?;
                let token = token.to_str().map_err(|_| no_token())?;
                Ok(Some(token.to_owned()))
            }
            StatusCode::BAD_REQUEST
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND => Ok(None),
            status => Err(Away(format!("it answers {status} when a user logs in"))),
        }
    }

    /// Ends a token, by its own right.
    pub(super) async fn revoke(&self, token: &str) -> Result<(), Away> {
        let token = HeaderValue::from_str(token);
        let mut token = token.map_err(|_| Away("no header can carry the token".to_owned()))?;
        token.set_sensitive(true);
        let question = |url: &str| {
            let question = Request::builder().method(Method::DELETE);
            let question = (question.uri(format!("{url}/auth/tokens")))
                .header(AUTH_TOKEN, &token)
                .header(SUBJECT_TOKEN, &token);
            question.body(Full::default())
        };
        let answer = self.ask(&self.section.auth_urls(), question).await?;
        match answer.status() {
            // Otherwise it had ended before.
            StatusCode::NO_CONTENT | StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => Ok(()),
            status => Err(Away(format!("it answers {status} when a token is revoked"))),
        }
    }

    async fn log_in(&self) -> Result<Own, Away> {
        let auth_urls = self.section.auth_urls();
        let answer = self.issue(&self.section.credentials()).await?;
        if answer.status() != StatusCode::CREATED {
            return Err(Away(format!(
                "it answers {} when this service asks for a token as {}",
                answer.status(),
                self.section.who()
            )));
        }
        let token = issued(&answer)?;
        let answer = Answer::read(answer.body()).map_err(Away)?;
        let own =
            answer.identity_endpoint(self.section.interface.name(), &self.section.region_name);
        let mut urls: Vec<String> = own.map(base_url).into_iter().chain(auth_urls).collect();
        urls.dedup();
        Ok(Own {
            token,
            renew_at: answer.expires_at().map_err(Away)? - RENEWAL,
            urls,
        })
    }

    /// Asks one after the other, until one gives an answer other than that it is not well.
    async fn ask(
        &self,
        urls: &[String],
        question: impl Fn(&str) -> http::Result<Request<Full<Bytes>>>,
    ) -> Result<Response<Bytes>, Away> {
        let mut why = Away("no address of it is known".to_owned());
        for url in urls {
            let question = question(url).map_err(|error| Away(format!("{url}: {error}")))?;
            match self.outgoing.request(question).await {
                Ok(answer) if !answer.status().is_server_error() => return Ok(answer),
                Ok(answer) => why = Away(format!("{url} answers {}", answer.status())),
                Err(error) => why = Away(format!("{url}: {error}")),
            }
        }
        Err(why)
    }
}

/// The token that comes with an answer.
fn issued(answer: &Response<Bytes>) -> Result<HeaderValue, Away> {
    let token = answer.headers().get(SUBJECT_TOKEN).cloned();
    let mut token = token.ok_or_else(no_token)?;
    token.set_sensitive(true);
    Ok(token)
}

fn no_token() -> Away {
    Away("it sends no token".to_owned())
}
