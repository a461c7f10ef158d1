//! Regions and zones of nodes, and the preferred site of the leader.

use std::time::Duration;

use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;
use placement_tests::wait::until_ok;

/// Waits until each node knows these sites of all nodes.
async fn stand(cluster: &Cluster, expected: &[(u64, &str, &str)]) {
    until_ok("sites", async || {
        let statuses = cluster.statuses().await;
        let known = statuses.iter().filter(|status| {
            let members = status.members.iter();
            let sites = members.map(|one| (one.id, &*one.region, &*one.zone));
            sites.eq(expected.iter().copied())
        });
        let all_know = known.count() == expected.len();
        if all_know { Ok(()) } else { Err(statuses) }
    })
    .await;
}

#[tokio::test]
async fn sites_are_known_to_all_nodes_and_follow_moves() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    cluster.start_node_at(1, "north/a").unwrap();
    cluster.start_node_at(2, "north/b").unwrap();
    cluster.start_node_at(3, "").unwrap();
    cluster.wait_healthy().await.unwrap();
    stand(
        &cluster,
        &[(1, "north", "a"), (2, "north", "b"), (3, "", "")],
    )
    .await;

    cluster.stop_node(3).await.unwrap();
    cluster.start_node_at(3, "south").unwrap();
    cluster.stop_node(2).await.unwrap();
    cluster.start_node_at(2, "").unwrap();
    cluster.wait_healthy().await.unwrap();
    stand(
        &cluster,
        &[(1, "north", "a"), (2, "", ""), (3, "south", "")],
    )
    .await;

    let table = cluster.until_shown(&["status"], 0, &["healthy"]).await;
    let sites: Vec<_> = table
        .lines()
        .skip(3)
        .map(|line| line.split_whitespace().nth(2))
        .take(3)
        .collect();
    assert_eq!(
        sites,
        [Some("north/a"), Some("-"), Some("south")],
        "{table}"
    );
    for (id, expected) in [
        (1, "1; region=north; zone=a"),
        (2, "2"),
        (3, "3; region=south"),
    ] {
        let root = cluster
            .client_of(id)
            .request(ApiRequest::get("/"))
            .await
            .unwrap();
        assert_eq!(root.header("placement-node"), Some(expected));
        assert_eq!(root.position().node, Some(id));
    }
}

/// Starts three nodes at three sites. The leader is node 2 at the first preferred site; the second
/// preference is the site of node 3.
async fn with_preference() -> Cluster {
    let preference = "[cluster]\nleader_preference = [\"north/b\", \"south\"]\n";
    let mut cluster = Cluster::prepare(3, preference).unwrap();
    cluster.start_node_at(1, "north/a").unwrap();
    cluster.start_node_at(2, "north/b").unwrap();
    cluster.start_node_at(3, "south").unwrap();
    cluster.wait_healthy().await.unwrap();
    cluster.until_leader(2).await;
    cluster
}

/// Longer than a leader waits before it transfers the leadership to a better site.
const SETTLED: Duration = Duration::from_secs(20);

#[tokio::test]
async fn leader_is_at_the_preferred_site_unless_its_nodes_are_drained() {
    let cluster = with_preference().await;
    // Node 1, in the same region, is drained first, so that it does not lead for a moment.
    let output = cluster.ctl(&["drain", "--region", "north"]);
    let (first, second) = (
        output.find("node 1 is drained"),
        output.find("node 2 is drained"),
    );
    assert!(
        first < second && output.contains("node 3 leads"),
        "{output}"
    );
    tokio::time::sleep(SETTLED).await;
    cluster.until_leader(3).await;

    cluster.ctl(&["undrain", "--region", "north"]);
    cluster.until_leader(2).await;
}

#[tokio::test]
async fn leader_is_at_the_next_site_while_the_preferred_one_is_lost() {
    let mut cluster = with_preference().await;
    cluster.kill_9(2);
    cluster.until_leader(3).await;
    cluster.start_node_at(2, "north/b").unwrap();
    cluster.until_leader(2).await;
    cluster.assert_equal_states().await;
}

#[tokio::test]
async fn nodes_have_unique_names_and_operators_use_them() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    for (id, name) in [(1, "db-a"), (2, ""), (3, "db-a")] {
        cluster.options_mut().environment =
            vec![("PLACEMENTD_NODE_NAME".to_owned(), name.to_owned())];
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    // One of the two nodes was first.
    let both = [["db-a", "node-2", "node-3"], ["node-1", "node-2", "db-a"]];
    let names = until_ok("names", async || {
        let status = cluster.admin_of(1).status().await.unwrap();
        let names: Vec<String> = status.members.into_iter().map(|one| one.name).collect();
        let is_expected = both.iter().any(|expected| names == *expected);
        if is_expected { Ok(names) } else { Err(names) }
    })
    .await;
    let second = if names[0] == "db-a" { 3 } else { 1 };
    cluster.stop_node(second).await.unwrap();
    cluster.options_mut().environment =
        vec![("PLACEMENTD_NODE_NAME".to_owned(), "db-c".to_owned())];
    cluster.start_node(second).unwrap();
    cluster.wait_healthy().await.unwrap();
    let hand_over = ["transfer-leader", "--to", "db-c"];
    cluster.ctl_in_time(&hand_over).await;
    cluster.until_leader(second).await;
    let refused = ["db-x is not a member of the cluster"];
    cluster.until_shown(&["drain", "db-x"], 1, &refused).await;
}
