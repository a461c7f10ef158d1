use crate::estate::{cluster, converged, eventually, settled};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_catches_up_from_the_log() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let away = (leader + 1) % 3;
    machines[away].kill().await;
    for number in 1..30 {
        machines[leader].create(number).await;
    }
    machines[away].start().await;
    assert!(machines[away].sees(29).await);
    converged(&machines).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_too_long_is_sent_a_snapshot() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let away = (leader + 1) % 3;
    machines[away].kill().await;
    for number in 1..200 {
        machines[leader].create(number).await;
    }
    for machine in &machines {
        if machine.is_running() {
            let (status, body) = machine.admin("POST", "/v1/compact", "").await;
            assert_eq!(status, 204, "{body}");
        }
    }
    let leader = settled(&machines).await;
    eventually("a log that does not reach back", || {
        machines
            .iter()
            .filter(|machine| machine.is_running())
            .all(|machine| machine.node().status().purged > Some(150))
            .then_some(())
    })
    .await;
    machines[leader].create(500).await;
    machines[away].start().await;
    assert!(machines[away].sees(500).await);
    converged(&machines).await;
    assert!(machines[away].node().status().snapshot.is_some());
    machines[away].create(501).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_restarted_at_once_come_back_with_their_data() {
    let mut machines = cluster(3).await;
    for number in 1..20 {
        machines[1].create(number).await;
    }
    for machine in &mut machines {
        machine.kill().await;
    }
    for machine in &mut machines {
        machine.start().await;
    }
    settled(&machines).await;
    for machine in &machines {
        for number in 1..20 {
            assert!(machine.sees(number).await);
        }
    }
    machines[2].create(100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_in_good_order_and_started_again_one_by_one() {
    let mut machines = cluster(3).await;
    for (round, number) in (0..3).zip(1..) {
        machines[round].create(number).await;
        machines[round].shutdown().await;
        machines[(round + 1) % 3].create(number + 100).await;
        machines[round].start().await;
        settled(&machines).await;
        assert!(machines[round].sees(number + 100).await);
    }
}
