//! Clients that hold connections without using them. Health checks are still answered, other
//! requests get 503, and the node recovers once these clients are gone.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use futures::future::join_all;
use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use placement_client::{ApiRequest, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::{PATIENCE, until};
use placement_tests::{binaries, host, http_2};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

/// A connection that has sent `sent` and waits.
fn connected(address: &str, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    stream
}

/// The whole answer to a request with `Connection: close`.
fn answer(address: &str, path: &str) -> String {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\nConnection: close\r\n\r\n"
    );
    let mut text = String::new();
    connected(address, &head).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn health_checks_are_answered_while_all_connections_are_in_use() {
    let cluster = Cluster::start_with(
        1,
        "[api]\nmax_connections = 20\ntrust_proxy_headers = true\n",
    )
    .await
    .unwrap();
    let place = cluster.place(1);
    let (api, admin) = (place.api(), place.admin());
    // More connections than are served and refused at once. The admin listener has its own limits.
    let mut silent: Vec<_> = (0..120)
        .map(|_| connected(&api, "GET / HTTP/1.1\r\n"))
        .collect();
    silent.extend((0..400).map(|_| connected(&admin, "GET / HTTP/1.1\r\n")));
    // Asked first, as silent connections are closed after a while.
    assert!(answer(&admin, "/v1/status").starts_with("HTTP/1.1 503"));
    for (address, path) in [
        (&api, "/livez"),
        (&api, "/readyz"),
        (&admin, "/livez"),
        (&admin, "/readyz"),
        (&admin, "/metrics"),
    ] {
        let answer = answer(address, path);
        assert!(
            answer.starts_with("HTTP/1.1 200"),
            "{address}{path}: {answer}"
        );
    }
    let refused = answer(&api, "/resource_providers");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("placement.unavailable.busy"), "{refused}");

    drop(silent);
    until("connections freed by the silent clients", async || {
        answer(&api, "/resource_providers").starts_with("HTTP/1.1 200")
    })
    .await;
}

