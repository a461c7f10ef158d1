//! The feature level of a cluster while members are away or held back.

use std::time::Duration;

use placement_model::Level;

use crate::fixture::{Machine, cluster, cluster_of, converged, eventually, machines, settled};

/// A level below the newest, as `[cluster] level_max`.
const HELD: u64 = 1;

fn level(machine: &Machine) -> Level {
    machine.node().views().unwrap().current().cluster.level()
}

async fn all_reach_the_newest_level(machines: &[Machine]) {
    eventually("the newest level everywhere", || {
        let mut running = machines.iter().filter(|machine| machine.is_running());
        (running.all(|machine| level(machine) == Level::NEWEST)).then_some(())
    })
    .await;
}

/// The member may have returned to an older version in the meantime, which could never start again.
#[tokio::test(flavor = "multi_thread")]
async fn level_does_not_rise_while_a_member_is_away() {
    let mut machines = machines(3);
    machines[1].config.cluster.level_max = HELD;
    let mut machines = cluster_of(machines).await;
    let leader = loop {
        match settled(&machines).await {
            1 => {
                machines[0].admin("POST", "/v1/leader", "{\"to\": 1}").await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            leader => break leader,
        }
    };
    let away = 2 - leader;
    machines[away].kill().await;
    // A follower counts as reachable for this long after its last answer.
    let lately = machines[leader].config.raft.waits().reachable();
    tokio::time::sleep(lately + Duration::from_secs(1)).await;
    machines[1].kill().await;
    machines[1].config.cluster.level_max = 0;
    machines[1].start().await;
    settled(&machines).await;
    converged(&machines).await;
    // The leader checks every second whether the level can be raised.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(u64::from(level(&machines[leader]).0), HELD);
    machines[away].start().await;
    all_reach_the_newest_level(&machines).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_held_below_the_level_of_its_cluster_stays_a_member() {
    let mut machines = cluster(3).await;
    all_reach_the_newest_level(&machines).await;
    machines[2].kill().await;
    machines[2].config.cluster.level_max = HELD;
    machines[2].start().await;
    settled(&machines).await;
    machines[2].create(1).await;
    assert!(machines[0].sees(1).await);
}
