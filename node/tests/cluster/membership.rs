use std::time::Duration;

use placement_base::backend::{Consistency, Unavailable};
use placement_wire::NodeRole;

use crate::fixture::{Machine, cluster, eventually, settled};

/// The others send nothing to a removed node: it has to ask.
async fn knows_that_it_was_removed(machine: &Machine) {
    eventually("the removal", || {
        (machine.node().status().role == NodeRole::Removed).then_some(())
    })
    .await;
    let (status, body) = machine.api("GET", "/readyz", "").await;
    assert_eq!(status, 503);
    assert!(body.contains("was removed from its cluster"), "{body}");
    let written = machine.submit(crate::fixture::create(2)).await.unwrap_err();
    let read = machine.view(Consistency::Linearizable).await.unwrap_err();
    for error in [written, read] {
        assert!(matches!(error, Unavailable::NothingCommitted { .. }));
        assert!(error.to_string().contains("was removed"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_can_be_removed_but_not_the_last_voter() {
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
    // The removal is complete: its number is closed.
    let (status, body) = machines[0].admin("DELETE", &path, "").await;
    assert_eq!(status, 404, "{body}");
    let path = format!("/v1/members/{}", machines[0].id());
    let (status, body) = machines[0].admin("DELETE", &path, "").await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("last voter"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_is_not_removed_if_the_rest_would_have_no_majority() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let dead = (leader + 1) % 3;
    machines[dead].kill().await;
    let alive = (leader + 2) % 3;
    // Until then it counts as reachable.
    let reachable = machines[leader].config.raft.waits().reachable();
    tokio::time::sleep(reachable + Duration::from_millis(500)).await;
    let path = format!("/v1/members/{}", machines[alive].id());
    let (status, body) = machines[leader].admin("DELETE", &path, "").await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("not a majority"), "{body}");
    let path = format!("/v1/members/{}", machines[dead].id());
    let (status, body) = machines[leader].admin("DELETE", &path, "").await;
    assert_eq!(status, 204, "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_is_not_formed_with_a_member_of_another_one() {
    let mut theirs = Machine::new(2);
    theirs.start().await;
    theirs.admin("POST", "/v1/init", "").await;
    let mut ours = Machine::new(1);
    ours.start().await;
    let members = format!(
        "{{\"members\": {{\"2\": \"{}\"}}}}",
        theirs.config.peer.listen
    );
    let (status, body) = ours.admin("POST", "/v1/init", &members).await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("node 2 already belongs to cluster"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_node_that_lost_its_data_forms_no_second_cluster() {
    let mut machines = cluster(3).await;
    machines[1].create(1).await;
    machines[0].kill().await;
    machines[0].wipe();
    machines[0].start().await;
    settled(&machines[1..]).await;
    machines[1].create(2).await;
    assert_eq!(machines[0].node().status().cluster_id, None);
}
