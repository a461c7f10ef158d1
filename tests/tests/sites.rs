//! Each node knows where all of them stand.

use std::time::Duration;

use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;
use placement_tests::wait::{until, until_ok};

/// Waits until each node knows all nodes to stand there.
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
async fn where_nodes_stand_is_known_to_all_and_changes_when_they_move() {
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

    let status = cluster.placementctl(&["status"]).unwrap();
    let table = String::from_utf8_lossy(&status.stdout).into_owned();
    let sites = table
        .lines()
        .skip(3)
        .map(|line| line.split_whitespace().nth(2));
    let sites: Vec<_> = sites.take(3).collect();
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

#[tokio::test]
async fn the_leader_is_where_it_is_preferred_and_nobody_there_is_drained() {
    let config = "[cluster]\nleader_preference = [\"north/b\", \"south\"]\n";
    let mut cluster = Cluster::prepare(3, config).unwrap();
    cluster.start_node_at(1, "north/a").unwrap();
    cluster.start_node_at(2, "north/b").unwrap();
    cluster.start_node_at(3, "south").unwrap();
    cluster.wait_healthy().await.unwrap();
    cluster.until_leader(2).await;

    // The others of the region are drained first, so none of them leads for a moment.
    let said = cluster.ctl(&["drain", "--region", "north"]);
    let (first, second) = (
        said.find("node 1 is drained"),
        said.find("node 2 is drained"),
    );
    assert!(first < second && said.contains("node 3 leads"), "{said}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    cluster.until_leader(3).await;

    cluster.ctl(&["undrain", "--region", "north"]);
    cluster.until_leader(2).await;
    cluster.kill_9(2);
    cluster.until_leader(3).await;
    cluster.start_node_at(2, "north/b").unwrap();
    cluster.until_leader(2).await;
    cluster.assert_equal_states().await;
}

#[tokio::test]
async fn nodes_have_names_of_their_own_and_are_spoken_of_by_them() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    for (id, name) in [(1, "db-a"), (2, ""), (3, "db-a")] {
        cluster.options_mut().environment =
            vec![("PLACEMENTD_NODE_NAME".to_owned(), name.to_owned())];
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let named = async |cluster: &Cluster| {
        let mut names: Vec<String> = Vec::new();
        for status in cluster.statuses().await.into_iter().take(1) {
            names = status.members.into_iter().map(|one| one.name).collect();
        }
        names
    };
    // One of the two was first.
    let both = [["db-a", "node-2", "node-3"], ["node-1", "node-2", "db-a"]];
    until("names", async || {
        let names = named(&cluster).await;
        both.iter().any(|expected| names == *expected)
    })
    .await;
    let second = if named(&cluster).await[0] == "db-a" {
        3
    } else {
        1
    };
    cluster.stop_node(second).await.unwrap();
    cluster.options_mut().environment =
        vec![("PLACEMENTD_NODE_NAME".to_owned(), "db-c".to_owned())];
    cluster.start_node(second).unwrap();
    cluster.wait_healthy().await.unwrap();
    until("a leader by its name", async || {
        let handed = cluster.placementctl(&["transfer-leader", "--to", "db-c"]);
        handed.unwrap().status.success()
    })
    .await;
    cluster.until_leader(second).await;
    let unknown = cluster.placementctl(&["drain", "db-x"]).unwrap();
    let words = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        words.contains("db-x is no member of the cluster"),
        "{words}"
    );
}
