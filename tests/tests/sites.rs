//! Each node knows where all of them stand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;

const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until each node knows all nodes to stand there.
async fn stand(cluster: &Cluster, expected: &[(u64, &str, &str)]) {
    let begun = Instant::now();
    loop {
        let statuses = cluster.statuses().await;
        let known = statuses.iter().filter(|status| {
            let members = status.members.iter();
            let sites = members.map(|one| (one.id, &*one.region, &*one.zone));
            sites.eq(expected.iter().copied())
        });
        if known.count() == expected.len() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{statuses:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
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

/// Waits until this node leads.
async fn leads(cluster: &Cluster, id: u64) {
    let begun = Instant::now();
    while cluster.leader().await.ok() != Some(id) {
        assert!(
            begun.elapsed() < PATIENCE,
            "node {id} does not come to lead"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn the_leader_is_where_it_is_preferred_and_nobody_there_is_drained() {
    let config = "[cluster]\nleader_preference = [\"north/b\", \"south\"]\n\
        [raft]\nheartbeat_ms = 100\nelection_min_ms = 400\nelection_max_ms = 600\n";
    let mut cluster = Cluster::prepare(3, config).unwrap();
    cluster.start_node_at(1, "north/a").unwrap();
    cluster.start_node_at(2, "north/b").unwrap();
    cluster.start_node_at(3, "south").unwrap();
    cluster.wait_healthy().await.unwrap();
    leads(&cluster, 2).await;

    // The others of the region are drained first, so none of them leads for a moment.
    let drained = cluster
        .placementctl(&["drain", "--region", "north"])
        .unwrap();
    assert!(drained.status.success(), "{drained:?}");
    let said = String::from_utf8_lossy(&drained.stdout).into_owned();
    let (first, second) = (
        said.find("node 1 is drained"),
        said.find("node 2 is drained"),
    );
    assert!(first < second && said.contains("node 3 leads"), "{said}");
    tokio::time::sleep(Duration::from_secs(10)).await;
    leads(&cluster, 3).await;

    let undrained = cluster
        .placementctl(&["undrain", "--region", "north"])
        .unwrap();
    assert!(undrained.status.success(), "{undrained:?}");
    leads(&cluster, 2).await;
    cluster.kill_9(2);
    let begun = Instant::now();
    while cluster.leader().await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody leads");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    leads(&cluster, 3).await;
    cluster.start_node_at(2, "north/b").unwrap();
    leads(&cluster, 2).await;
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
    let begun = Instant::now();
    let named = async |cluster: &Cluster| {
        let mut names: Vec<String> = Vec::new();
        for status in cluster.statuses().await.into_iter().take(1) {
            names = status.members.into_iter().map(|one| one.name).collect();
        }
        names
    };
    // One of the two was first.
    let both = [["db-a", "node-2", "node-3"], ["node-1", "node-2", "db-a"]];
    loop {
        let names = named(&cluster).await;
        if both.iter().any(|expected| names == *expected) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{names:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
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
    loop {
        let handed = cluster
            .placementctl(&["transfer-leader", "--to", "db-c"])
            .unwrap();
        if handed.status.success() {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{handed:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    leads(&cluster, second).await;
    let unknown = cluster.placementctl(&["drain", "db-x"]).unwrap();
    let words = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        words.contains("db-x is no member of the cluster"),
        "{words}"
    );
}
