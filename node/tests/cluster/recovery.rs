use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::estate::{Machine, cluster, converged, eventually, machines, settled};

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
    let (leader, away) = away_too_long(&mut machines).await;
    machines[leader].create(500).await;
    machines[away].start().await;
    assert!(machines[away].sees(500).await);
    converged(&machines).await;
    assert!(machines[away].node().status().snapshot.is_some());
    machines[away].create(501).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_snapshot_is_refused_and_written_anew_by_the_node_that_sent_it() {
    let mut machines = machines(3);
    for machine in &mut machines {
        machine.config.raft.log_keep = 10;
        machine.config.raft.snapshot_chunk_bytes = 1024;
        machine.config.raft.snapshot_bytes_per_s = 16 * 1024;
        machine.start().await;
    }
    let (leader, away) = away_too_long(&mut machines).await;
    machines[leader].create(500).await;
    machines[away].start().await;
    eventually("a first piece of the snapshot that has arrived", || {
        let mut files = snapshot_files(&machines[away]).into_iter();
        files.find(|path| path.metadata().is_ok_and(|file| file.len() > 0))
    })
    .await;
    // In place, near its end: the leader sends from the file that it has open.
    let sent = snapshot_files(&machines[leader]);
    let [sent] = sent.as_slice() else {
        panic!("one snapshot that is sent: {sent:?}");
    };
    let bytes = std::fs::read(sent).unwrap();
    let late = bytes.len() - 100;
    let file = OpenOptions::new().write(true).open(sent).unwrap();
    file.write_all_at(&[bytes[late] ^ 1], late as u64).unwrap();
    assert!(machines[away].sees(500).await);
    converged(&machines).await;
    for machine in &machines {
        assert_eq!(machine.node().status().storage_failure, None);
    }
    assert_eq!(settled(&machines).await, leader);
    let (_, metrics) = machines[leader].admin("GET", "/metrics", "").await;
    let damaged = "placement_raft_snapshots_damaged_total 1";
    assert!(metrics.lines().any(|line| line == damaged), "{metrics}");
    machines[away].create(501).await;
}

/// Kills a follower and purges from the log of the others what it lacks. Gives the leader and the
/// follower.
async fn away_too_long(machines: &mut [Machine]) -> (usize, usize) {
    let leader = settled(machines).await;
    let away = (leader + 1) % 3;
    machines[away].kill().await;
    for number in 1..200 {
        machines[leader].create(number).await;
    }
    for machine in machines.iter() {
        if machine.is_running() {
            let (status, body) = machine.admin("POST", "/v1/compact", "").await;
            assert_eq!(status, 204, "{body}");
        }
    }
    let leader = settled(machines).await;
    eventually("a log that does not reach back", || {
        machines
            .iter()
            .filter(|machine| machine.is_running())
            .all(|machine| machine.node().status().purged > Some(150))
            .then_some(())
    })
    .await;
    (leader, away)
}

/// The snapshots that a machine sends or is sent.
fn snapshot_files(machine: &Machine) -> Vec<PathBuf> {
    let files = std::fs::read_dir(machine.config.data_dir.join("snapshots")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
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
