//! Traces of real processes, as an OpenTelemetry collector receives them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value::StringValue;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use placement_client::{ApiRequest, ApiResponse, Claim, Client, Inventory};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host::{create, with_processors};
use placement_tests::http_server::HttpServer;
use placement_tests::wait::until;
use prost::Message;
use rustix::process::Signal;
use tempfile::NamedTempFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

/// Secrets of clients that no span may show.
const TOKEN: &str = "admin:tok3n-that-no-span-shows";
const PASSWORD: &str = "passw0rd-that-no-span-shows";
const COLLECTOR_TOKEN: &str = "Bearer c0llector-token-that-no-span-shows";
/// Span id of the caller.
const CALLER: &str = "00f067aa0e1902b7";
/// How long a stopping node waits for a collector.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Behaviour of the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Takes,
    /// Answers every request with 401.
    Refuses,
    /// Reads requests and never answers.
    Hangs,
}

/// A collector; stopped when dropped.
struct Collector {
    shared: Arc<Shared>,
    server: HttpServer,
}

struct Shared {
    mood: Mutex<Mood>,
    /// Headers and body of each accepted request.
    taken: Mutex<Vec<(HeaderMap, Bytes)>>,
}

impl Collector {
    async fn start(mood: Mood) -> Self {
        let shared = Arc::new(Shared {
            mood: Mutex::new(mood),
            taken: Mutex::default(),
        });
        let answering = shared.clone();
        let server = HttpServer::start(move |request| answer(answering.clone(), request))
            .await
            .unwrap();
        Self { shared, server }
    }

    fn config(&self, ratio: &str) -> String {
        format!(
            "[trace]\notlp_endpoint = \"http://{}/\"\nratio = {ratio}\n",
            self.server.address()
        )
    }

    fn set(&self, mood: Mood) {
        *self.shared.mood.lock() = mood;
    }

    /// Spans of a trace by name, each with its node's number.
    fn spans_of(&self, trace: &str) -> BTreeMap<String, (String, Span)> {
        let mut found = BTreeMap::new();
        for (_, body) in self.shared.taken.lock().iter() {
            let request = ExportTraceServiceRequest::decode(body.clone()).unwrap();
            for of_node in request.resource_spans {
                let resource = of_node.resource.unwrap();
                let node = text_of(&resource.attributes, "service.instance.id").unwrap();
                let spans = (of_node.scope_spans.into_iter()).flat_map(|scope| scope.spans);
                for span in spans.filter(|span| hex(&span.trace_id) == trace) {
                    let name = span.name.clone();
                    let before = found.insert(name.clone(), (node.clone(), span));
                    assert!(before.is_none(), "two spans {name} in {trace}");
                }
            }
        }
        found
    }

    /// Spans of a trace, once all of these have arrived.
    async fn until_spans(&self, trace: &str, names: &[&str]) -> BTreeMap<String, (String, Span)> {
        until(&format!("the spans {names:?}"), async || {
            let found = self.spans_of(trace);
            names.iter().all(|name| found.contains_key(*name))
        })
        .await;
        self.spans_of(trace)
    }
}

async fn answer(collector: Arc<Shared>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    assert_eq!(request.uri().path(), "/v1/traces");
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mood = *collector.mood.lock();
    let status = match mood {
        Mood::Takes => 200,
        Mood::Refuses => 401,
        Mood::Hangs => std::future::pending().await,
    };
    if mood == Mood::Takes {
        collector.taken.lock().push((head.headers, body));
    }
    let answer = Response::builder().status(status).body(Full::default());
    answer.unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Value of a text attribute.
fn text_of(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|one| one.key == key)?;
    match found.value.clone() {
        Some(AnyValue {
            value: Some(StringValue(text)),
        }) => Some(text),
        _ => None,
    }
}

/// Id of a new trace, and the `traceparent` header of a caller that has begun it.
fn begun(flags: &str) -> (String, String) {
    let trace = Uuid::new_v4().simple().to_string();
    let header = format!("00-{trace}-{CALLER}-{flags}");
    (trace, header)
}

async fn ask(client: &Client, request: ApiRequest, traceparent: &str) -> ApiResponse {
    let request = request.header("traceparent", traceparent);
    let answer = client.request_once(request).await.unwrap();
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status.is_success(), "{text}");
    answer
}

fn claim(host: Uuid) -> ApiRequest {
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
    ApiRequest::put(&format!("/allocations/{}", Uuid::new_v4())).json(&claim)
}

fn traits() -> ApiRequest {
    ApiRequest::get("/traits")
}

async fn dropped(cluster: &Cluster, id: u64) -> u64 {
    let text = cluster.metrics(id).await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("placement_trace_spans_dropped_total "));
    line.unwrap().parse().unwrap()
}

