//! Health checks and requests through a load balancer or proxy.

use placement_client::{ApiRequest, ApiResponse};
use placement_tests::cluster::Cluster;
use placement_tests::wait::{PATIENCE, until, until_ok};
use serde_json::Value;

async fn get(cluster: &Cluster, id: u64, path: &str) -> Option<ApiResponse> {
    let client = cluster.client_of(id).with_attempt_timeout(PATIENCE);
    client.request_once(ApiRequest::get(path)).await.ok()
}

/// Waits until the node answers `GET /`, the health check of kolla, with this status.
async fn seen(cluster: &Cluster, id: u64, status: u16) -> ApiResponse {
    until_ok("an answer of the root", async || {
        let answer = get(cluster, id, "/").await;
        answer
            .filter(|answer| answer.status == status)
            .ok_or(status)
    })
    .await
}

#[tokio::test]
async fn root_health_check_fails_while_the_node_is_not_ready() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    cluster.start_node(1).unwrap();
    let waiting = seen(&cluster, 1, 503).await;
    let error = waiting.error().unwrap();
    assert_eq!(
        error.code.as_deref(),
        Some("placement.unavailable.not_ready")
    );
    assert!(
        error.detail.contains("does not belong to a cluster yet"),
        "{error:?}"
    );
    let livez = get(&cluster, 1, "/livez").await.unwrap();
    assert_eq!(livez.status.as_u16(), 200, "alive but not ready");

    cluster.start_node(2).unwrap();
    cluster.start_node(3).unwrap();
    seen(&cluster, 1, 200).await;

    // The other nodes are lost, so this one cannot serve consistent answers.
    cluster.kill_9(2);
    cluster.kill_9(3);
    let alone = seen(&cluster, 1, 503).await.error().unwrap();
    assert!(
        alone.detail.contains("This node is not ready: "),
        "{alone:?}"
    );
    cluster.start_node(2).unwrap();
    seen(&cluster, 1, 200).await;
}

#[tokio::test]
async fn node_without_leader_is_ready_while_requests_wait() {
    let config = "[cluster]\nwait_ms = 10000\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    cluster.wait_ready(1).await.unwrap();
    let text = |answer: &ApiResponse| String::from_utf8_lossy(&answer.body).into_owned();
    cluster.kill_9(2);
    cluster.kill_9(3);
    until("a node that reports waiting requests", async || {
        let readyz = get(&cluster, 1, "/readyz").await.unwrap();
        assert_eq!(readyz.status.as_u16(), 200, "{}", text(&readyz));
        text(&readyz).contains("requests wait for a leader: ")
    })
    .await;
    // Operators see the loss at once.
    cluster.until_shown(&["status"], 2, &["no quorum"]).await;
    let asked = get(&cluster, 1, "/traits").await.unwrap();
    let code = asked.error().unwrap().code;
    let code = code.as_deref();
    assert_eq!(code, Some("placement.unavailable.nothing_committed"));
    until("a node that is not ready", async || {
        let readyz = get(&cluster, 1, "/readyz").await.unwrap();
        readyz.status == 503
    })
    .await;
    cluster.start_node(2).unwrap();
    cluster.wait_ready(1).await.unwrap();
}

#[tokio::test]
async fn node_with_a_path_prefix_answers_health_checks_at_the_root() {
    let config = "[api]\nprefix = \"/placement\"\ntrust_proxy_headers = true\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    for path in [
        "/",
        "/livez",
        "/readyz",
        "/placement",
        "/placement/",
        "/placement/livez",
        "/placement/readyz",
    ] {
        until(path, async || {
            let answer = get(&cluster, 1, path).await;
            answer.is_some_and(|answer| answer.status == 200)
        })
        .await;
    }
    for path in ["/traits", "/placement/nowhere"] {
        let answer = get(&cluster, 1, path).await.unwrap();
        assert_eq!(answer.status.as_u16(), 404, "{path}");
    }
    for path in ["/openapi.json", "/placement/openapi.json"] {
        let document = get(&cluster, 1, path).await.unwrap();
        let document: Value = serde_json::from_slice(&document.body).unwrap();
        assert_eq!(document["servers"][0]["url"], "/placement");
    }
}
