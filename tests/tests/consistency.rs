//! Consistency levels of reads on every node, with and without a majority.

use std::time::{Duration, Instant};

use http::StatusCode;
use placement_client::{ApiRequest, ApiResponse, Client, Consistency, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::{PATIENCE, until};
use uuid::Uuid;

const SHORT_WAIT: &str = "[cluster]\nwait_ms = 1500\n";

fn assert_has_position(response: &ApiResponse, node: u64, effective: &str) {
    let position = response.position();
    let seen = format!("{} {:?}", response.status, response.headers);
    assert!(position.index.is_some(), "{seen}");
    assert_eq!(position.node, Some(node), "{seen}");
    assert!(
        response.header("placement-known-leader").is_some(),
        "{seen}"
    );
    assert!(response.header("placement-staleness").is_some(), "{seen}");
    assert_eq!(
        position.effective_consistency.as_deref(),
        Some(effective),
        "{seen}"
    );
}

#[tokio::test]
async fn every_node_serves_every_level_with_its_position() {
    let cluster = Cluster::start(3).await.unwrap();
    let writer = cluster.client_of(1).with_session();
    let uuid = Uuid::new_v4();
    writer
        .create_provider(&NewProvider::named("host").uuid(uuid))
        .await
        .unwrap();
    let token = writer.session_index().expect("a write has a position");
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
            // No leader is known during an election.
            until("a known leader", async || {
                let response = client.request(request.clone()).await.unwrap();
                assert_eq!(
                    response.status,
                    StatusCode::OK,
                    "{effective} on node {node}"
                );
                assert_has_position(&response, node, effective);
                let leader = response.position().known_leader;
                leader.is_some_and(|leader| (1..=3).contains(&leader))
            })
            .await;
        }
        // After a session read with the token, the node has applied the write, so a local read
        // finds it too.
        let request = ApiRequest::get(&path).consistency(Consistency::Local);
        let response = client.request(request).await.unwrap();
        assert_eq!(response.status, StatusCode::OK);
        assert_has_position(&response, node, "local");
        // Without a header the default applies.
        let response = client.request(ApiRequest::get(&path)).await.unwrap();
        assert_has_position(&response, node, "linearizable");
        // Errors carry a position as well.
        let unknown = ApiRequest::get(&format!("/resource_providers/{}", Uuid::new_v4()));
        let response = client.request(unknown).await.unwrap();
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        assert_has_position(&response, node, "linearizable");
    }
}

#[tokio::test]
async fn without_a_majority_only_local_reads_are_served() {
    let mut cluster = Cluster::start_with(3, SHORT_WAIT).await.unwrap();
    let uuid = Uuid::new_v4();
    let client = cluster.client_of(1).with_session();
    client
        .create_provider(&NewProvider::named("host").uuid(uuid))
        .await
        .unwrap();
    let token = client.session_index().unwrap();
    let survivor = cluster.leader().await.unwrap();
    for id in cluster.ids() {
        if id != survivor {
            cluster.kill_9(id);
        }
    }
    let client = cluster.client_of(survivor);
    // The node considers itself the leader until no answers have arrived for an election timeout.
    until("an unready node", async || {
        let readyz = client.request_once(ApiRequest::get("/readyz")).await;
        readyz.unwrap().status == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;

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
    ] {
        let code = refusal(&client, what, survivor, request).await;
        assert!(code.ends_with("nothing_committed"), "{what}: {code:?}");
    }
    let write = ApiRequest::put("/traits/CUSTOM_ALONE");
    refusal(&client, "a write", survivor, write).await;
    for (path, status) in [("/livez", 200), ("/readyz", 503)] {
        let response = client.request_once(ApiRequest::get(path)).await.unwrap();
        assert_eq!(response.status.as_u16(), status, "{path}");
    }
}

/// Sends a request that waits for a majority and then fails with 503. Returns the error code.
async fn refusal(client: &Client, what: &str, node: u64, request: ApiRequest) -> String {
    let asked = Instant::now();
    let response = client.request_once(request).await.unwrap();
    let waited = asked.elapsed();
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE, "{what}");
    // keystoneauth uses its own growing retry delays, so the answer has no Retry-After.
    assert_eq!(response.header("retry-after"), None, "{what}");
    assert!(
        waited > Duration::from_millis(1000),
        "{what} did not wait: {waited:?}"
    );
    assert!(waited < PATIENCE, "{what} waited {waited:?}");
    let position = response.position();
    assert!(position.index.is_some(), "{what}: {:?}", response.headers);
    assert_eq!(position.node, Some(node), "{what}");
    response.error().unwrap().code.unwrap_or_default()
}