/// Asserts that exactly these spans exist, each with this node and this parent.
fn assert_tree(found: &BTreeMap<String, (String, Span)>, expected: &[(&str, u64, &str)]) {
    for (name, node, parent) in expected {
        let (of_node, span) = &found[*name];
        assert_eq!(*of_node, node.to_string(), "{name}");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        if *parent == "caller" {
            assert_eq!(hex(&span.parent_span_id), CALLER);
            continue;
        }
        let (_, parent) = &found[*parent];
        assert_eq!(span.parent_span_id, parent.span_id, "{name}");
        let within = parent.start_time_unix_nano..=parent.end_time_unix_nano;
        assert!(within.contains(&span.start_time_unix_nano), "{name}");
        // The proposing task ends when it sees that the write is applied, perhaps after the
        // requesting task.
        let may_be_later = *name == "propose";
        let ends_within = within.contains(&span.end_time_unix_nano);
        assert!(may_be_later || ends_within, "{name}");
    }
    let names: Vec<_> = found.keys().collect();
    assert_eq!(found.len(), expected.len(), "{names:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_through_a_follower_is_one_trace_of_two_nodes_without_secrets() {
    let collector = Collector::start(Mood::Takes).await;
    let config = collector.config("0");
    let config = format!("{config}[keystone]\npassword = \"{PASSWORD}\"\n{STEADY_LEADER}");
    let mut cluster = Cluster::prepare(3, &config).unwrap();
    let headers = NamedTempFile::new().unwrap();
    std::fs::write(
        headers.path(),
        format!("Authorization: {COLLECTOR_TOKEN}\n"),
    )
    .unwrap();
    let variable = "PLACEMENTD_TRACE_HEADERS_FILE".to_owned();
    let file = headers.path().display().to_string();
    (cluster.options_mut().environment).push((variable, file));
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let (leader, follower) = (
        cluster.leader().await.unwrap(),
        cluster.followers().await.unwrap()[0],
    );
    let client = cluster.client_of(follower).with_token(TOKEN);
    let host = with_processors(&client).await;

    let (trace, traceparent) = begun("01");
    let own = format!("req-{}", Uuid::new_v4());
    let asked = claim(host).header("x-openstack-request-id", &own);
    let answer = ask(&client, asked, &traceparent).await;
    let of_write = [
        ("request", follower, "caller"),
        ("authorize", follower, "request"),
        ("submit", follower, "request"),
        ("forward", follower, "submit"),
        ("propose", leader, "forward"),
        ("commit", leader, "propose"),
        ("apply", follower, "submit"),
    ];
    let names = of_write.map(|(name, ..)| name);
    let found = collector.until_spans(&trace, &names).await;
    assert_tree(&found, &of_write);
    let attributes = &found["request"].1.attributes;
    let request_id = answer.header("x-openstack-request-id").map(str::to_owned);
    for (key, text) in [
        ("request_id", request_id),
        ("global_request_id", Some(own)),
        ("http.request.method", Some("PUT".to_owned())),
        (
            "http.route",
            Some("/allocations/{consumer_uuid}".to_owned()),
        ),
    ] {
        assert_eq!(text_of(attributes, key), text, "{key}");
    }
    cluster.until_logged(&[follower], &trace).await;

    // A request through the leader.
    let (trace, traceparent) = begun("01");
    ask(&cluster.client_of(leader), claim(host), &traceparent).await;
    let names = ["request", "propose", "commit", "apply"];
    let found = collector.until_spans(&trace, &names).await;
    let of_write = [
        ("request", leader, "caller"),
        ("authorize", leader, "request"),
        ("submit", leader, "request"),
        ("propose", leader, "submit"),
        ("commit", leader, "propose"),
        ("apply", leader, "submit"),
    ];
    assert_tree(&found, &of_write);

    let (trace, traceparent) = begun("01");
    let search = ApiRequest::get("/allocation_candidates").query("resources", "VCPU:1");
    ask(&client, search, &traceparent).await;
    let names = ["request", "read point", "search"];
    let found = collector.until_spans(&trace, &names).await;
    let of_read = [
        ("request", follower, "caller"),
        ("authorize", follower, "request"),
        ("read point", follower, "request"),
        ("search", follower, "request"),
    ];
    assert_tree(&found, &of_read);

    for (headers, body) in collector.shared.taken.lock().iter() {
        assert_eq!(headers["authorization"], COLLECTOR_TOKEN);
        assert_eq!(headers["content-type"], "application/x-protobuf");
        let body = String::from_utf8_lossy(body);
        for secret in [TOKEN, PASSWORD, COLLECTOR_TOKEN] {
            let (_, secret) = secret.split_at(6);
            assert!(!body.contains(secret), "{secret}");
        }
    }
}

#[tokio::test]
async fn callers_and_sampling_ratio_determine_traces() {
    let collector = Collector::start(Mood::Takes).await;
    let cluster = Cluster::start_with(1, &collector.config("1"))
        .await
        .unwrap();
    let client = cluster.client_of(1);
    let (not_sampled, traceparent) = begun("00");
    ask(&client, traits(), &traceparent).await;
    // A new trace replaces a malformed one.
    let (malformed, traceparent) = begun("01");
    let state = "vendor=".to_owned() + &"x".repeat(10_000);
    let asked = traits().header("tracestate", &state);
    ask(&client, asked, &format!("{traceparent}-more")).await;
    let (twice, traceparent) = begun("01");
    let header = format!("traceparent: {traceparent}\r\n");
    let asked = format!(
        "GET /traits HTTP/1.1\r\nhost: a\r\nx-auth-token: admin\r\n\
         openstack-api-version: placement 1.6\r\n{header}{header}connection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(cluster.place(1).api()).await.unwrap();
    stream.write_all(asked.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (sampled, traceparent) = begun("01");
    ask(&client, traits(), &traceparent).await;
    collector.until_spans(&sampled, &["request"]).await;
    for trace in [not_sampled, malformed, twice] {
        assert!(collector.spans_of(&trace).is_empty(), "{trace}");
        let log = cluster.log(1, usize::MAX);
        assert!(!log.contains(&trace), "{log}");
    }
    // The trace of the caller, and two new ones.
    let log = cluster.log(1, usize::MAX);
    let lines = log.lines().filter(|line| line.contains("/traits"));
    let ids: Vec<_> = lines
        .filter_map(|line| line.split_once("trace_id=\"")?.1.get(..32))
        .collect();
    assert_eq!(ids.len(), 3, "{log}");
    for id in ids {
        let root = &collector.until_spans(id, &["request"]).await["request"].1;
        assert_eq!(root.parent_span_id.is_empty(), id != sampled);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sighup_changes_the_log_level_but_not_tracing() {
    let collector = Collector::start(Mood::Takes).await;
    let config = |level| format!("{}[log]\nlevel = {level:?}\n", collector.config("0"));
    let mut cluster = Cluster::start_with(1, &config("info")).await.unwrap();
    let client = cluster.client_of(1);
    let file = cluster.directory().join("placementd.toml");
    for (level, is_logged) in [("info", true), ("error", false), ("info", true)] {
        std::fs::write(&file, config(level)).unwrap();
        cluster.process(1).signal(Signal::HUP);
        until(level, async || {
            let (trace, traceparent) = begun("01");
            ask(&client, traits(), &traceparent).await;
            let names = ["request", "authorize", "read point"];
            collector.until_spans(&trace, &names).await;
            cluster.log(1, usize::MAX).contains(&trace) == is_logged
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_continue_without_a_collector() {
    let collector = Collector::start(Mood::Refuses).await;
    let cluster = Cluster::start_with(1, &collector.config("1"))
        .await
        .unwrap();
    let client = cluster.client_of(1);
    create(&client, "while it refuses").await;
    until("dropped spans", async || dropped(&cluster, 1).await > 0).await;
    cluster.until_logged(&[1], "401 Unauthorized").await;

    collector.set(Mood::Takes);
    let (trace, traceparent) = begun("01");
    ask(&client, traits(), &traceparent).await;
    collector.until_spans(&trace, &["request"]).await;
    cluster.until_logged(&[1], "accepts spans again").await;

    collector.set(Mood::Hangs);
    let before = dropped(&cluster, 1).await;
    let begun = Instant::now();
    let host = create(&client, "while it hangs").await;
    let stocked = client.replace_inventories(host, 0, [("VCPU", Inventory::with_total(4))]);
    stocked.await.unwrap();
    assert!(begun.elapsed() < FLUSH_MAX);
    until("dropped spans", async || {
        dropped(&cluster, 1).await > before
    })
    .await;

    drop(collector);
    let before = dropped(&cluster, 1).await;
    create(&client, "while it is away").await;
    until("more dropped spans", async || {
        dropped(&cluster, 1).await > before
    })
    .await;
    cluster.until_logged(&[1], "dropping spans").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_node_sends_its_last_spans_without_waiting_long() {
    let collector = Collector::start(Mood::Takes).await;
    let config = collector.config("0");
    let mut cluster = Cluster::start_with(1, &config).await.unwrap();
    let (trace, traceparent) = begun("01");
    ask(&cluster.client_of(1), traits(), &traceparent).await;
    cluster.stop_node(1).await.unwrap();
    assert!(collector.spans_of(&trace).contains_key("request"));

    collector.set(Mood::Hangs);
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    let (_, traceparent) = begun("01");
    ask(&cluster.client_of(1), traits(), &traceparent).await;
    cluster.stop_node(1).await.unwrap();
    let log = cluster.log(1, 5);
    assert!(log.contains("the last spans were not sent"), "{log}");
}