#[tokio::test]
async fn connections_per_address_are_limited() {
    let config = "[api]\nmax_connections = 40\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    let api = cluster.place(1).api();
    let _silent: Vec<_> = (0..10)
        .map(|_| connected(&api, "GET / HTTP/1.1\r\n"))
        .collect();
    assert!(answer(&api, "/resource_providers").starts_with("HTTP/1.1 503"));
    assert!(answer(&api, "/livez").starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn early_refusal_can_be_read_by_the_client() {
    let cluster = Cluster::start(1).await.unwrap();
    let api = cluster.place(1).api();
    let length = 900_000;
    let head = format!(
        "POST /resource_providers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let mut stream = connected(&api, &head);
    // The unread body must not reset the connection before the answer is read.
    for _ in 0..9 {
        stream.write_all(&vec![b' '; length / 9]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
    assert!(
        text.to_lowercase().contains("\r\nconnection: close\r\n"),
        "{text}"
    );
}

/// Soft limit of open files, and the number of open files.
fn descriptors(pid: u32) -> (u64, usize) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let soft = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    (
        soft,
        fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
    )
}

#[tokio::test]
async fn node_raises_its_descriptor_limit_and_survives_exhaustion() {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(1 << 20);
    let mut cluster = Cluster::prepare(1, "").unwrap();
    // The limit applies to the node only: other tests run in this process.
    let limited = cluster.directory().join("limited");
    let placementd = binaries::placementd().unwrap();
    let script = format!("#!/bin/sh\nulimit -S -n 1000\nexec {placementd:?} \"$@\"\n");
    fs::write(&limited, script).unwrap();
    fs::set_permissions(&limited, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.options_mut().binary = Some(limited);
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let pid = cluster.process(1).pid();
    let (soft, open) = descriptors(pid);
    assert_eq!(soft, hard, "the soft limit is raised");

    // Leaves only a few descriptors.
    let process = Pid::from_raw(pid.cast_signed());
    let scarce = Rlimit {
        current: Some(open as u64 + 8),
        maximum: limit.maximum,
    };
    prlimit(process, Resource::Nofile, scarce).unwrap();
    let api = cluster.place(1).api();
    let silent: Vec<_> = (0..60)
        .map(|_| connected(&api, "GET / HTTP/1.1\r\n"))
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(cluster.runs(1));
    drop(silent);
    // Descriptors remain scarce: new clients get those of closed connections.
    let client = cluster.client_of(1);
    client.ensure_trait("CUSTOM_STILL_HERE").await.unwrap();
    let listed = client
        .call(ApiRequest::get("/traits?name=in:CUSTOM_STILL_HERE"))
        .await;
    listed.unwrap();
}

/// Bytes of an HTTP/2 answer that are sent before the client reads it.
const WINDOW_BYTES: u32 = 64 * 1024;

/// A stream of events over a shared connection.
struct Stream {
    body: Incoming,
    left: Vec<u8>,
    bytes: usize,
}

impl Stream {
    async fn open(connection: &mut SendRequest<String>, query: &str) -> Self {
        let path = format!("https://localhost/placementd/v1/events?kind=aggregate&{query}");
        let asked = Request::get(path).header("x-auth-token", "admin");
        let answer = connection
            .send_request(asked.body(String::new()).unwrap())
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        Self {
            body: answer.into_body(),
            left: Vec::new(),
            bytes: 0,
        }
    }

    /// The next line; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.left.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.left.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = timeout(PATIENCE, self.body.frame()).await.unwrap();
            let data = frame?.unwrap().into_data().unwrap_or_default();
            self.bytes += data.len();
            self.left.extend_from_slice(&data);
        }
    }

    /// Index of the next event, which has one change.
    async fn event(&mut self) -> Value {
        loop {
            let line = self.next().await.unwrap();
            if !line["index"].is_null() {
                assert_eq!(line["changes"].as_array().unwrap().len(), 1);
                return line["index"].clone();
            }
        }
    }
}

/// Puts a provider into many aggregates, so that few such changes fill a window.
async fn aggregate(client: &placement_client::Client, host: Uuid, generation: usize) {
    let aggregates: Vec<_> = (0..1000).map(|_| Uuid::new_v4()).collect();
    let body = json!({"resource_provider_generation": generation, "aggregates": aggregates});
    let path = format!("/resource_providers/{host}/aggregates");
    client
        .call(ApiRequest::put(&path).json(&body))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_stream_does_not_block_others_of_its_connection() {
    const CHANGES: usize = 40;
    let cluster = Cluster::start_secured(1, "").await.unwrap();
    let client = cluster.client();
    let host = host::create(&client, "host").await;
    let mut connection = http_2::connected(&cluster, WINDOW_BYTES).await.unwrap();
    let mut read = Stream::open(&mut connection, "").await;
    while read.next().await.unwrap()["snapshot_end"].is_null() {}
    let mut stalled = Stream::open(&mut connection, "").await;

    let mut indexes = Vec::new();
    for generation in 0..CHANGES {
        aggregate(&client, host, generation).await;
        indexes.push(read.event().await);
    }
    // Longer than a reader may be slow before the node ends its stream.
    tokio::time::sleep(Duration::from_secs(60)).await;
    aggregate(&client, host, CHANGES).await;
    indexes.push(read.event().await);

    let mut found = Vec::new();
    let last = loop {
        let line = stalled.next().await.unwrap();
        if line["end"].is_string() {
            break line;
        }
        found.extend(line.get("index").cloned());
    };
    assert_eq!(last["end"], "slow", "{last}");
    assert!(stalled.next().await.is_none());
    // The node buffered the window and a few pieces for it, not more.
    let (all, kept) = (read.bytes, stalled.bytes);
    assert!(kept < 512 * 1024 && 5 * kept < all, "{kept} of {all} bytes");
    let query = format!("after={}", last["next"].as_str().unwrap());
    let mut again = Stream::open(&mut connection, &query).await;
    while found.len() < indexes.len() {
        found.push(again.event().await);
    }
    assert_eq!(found, indexes);
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_http_2_answers_are_reset_and_their_connection_closed() {
    let cluster = Cluster::start_secured(1, "").await.unwrap();
    let client = cluster.client();
    // The list must be long enough to take memory for answers.
    let created = (0..100).map(|nth| {
        let client = client.clone();
        let new = NewProvider::named(&format!("host-{nth}"));
        async move { client.create_provider(&new).await.unwrap() }
    });
    join_all(created).await;

    // With an empty window nothing of an answer is sent; with a small one, a short answer lacks its
    // end.
    tokio::join!(take_nothing(&cluster, 0), take_nothing(&cluster, 100));
}

/// Reads no answer over a connection with windows of this size, until the node closes it.
async fn take_nothing(cluster: &Cluster, window: u32) {
    let mut connection = http_2::connected(cluster, window).await.unwrap();
    let mut untaken = Vec::new();
    for (path, token, status) in [
        ("/resource_providers", Some("admin"), 200),
        ("/traits", Some("admin"), 200),
        ("/traits", None, 401),
    ] {
        let mut asked = Request::get(format!("https://localhost{path}"))
            .header("openstack-api-version", "placement 1.39");
        if let Some(token) = token {
            asked = asked.header("x-auth-token", token);
        }
        let asked = asked.body(String::new()).unwrap();
        let answer = connection.send_request(asked).await.unwrap();
        assert_eq!(answer.status(), status, "{path}");
        untaken.push(answer.into_body());
    }
    let ended = async {
        while !connection.is_closed() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(3 * PATIENCE, ended).await.unwrap();
    for body in &mut untaken {
        let cut_off = loop {
            match body.frame().await {
                Some(Ok(_)) => {}
                other => break other,
            }
        };
        assert!(cut_off.is_some_and(|frame| frame.is_err()), "{window}");
    }
}
