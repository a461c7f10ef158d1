//! No request is answered before the standard resource classes and traits exist.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use placement_base::backend::{Consistency, Unavailable};
use placement_model::cluster::ClusterChanges;
use placement_model::command::Command;
use placement_model::{Cluster, Outcome, Reply, Stamped};
use placement_raft_store::{Applier, Rules};
use tokio::time::Instant;

use crate::fixture::{Machine, cluster, create, eventually, machines, settled};

/// Keeps the standard names out of a node's state until released, like a log that this node has not
/// applied yet.
#[derive(Default)]
struct HeldBack(AtomicBool);

impl HeldBack {
    fn on(machine: &mut Machine) -> Arc<Self> {
        let held = Arc::new(Self(AtomicBool::new(true)));
        machine.env.storage.applier = held.clone();
        held
    }

    fn release(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Applier for HeldBack {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        let standards = matches!(stamped.command, Command::SyncStandards(_));
        if standards && self.0.load(Ordering::SeqCst) {
            (Outcome::Done(Reply::Done), ClusterChanges::new())
        } else {
            Rules.apply(index, cluster, stamped)
        }
    }
}

/// Checks that a node rejects everything while its state lacks the standard names.
async fn answers_nothing(machine: &Machine) {
    let (status, body) = machine.api("GET", "/readyz", "").await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("standard resource classes"), "{body}");
    for consistency in [Consistency::Local, Consistency::Linearizable] {
        let error = machine.view(consistency).await.unwrap_err();
        is_early(&error);
    }
    is_early(&machine.submit(create(1)).await.unwrap_err());
}

fn is_early(error: &Unavailable) {
    match error {
        Unavailable::NothingCommitted(reason) => {
            assert!(reason.contains("standard resource classes"), "{reason}");
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_cluster_answers_nothing_before_it_has_the_standard_names() {
    let mut machines = machines(1);
    machines[0].config.cluster.wait_ms = 300;
    let held = HeldBack::on(&mut machines[0]);
    machines[0].start().await;
    settled(&machines).await;
    answers_nothing(&machines[0]).await;

    machines[0].kill().await;
    machines[0].config.cluster.wait_ms = 30_000;
    machines[0].start().await;
    settled(&machines).await;
    // An early request waits, as for a leader.
    let begun = Instant::now();
    let release = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.release();
    };
    let (written, ()) = tokio::join!(machines[0].create(1), release);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let vcpu = "VCPU".parse().unwrap();
    assert!(written.view.state.resource_class_id(&vcpu).is_some());
    assert_eq!(machines[0].api("GET", "/readyz", "").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn follower_without_the_standard_names_answers_nothing() {
    let mut machines = machines(3);
    // With long timeouts, so that another node leads.
    let held = HeldBack::on(&mut machines[2]);
    machines[2].config.cluster.wait_ms = 300;
    machines[2].config.raft.election_min_ms = 5_000;
    machines[2].config.raft.election_max_ms = 6_000;
    for machine in &mut machines {
        machine.start().await;
    }
    let leader = settled(&machines).await;
    assert_ne!(leader, 2);
    machines[leader].create(7).await;
    answers_nothing(&machines[2]).await;
    assert_eq!(machines[leader].api("GET", "/readyz", "").await.0, 200);

    held.release();
    eventually("a state with the names", || {
        let views = machines[2].node().views()?;
        let vcpu = "VCPU".parse().unwrap();
        views
            .current()
            .cluster
            .default_partition()
            .resource_class_id(&vcpu)
            .map(drop)
    })
    .await;
    machines[2].create(8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_binary_adds_its_names_although_an_older_one_leads() {
    let mut machines = cluster(3).await;
    machines[0].create(1).await;
    let leader = settled(&machines).await;
    let upgraded = (leader + 1) % 3;
    let name: placement_model::types::TraitName = "HW_OF_THE_NEXT_RELEASE".parse().unwrap();
    machines[upgraded].shutdown().await;
    machines[upgraded].env.standards.traits.insert(name.clone());
    machines[upgraded].start().await;
    machines[upgraded].create(2).await;
    for machine in &machines {
        let view = machine.view(Consistency::Linearizable).await.unwrap();
        assert!(view.state.trait_id(&name).is_some());
    }

    // The third node alone knows one more trait. Without a quorum it cannot add the trait, so it
    // refuses even local reads: an answer without the trait may be wrong.
    let last = (leader + 2) % 3;
    let name: placement_model::types::TraitName = "HW_OF_THE_ONE_AFTER".parse().unwrap();
    for machine in &mut machines {
        machine.kill().await;
    }
    machines[last].env.standards.traits.insert(name);
    machines[last].config.cluster.wait_ms = 300;
    machines[last].start().await;
    let error = machines[last].view(Consistency::Local).await.unwrap_err();
    assert!(
        matches!(error, Unavailable::NothingCommitted { .. }),
        "{error}"
    );
}
