//! In-memory Keystone servers for tests.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};

use self::identities::Identities;
use super::Keystone;
use placement_base::net::{BoxStream, Listener, Net};
use placement_base::world::Clock;

#[path = "../../../../tests/src/keystone/identities.rs"]
#[allow(unreachable_pub, reason = "the file also belongs to another crate")]
mod identities;

/// The time `second` seconds after the start of a test.
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

/// In-memory Keystone servers at any address, with the same users and tokens.
pub(crate) struct Cloud {
    identities: Identities,
    /// Received requests: the address, and `login`, or the token and its `may_have_expired`.
    asked: Mutex<Vec<String>>,
    /// Addresses that refuse connections (`down`), and addresses that answer 503 (`ill`).
    pub(crate) down: Mutex<BTreeSet<String>>,
    pub(crate) ill: Mutex<BTreeSet<String>>,
    /// Duration of a token validation.
    pub(crate) takes: Mutex<Duration>,
    /// Number of validations in progress, and its maximum so far.
    under_way: AtomicUsize,
    pub(crate) most: AtomicUsize,
}

impl Default for Cloud {
    /// Tokens that no login issued have the form `USER:SECOND`, with the second at which they
    /// expire.
    fn default() -> Self {
        let unissued = |token: &str| {
            let (user, second) = token.split_once(':')?;
            Some((user.to_owned(), text(at(second.parse().ok()?))))
        };
        let users = [("placement", "service")];
        Self {
            identities: Identities::new(&users, text(at(3_600)), unissued),
            asked: Mutex::default(),
            down: Mutex::default(),
            ill: Mutex::default(),
            takes: Mutex::default(),
            under_way: AtomicUsize::default(),
            most: AtomicUsize::default(),
        }
    }
}

impl Deref for Cloud {
    type Target = Identities;

    fn deref(&self) -> &Identities {
        &self.identities
    }
}

impl Cloud {
    async fn answer(
        self: Arc<Self>,
        address: String,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let plain = |status: StatusCode, body: &'static str| {
            let answer = Response::builder().status(status);
            Ok(answer.body(Full::from(body)).unwrap())
        };
        if self.ill.lock().contains(&address) {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "");
        }
        let path_and_query = request.uri().path_and_query().unwrap().as_str();
        if let Some(moved) = path_and_query.strip_prefix("/moved") {
            let moved = Response::builder().status(301).header("location", moved);
            return Ok(moved.body(Full::default()).unwrap());
        }
        let log = |what: &str| self.asked.lock().push(format!("{address} {what}"));
        if request.uri().path() != "/v3/auth/tokens" {
            log(request.uri().path());
            return plain(StatusCode::NOT_FOUND, r#"{"error": "no such page"}"#);
        }
        if request.method() == "POST" {
            log("login");
            return Ok(self.identities.answer(request).await);
        }
        let subject = request.headers().get("x-subject-token").unwrap();
        let subject = String::from_utf8_lossy(subject.as_bytes());
        let query = request.uri().query().unwrap_or_default();
        let may_have_expired = query.contains("allow_expired=1");
        log(&format!("{subject} {may_have_expired}"));
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
        let takes = *self.takes.lock();
        tokio::time::sleep(takes).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        Ok(self.identities.answer(request).await)
    }

    /// Adds fields to the documents of a user's tokens.
    pub(crate) fn extend(&self, user: &str, also: Value) {
        self.also.lock().insert(user.to_owned(), also);
    }

    /// Puts the identity endpoint at this URL into the catalog.
    pub(crate) fn set_endpoint(&self, url: &str) {
        let endpoint = json!({"interface": "internal", "region_id": "one", "url": url});
        let catalog = json!([{"type": "identity", "endpoints": [endpoint]}]);
        self.extend("placement", json!({ "catalog": catalog }));
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }

    pub(crate) fn logins_asked(&self) -> usize {
        let asked = self.asked();
        asked.iter().filter(|one| one.ends_with("login")).count()
    }
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
         password = \"password of placement\"\ntoken_cache_time_s = {cache_s}\n"
    );
    let section = toml::from_str(&text).unwrap();
    let clock = Arc::new(StandingClock(Mutex::new(at(0))));
    let net = Arc::new(CloudNet(cloud.clone()));
    let keystone = Keystone::open(&section, net, clock.clone()).unwrap();
    (clock, keystone)
}
