//! Nodes die in the middle of what takes a while: a snapshot that comes in, a change of the membership. And a
//! file of rows is damaged.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use placement_client::{Client, MemberRole, NewProvider};
use placement_tests::binaries;
use placement_tests::cluster::{Cluster, HEALTHY_LIMIT};
use uuid::Uuid;

/// A log that soon lacks what a node has missed, and transfers that take seconds.
const SLOWLY: &str = "[raft]\nsnapshot_after = 50\nlog_keep = 10\nsnapshot_bytes_per_s = 20000\n";

async fn create(client: &Client, name: &str) {
    let client = client.clone().with_patience(Duration::from_secs(60));
    client
        .create_provider(&NewProvider::named(name).uuid(Uuid::new_v4()))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_node_that_dies_while_a_snapshot_comes_in_has_it_in_the_end() {
    let mut cluster = Cluster::start_with(3, SLOWLY).await.unwrap();
    let away = cluster.followers().await.unwrap()[0];
    let missed = cluster.admin_of(away).status().await.unwrap().last_log;
    cluster.kill_9(away);
    let client = cluster.client();
    for number in 0..150 {
        create(&client, &format!("host{number}")).await;
    }
    let leader = cluster.leader().await.unwrap();
    let started = Instant::now();
    while cluster.admin_of(leader).status().await.unwrap().purged <= missed {
        assert!(started.elapsed() < HEALTHY_LIMIT, "the log is not cut");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for life in [300, 900, 1_800] {
        cluster.start_node(away).unwrap();
        tokio::time::sleep(Duration::from_millis(life)).await;
        cluster.kill_9(away);
    }
    cluster.start_node(away).unwrap();
    cluster.wait_healthy().await.unwrap();
    cluster.assert_equal_states().await;
    assert!(cluster.has_provider("host149").await);
    let status = cluster.admin_of(away).status().await.unwrap();
    assert!(
        status.snapshot > missed,
        "it was sent no snapshot: {status:?}"
    );
}

/// The voters, of which all nodes that run must be of one mind.
async fn voters(cluster: &Cluster) -> BTreeSet<u64> {
    let started = Instant::now();
    loop {
        let statuses = cluster.statuses().await;
        let voters: BTreeSet<BTreeSet<u64>> = (statuses.iter())
            .map(|status| {
                let voters = status.members.iter();
                let voters = voters.filter(|member| member.role == MemberRole::Voter);
                voters.map(|member| member.id).collect()
            })
            .collect();
        if statuses.len() == cluster.ids().len() && voters.len() == 1 {
            return voters.into_iter().next().unwrap();
        }
        assert!(started.elapsed() < HEALTHY_LIMIT, "{statuses:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_dies_while_the_membership_changes_leaves_one_membership() {
    let mut cluster = Cluster::start(3).await.unwrap();
    create(&cluster.client(), "before").await;
    let place = cluster.add_place();
    cluster.start_node(4).unwrap();
    cluster.admin_of(4).status().await.unwrap();
    let add = ["members", "add", "4", "--peer", &place.peer()];
    assert!(cluster.placementctl(&add).unwrap().status.success());
    let doors: Vec<_> = cluster
        .ids()
        .iter()
        .map(|id| cluster.place(*id).admin())
        .collect();
    for life in [5, 40, 120] {
        let leader = cluster.leader().await.unwrap();
        let mut promote = Command::new(binaries::placementctl().unwrap());
        promote
            .env("PLACEMENTCTL_ENDPOINT", doors.join(","))
            .args(["members", "promote", "4"]);
        let asked = tokio::task::spawn_blocking(move || promote.output().unwrap());
        tokio::time::sleep(Duration::from_millis(life)).await;
        cluster.kill_9(leader);
        // Whatever the operator was told, the next one leads on.
        let told = asked.await.unwrap();
        create(&cluster.client(), &format!("after{life}")).await;
        cluster.start_node(leader).unwrap();
        cluster.wait_healthy().await.unwrap();
        let voters = voters(&cluster).await;
        assert!(voters.is_superset(&BTreeSet::from([1, 2, 3])), "{voters:?}");
        if told.status.success() {
            assert!(voters.contains(&4), "it was told that 4 votes");
        }
    }
    if !voters(&cluster).await.contains(&4) {
        let promote = cluster.placementctl(&["members", "promote", "4"]).unwrap();
        assert!(promote.status.success(), "{promote:?}");
    }
    assert_eq!(voters(&cluster).await, BTreeSet::from([1, 2, 3, 4]));
    cluster.assert_equal_states().await;
    for name in ["before", "after5", "after40", "after120"] {
        assert!(cluster.has_provider(name).await, "{name} is lost");
    }
}

#[tokio::test]
async fn a_node_with_a_damaged_file_of_rows_does_not_start_and_says_why() {
    let mut cluster = Cluster::start(3).await.unwrap();
    create(&cluster.client(), "before").await;
    let unwell = cluster.followers().await.unwrap()[0];
    let door = cluster.place(unwell).admin();
    let compact = ["--endpoint", &door, "compact"];
    assert!(cluster.placementctl(&compact).unwrap().status.success());
    cluster.kill_9(unwell);
    let mut damaged = 0;
    for file in fs::read_dir(cluster.data_dir(unwell).join("state")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "sst") {
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 3;
            bytes[middle] ^= 0x55;
            fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 0, "there is no file of rows");
    cluster.start_node(unwell).unwrap();
    let ended = cluster
        .process(unwell)
        .wait(Duration::from_secs(30))
        .unwrap();
    assert!(!ended.success(), "{ended}");
    let said = cluster.log(unwell, 5);
    assert!(said.contains("is damaged"), "{said}");
    assert!(said.contains("join anew"), "{said}");
    create(&cluster.client(), "meanwhile").await;

    let place = cluster.add_place();
    cluster.start_node(place.id).unwrap();
    cluster.admin_of(place.id).status().await.unwrap();
    let (old, new) = (unwell.to_string(), place.id.to_string());
    let replace = [
        "members",
        "replace",
        &old,
        "--by",
        &new,
        "--peer",
        &place.peer(),
    ];
    let replaced = cluster.placementctl(&replace).unwrap();
    assert!(replaced.status.success(), "{replaced:?}");
    let check = cluster.placementctl(&["check"]).unwrap();
    assert!(check.status.success(), "{check:?}");
}
