use crate::estate::{cluster, eventually, settled};

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_moves_leadership_to_a_chosen_node_by_asking_any() {
    let machines = cluster(3).await;
    let leader = settled(&machines).await;
    let to = (leader + 1) % 3;
    let asked = (leader + 2) % 3;
    let body = format!("{{\"to\": {}}}", machines[to].id());
    let (status, body) = machines[asked].admin("POST", "/v1/leader", &body).await;
    assert_eq!(status, 204, "{body}");
    assert_eq!(settled(&machines).await, to);
    machines[asked].create(1).await;

    let (status, body) = machines[asked]
        .admin("POST", "/v1/leader", "{\"to\": 99}")
        .await;
    assert_eq!(status, 409, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_stopped_hands_over_first() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let other = (leader + 1) % 3;
    machines[other].create(1).await;
    let term = machines[leader].node().status().term;
    machines[leader].shutdown().await;
    // Nobody had to wait for the leader's silence.
    let next = eventually("another leader", || {
        machines.iter().position(|machine| machine.leads())
    });
    let next = next.await;
    assert!(machines[next].node().status().term <= term + 1);
    machines[other].create(2).await;
}
