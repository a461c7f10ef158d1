use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::estate::{Machine, eventually, machines, settled};

/// A cluster whose nodes take a snapshot after each so many entries.
async fn cluster(nodes: u64, snapshot_after: u64) -> Vec<Machine> {
    let mut machines = machines(nodes);
    for machine in &mut machines {
        machine.config.raft.snapshot_after = snapshot_after;
        machine.config.raft.log_keep = 10;
        machine.start().await;
    }
    settled(&machines).await;
    machines
}

fn snapshots(machine: &Machine) -> PathBuf {
    machine.config.data_dir.join("snapshots")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_cannot_be_written_ends_no_node_and_is_taken_later() {
    let machines = cluster(3, 30).await;
    let leader = settled(&machines).await;
    let aside = |machine: &Machine| machine.config.data_dir.join("aside");
    for machine in &machines {
        std::fs::rename(snapshots(machine), aside(machine)).unwrap();
        std::fs::write(snapshots(machine), b"").unwrap();
    }
    let before = machines[leader].node().status();
    for number in 1..100 {
        machines[leader].create(number).await;
    }
    for machine in &machines {
        let (_, metrics) = machine.admin("GET", "/metrics", "").await;
        let failed = "placement_raft_snapshots_failed_total ";
        let failed = metrics.lines().find_map(|line| line.strip_prefix(failed));
        assert_ne!(failed, Some("0"), "{metrics}");
        let status = machine.node().status();
        assert_eq!(status.storage_failure, None);
        assert_eq!(status.snapshot, before.snapshot);
        assert!(
            status.purged <= before.purged,
            "the log is kept: {status:?}"
        );
        assert!(machine.sees(99).await);
    }
    for machine in &machines {
        std::fs::remove_file(snapshots(machine)).unwrap();
        std::fs::rename(aside(machine), snapshots(machine)).unwrap();
    }
    eventually("snapshots, and a log that is cut", || {
        let is_cut = |machine: &Machine| machine.node().status().purged > Some(50);
        machines.iter().all(is_cut).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_take_turns() {
    let machines = cluster(3, 60).await;
    let mut taken = vec![BTreeSet::new(); machines.len()];
    for number in 1..250 {
        machines[0].create(number).await;
        for (taken, machine) in taken.iter_mut().zip(&machines) {
            taken.extend(machine.node().status().snapshot);
        }
    }
    for (nth, mine) in taken.iter().enumerate() {
        assert!(mine.len() >= 3, "{taken:?}");
        for others in &taken[nth + 1..] {
            // Each is built a moment after its turn came.
            let near = |one: &u64| others.iter().any(|other| one.abs_diff(*other) < 10);
            assert!(!mine.iter().any(near), "{taken:?}");
        }
    }
}
