use std::time::{Duration, Instant};

use placement_node::doors::{Consistency, Unavailable};
use placement_wire::NodeRole;

use crate::estate::{Machine, cluster, converged, eventually, settled};

const PATIENCE: Duration = Duration::from_secs(30);

fn new_member(machine: &Machine) -> String {
    format!(
        "{{\"id\": {}, \"peer\": \"{}\", \"api\": \"{}\", \"admin\": \"{}\"}}",
        machine.id(),
        machine.config.peer.listen,
        machine.config.api.listen,
        machine.config.admin.listen
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_node_joins_catches_up_votes_and_outlives_the_others() {
    let mut machines = cluster(1).await;
    for number in 1..50 {
        machines[0].create(number).await;
    }
    for id in [2, 3] {
        let mut fresh = Machine::new(id);
        fresh.start().await;
        let (status, body) = machines[0]
            .admin("POST", "/v1/members", &new_member(&fresh))
            .await;
        assert_eq!(status, 204, "{body}");
        machines.push(fresh);
        let asked = machines.len() - 1;
        let promote = format!("/v1/members/{id}/promote");
        let begun = Instant::now();
        loop {
            let (status, body) = machines[asked].admin("POST", &promote, "").await;
            if status == 204 {
                break;
            }
            // The cluster writes down at the same time what the new node says of itself.
            let is_busy = body.contains("another change is under way");
            assert!(is_busy && begun.elapsed() < PATIENCE, "{status}: {body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    converged(&machines).await;
    for machine in &machines {
        assert!(machine.sees(49).await);
    }
    machines[0].kill().await;
    settled(&machines[1..]).await;
    machines[2].create(100).await;
    assert!(machines[1].sees(100).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_node_neither_votes_nor_writes_and_its_number_is_not_given_again() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let gone = (leader + 1) % 3;
    let stays = (leader + 2) % 3;
    machines[gone].create(1).await;
    let path = format!("/v1/members/{}", machines[gone].id());
    let (status, body) = machines[stays].admin("DELETE", &path, "").await;
    assert_eq!(status, 204, "{body}");
    let (status, body) = machines[stays].admin("DELETE", &path, "").await;
    assert_eq!(status, 404, "{body}");
    let members = machines[stays].node().status().members;
    assert_eq!(members.len(), 2, "{members:?}");

    let mut removed = machines.remove(gone);
    knows_that_it_was_removed(&removed).await;
    removed.kill().await;
    removed.config.cluster.wait_ms = 500;
    removed.start().await;
    knows_that_it_was_removed(&removed).await;
    removed.kill().await;
    removed.wipe();
    removed.config.initial_members.clear();
    removed.start().await;
    let (status, body) = machines[0]
        .admin("POST", "/v1/members", &new_member(&removed))
        .await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("never"), "{body}");
    machines[0].create(3).await;
}

/// Nobody sends it anything any more: it has to ask.
async fn knows_that_it_was_removed(machine: &Machine) {
    eventually("a word of the removal", || {
        (machine.node().status().role == NodeRole::Removed).then_some(())
    })
    .await;
    let (status, body) = machine.api("GET", "/readyz", "").await;
    assert_eq!(status, 503);
    assert!(body.contains("was removed from its cluster"), "{body}");
    let written = machine.submit(crate::estate::create(2)).await.unwrap_err();
    let read = machine.view(Consistency::Linearizable).await.unwrap_err();
    for error in [written, read] {
        assert!(matches!(error, Unavailable::NothingCommitted { .. }));
        assert!(error.to_string().contains("was removed"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_can_be_removed_and_the_last_voter_cannot() {
    let mut machines = cluster(2).await;
    let leader = settled(&machines).await;
    let path = format!("/v1/members/{}", machines[leader].id());
    let (status, body) = machines[leader].admin("DELETE", &path, "").await;
    assert_eq!(status, 204, "{body}");
    let mut removed = machines.remove(leader);
    settled(&machines).await;
    machines[0].create(1).await;
    knows_that_it_was_removed(&removed).await;
    removed.kill().await;
    // It was removed whole: its number is closed.
    let (status, body) = machines[0].admin("DELETE", &path, "").await;
    assert_eq!(status, 404, "{body}");
    let path = format!("/v1/members/{}", machines[0].id());
    let (status, body) = machines[0].admin("DELETE", &path, "").await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("last voter"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_removed_if_the_rest_would_have_no_majority() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let dead = (leader + 1) % 3;
    machines[dead].kill().await;
    let alive = (leader + 2) % 3;
    // Until then it counts as heard.
    let unheard_ms = 2 * machines[leader].config.raft.election_max_ms + 500;
    tokio::time::sleep(Duration::from_millis(unheard_ms)).await;
    let path = format!("/v1/members/{}", machines[alive].id());
    let (status, body) = machines[leader].admin("DELETE", &path, "").await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("no majority"), "{body}");
    let path = format!("/v1/members/{}", machines[dead].id());
    let (status, body) = machines[leader].admin("DELETE", &path, "").await;
    assert_eq!(status, 204, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_cluster_is_not_taken() {
    let ours = cluster(1).await;
    let mut theirs = vec![Machine::new(2)];
    theirs[0].start().await;
    theirs[0].admin("POST", "/v1/init", "").await;
    settled(&theirs).await;
    let (status, body) = ours[0]
        .admin("POST", "/v1/members", &new_member(&theirs[0]))
        .await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("another cluster"), "{body}");
    let (status, body) = ours[0].admin("POST", "/v1/members", "{\"id\": 9}").await;
    assert_eq!(status, 400, "{body}");
}
