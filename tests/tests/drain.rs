//! Nodes are restarted one after the other behind a balancer that follows `/readyz`, and no one notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use placement_client::{ApiRequest, Client, NewProvider};
use placement_tests::cluster::{Cluster, is_ready};
use placement_tests::layout::NodePlace;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// How often the balancer looks.
const LOOK: Duration = Duration::from_millis(500);
/// Four of its looks: the machine may be slow.
const NOTICE_MS: u64 = 2_000;

/// Sends each request to a node that was ready when it last looked, once.
struct Balancer {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    looking: Vec<JoinHandle<()>>,
    asking: JoinHandle<Vec<String>>,
}

impl Balancer {
    fn before(places: &[NodePlace]) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut looking = Vec::new();
        let mut nodes = Vec::new();
        for place in places {
            let ready = Arc::new(AtomicBool::new(true));
            nodes.push((place.clone(), ready.clone()));
            let (place, stop) = (place.clone(), stop.clone());
            looking.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    ready.store(is_ready(&place).await, Ordering::Relaxed);
                    tokio::time::sleep(LOOK).await;
                }
            }));
        }
        let asking = tokio::spawn(ask(nodes, stop.clone(), answered.clone()));
        Self {
            stop,
            answered,
            looking,
            asking,
        }
    }

    /// How many requests were answered, and why others were not.
    async fn end(self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.looking {
            task.await.unwrap();
        }
        let failures = self.asking.await.unwrap();
        (self.answered.load(Ordering::Relaxed), failures)
    }
}

async fn ask(
    nodes: Vec<(NodePlace, Arc<AtomicBool>)>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let ready: Vec<_> = (nodes.iter())
            .filter(|(_, ready)| ready.load(Ordering::Relaxed))
            .collect();
        assert!(!ready.is_empty(), "no node is ready");
        let (place, _) = ready[number % ready.len()];
        let request = match number % 2 {
            0 => ApiRequest::get("/resource_providers"),
            _ => ApiRequest::post("/resource_providers")
                .json(&serde_json::json!({ "name": format!("host{number}") })),
        };
        let client = Client::new([place.api_url()])
            .unwrap()
            .with_attempt_timeout(Duration::from_secs(20));
        match client.request_once(request).await {
            Ok(answer) if answer.status.is_success() => {
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                failures.push(format!("node {}: {} {body}", place.id, answer.status));
            }
            Err(error) => failures.push(format!("node {}: {error}", place.id)),
        }
    }
    failures
}

fn balancer(cluster: &Cluster) -> Balancer {
    let places: Vec<_> = cluster
        .ids()
        .iter()
        .map(|id| cluster.place(*id).clone())
        .collect();
    Balancer::before(&places)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_by_signal_or_by_drain_fails_no_request_behind_a_balancer() {
    let config = format!("[api]\ndrain_notice_ms = {NOTICE_MS}\n");
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let balancer = balancer(&cluster);
    // By the signal alone: one that stops at once, and one that hands over first.
    let leader = cluster.leader().await.unwrap();
    let follower = cluster.followers().await.unwrap()[0];
    for id in [follower, leader] {
        cluster.stop_node(id).await.unwrap();
        cluster.start_node(id).unwrap();
        cluster.wait_ready(id).await.unwrap();
        tokio::time::sleep(2 * LOOK).await;
    }
    // By an operator, who looks first.
    let leader = cluster.leader().await.unwrap();
    let said = cluster.ctl(&["drain", &leader.to_string()]);
    assert!(said.contains("its /readyz says 503"), "{said}");
    let drained = cluster.place(leader).clone();
    assert!(!is_ready(&drained).await);
    let other = cluster.leader_other_than(Some(leader)).await.unwrap();
    assert!(said.contains(&format!("node {other} leads")), "{said}");
    let status = cluster.placementctl(&["status"]).unwrap();
    assert_eq!(status.status.code(), Some(1), "it is degraded");
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains("drained"), "{status}");
    tokio::time::sleep(Duration::from_millis(NOTICE_MS)).await;
    let before = std::time::Instant::now();
    cluster.stop_node(leader).await.unwrap();
    let took = before.elapsed();
    assert!(
        took < Duration::from_millis(NOTICE_MS),
        "it waits again: {took:?}"
    );
    cluster.start_node(leader).unwrap();
    cluster.wait_ready(leader).await.unwrap();
    let (answered, failures) = balancer.end().await;
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(answered > 20, "only {answered} requests were answered");
}

#[tokio::test]
async fn a_drained_node_goes_on_answering_until_it_is_asked_back() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let said = cluster.ctl(&["drain", "1"]);
    assert!(said.contains("it still leads"), "{said}");
    let place = cluster.place(1).clone();
    assert!(!is_ready(&place).await);
    let provider = NewProvider::named("host").uuid(Uuid::new_v4());
    cluster.client().create_provider(&provider).await.unwrap();
    cluster.ctl(&["undrain", "1"]);
    cluster.wait_ready(1).await.unwrap();
    let refused = cluster.placementctl(&["drain", "7"]).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("no member"), "{said}");
}
