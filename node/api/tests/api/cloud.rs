//! Helpers of the tests: a cloud that receives requests, and answers with assertions.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use placement_api::http::{Api, ApiSettings, ClaimCounts, Identity, LimitCounts, Service};
use placement_audit::access::Peer;
use placement_audit::{Audit, Listener};
use placement_base::world::{Clock, Offload, RealWorld};
use serde_json::{Value, json};

use crate::memory::Memory;

/// A readable UUID for each member of a cloud.
pub(crate) fn uuid(number: u64) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}

/// Counts the computations that the edge moves to other threads.
#[derive(Default)]
pub(crate) struct Counting(AtomicUsize);

impl Counting {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Offload for Counting {
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        RealWorld::default().run(work)
    }

    fn run_idly(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        RealWorld::default().run_idly(work)
    }
}

/// An API over a state in memory.
pub(crate) struct Cloud {
    app: Service,
    pub(crate) memory: Arc<Memory>,
}

impl Cloud {
    pub(crate) fn new() -> Self {
        Self::with(ApiSettings::default())
    }

    pub(crate) fn with(settings: ApiSettings) -> Self {
        Self::offloading_to(Arc::new(RealWorld::default()), settings)
    }

    pub(crate) fn offloading_to(offload: Arc<dyn Offload>, settings: ApiSettings) -> Self {
        Self::audited(Audit::off(), offload, settings)
    }

    pub(crate) fn audited(audit: Audit, offload: Arc<dyn Offload>, settings: ApiSettings) -> Self {
        Self::build(audit, offload, Arc::new(RealWorld::default()), settings)
    }

    /// A cloud with this clock.
    pub(crate) fn timed(clock: Arc<dyn Clock>, settings: ApiSettings) -> Self {
        Self::build(
            Audit::off(),
            Arc::new(RealWorld::default()),
            clock,
            settings,
        )
    }

    fn build(
        audit: Audit,
        offload: Arc<dyn Offload>,
        clock: Arc<dyn Clock>,
        settings: ApiSettings,
    ) -> Self {
        let memory = Arc::new(Memory::new());
        let app = Service::new(Api {
            write: memory.clone(),
            read: memory.clone(),
            ledger: memory.clone(),
            clock,
            ids: Arc::new(RealWorld::default()),
            offload,
            background: Arc::new(RealWorld::default()),
            readiness: memory.clone(),
            keystone: None,
            policy: Arc::new(placement_api::http::read_policy(&settings.policy).unwrap()),
            audit,
            settings,
        });
        Self { app, memory }
    }

    /// The claims so far.
    pub(crate) fn claims(&self) -> ClaimCounts {
        self.app.claims()
    }

    /// The limits that writes have exceeded so far.
    pub(crate) fn exceeded_limits(&self) -> LimitCounts {
        self.app.exceeded_limits()
    }

