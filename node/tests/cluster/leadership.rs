use std::time::Duration;

use futures::future::select_all;
use placement_raft_store::Disk;
use placement_raft_store::simulation::SimulatedDisk;
use tokio::time::Instant;

use crate::estate::{Machine, cluster, cluster_of, create, eventually, machines, settled};

/// A disk on which syncs take no time, until it is told to hang.
fn disk_of(machine: &mut Machine) -> SimulatedDisk {
    let disk = SimulatedDisk::new(machine.id(), Duration::ZERO..=Duration::from_millis(1));
    machine.env.storage.disk = Disk::Simulated(disk.clone());
    disk
}

fn hang(disks: &[SimulatedDisk], which: [usize; 2], hangs: bool) {
    for nth in which {
        disks[nth].set_hanging(hangs);
    }
}

/// Writes through a leader whose followers bring nothing to their disks.
async fn write_in_vain(leader: &Machine, numbers: std::ops::Range<u128>) {
    let written = numbers.map(|number| leader.submit(create(number)));
    let written = tokio::time::timeout(Duration::from_secs(1), select_all(written.map(Box::pin)));
    assert!(written.await.is_err(), "no follower has any on its disk");
}

/// Followers whose disks hang are heard, and lack what was written since.
#[tokio::test(flavor = "multi_thread")]
async fn drain_and_stop_hand_leadership_to_no_voter_that_lags() {
    let mut machines = machines(3);
    let mut disks = Vec::new();
    for machine in &mut machines {
        machine.config.raft.promote_lag_max = 5;
        machine.config.disk.hung_after_ms = 0;
        disks.push(disk_of(machine));
    }
    let mut machines = cluster_of(machines).await;
    let leader = settled(&machines).await;
    machines[leader].create(1).await;
    let followers = [(leader + 1) % 3, (leader + 2) % 3];
    hang(&disks, followers, true);
    write_in_vain(&machines[leader], 2..20).await;
    let term = machines[leader].node().status().term;
    let (status, body) = machines[leader].admin("POST", "/v1/drain", "").await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains("no voter can take over"), "{body}");
    for follower in followers {
        let lacks = format!("node {} lacks ", machines[follower].id());
        assert!(body.contains(&lacks), "{body}");
    }
    assert!(machines[leader].leads());
    assert_eq!(machines[leader].node().status().term, term);

    // The nodes that are not drained come back, and leadership goes where all is.
    hang(&disks, followers, false);
    eventually("followers that have caught up", || {
        let views = machines[followers[0]].node().views()?;
        (views.applied_index()? >= 20).then_some(())
    })
    .await;
    let (status, body) = machines[leader].admin("POST", "/v1/drain", "").await;
    assert_eq!(status, 200, "{body}");
    let now = settled(&machines).await;
    assert_ne!(now, leader);

    let others = [(now + 1) % 3, (now + 2) % 3];
    hang(&disks, others, true);
    write_in_vain(&machines[now], 30..50).await;
    let term = machines[now].node().status().term;
    machines[now].shutdown().await;
    let of_others = others.map(|other| machines[other].node().status().term);
    assert_eq!(
        of_others, [term; 2],
        "no other node was made to stand for election"
    );
    hang(&disks, others, false);
}

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
