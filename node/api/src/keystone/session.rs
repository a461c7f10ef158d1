//! Requests to Keystone, with a token for this service that is renewed before it expires.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use http::uri::Scheme;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::documents::{Credentials, Refusal, Token, TokenDocument};
use super::settings::{KeystoneSection, base_url};
use placement_base::log_messages::log;
use placement_base::world::Clock;
use placement_outgoing::Outgoing;

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: HeaderName = HeaderName::from_static("x-subject-token");
/// Declares that this service enforces access rules of application credentials. Without this
/// header, Keystone does not validate tokens that have access rules.
const ACCESS_RULES: HeaderName = HeaderName::from_static("openstack-identity-access-rules");
/// Timeout of a request to one URL; then the next URL is tried.
pub(super) const QUESTION_MAX: Duration = Duration::from_secs(5);
/// Time before expiry at which a token is renewed.
const RENEWAL: Duration = Duration::from_secs(120);
/// Minimum delay between logins: with a wrong password, many concurrent requests would otherwise
/// make Keystone lock out this service's user.
const LOGIN_PAUSE: Duration = Duration::from_secs(1);
/// Maximum number of redirects followed per request.
const REDIRECTS_MAX: usize = 3;

/// Keystone gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeystoneUnavailable(pub(crate) String);

/// This service's session with Keystone.
pub(super) struct Session {
    pub(super) section: KeystoneSection,
    outgoing: Outgoing,
    clock: Arc<dyn Clock>,
    /// Held during a login, so that concurrent requests share one.
    login: Mutex<Option<LastLogin>>,
    /// URLs at which another service than Keystone answered: they are tried last, and logged once
    /// per login.
    misplaced: parking_lot::Mutex<BTreeSet<String>>,
}

struct LastLogin {
    /// End of the login, monotonic.
    at: Duration,
    outcome: Result<ServiceToken, KeystoneUnavailable>,
}

/// A token for this service.
#[derive(Clone)]
struct ServiceToken {
    token: HeaderValue,
    renew_at: SystemTime,
    /// URLs that validate tokens: the endpoint from the catalog first.
    urls: Vec<String>,
}

impl Session {
    pub(super) fn new(section: KeystoneSection, outgoing: Outgoing, clock: Arc<dyn Clock>) -> Self {
        Self {
            section,
            outgoing,
            clock,
            login: Mutex::default(),
            misplaced: parking_lot::Mutex::default(),
        }
    }

