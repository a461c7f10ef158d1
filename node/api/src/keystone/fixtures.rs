//! In-memory Keystone servers for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Keystone;
use placement_base::net::{BoxStream, Listener, Net};
use placement_base::world::Clock;

/// The time of a second in these tests.
pub(crate) fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + second)
}

fn text(time: SystemTime) -> String {
    let time = time::OffsetDateTime::from(time);
    time.format(&time::format_description::well_known::Rfc3339)
        .unwrap()
}

/// A clock that tests set.
pub(crate) struct StandingClock(pub(crate) Mutex<SystemTime>);

impl Clock for StandingClock {
    fn now(&self) -> SystemTime {
        *self.0.lock()
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().duration_since(at(0)).unwrap()
    }
}

/// In-memory Keystone servers at any address.
#[derive(Default)]
pub(crate) struct Cloud {
    /// Received requests: the address, and `login`, or the token and its `may_have_expired`.
    pub(crate) asked: Mutex<Vec<String>>,
    /// Addresses that do not answer, and addresses that answer 503.
    pub(crate) down: Mutex<BTreeSet<String>>,
    pub(crate) ill: Mutex<BTreeSet<String>>,
    /// Valid tokens of the service; the newest is last.
    pub(crate) logins: Mutex<Vec<String>>,
    /// Number of issued tokens, so that each is unique.
    pub(crate) given: AtomicUsize,
    /// Whether logins are rejected.
    pub(crate) closed: AtomicBool,
    pub(crate) revoked: Mutex<BTreeSet<String>>,
    /// URL of the identity endpoint in the catalog.
    pub(crate) catalog: Mutex<Option<String>>,
    /// Additional fields in the documents of some tokens.
    pub(crate) also: Mutex<BTreeMap<String, Value>>,
    /// Duration of a token validation.
    pub(crate) takes: Mutex<Duration>,
    /// Number of validations in progress, and its maximum so far.
    pub(crate) under_way: AtomicUsize,
    pub(crate) most: AtomicUsize,
}

impl Cloud {
    fn token_of(user: &str, expires_at: SystemTime) -> Value {
        json!({"token": {
            "user": {"id": user, "domain": {"id": "default"}},
            "roles": [{"name": "member"}],
            "expires_at": text(expires_at),
        }})
    }

    /// Tokens have the form `USER:SECOND`, with the second at which they expire.
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
            if let Some(url) = &*self.catalog.lock() {
                let endpoint = json!({"interface": "internal", "region_id": "one", "url": url});
                body["token"]["catalog"] = json!([{"type": "identity", "endpoints": [endpoint]}]);
            }
            return Ok(answer(StatusCode::CREATED, &body));
        }
        let path_and_query = request.uri().path_and_query().unwrap().as_str();
        if let Some(moved) = path_and_query.strip_prefix("/moved") {
            let moved = Response::builder().status(301).header("location", moved);
            return Ok(moved.body(Full::default()).unwrap());
        }
        if request.uri().path() != "/v3/auth/tokens" {
            self.asked
                .lock()
                .push(format!("{address} {}", request.uri().path()));
            let page = json!({"error": "no such page"});
            return Ok(answer(StatusCode::NOT_FOUND, &page));
        }
        let query = request.uri().query().unwrap_or_default();
        let may_have_expired = query.contains("allow_expired=1");
        let asked = format!("{address} {subject} {may_have_expired}");
        self.asked.lock().push(asked);
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
        let takes = *self.takes.lock();
        tokio::time::sleep(takes).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        if !self.logins.lock().contains(&own) {
            return Ok(answer(StatusCode::UNAUTHORIZED, &Value::Null));
        }
        let known = subject
            .split_once(':')
            .filter(|_| !self.revoked.lock().contains(&subject))
            .and_then(|(user, second)| Some((user, second.parse().ok()?)));
        let unknown = json!({"error": {"code": 404, "title": "Not Found", "message": "Could not find token: ."}});
        Ok(match known {
            Some((user, second)) => {
                let mut body = Self::token_of(user, at(second));
                if let Some(Value::Object(also)) = self.also.lock().get(&subject) {
                    body["token"].as_object_mut().unwrap().extend(also.clone());
                }
                let has_rules = !body["token"]["application_credential"]["access_rules"].is_null();
                // A service that does not enforce access rules would accept such a token for every
                // request.
                match has_rules && header("openstack-identity-access-rules") != "1" {
                    true => answer(StatusCode::NOT_FOUND, &unknown),
                    false => answer(StatusCode::OK, &body),
                }
            }
            None => answer(StatusCode::NOT_FOUND, &unknown),
        })
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }

    pub(crate) fn logins_asked(&self) -> usize {
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
        unreachable!("these tests have no listener")
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        Box::pin(async move {
            if self.0.down.lock().contains(address) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (near, far) = tokio::io::duplex(64 << 10);
            let (cloud, address) = (self.0.clone(), address.to_owned());
            let service = service_fn(move |request| cloud.clone().answer(address.clone(), request));
            let served = http1::Builder::new().serve_connection(TokioIo::new(far), service);
            #[expect(clippy::disallowed_methods, reason = "these tests are no simulations")]
            drop(tokio::spawn(
                async move { served.await.unwrap_or_default() },
            ));
            Ok(Box::new(near) as BoxStream)
        })
    }
}

/// Two Keystone servers and their client.
pub(crate) fn keystone(cache_s: u64) -> (Arc<Cloud>, Arc<StandingClock>, Keystone) {
    let cloud = Arc::new(Cloud::default());
    let (clock, keystone) = keystone_at(&cloud, "http://one:1,http://two:2", cache_s);
    (cloud, clock, keystone)
}

/// A client for the Keystone servers at these addresses.
pub(crate) fn keystone_at(
    cloud: &Arc<Cloud>,
    auth_url: &str,
    cache_s: u64,
) -> (Arc<StandingClock>, Keystone) {
    let text = format!(
        "auth_url = \"{auth_url}\"\nusername = \"placement\"\n\
         password = \"hidden\"\ntoken_cache_time_s = {cache_s}\n"
    );
    let section = toml::from_str(&text).unwrap();
    let clock = Arc::new(StandingClock(Mutex::new(at(0))));
    let net = Arc::new(CloudNet(cloud.clone()));
    let keystone = Keystone::open(&section, net, clock.clone()).unwrap();
    (clock, keystone)
}