    /// Number of searches by result.
    pub(crate) fn searched(&self) -> [(&'static str, u64); 3] {
        self.app.searches().results()
    }

    /// A request of an admin at the newest version.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Ask {
        let request = Request::builder().method(method).uri(path);
        Ask {
            app: self.app.clone(),
            request: Some(request),
            body: None,
            token: Some("admin"),
            operator: None,
            host: "cloud.example".to_owned(),
            version: "1.39".into(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Ask {
        self.ask("GET", path)
    }

    /// The JSON at this path.
    pub(crate) async fn read(&self, path: &str) -> Value {
        self.get(path).expect(200).await.json()
    }

    pub(crate) fn put(&self, path: &str, body: Value) -> Ask {
        self.ask("PUT", path).body(body)
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> Ask {
        self.ask("POST", path).body(body)
    }

    pub(crate) fn delete(&self, path: &str) -> Ask {
        self.ask("DELETE", path)
    }

    /// Creates a provider named after its number.
    pub(crate) async fn provider(&self, number: u64, parent: Option<u64>) -> String {
        let mut body = json!({"name": format!("provider {number}"), "uuid": uuid(number)});
        if let Some(parent) = parent {
            body["parent_provider_uuid"] = json!(uuid(parent));
        }
        self.post("/resource_providers", body).expect(200).await;
        uuid(number)
    }

    /// Gives a provider an inventory of plain units.
    pub(crate) async fn stock(&self, number: u64, class: &str, total: u64) {
        let path = format!("/resource_providers/{}/inventories", uuid(number));
        self.post(&path, json!({"resource_class": class, "total": total}))
            .expect(201)
            .await;
    }

    /// Creates a consumer with an allocation.
    pub(crate) async fn claim(
        &self,
        consumer: u64,
        provider: u64,
        class: &str,
        amount: u64,
    ) -> Answer {
        let body = json!({
            "allocations": {uuid(provider): {"resources": {class: amount}}},
            "project_id": "p", "user_id": "u", "consumer_generation": null, "consumer_type": "INSTANCE",
        });
        self.put(&format!("/allocations/{}", uuid(consumer)), body)
            .send()
            .await
    }

    /// The generation of a provider.
    pub(crate) async fn generation(&self, number: u64) -> i64 {
        let path = format!("/resource_providers/{}", uuid(number));
        self.read(&path).await["generation"].as_i64().unwrap()
    }
}

/// A request that is being built.
pub(crate) struct Ask {
    app: Service,
    request: Option<http::request::Builder>,
    body: Option<Vec<u8>>,
    token: Option<&'static str>,
    operator: Option<Identity>,
    host: String,
    version: String,
}

impl Ask {
    pub(crate) fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    pub(crate) fn token(mut self, token: Option<&'static str>) -> Self {
        self.token = token;
        self
    }

    /// Sends it through the operators' listener, with this operator name.
    pub(crate) fn operator(mut self, name: Option<&str>) -> Self {
        self.operator = Some(Identity::operator(name));
        self
    }

    /// Sends it as another user from another address, for clouds that trust proxies.
    pub(crate) fn of_another_caller(self) -> Self {
        let other = self.token(Some("other:project")).header("x-roles", "admin");
        other.header("x-forwarded-for", "198.51.100.7")
    }

    pub(crate) fn method(mut self, method: &str) -> Self {
        self.request = self.request.map(|request| request.method(method));
        self
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        self.request = self.request.map(|request| request.uri(path));
        self
    }

    pub(crate) fn host(mut self, host: &str) -> Self {
        self.host = host.to_owned();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.map(|request| request.header(name, value));
        self
    }

    pub(crate) fn body(self, body: Value) -> Self {
        self.raw(body.to_string().as_bytes())
            .header("content-type", "application/json")
    }

    /// Replaces the body but not its headers.
    pub(crate) fn longer(mut self, bytes: usize) -> Self {
        self.body = Some(vec![b' '; bytes]);
        self
    }

    pub(crate) fn raw(mut self, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        let length = body.len().to_string();
        self.header("content-length", &length)
    }

    /// Sends it and asserts the status of the answer.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> impl Future<Output = Answer> {
        let asked_at = Location::caller();
        async move {
            let answer = self.send().await;
            assert_eq!(answer.status, status, "{asked_at}: {}", answer.text());
            answer
        }
    }

    /// Sends it and asserts an error with this status and with this text in its detail.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, detail: &str) -> impl Future<Output = Answer> {
        let answer = self.expect(status);
        async move { answer.await.says(detail) }
    }

    pub(crate) async fn send(mut self) -> Answer {
        let body = Body::from(self.body.take().unwrap_or_default());
        self.send_streaming(body).await
    }

    /// Sends it with this streaming body.
    pub(crate) async fn send_streaming(self, body: Body) -> Answer {
        let response = self.respond(body).await;
        let (parts, body) = response.into_parts();
        let announced = body.size_hint().exact();
        let body = body.collect().await.unwrap().to_bytes().to_vec();
        Answer {
            status: parts.status,
            headers: parts.headers,
            announced,
            body,
        }
    }

    /// Sends it and returns the lines of the streamed answer.
    pub(crate) async fn lines(self) -> Lines {
        let response = self.respond(Body::empty()).await;
        assert_eq!(response.status(), 200);
        Lines {
            body: StreamExt::boxed(response.into_body().into_data_stream()),
            text: String::new(),
        }
    }

    /// Sends it without a body; the answer's body is not read.
    pub(crate) async fn untaken(self) -> Response<Body> {
        self.respond(Body::empty()).await
    }

    async fn respond(mut self, body: Body) -> Response<Body> {
        let mut request = self.request.take().unwrap().header("host", &self.host);
        if let Some(token) = self.token {
            request = request.header("x-auth-token", token);
        }
        if !self.version.is_empty() {
            request = request.header(
                "openstack-api-version",
                format!("placement {}", self.version),
            );
        }
        let request = request.body(body).unwrap();
        let peer = Peer(([192, 0, 2, 7], 4711).into());
        match self.operator {
            Some(operator) => {
                (self.app)
                    .respond_to_authorized(request, Some(peer), Listener::Admin, operator)
                    .await
            }
            None => self.app.respond(request, Some(peer)).await.response,
        }
    }
}

/// The lines of a streamed answer.
pub(crate) struct Lines {
    body: BoxStream<'static, Result<Bytes, axum::Error>>,
    text: String,
}

impl Lines {
    /// The next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let line = serde_json::from_str(line).unwrap();
                self.text = rest.to_owned();
                return Some(line);
            }
            let piece = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// The lines up to and including the first with this member.
    pub(crate) async fn until(&mut self, member: &str) -> Vec<Value> {
        let mut lines = Vec::new();
        while let Some(line) = self.next().await {
            let is_last = line.get(member).is_some();
            lines.push(line);
            if is_last {
                return lines;
            }
        }
        panic!("no line has {member}: {lines:?}");
    }
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The length in the header.
    pub(crate) announced: Option<u64>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// Asserts the status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// Asserts an error with this status and with this text in its detail.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, detail: &str) -> Self {
        self.expect(status).says(detail)
    }

    #[track_caller]
    fn says(self, expected: &str) -> Self {
        let json = self.json();
        let detail = json["errors"][0]["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains(expected),
            "{expected:?} is not in {detail:?}"
        );
        self
    }

    /// Asserts the code of the error.
    #[track_caller]
    pub(crate) fn code(self, code: &str) -> Self {
        assert_eq!(self.json()["errors"][0]["code"], code, "{}", self.text());
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}