    /// Validates a token. `None` if Keystone does not know it, or no longer does.
    pub(super) async fn validate(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Token>, KeystoneUnavailable> {
        // Keystone issues no token that does not fit in a header.
        let Ok(mut subject) = HeaderValue::from_str(token) else {
            return Ok(None);
        };
        subject.set_sensitive(true);
        let path = if may_have_expired {
            "/auth/tokens?nocatalog=1&allow_expired=1"
        } else {
            "/auth/tokens?nocatalog=1"
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
                    let read =
                        TokenDocument::read(answer.body()).and_then(TokenDocument::into_token);
                    return read.map(Some).map_err(KeystoneUnavailable);
                }
                StatusCode::NOT_FOUND => return Ok(None),
                // This service's token was revoked, or Keystone's keys were changed.
                StatusCode::UNAUTHORIZED if refused.is_none() => refused = Some(own.token),
                status => {
                    return Err(KeystoneUnavailable(format!(
                        "it answers {status} to the validation of a token"
                    )));
                }
            }
        }
    }

    /// The token for this service; logs in again if it expires soon or is `refused`.
    async fn own(
        &self,
        refused: Option<&HeaderValue>,
    ) -> Result<ServiceToken, KeystoneUnavailable> {
        let mut login = self.login.lock().await;
        if let Some(last) = &*login {
            let lately = self.clock.monotonic().saturating_sub(last.at) < LOGIN_PAUSE;
            match &last.outcome {
                Ok(own) if refused != Some(&own.token) && self.clock.now() < own.renew_at => {
                    return Ok(own.clone());
                }
                Ok(_) if lately => {
                    let words = "it rejects the token that it has just given this service";
                    return Err(KeystoneUnavailable(words.to_owned()));
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

    /// Requests a token and returns Keystone's response.
    async fn issue(&self, whom: &Credentials) -> Result<Response<Bytes>, KeystoneUnavailable> {
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

    /// A token for a user. `None` if Keystone rejects the credentials.
    pub(super) async fn token_for(
        &self,
        whom: &Credentials,
    ) -> Result<Option<String>, KeystoneUnavailable> {
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
            status => Err(KeystoneUnavailable(format!(
                "it answers {status} to the login of a user"
            ))),
        }
    }

    /// Revokes a token, authorized by the token itself.
    pub(super) async fn revoke(&self, token: &str) -> Result<(), KeystoneUnavailable> {
        let token = HeaderValue::from_str(token);
        let mut token = token
            .map_err(|_| KeystoneUnavailable("the token is not a valid header value".to_owned()))?;
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
            // In the other cases the token was no longer valid.
            StatusCode::NO_CONTENT | StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND => Ok(()),
            status => Err(KeystoneUnavailable(format!(
                "it answers {status} to the revocation of a token"
            ))),
        }
    }

    async fn log_in(&self) -> Result<ServiceToken, KeystoneUnavailable> {
        let auth_urls = self.section.auth_urls();
        let answer = self.issue(&self.section.credentials()).await?;
        if answer.status() != StatusCode::CREATED {
            return Err(KeystoneUnavailable(format!(
                "it answers {} to the login of this service as {}",
                answer.status(),
                self.section.who()
            )));
        }
        let token = issued(&answer)?;
        let answer = TokenDocument::read(answer.body()).map_err(KeystoneUnavailable)?;
        let own =
            answer.identity_endpoint(self.section.interface.name(), &self.section.region_name);
        let mut urls: Vec<String> = own.map(base_url).into_iter().chain(auth_urls).collect();
        urls.dedup();
        // The URLs may have been corrected since the last login.
        self.misplaced.lock().clear();
        Ok(ServiceToken {
            token,
            renew_at: answer.expires_at().map_err(KeystoneUnavailable)? - RENEWAL,
            urls,
        })
    }

    /// Tries the URLs in turn until Keystone answers. A URL is skipped if it answers with a server
    /// error, or with a 404 that is not Keystone's.
    async fn ask(
        &self,
        urls: &[String],
        question: impl Fn(&str) -> http::Result<Request<Full<Bytes>>>,
    ) -> Result<Response<Bytes>, KeystoneUnavailable> {
        let mut why = KeystoneUnavailable("no URL is configured".to_owned());
        let mut urls: Vec<&String> = urls.iter().collect();
        urls.sort_by_key(|url| self.misplaced.lock().contains(*url));
        for url in urls {
            let question =
                || question(url).map_err(|error| KeystoneUnavailable(format!("{url}: {error}")));
            match timeout(QUESTION_MAX, self.answer(question)).await {
                Ok(Ok(answer)) if answer.status().is_server_error() => {
                    why = KeystoneUnavailable(format!("{url} answers {}", answer.status()));
                }
                Ok(Ok(answer)) if is_from_other_service(&answer) => {
                    let words = format!(
                        "{url} answers 404 without Keystone's error document, so it is not a Keystone v3 API; correct \
                         [keystone] auth_url, or the identity endpoint in Keystone's catalog"
                    );
                    if self.misplaced.lock().insert(url.clone()) {
                        log!(KEYSTONE_URL_WRONG, url, "{words}");
                    }
                    why = KeystoneUnavailable(words);
                }
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(KeystoneUnavailable(error))) => {
                    why = KeystoneUnavailable(format!("{url}: {error}"))
                }
                Err(_) => {
                    let seconds = QUESTION_MAX.as_secs_f32();
                    why = KeystoneUnavailable(format!("{url}: no answer within {seconds} s"));
                }
            }
        }
        Err(why)
    }

    /// Sends a request and follows redirects. Source: RFC 9110, section 15.4; like keystoneauth,
    /// with any method.
    async fn answer(
        &self,
        question: impl Fn() -> Result<Request<Full<Bytes>>, KeystoneUnavailable>,
    ) -> Result<Response<Bytes>, KeystoneUnavailable> {
        let mut request = question()?;
        for _ in 0..=REDIRECTS_MAX {
            let asked = request.uri().clone();
            let answer = (self.outgoing.request(request).await)
                .map_err(|error| KeystoneUnavailable(error.to_string()))?;
            let Some(location) = location(&answer) else {
                return Ok(answer);
            };
            request = question()?;
            *request.uri_mut() = redirected(&asked, location)?;
        }
        Err(KeystoneUnavailable(format!(
            "it redirects more than {REDIRECTS_MAX} times"
        )))
    }
}

/// The target of a redirect.
fn location(answer: &Response<Bytes>) -> Option<&HeaderValue> {
    let is_redirect = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    answer.headers().get(LOCATION).filter(|_| is_redirect)
}

/// The URI to which a response from `asked` redirects.
fn redirected(asked: &Uri, location: &HeaderValue) -> Result<Uri, KeystoneUnavailable> {
    let wrong = |why: &str| KeystoneUnavailable(format!("it redirects to {location:?}, {why}"));
    let text = location.to_str().ok();
    let to = text.and_then(|text| text.parse::<Uri>().ok());
    let mut parts = to.unwrap_or_default().into_parts();
    if text.is_some_and(|text| text.starts_with('/')) {
        let from = asked.clone().into_parts();
        (parts.scheme, parts.authority) = (from.scheme, from.authority);
    }
    if parts.scheme.is_none() || parts.authority.is_none() {
        return Err(wrong("which is not a valid URL"));
    }
    let is_safe = parts.scheme == Some(Scheme::HTTPS) || asked.scheme() == Some(&Scheme::HTTP);
    if !is_safe {
        return Err(wrong("where tokens would be sent unencrypted"));
    }
    Uri::from_parts(parts).map_err(|_| wrong("which is not a valid URL"))
}

/// Whether another service than Keystone answered: Keystone's own 404 contains an error document.
fn is_from_other_service(answer: &Response<Bytes>) -> bool {
    answer.status() == StatusCode::NOT_FOUND && !Refusal::is(answer.body())
}

/// The token in a response.
fn issued(answer: &Response<Bytes>) -> Result<HeaderValue, KeystoneUnavailable> {
    let token = answer.headers().get(SUBJECT_TOKEN).cloned();
    let mut token = token.ok_or_else(no_token)?;
    token.set_sensitive(true);
    Ok(token)
}

fn no_token() -> KeystoneUnavailable {
    KeystoneUnavailable("it sends no X-Subject-Token header".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(asked: &'static str, location: &'static str) -> Result<String, String> {
        let location = HeaderValue::from_static(location);
        let to = redirected(&Uri::from_static(asked), &location);
        to.map(|to| to.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn redirect_is_followed_unless_it_would_send_tokens_unencrypted() {
        for asked in [
            "http://one:1/v3/auth/tokens",
            "https://one:1/v3/auth/tokens",
        ] {
            let moved = to(asked, "https://two:2/v3/auth/tokens?nocatalog=1");
            assert_eq!(moved.unwrap(), "https://two:2/v3/auth/tokens?nocatalog=1");
            let moved = to(asked, "/identity/v3/auth/tokens?nocatalog=1").unwrap();
            let expected = asked.replace("/v3/auth/tokens", "/identity/v3/auth/tokens?nocatalog=1");
            assert_eq!(moved, expected);
        }
        let plain = "http://one:1/identity/v3/auth/tokens";
        assert_eq!(to("http://one:1/v3/auth/tokens", plain).unwrap(), plain);
        let refused = to("https://one:1/v3/auth/tokens", plain).unwrap_err();
        assert!(
            refused.contains("tokens would be sent unencrypted"),
            "{refused}"
        );
    }

    #[test]
    fn redirect_without_a_host_or_a_scheme_is_refused() {
        for location in ["", "auth/tokens", "one:1", "https://", "one two"] {
            let refused = to("https://one:1/v3/auth/tokens", location).unwrap_err();
            assert!(
                refused.contains("is not a valid URL"),
                "{location}: {refused}"
            );
        }
    }
}
