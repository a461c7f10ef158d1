//! OpenStack's identity service: whose a token is, by its API's version 3.
//!
//! What it says of a token is remembered for a while, by the token's SHA-256: no token stays in memory. One
//! question serves all who ask about the same token meanwhile.

mod documents;
mod session;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use moka::Expiry;
use moka::future::Cache;
use ring::digest::{SHA256, digest};

pub(crate) use self::documents::Token;
pub(crate) use self::session::Away;
use self::session::Session;
use crate::config::{ConfigError, KeystoneSection};
use crate::env::Net;
use crate::outgoing::{self, Outgoing};
use crate::world::Clock;

/// The longest answer about a token that is read: many roles, or a catalog of many regions.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Tokens that are remembered at once.
const REMEMBERED_MAX: u64 = 100_000;
/// No token is longer than this, with a thousand roles in it.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Knows whose tokens are.
pub struct Keystone {
    session: Session,
    clock: Arc<dyn Clock>,
    /// `None`: nothing is remembered.
    known: Option<Cache<[u8; 32], Known>>,
}

/// What was said of a token, and until when that counts. `None`: it is none.
#[derive(Clone)]
struct Known {
    token: Option<Arc<Token>>,
    lasts: Duration,
}

struct AsItSays;

impl Expiry<[u8; 32], Known> for AsItSays {
    fn expire_after_create(&self, _: &[u8; 32], known: &Known, _: Instant) -> Option<Duration> {
        Some(known.lasts)
    }
}

impl Keystone {
    /// Reads the certificates. Nothing is sent. Blocks.
    pub(crate) fn open(
        section: &KeystoneSection,
        net: Arc<dyn Net>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        let place = section.place()?;
        let tls = outgoing::tls(section.cafile.as_deref());
        // Where no authority is trusted, plain HTTP still goes.
        let tls = match section.cafile.is_some() || place.is_encrypted() {
            true => Some(tls.map_err(|message| ConfigError::Invalid {
                key: "keystone.cafile".to_owned(),
                message,
            })?),
            false => tls.ok(),
        };
        let deadline = Duration::from_millis(section.timeout_ms);
        let outgoing = Outgoing::new(net, tls, deadline, ANSWER_BYTES_MAX);
        let remembers = Duration::from_secs(section.token_cache_time_s);
        let known = (!remembers.is_zero()).then(|| {
            let cache = Cache::builder().max_capacity(REMEMBERED_MAX);
            cache.expire_after(AsItSays).time_to_live(remembers).build()
        });
        Ok(Self {
            session: Session::new(place, outgoing, clock.clone()),
            clock,
            known,
        })
    }

    /// Whose a token is. `None`: nobody's, or it has expired, unless it `may_have_expired` meanwhile.
    ///
    /// # Errors
    /// Keystone cannot be asked, and it is not remembered.
    pub(crate) async fn whose(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Arc<Token>>, Away> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let Some(cache) = &self.known else {
            return Ok(self.ask(token, may_have_expired).await?.token);
        };
        let hash = digest(&SHA256, token.as_bytes());
        let hash: [u8; 32] = hash.as_ref().try_into().expect("SHA-256 has 32 bytes");
        let asked = cache.try_get_with(hash, self.ask(token, false));
        let known = asked.await.map_err(|away| Away::clone(&away))?;
        match known.token {
            Some(token) if !token.has_expired(self.clock.now()) => Ok(Some(token)),
            // That it has expired says nothing of what it was; and an expired token is not remembered.
            _ if may_have_expired => Ok(self.ask(token, true).await?.token),
            _ => Ok(None),
        }
    }

    async fn ask(&self, token: &str, may_have_expired: bool) -> Result<Known, Away> {
        let said = self.session.validate(token, may_have_expired).await?;
        let now = self.clock.now();
        let said = said.filter(|token| may_have_expired || !token.has_expired(now));
        Ok(Known {
            lasts: said
                .as_ref()
                .map_or(Duration::MAX, |token| left(token, now)),
            token: said.map(Arc::new),
        })
    }
}

