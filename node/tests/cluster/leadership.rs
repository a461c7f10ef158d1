use std::time::Duration;

use tokio::time::Instant;

use crate::estate::{cluster, eventually, machines, settled};

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_moves_leadership_to_a_chosen_node_by_asking_any() {
    let machines = cluster(3).await;
    let leader = settled(&machines).await;
    let to = (leader + 1) % 3;
    let asked = (leader + 2) % 3;
    let body = format!("{{\"to\": {}}}", machines[to].id());
    let (status, body) = machines[asked].admin("POST", "/v1/leader", &body).await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(body, format!("{{\"leader\":{}}}", machines[to].id()));
    eventually("the chosen leader", || machines[to].leads().then_some(())).await;
    machines[asked].create(1).await;

    let (status, body) = machines[asked]
        .admin("POST", "/v1/leader", "{\"to\": 99}")
        .await;
    assert_eq!(status, 409, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_stopped_hands_over_first() {
    // So long that nothing but a hand-over can explain a new leader within less.
    let election_min = Duration::from_secs(20);
    let mut machines = machines(3);
    for machine in &mut machines {
        machine.config.raft.election_min_ms = 20_000;
        machine.config.raft.election_max_ms = 40_000;
        machine.start().await;
    }
    let leader = settled(&machines).await;
    let other = (leader + 1) % 3;
    machines[other].create(1).await;
    let stopped = Instant::now();
    machines[leader].shutdown().await;
    settled(&machines).await;
    machines[other].create(2).await;
    let pause = stopped.elapsed();
    assert!(pause < election_min, "{pause:?} until the next write");
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_not_handed_to_a_node_that_is_not_heard_or_lags() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let away = (leader + 1) % 3;
    machines[away].kill().await;
    // A node counts as heard for two election timeouts.
    let forgotten_ms = 2 * machines[leader].config.raft.election_max_ms + 500;
    tokio::time::sleep(Duration::from_millis(forgotten_ms)).await;
    let to = format!("{{\"to\": {}}}", machines[away].id());
    let (status, body) = machines[leader].admin("POST", "/v1/leader", &to).await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("nothing has been heard"), "{body}");
    assert!(machines[leader].leads());
    machines[(leader + 2) % 3].create(1).await;
}
