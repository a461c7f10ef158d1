use std::time::Duration;

use futures::future::select_all;
use placement_machine::SimulatedDisk;

use crate::fixture::{Machine, cluster_of, create, disk_of, eventually, machines, settled};

fn hang(disks: &[SimulatedDisk], which: [usize; 2], hangs: bool) {
    for nth in which {
        disks[nth].set_hanging(hangs);
    }
}

/// Writes through a leader whose followers cannot write to their disks.
async fn write_in_vain(leader: &Machine, numbers: std::ops::Range<u128>) {
    let written = numbers.map(|number| leader.submit(create(number)));
    let written = tokio::time::timeout(Duration::from_secs(1), select_all(written.map(Box::pin)));
    assert!(written.await.is_err(), "no follower has any on its disk");
}

/// Followers with hanging disks are reachable, but lack the latest writes.
#[tokio::test(flavor = "multi_thread")]
async fn drain_and_stop_hand_leadership_to_no_voter_that_lags() {
    let mut machines = machines(3);
    let mut disks = Vec::new();
    for machine in &mut machines {
        machine.config.raft.promote_lag_max = 5;
        machine.config.disk.hung_after_ms = 0;
        // No heartbeat is missed for that long: only a hand-over begins a term, and it is tried for
        // twice that time.
        machine.set_election(8_000, 12_000);
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
    assert!(body.contains("but it still leads"), "{body}");
    assert!(body.contains("nothing_committed"), "{body}");
    for follower in followers {
        let lacks = format!("node {} lacks ", machines[follower].id());
        assert!(body.contains(&lacks), "{body}");
    }
    assert!(machines[leader].leads());
    assert_eq!(machines[leader].node().status().term, term);

    // The disks of the others recover, and leadership moves to a node with everything.
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

/// The disk of one follower hangs. It lacks a few writes, but not too many to take over.
#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_handed_to_the_voter_with_most_of_the_log() {
    let mut machines = machines(3);
    let mut disks = Vec::new();
    for machine in &mut machines {
        machine.config.disk.hung_after_ms = 0;
        // No election timeout passes during the test: only a hand-over begins a term.
        machine.set_election(60_000, 61_000);
        disks.push(disk_of(machine));
    }
    let machines = cluster_of(machines).await;
    let leader = settled(&machines).await;
    machines[leader].create(1).await;
    // The first of the other two by number.
    let (behind, complete) = match leader {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    };
    disks[behind].set_hanging(true);
    for number in 2..10 {
        machines[leader].create(number).await;
    }
    let handed = machines[leader].admin("POST", "/v1/leader", "{}");
    let handed = tokio::time::timeout(Duration::from_secs(30), handed).await;
    let (status, body) = handed.expect("the first attempt succeeds");
    assert_eq!(status, 200, "{body}");
    let leader = format!("\"leader\":{}", machines[complete].id());
    assert!(body.contains(&leader), "{body}");
    disks[behind].set_hanging(false);
    assert_eq!(settled(&machines).await, complete);
}
