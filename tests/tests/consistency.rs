//! What reads promise, on every node, with and without a majority.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Consistency, Error, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

const SHORT_WAIT: &str = "[cluster]\nwait_ms = 1500\n";

fn assert_says_where_it_stands(response: &ApiResponse, node: u64, effective: &str) {
    let standing = response.standing();
    let seen = format!("{} {:?}", response.status, response.headers);
    assert!(standing.index.is_some(), "{seen}");
    assert_eq!(standing.node, Some(node), "{seen}");
    assert!(
        response.header("placement-known-leader").is_some(),
        "{seen}"
    );
    assert!(response.header("placement-staleness").is_some(), "{seen}");
    assert_eq!(
        standing.effective_consistency.as_deref(),
        Some(effective),
        "{seen}"
    );
}

#[tokio::test]
async fn every_level_is_served_by_every_node_and_says_where_it_stands() {
    let cluster = Cluster::start(3).await.unwrap();
    let writer = cluster.client_of(1).with_session();
    let uuid = Uuid::new_v4();
    writer
        .create_provider(&NewProvider::named("host").uuid(uuid))
        .await
        .unwrap();
    let token = writer
        .session_index()
        .expect("a write says where it stands");
    let path = format!("/resource_providers/{uuid}");

    for node in cluster.ids() {
        let client = cluster.client_of(node);
        for (consistency, effective) in [
            (Consistency::Linearizable, "linearizable"),
            (Consistency::Session(token.clone()), "session"),
            (
                Consistency::Bounded(Duration::from_secs(60)),
                "bounded;max=60",
            ),
        ] {
            let request = ApiRequest::get(&path).consistency(consistency);
            let response = client.request(request).await.unwrap();
            assert_eq!(
                response.status,
                StatusCode::OK,
                "{effective} on node {node}"
            );
            assert_says_where_it_stands(&response, node, effective);
            let leader = response.standing().known_leader;
            assert!(leader.is_some_and(|leader| (1..=3).contains(&leader)));
        }
        // After a session read of the token the node has it, so a local read finds it, too.
        let request = ApiRequest::get(&path).consistency(Consistency::Local);
        let response = client.request(request).await.unwrap();
        assert_eq!(response.status, StatusCode::OK);
        assert_says_where_it_stands(&response, node, "local");
        // Without a header the default holds.
        let response = client.request(ApiRequest::get(&path)).await.unwrap();
        assert_says_where_it_stands(&response, node, "linearizable");
        // Errors say it as well.
        let unknown = ApiRequest::get(&format!("/resource_providers/{}", Uuid::new_v4()));
        let response = client.request(unknown).await.unwrap();
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        assert_says_where_it_stands(&response, node, "linearizable");
    }
}

#[tokio::test]
async fn whoever_writes_to_one_node_and_reads_from_another_is_always_right() {
    let cluster = Cluster::start(3).await.unwrap();
    for round in 0..60_u64 {
        let (writes, reads) = (round % 3 + 1, (round + 1) % 3 + 1);
        let uuid = Uuid::new_v4();
        let new = NewProvider::named(&format!("host-{round}")).uuid(uuid);
        cluster
            .client_of(writes)
            .create_provider(&new)
            .await
            .unwrap();
        let seen = cluster.client_of(reads).provider(uuid).await;
        assert!(
            seen.is_ok(),
            "written to node {writes}, read from node {reads}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn without_a_majority_local_reads_go_on_and_the_rest_is_told_to_come_back() {
    let mut cluster = Cluster::start_with(3, SHORT_WAIT).await.unwrap();
    let uuid = Uuid::new_v4();
    let client = cluster.client_of(1).with_session();
    client
        .create_provider(&NewProvider::named("host").uuid(uuid))
        .await
        .unwrap();
    let token = client.session_index().unwrap();
    cluster.kill_9(2);
    cluster.kill_9(3);
    // What node 1 knows of its leader is over after an election's silence.
    tokio::time::sleep(Duration::from_secs(3)).await;

    let client = cluster.client_of(1);
    let path = format!("/resource_providers/{uuid}");
    for consistency in [Consistency::Local, Consistency::Session(token)] {
        let request = ApiRequest::get(&path).consistency(consistency.clone());
        let response = client.request_once(request).await.unwrap();
        assert_eq!(response.status, StatusCode::OK, "{consistency:?}");
    }

    let old = Consistency::Bounded(Duration::from_millis(500));
    for (what, request) in [
        ("a linearizable read", ApiRequest::get(&path)),
        ("a bounded read", ApiRequest::get(&path).consistency(old)),
        (
            "a write",
            ApiRequest::post("/resource_providers").json(&NewProvider::named("other")),
        ),
    ] {
        let asked = Instant::now();
        let response = client.request_once(request).await.unwrap();
        let waited = asked.elapsed();
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
        let retry_after = response.header("retry-after").unwrap_or_default();
        assert!(
            retry_after.parse::<u64>().is_ok_and(|seconds| seconds > 0),
            "{what}: {retry_after:?}"
        );
        let code = response.error().unwrap().code.unwrap_or_default();
        assert!(
            code.ends_with("nothing_committed") || code.ends_with("outcome_unknown"),
            "{what}: {code:?}"
        );
        assert!(
            waited > Duration::from_millis(1000),
            "{what} did not wait: {waited:?}"
        );
        assert!(waited < Duration::from_secs(10), "{what} waited {waited:?}");
        assert_says_where_it_stands_roughly(&response);
    }
    for (path, status) in [("/livez", 200), ("/readyz", 503)] {
        let response = client.request_once(ApiRequest::get(path)).await.unwrap();
        assert_eq!(response.status.as_u16(), status, "{path}");
    }

    // The client calls it by its name, too.
    let impatient = cluster.client_of(1).with_patience(Duration::ZERO);
    let refused = impatient
        .create_provider(&NewProvider::named("third"))
        .await;
    assert!(
        matches!(
            refused,
            Err(Error::NothingCommitted { .. } | Error::OutcomeUnknown { .. })
        ),
        "{refused:?}"
    );
}

fn assert_says_where_it_stands_roughly(response: &ApiResponse) {
    assert!(
        response.standing().index.is_some(),
        "{:?}",
        response.headers
    );
    assert_eq!(response.standing().node, Some(1));
}

#[tokio::test]
async fn a_promise_that_cannot_be_understood_is_refused() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client_of(1);
    for (header, value) in [
        ("placement-consistency", "strong"),
        ("placement-consistency", "bounded;max=soon"),
        ("placement-consistency", "session"),
        ("placement-min-index", "yesterday"),
    ] {
        let request = ApiRequest::get("/resource_providers").header(header, value);
        let response = client.request(request).await.unwrap();
        assert_eq!(
            response.status,
            StatusCode::BAD_REQUEST,
            "{header}: {value}"
        );
    }
}
