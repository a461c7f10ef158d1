use std::sync::Arc;

use placement_model::cluster::ClusterChanges;
use placement_model::{Cluster, Outcome, Stamped};
use placement_raft_store::{Applier, Rules};

use crate::fixture::{create, eventually, machines, settled};

/// Skips one command, as if a bit had flipped.
struct Forgetful;

impl Applier for Forgetful {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let (outcome, changes) = Rules.apply(index, cluster, stamped);
        if stamped.command == create(20) {
            return (outcome, ClusterChanges::new());
        }
        (outcome, changes)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_whose_state_differs_is_quarantined_for_good() {
    let mut machines = machines(3);
    machines[1].env.storage.applier = Arc::new(Forgetful);
    for machine in &mut machines {
        machine.start().await;
    }
    let leader = settled(&machines).await;
    // Checkpoints are some way into the log.
    for number in 1..=100 {
        machines[leader].create(number).await;
    }
    let failure = eventually("a node that leaves", || {
        machines[1].node().status().storage_failure
    })
    .await;
    assert!(
        failure.contains("differs from that of a majority"),
        "{failure}"
    );
    let (status, body) = machines[1].api("GET", "/readyz", "").await;
    assert_eq!((status, body.contains(&failure)), (503, true), "{body}");

    // A restart does not repair it, even with the right rules.
    machines[1].shutdown().await;
    machines[1].env.storage.applier = Arc::new(Rules);
    let refused = machines[1].try_start().await.unwrap_err().to_string();
    assert!(refused.contains("is quarantined"), "{refused}");
    assert!(refused.contains("join again"), "{refused}");

    // The others continue.
    let one = &machines[0];
    assert_eq!(one.node().status().storage_failure, None);
    one.create(101).await;
    assert!(machines[2].sees(101).await);
}
