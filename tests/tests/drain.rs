//! Rolling restarts behind a balancer that checks `/readyz`. No request may fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use placement_client::{ApiRequest, Client, NewProvider};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::layout::NodePlace;
use placement_tests::wait::{PATIENCE, until};
use placement_tests::{host, is_ready};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Interval of the balancer's checks.
const LOOK: Duration = Duration::from_millis(500);
/// Time for which a node still answers after it has become unready.
const NOTICE: Duration = Duration::from_millis(2_000);
/// Log message of a node that waits for this time at its shutdown.
const WAITS: &str = "answering requests until load balancers have noticed";

/// Last check of a node: when it began, and whether the node was ready.
type Seen = Arc<Mutex<(Instant, bool)>>;

/// Sends each request once, to a node that was ready at its last check. On a busy machine a check
/// may be late; a node whose last check is too old is not used.
struct Balancer {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    nodes: Vec<(NodePlace, Seen)>,
    looking: Vec<JoinHandle<()>>,
    asking: JoinHandle<Vec<String>>,
}

impl Balancer {
    fn before(cluster: &Cluster) -> Self {
        let (stop, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut looking = Vec::new();
        let mut nodes = Vec::new();
        for id in cluster.ids() {
            let place = cluster.place(id).clone();
            let seen = Arc::new(Mutex::new((Instant::now(), true)));
            nodes.push((place.clone(), seen.clone()));
            let stop = stop.clone();
            looking.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let ready = is_ready(&place).await;
                    *seen.lock() = (began, ready);
                    tokio::time::sleep(LOOK).await;
                }
            }));
        }
        let asking = tokio::spawn(ask(nodes.clone(), stop.clone(), answered.clone()));
        Self {
            stop,
            answered,
            nodes,
            looking,
            asking,
        }
    }

    /// Waits for a new check of a node with this result.
    async fn sees(&self, id: u64, ready: bool) {
        let now = Instant::now();
        let (_, seen) = self.nodes.iter().find(|(place, _)| place.id == id).unwrap();
        until("a check by the balancer", async || {
            let (at, found) = *seen.lock();
            at >= now && found == ready
        })
        .await;
    }

    /// Stops the balancer. Returns the number of answered requests, and the errors of the others.
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
    nodes: Vec<(NodePlace, Seen)>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
) -> Vec<String> {
    let mut failures = Vec::new();
    let mut number = 0;
    let mut last_sent = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let usable = nodes.iter().filter_map(|(place, seen)| {
            let (looked_at, ready) = *seen.lock();
            (ready && looked_at.elapsed() < NOTICE / 2).then_some((place, looked_at))
        });
        let usable: Vec<_> = usable.collect();
        if usable.is_empty() {
            assert!(last_sent.elapsed() < PATIENCE, "no node is ready");
            tokio::time::sleep(LOOK / 10).await;
            continue;
        }
        last_sent = Instant::now();
        number += 1;
        let (place, looked_at) = usable[number % usable.len()];
        let request = match number % 2 {
            0 => ApiRequest::get("/resource_providers"),
            _ => ApiRequest::post("/resource_providers")
                .json(&serde_json::json!({ "name": format!("host{number}") })),
        };
        let client = Client::new([place.api_url()]).unwrap();
        match client.request_once(request).await {
            Ok(answer) if answer.status.is_success() => {
                answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                failures.push(format!("node {}: {} {body}", place.id, answer.status));
            }
            // This task was delayed between choosing the node and connecting. Its check of the node
            // is older than the notice, so the node has behaved correctly.
            Err(error)
                if error.to_string().contains("Connection refused")
                    && looked_at.elapsed() >= NOTICE => {}
            Err(error) => failures.push(format!("node {}: {error}", place.id)),
        }
    }
    failures
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_during_rolling_restarts_behind_a_balancer() {
    let notice_ms = NOTICE.as_millis();
    let config = format!("[api]\ndrain_notice_ms = {notice_ms}\n{STEADY_LEADER}");
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let balancer = Balancer::before(&cluster);
    // Restarts by signal only: first a follower, then a leader, which transfers its leadership.
    let leader = cluster.leader().await.unwrap();
    let follower = cluster.followers().await.unwrap()[0];
    for id in [follower, leader] {
        cluster.stop_node(id).await.unwrap();
        cluster.start_node(id).unwrap();
        cluster.wait_ready(id).await.unwrap();
        balancer.sees(id, true).await;
    }
    // Restart after an operator's drain.
    let leader = cluster.leader().await.unwrap();
    let output = cluster.ctl(&["drain", &leader.to_string()]);
    assert!(output.contains("its /readyz returns 503"), "{output}");
    let drained = cluster.place(leader).clone();
    assert!(!is_ready(&drained).await);
    let other = cluster.leader_other_than(Some(leader)).await.unwrap();
    assert!(output.contains(&format!("node {other} leads")), "{output}");
    // The cluster is degraded.
    cluster.until_shown(&["status"], 1, &["drained"]).await;
    balancer.sees(leader, false).await;
    let notices = |cluster: &Cluster| cluster.log(leader, usize::MAX).matches(WAITS).count();
    let before = notices(&cluster);
    cluster.stop_node(leader).await.unwrap();
    assert_eq!(
        notices(&cluster),
        before,
        "a drained node waits again at its shutdown"
    );
    cluster.start_node(leader).unwrap();
    cluster.wait_ready(leader).await.unwrap();
    let (answered, failures) = balancer.end().await;
    assert!(
        (1..=3).any(|id| cluster.log(id, usize::MAX).contains(WAITS)),
        "a node that is stopped by a signal must wait for load balancers"
    );
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(answered > 20, "only {answered} requests were answered");
}