fn left(token: &Token, now: SystemTime) -> Duration {
    token.expires_at.duration_since(now).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;
    use std::io;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::UNIX_EPOCH;

    use bytes::Bytes;
    use futures::future::{BoxFuture, join_all};
    use http::{Request, Response, StatusCode};
    use http_body_util::{BodyExt, Full};
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use parking_lot::Mutex;
    use placement_raft_store::runtime;
    use serde_json::{Value, json};

    use proptest::prelude::*;

    use super::*;
    use crate::env::{BoxStream, Listener};

    /// A second of these tests.
    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000 + second)
    }

    fn text(time: SystemTime) -> String {
        let time = time::OffsetDateTime::from(time);
        time.format(&time::format_description::well_known::Rfc3339)
            .unwrap()
    }

    struct StandingClock(Mutex<SystemTime>);

    impl Clock for StandingClock {
        fn now(&self) -> SystemTime {
            *self.0.lock()
        }

        fn monotonic(&self) -> Duration {
            self.0.lock().duration_since(at(0)).unwrap()
        }
    }

    /// Keystones in memory, at whatever address.
    #[derive(Default)]
    struct Cloud {
        /// What they were asked: the address, and `login`, or the token and what was asked of it.
        asked: Mutex<Vec<String>>,
        /// Addresses at which nobody answers, and at which 503 is answered.
        down: Mutex<BTreeSet<String>>,
        ill: Mutex<BTreeSet<String>>,
        /// Tokens of the service that count; the newest is the last.
        logins: Mutex<Vec<String>>,
        /// No token is given twice.
        given: AtomicUsize,
        /// Whether its logins are refused.
        closed: AtomicBool,
        revoked: Mutex<BTreeSet<String>>,
    }

    impl Cloud {
        fn token_of(user: &str, expires_at: SystemTime) -> Value {
            json!({"token": {
                "user": {"id": user, "domain": {"id": "default"}},
                "roles": [{"name": "member"}],
                "expires_at": text(expires_at),
            }})
        }

        /// Tokens are `USER:SECOND`, the second at which they end.
        async fn answer(
            self: Arc<Self>,
            address: String,
            request: Request<Incoming>,
        ) -> Result<Response<Full<Bytes>>, Infallible> {
            let header = |name: &str| {
                let value = request
                    .headers()
                    .get(name)
                    .map_or(&[][..], |value| value.as_bytes());
                String::from_utf8_lossy(value).into_owned()
            };
            let (own, subject) = (header("x-auth-token"), header("x-subject-token"));
            let answer = |status: StatusCode, body: &Value| {
                let answer = Response::builder().status(status);
                answer
                    .header("x-subject-token", own_of(body))
                    .body(Full::new(Bytes::from(body.to_string())))
                    .unwrap()
            };
            if self.ill.lock().contains(&address) {
                return Ok(answer(StatusCode::SERVICE_UNAVAILABLE, &Value::Null));
            }
            if request.uri().path() == "/v3/auth/tokens" && request.method() == "POST" {
                self.asked.lock().push(format!("{address} login"));
                if self.closed.load(Ordering::Relaxed) {
                    return Ok(answer(StatusCode::UNAUTHORIZED, &Value::Null));
                }
                let body = request.into_body().collect().await.unwrap().to_bytes();
                assert!(String::from_utf8_lossy(&body).contains("hidden"));
                let number = {
                    let mut logins = self.logins.lock();
                    let number = self.given.fetch_add(1, Ordering::Relaxed);
                    logins.push(format!("own-{number}"));
                    number
                };
                let mut body = Self::token_of("placement", at(3_600));
                body["own"] = json!(format!("own-{number}"));
                return Ok(answer(StatusCode::CREATED, &body));
            }
            let query = request.uri().query().unwrap_or_default();
            let may_have_expired = query.contains("allow_expired=1");
            let asked = format!("{address} {subject} {may_have_expired}");
            self.asked.lock().push(asked);
            if !self.logins.lock().contains(&own) {
                return Ok(answer(StatusCode::UNAUTHORIZED, &Value::Null));
            }
            let known = subject
                .split_once(':')
                .filter(|_| !self.revoked.lock().contains(&subject))
                .and_then(|(user, second)| Some((user, second.parse().ok()?)));
            Ok(match known {
                Some((user, second)) => {
                    let body = Self::token_of(user, at(second));
                    answer(StatusCode::OK, &body)
                }
                None => answer(StatusCode::NOT_FOUND, &Value::Null),
            })
        }

        fn asked(&self) -> Vec<String> {
            std::mem::take(&mut *self.asked.lock())
        }

        fn logins_asked(&self) -> usize {
            let asked = self.asked();
            asked.iter().filter(|one| one.ends_with("login")).count()
        }
    }

    fn own_of(body: &Value) -> &str {
        body["own"].as_str().unwrap_or_default()
    }

    struct CloudNet(Arc<Cloud>);

    impl Net for CloudNet {
        fn bind<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
            unreachable!("nobody listens in these tests")
        }

        fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
            Box::pin(async move {
                if self.0.down.lock().contains(address) {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                let (near, far) = tokio::io::duplex(64 << 10);
                let (cloud, address) = (self.0.clone(), address.to_owned());
                let service =
                    service_fn(move |request| cloud.clone().answer(address.clone(), request));
                let served = http1::Builder::new().serve_connection(TokioIo::new(far), service);
                drop(runtime::spawn(
                    async move { served.await.unwrap_or_default() },
                ));
                Ok(Box::new(near) as BoxStream)
            })
        }
    }

    fn keystone(cache_s: u64) -> (Arc<Cloud>, Arc<StandingClock>, Keystone) {
        let text = format!(
            "node_id = 1\n[keystone]\nauth_url = \"http://one:1,http://two:2\"\nusername = \"placement\"\n\
             password = \"hidden\"\ntoken_cache_time_s = {cache_s}\n"
        );
        let config: crate::config::Config = toml::from_str(&text).unwrap();
        let cloud = Arc::new(Cloud::default());
        let clock = Arc::new(StandingClock(Mutex::new(at(0))));
        let net = Arc::new(CloudNet(cloud.clone()));
        let keystone = Keystone::open(&config.keystone, net, clock.clone()).unwrap();
        (cloud, clock, keystone)
    }

    async fn user_of(keystone: &Keystone, token: &str) -> Option<String> {
        let whose = keystone.whose(token, false).await.unwrap();
        whose.map(|token| token.user_id.clone())
    }

    #[tokio::test]
    async fn many_who_ask_about_one_token_ask_once() {
        let (cloud, _, keystone) = keystone(300);
        let all = join_all((0..50).map(|_| user_of(&keystone, "alice:100"))).await;
        assert!(all.iter().all(|user| user.as_deref() == Some("alice")));
        assert_eq!(cloud.asked(), ["one:1 login", "one:1 alice:100 false"]);
        assert_eq!(user_of(&keystone, "nobody").await, None);
        assert_eq!(user_of(&keystone, "nobody").await, None);
        assert_eq!(cloud.asked(), ["one:1 nobody false"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// Of all tokens that the cloud does not know, whatever is in them.
        #[test]
        fn a_token_of_any_form_lets_nobody_in(token in "[^:]{0,80}") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (_, _, keystone) = keystone(300);
                let whose = keystone.whose(&token, false).await;
                prop_assert!(matches!(whose, Ok(None)), "{token:?}");
                Ok(())
            })?;
        }
    }

    #[tokio::test]
    async fn without_a_cache_each_request_is_asked_about() {
        let (cloud, _, keystone) = keystone(0);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        cloud.revoked.lock().insert("alice:100".to_owned());
        assert!(user_of(&keystone, "alice:100").await.is_none());
        assert_eq!(cloud.asked().len(), 3);
    }

    #[tokio::test]
    async fn what_is_remembered_does_not_outlive_the_token() {
        let (cloud, clock, keystone) = keystone(300);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        *clock.0.lock() = at(99);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        *clock.0.lock() = at(100);
        cloud.asked();
        assert!(user_of(&keystone, "alice:100").await.is_none());
        assert_eq!(cloud.asked(), Vec::<String>::new());
        // A service may come with it, and that is asked about each time.
        for _ in 0..2 {
            let whose = keystone.whose("alice:100", true).await.unwrap();
            assert_eq!(whose.unwrap().user_id, "alice");
            assert_eq!(cloud.asked(), ["one:1 alice:100 true"]);
        }
        cloud.revoked.lock().insert("alice:100".to_owned());
        assert_eq!(keystone.whose("alice:100", true).await, Ok(None));
    }

    #[tokio::test]
    async fn the_service_s_own_token_is_renewed_before_it_ends_and_when_it_is_refused() {
        let (cloud, clock, keystone) = keystone(0);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        // Its keys were changed.
        *clock.0.lock() = at(10);
        cloud.asked();
        cloud.logins.lock().clear();
        let all = join_all((0..20).map(|_| user_of(&keystone, "alice:9000"))).await;
        assert!(all.iter().all(Option::is_some));
        assert_eq!(cloud.logins_asked(), 1);
        *clock.0.lock() = at(3_600 - 121);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        assert_eq!(cloud.asked(), ["one:1 alice:9000 false"]);
        *clock.0.lock() = at(3_600 - 120);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        assert_eq!(cloud.asked(), ["one:1 login", "one:1 alice:9000 false"]);
    }

    #[tokio::test]
    async fn whoever_is_refused_as_a_user_does_not_try_again_for_each_request() {
        let (cloud, clock, keystone) = keystone(0);
        cloud.closed.store(true, Ordering::Relaxed);
        let crowd = || join_all((0..20).map(|_| keystone.whose("alice:9000", false)));
        for second in 0..3 {
            *clock.0.lock() = at(second);
            let all = crowd().await;
            assert!(
                all.iter()
                    .all(|one| matches!(one, Err(Away(why)) if why.contains("401")))
            );
            assert_eq!(cloud.logins_asked(), 1);
        }
        cloud.closed.store(false, Ordering::Relaxed);
        *clock.0.lock() = at(3);
        assert!(crowd().await.iter().all(Result::is_ok));
        assert_eq!(cloud.logins_asked(), 1);
        // It forgets what it has just issued.
        cloud.logins.lock().clear();
        let all = crowd().await;
        assert!(
            all.iter()
                .all(|one| matches!(one, Err(Away(why)) if why.contains("just given")))
        );
        assert_eq!(cloud.logins_asked(), 0);
    }

    #[tokio::test]
    async fn where_one_does_not_answer_another_is_asked() {
        let (cloud, _, keystone) = keystone(300);
        cloud.down.lock().insert("one:1".to_owned());
        assert!(user_of(&keystone, "alice:100").await.is_some());
        cloud.down.lock().clear();
        cloud.ill.lock().insert("one:1".to_owned());
        assert!(user_of(&keystone, "bob:100").await.is_some());
        cloud.down.lock().insert("two:2".to_owned());
        assert!(
            user_of(&keystone, "bob:100").await.is_some(),
            "it is remembered"
        );
        let Away(why) = keystone.whose("carol:100", false).await.unwrap_err();
        assert!(why.contains("two:2") && !why.contains("carol"), "{why}");
        // That nobody could say is not remembered.
        cloud.down.lock().clear();
        assert!(user_of(&keystone, "carol:100").await.is_some());
    }

    #[tokio::test]
    async fn what_can_be_no_token_is_asked_about_nowhere() {
        let (cloud, _, keystone) = keystone(300);
        for token in [String::new(), "x".repeat(TOKEN_BYTES_MAX + 1)] {
            assert_eq!(user_of(&keystone, &token).await, None);
        }
        assert_eq!(user_of(&keystone, "line\nbreak").await, None);
        assert_eq!(cloud.asked(), Vec::<String>::new());
    }
}
