//! The largest allowed requests over thin links between nodes: they succeed, and the leader does
//! not change.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::time::Instant;

use http::StatusCode;
use placement_client::{ApiRequest, Client, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;
use uuid::Uuid;

const BITS_PER_S: u32 = 20_000_000;

/// `count` items built from their numbers, separated by commas.
fn listed(count: usize, one: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for n in 0..count {
        let comma = if n > 0 { "," } else { "" };
        write!(all, "{comma}{}", one(n)).unwrap();
    }
    all
}

/// The largest request of each kind that the limits allow.
fn worst(provider: Uuid) -> Vec<(&'static str, ApiRequest)> {
    let at = |what: &str| format!("/resource_providers/{provider}/{what}");
    let put = |path: &str, body: String| {
        ApiRequest::put(path)
            .header("content-type", "application/json")
            .body(body)
    };
    let post = |path: &str, body: String| {
        ApiRequest::post(path)
            .header("content-type", "application/json")
            .header("x-roles", "admin,service")
            .body(body)
    };
    let stock = |count, digits: usize| {
        let all = listed(count, |n| format!(r#""CUSTOM_{n:0digits$}":{{"total":1}}"#));
        format!(r#"{{"resource_provider_generation":0,"inventories":{{{all}}}}}"#)
    };
    let claim = |lines: usize, digits: usize| {
        let resources = listed(lines, |n| format!(r#""CUSTOM_{n:0digits$}":1"#));
        let long = "x".repeat(100);
        format!(
            r#"{{"allocations":{{"{provider}":{{"resources":{{{resources}}}}}}},"project_id":"{long}",
            "user_id":"{long}","consumer_generation":null,"consumer_type":"INSTANCE"}}"#
        )
    };
    let claims = |consumers, lines| {
        let claim = claim(lines, 5);
        let all = listed(consumers, |n| {
            let consumer = Uuid::from_u128(n as u128 + 1);
            format!(r#""{consumer}":{claim}"#)
        });
        format!("{{{all}}}")
    };
    let traits = listed(1_000, |n| format!(r#""CUSTOM_{n:0248}""#));
    let traits = format!(r#"{{"resource_provider_generation":0,"traits":[{traits}]}}"#);
    let aggregates = listed(1_000, |n| format!(r#""{}""#, Uuid::from_u128(n as u128)));
    let aggregates = format!(r#"{{"resource_provider_generation":0,"aggregates":[{aggregates}]}}"#);
    let reshape = listed(1_000, |n| {
        let (id, stock) = (Uuid::from_u128(n as u128), stock(10, 200));
        format!(r#""{id}":{stock}"#)
    });
    let reshape = format!(
        r#"{{"inventories":{{{reshape}}},"allocations":{}}}"#,
        claims(4_000, 1)
    );
    let one = "/allocations/00000000-0000-0000-0000-000000000001";
    vec![
        (
            "most inventories",
            put(&at("inventories"), stock(10_000, 1)),
        ),
        (
            "longest inventories",
            put(&at("inventories"), stock(10_000, 248)),
        ),
        ("traits", put(&at("traits"), traits)),
        ("aggregates", put(&at("aggregates"), aggregates)),
        ("most lines of a claim", put(one, claim(100_000, 1))),
        ("longest claim", put(one, claim(60_000, 240))),
        ("most consumers", post("/allocations", claims(10_000, 1))),
        (
            "most lines of claims",
            post("/allocations", claims(5_000, 20)),
        ),
        ("longest claims", post("/allocations", claims(20, 5_000))),
        ("reshape", post("/reshaper", reshape)),
    ]
}

async fn still_writes(client: &Client) {
    let begun = Instant::now();
    let provider = NewProvider::named(&format!("host-{}", Uuid::new_v4()));
    client.create_provider(&provider).await.unwrap();
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn largest_requests_pass_thin_links_without_an_election() {
    // A busy machine does not reach this election timeout, but the largest messages take longer.
    let config = "[raft]\nround_trip_ms = 200\n";
    let cluster = Cluster::start_linked(3, config, BITS_PER_S).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let follower = cluster.followers().await.unwrap()[0];
    let term = async || {
        cluster
            .statuses()
            .await
            .iter()
            .map(|status| status.term)
            .max()
    };
    let before = term().await;
    let provider = Uuid::new_v4();
    let client = cluster.client_of(follower).with_attempt_timeout(PATIENCE);
    let new = NewProvider::named("host").uuid(provider);
    client.create_provider(&new).await.unwrap();
    for (what, request) in worst(provider) {
        let begun = Instant::now();
        let answer = client.request_once(request).await.unwrap();
        let took = begun.elapsed();
        eprintln!("{what}: {} after {took:.1?}", answer.status);
        // The model or a limit may refuse it, but the answer is final.
        assert!(
            answer.status.is_success() || answer.status.is_client_error(),
            "{what}: {} after {took:?}: {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        assert_ne!(answer.status, StatusCode::REQUEST_TIMEOUT, "{what}");
        still_writes(&cluster.client_of(leader)).await;
    }
    assert_eq!(cluster.leader().await.unwrap(), leader);
    assert_eq!(term().await, before, "there was an election");
    cluster.assert_equal_states().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_large_command_is_refused_with_the_limit() {
    let cluster = Cluster::start(3).await.unwrap();
    let provider = Uuid::new_v4();
    for client in cluster.clients() {
        let (_, request) = worst(provider).swap_remove(5);
        let answer = client.request_once(request).await.unwrap();
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
        let text = String::from_utf8_lossy(&answer.body);
        assert!(text.contains("the maximum is 4194304"), "{text}");
        assert!(text.contains("placement.limit_exceeded"), "{text}");
    }
    still_writes(&cluster.client()).await;
}