#[tokio::test]
async fn drained_node_serves_requests_and_undrain_makes_it_ready() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let output = cluster.ctl(&["drain", "1"]);
    assert!(output.contains("it still leads"), "{output}");
    let place = cluster.place(1).clone();
    assert!(!is_ready(&place).await);
    let provider = NewProvider::named("host").uuid(Uuid::new_v4());
    cluster.client().create_provider(&provider).await.unwrap();
    cluster.ctl(&["undrain", "1"]);
    cluster.wait_ready(1).await.unwrap();
    cluster
        .until_shown(&["drain", "7"], 1, &["is not a member"])
        .await;
}

#[tokio::test]
async fn cluster_of_drained_nodes_has_a_quorum() {
    let cluster = Cluster::start(3).await.unwrap();
    for id in ["1", "2", "3"] {
        cluster.ctl(&["drain", id]);
    }
    let report = ["degraded: 0 of 3 voters ready, 1 may fail", "leader node "];
    cluster.until_shown(&["status"], 1, &report).await;
    host::with_processors(&cluster.client()).await;
}

#[tokio::test]
async fn drained_node_that_is_elected_leads_only_until_another_node_can() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let first = cluster.leader().await.unwrap();
    for follower in cluster.followers().await.unwrap() {
        cluster.ctl(&["drain", &follower.to_string()]);
    }
    cluster.kill_9(first);
    // Both candidates are drained, and one of them keeps the cluster writable.
    let second = cluster.leader_other_than(Some(first)).await.unwrap();
    let provider = NewProvider::named("host").uuid(Uuid::new_v4());
    let created = cluster.client_of(second).create_provider(&provider).await;
    created.unwrap();
    cluster.start_node(first).unwrap();
    cluster.until_leader(first).await;
    cluster
        .until_logged(&[second], "a drained node does not lead")
        .await;
}

#[tokio::test]
async fn node_that_was_never_ready_stops_without_delay() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    cluster.start_node(1).unwrap();
    cluster.until_logged(&[1], "listening").await;
    cluster.stop_node(1).await.unwrap();
    let log = cluster.log(1, usize::MAX);
    assert!(!log.contains(WAITS), "{log}");
}
