//! Attacks by hostile clients. Each runs for a limited time.

use std::fmt::Write as _;
use std::pin::Pin;
use std::time::{Duration, Instant};

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use placement_client::{ApiRequest, Client, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::answers::{Answers, NOT_ANSWERED};
use crate::authority::Authority;
use crate::http_2;
use crate::layout::NodePlace;

/// Timeout of an attacker's request.
const PATIENCE: Duration = Duration::from_secs(90);
/// Number of silent connections: more than a node accepts from one address.
const SILENT: usize = 1_500;

/// Number of long answers that one user reads slowly from one address, and the bytes that it reads
/// of each per second. Together they exceed the memory that a node has for answers.
const SLOW_READERS: usize = 400;
const SLOW_BYTES: usize = 1_400;
/// Duration of a slow request.
const SLOW: Duration = Duration::from_secs(12);
/// Number of HTTP/2 connections on which nothing of an answer can be sent.
const CLOSED_WINDOWS: usize = 4;
/// Number of requests for long answers on each of these connections.
const UNREAD_ANSWERS: usize = 100;
/// The smallest receive buffer of a connection.
const BUFFER_BYTES: u32 = 4096;

/// Attacks from another address than the address of the uninvolved clients, by another user or by
/// unauthenticated clients.
pub(super) const ELSEWHERE: [&str; 4] = [
    "stalled bodies without a token",
    "stalled bodies with a token",
    "long answers that are read slowly",
    "long HTTP/2 answers that are not read",
];
/// Source address of these attacks.
const ADDRESS: &str = "127.0.0.2:0";
/// Headers of such an attacker that has a token.
const MALLORY: &str = "X-Auth-Token: mallory:project\r\nX-Roles: admin\r\n";
/// The largest body that a node reads.
const BODY_BYTES: usize = 16 << 20;

/// The cluster under attack.
#[derive(Clone)]
pub(super) struct AttackTarget {
    pub(super) places: Vec<NodePlace>,
    pub(super) leader: u64,
    pub(super) provider: Uuid,
    /// The authority of the nodes' certificates.
    pub(super) authority: Authority,
}

impl AttackTarget {
    fn leader(&self) -> &NodePlace {
        let leads = |place: &&NodePlace| place.id == self.leader;
        let leader = self.places.iter().find(leads);
        leader.expect("a place of the cluster")
    }
}

type Running = Pin<Box<dyn Future<Output = Answers> + Send>>;

/// Trait of the child providers of the first provider.
pub(super) const TRAIT: &str = "CUSTOM_TORTURE";

/// Name of an attack, and the function that runs it until a point in time.
pub(super) type Attack = (&'static str, fn(AttackTarget, Instant) -> Running);

/// All attacks, in the order in which they run.
pub(super) const ATTACKS: &[Attack] = &[
    ("the largest inventories", |target, until| {
        let path = format!("/resource_providers/{}/inventories", target.provider);
        let body = inventories(10_000, 248);
        again(target, until, 2, move || put(&path, body.clone()))
    }),
    (
        "more inventories than a request may have",
        |target, until| {
            let path = format!("/resource_providers/{}/inventories", target.provider);
            let body = inventories(400_000, 1);
            again(target, until, 2, move || put(&path, body.clone()))
        },
    ),
    ("many aggregates", |target, until| {
        let path = format!("/resource_providers/{}/aggregates", target.provider);
        // Each request has other aggregates; this version needs no generation, so each is applied.
        again(target, until, 4, move || {
            let all = listed(1_000, |_| format!("\"{}\"", Uuid::new_v4()));
            put(&path, format!("[{all}]")).microversion("1.1")
        })
    }),
    ("a claim with a hundred thousand lines", |target, until| {
        let lines = listed(100_000, |n| format!(r#""CUSTOM_{n}":1"#));
        let body = format!(
            r#"{{"allocations":{{"{}":{{"resources":{{{lines}}}}}}},"project_id":"p","user_id":"u",
                "consumer_generation":null,"consumer_type":"INSTANCE"}}"#,
            target.provider
        );
        again(target, until, 2, move || {
            put(&format!("/allocations/{}", Uuid::new_v4()), body.clone())
        })
    }),
    ("a reshape of a thousand providers", |target, until| {
        let all = listed(1_000, |n| {
            format!(
                r#""{}":{}"#,
                Uuid::from_u128(n as u128),
                inventories(10, 20)
            )
        });
        let body = format!(r#"{{"inventories":{{{all}}},"allocations":{{}}}}"#);
        again(target, until, 2, move || {
            with_body(ApiRequest::post("/reshaper"), body.clone())
                .header("x-roles", "admin,service")
        })
    }),
    ("long patterns of percent signs", |target, until| {
        let path = format!("/traits?name=startswith:{}", "%25".repeat(10_000));
        again(target, until, 8, move || ApiRequest::get(&path))
    }),
    ("a parameter a thousand times", |target, until| {
        let all = vec!["required=A,A,A,A,A"; 999].join("&");
        let path = format!("/allocation_candidates?resources=VCPU:1&{all}");
        again(target, until, 8, move || ApiRequest::get(&path))
    }),
    ("searches that never end", |target, until| {
        let subtree: String = (1..=40).map(|n| format!(",_{n}")).collect();
        let groups: String = (1..=40).map(|n| format!("&required_{n}={TRAIT}")).collect();
        let path = format!(
            "/allocation_candidates?resources_R=VCPU:1&group_policy=none&same_subtree=_R{subtree}{groups}"
        );
        again(target, until, 16, move || ApiRequest::get(&path))
    }),
    ("sixteen MiB of zeros", |target, until| {
        let body = format!("[{}0]", "0,".repeat(8_000_000));
        again(target, until, 4, move || {
            with_body(ApiRequest::post("/resource_providers"), body.clone())
        })
    }),
    ("bodies that arrive byte by byte", |target, until| {
        let head = "POST /resource_providers HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\
                        Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n";
        silent(target, until, NodePlace::api, head.as_bytes())
    }),
    ("request heads that do not end", |target, until| {
        silent(target, until, NodePlace::api, b"GET / HTTP/1.1\r\nX: ")
    }),
    ("silence to the admin listener", |target, until| {
        silent(
            target,
            until,
            NodePlace::admin,
            b"GET /v1/status HTTP/1.1\r\n",
        )
    }),
    ("silence between the nodes", |target, until| {
        silent(target, until, NodePlace::peer, b"")
    }),
    ("frames that announce too large a size", |target, until| {
        let head = [0x05, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        silent(target, until, NodePlace::peer, &head)
    }),
    ("stalled bodies without a token", |target, until| {
        let head = "GET / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
        stopping(target, until, 2, head.to_owned())
    }),
    ("stalled bodies with a token", |target, until| {
        let head =
            "POST /resource_providers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
        stopping(target, until, 12, format!("{head}{MALLORY}"))
    }),
    ("long answers that are read slowly", |target, until| {
        let head = "GET /resource_providers HTTP/1.1\r\nHost: x\r\nOpenStack-API-Version: placement 1.39\r\n";
        let head = format!("{head}{MALLORY}\r\n");
        slow(target, until.max(Instant::now() + SLOW), head)
    }),
    ("long HTTP/2 answers that are not read", unread),
    ("unread answers", |target, until| {
        let head = "GET /traits HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\n\
                        OpenStack-API-Version: placement 1.39\r\n\r\n";
        silent(target, until, NodePlace::api, head.repeat(10).as_bytes())
    }),
];

fn listed(count: usize, one: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for n in 0..count {
        let comma = if n > 0 { "," } else { "" };
        write!(all, "{comma}{}", one(n)).expect("writing to a String succeeds");
    }
    all
}

fn inventories(count: usize, digits: usize) -> String {
    let all = listed(count, |n| format!(r#""CUSTOM_{n:0digits$}":{{"total":1}}"#));
    format!(r#"{{"resource_provider_generation":0,"inventories":{{{all}}}}}"#)
}

fn put(path: &str, body: String) -> ApiRequest {
    with_body(ApiRequest::new(Method::PUT, path), body)
}

fn with_body(request: ApiRequest, body: String) -> ApiRequest {
    request
        .header("content-type", "application/json")
        .body(body)
}

/// Sends a request from several clients until the time is up. Each client uses one node and waits
/// for each answer.
fn again(
    target: AttackTarget,
    until: Instant,
    clients: usize,
    request: impl Fn() -> ApiRequest + Clone + Send + Sync + 'static,
) -> Running {
    Box::pin(async move {
        let mut attackers = JoinSet::new();
        for nth in 0..clients {
            let place = target.places[nth % target.places.len()].clone();
            let request = request.clone();
            attackers.spawn(async move {
                let client = Client::new([place.api_url()])
                    .expect("a place is an endpoint")
                    .with_attempt_timeout(PATIENCE);
                let mut answers = Answers::default();
                while Instant::now() < until {
                    let begun = Instant::now();
                    match client.request_once(request()).await {
                        Ok(answer) => answers.note(answer.status.as_str()),
                        Err(Error::OutcomeUnknown { .. } | Error::Unreachable { .. })
                            if begun.elapsed() < PATIENCE =>
                        {
                            answers.note("closed");
                        }
                        Err(_) => answers.note(NOT_ANSWERED),
                    }
                }
                answers
            });
        }
        Answers::sum(attackers).await
    })
}

/// Many connections to the leader that send this head and then one byte per second.
fn silent(
    target: AttackTarget,
    until: Instant,
    address: fn(&NodePlace) -> String,
    head: &[u8],
) -> Running {
    let address = address(target.leader());
    let head = head.to_vec();
    Box::pin(async move {
        let mut attackers = JoinSet::new();
        for nth in 0..SILENT {
            let (address, head) = (address.clone(), head.clone());
            attackers.spawn(async move {
                // Connections start one after the other, as the listener's backlog is short.
                sleep(Duration::from_millis(nth as u64 / 2)).await;
                let mut answers = Answers::default();
                match hold_open(&address, &head, until).await {
                    Ok(()) => answers.note("kept"),
                    Err(_) => answers.note("closed"),
                }
                answers
            });
        }
        Answers::sum(attackers).await
    })
}

async fn hold_open(address: &str, head: &[u8], until: Instant) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    // The loop writes single bytes, so the node's answers must be read.
    stream.write_all(head).await?;
    let mut byte = [0];
    while Instant::now() < until {
        stream.write_all(b" ").await?;
        if head.starts_with(b"GET /traits") {
            sleep(Duration::from_secs(1)).await;
            continue;
        }
        if let Ok(read) = timeout(Duration::from_secs(1), stream.read(&mut byte)).await
            && read? == 0
        {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Connects from the attackers' address with a small receive buffer.
async fn connected(address: &str) -> std::io::Result<TcpStream> {
    let invalid = |_| std::io::ErrorKind::InvalidInput;
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.bind(ADDRESS.parse().map_err(invalid)?)?;
    socket.connect(address.parse().map_err(invalid)?).await
}

/// Sends bodies to the leader that stop just below the size limit; repeats each once it is
/// answered.
fn stopping(target: AttackTarget, until: Instant, clients: usize, head: String) -> Running {
    let address = target.leader().api();
    Box::pin(async move {
        let mut attackers = JoinSet::new();
        for _ in 0..clients {
            let (address, head) = (address.clone(), head.clone());
            attackers.spawn(async move {
                let mut answers = Answers::default();
                while Instant::now() < until {
                    let end = sleep(until.saturating_duration_since(Instant::now()));
                    tokio::select! {
                        () = end => answers.note("kept"),
                        answer = stop(&address, &head) => {
                            answers.note(answer.unwrap_or_else(|_| "closed".to_owned()));
                            sleep(Duration::from_millis(50)).await;
                        }
                    }
                }
                answers
            });
        }
        Answers::sum(attackers).await
    })
}

/// Returns the status of the answer to a body that stops.
async fn stop(address: &str, head: &str) -> std::io::Result<String> {
    let mut stream = connected(address).await?;
    let head = format!("{head}Content-Length: {BODY_BYTES}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let (mut answer, mut sender) = stream.split();
    let body = async {
        // The node may answer before the body is sent.
        let _ = sender.write_all(&vec![b' '; BODY_BYTES - 64]).await;
        std::future::pending().await
    };
    let mut status = [0; "HTTP/1.1 200".len()];
    tokio::select! {
        read = answer.read_exact(&mut status) => read?,
        () = body => 0,
    };
    Ok(String::from_utf8_lossy(&status["HTTP/1.1 ".len()..]).into_owned())
}

/// Sends many requests to the leader and reads the answers slowly.
fn slow(target: AttackTarget, until: Instant, head: String) -> Running {
    let address = target.leader().api();
    Box::pin(async move {
        let mut attackers = JoinSet::new();
        for nth in 0..SLOW_READERS {
            let (address, head) = (address.clone(), head.clone());
            attackers.spawn(async move {
                sleep(SLOW / 2 * nth as u32 / SLOW_READERS as u32).await;
                let mut answers = Answers::default();
                match take_slowly(&address, &head, until).await {
                    Ok(()) => answers.note("kept"),
                    Err(_) => answers.note("closed"),
                }
                answers
            });
        }
        Answers::sum(attackers).await
    })
}

async fn take_slowly(address: &str, head: &str, until: Instant) -> std::io::Result<()> {
    let mut stream = connected(address).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut some = [0; SLOW_BYTES];
    while Instant::now() < until {
        if let Ok(read) = timeout(Duration::from_secs(1), stream.read(&mut some)).await
            && read? == 0
        {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Requests long lists from the leader over HTTP/2 and accepts no byte of the answers.
fn unread(target: AttackTarget, until: Instant) -> Running {
    Box::pin(async move {
        let mut attackers = JoinSet::new();
        for _ in 0..CLOSED_WINDOWS {
            let target = target.clone();
            attackers.spawn(async move {
                let mut answers = Answers::default();
                while Instant::now() < until {
                    match take_nothing(&target, until).await {
                        Ok(seen) => seen.into_iter().for_each(|answer| answers.note(answer)),
                        Err(_) => answers.note("closed"),
                    }
                    sleep(Duration::from_millis(50)).await;
                }
                answers
            });
        }
        Answers::sum(attackers).await
    })
}

/// Requests lists over one connection, and waits until the node has reset all answers. Returns
/// their statuses.
async fn take_nothing(target: &AttackTarget, until: Instant) -> anyhow::Result<Vec<String>> {
    let stream = connected(&target.leader().api()).await?;
    let mut connection = http_2::secured(stream, &target.authority, 0).await?;
    let mut held = JoinSet::new();
    for _ in 0..UNREAD_ANSWERS {
        let list = Request::get("https://localhost/resource_providers")
            .header("openstack-api-version", "placement 1.39")
            .header("x-auth-token", "mallory:project")
            .header("x-roles", "admin");
        let answer = connection.send_request(list.body(String::new())?);
        held.spawn(until_reset(answer, until));
    }
    Ok(held.join_all().await)
}

async fn until_reset(
    answer: impl Future<Output = hyper::Result<Response<Incoming>>>,
    until: Instant,
) -> String {
    match timeout(PATIENCE, answer).await {
        Ok(Ok(answer)) => {
            let status = answer.status().as_str().to_owned();
            let left = until.saturating_duration_since(Instant::now());
            let _ = timeout(left, answer.into_body().frame()).await;
            status
        }
        Ok(Err(_)) => "closed".to_owned(),
        Err(_) => NOT_ANSWERED.to_owned(),
    }
}
