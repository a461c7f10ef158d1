//! Nodes come by tokens, come back elsewhere, and take the place of others.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Client, Member, MemberRole, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);
/// Elections do not take long here.
const QUICK: &str = "[raft]\nheartbeat_ms = 100\nelection_min_ms = 400\nelection_max_ms = 600\n";

/// Runs `placementctl`; gives what it printed, or what it said against it.
fn ctl(cluster: &Cluster, arguments: &[&str]) -> Result<String, String> {
    let output = cluster.placementctl(arguments).unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Runs it until it succeeds: a cluster that has just been formed knows no tokens for a moment.
async fn ctl_in_time(cluster: &Cluster, arguments: &[&str]) -> String {
    let begun = Instant::now();
    loop {
        match ctl(cluster, arguments) {
            Ok(said) => return said,
            Err(why) => assert!(begun.elapsed() < PATIENCE, "{arguments:?}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// A file that holds a token.
fn token_file(cluster: &Cluster, name: &str, token: &str) -> PathBuf {
    let path = cluster.directory().join(name);
    let mut options = fs::OpenOptions::new();
    let mut file = (options.write(true).create(true).truncate(true).mode(0o600))
        .open(&path)
        .unwrap();
    std::io::Write::write_all(&mut file, token.as_bytes()).unwrap();
    path
}

/// Has nodes join from now on; nobody tells them a number.
fn joins(cluster: &mut Cluster, by: &[u64], token: &Path) {
    let by: Vec<_> = by.iter().map(|id| cluster.place(*id).peer()).collect();
    let options = cluster.options_mut();
    options.numbered = false;
    options.initial_members.clear();
    options.flags = vec![
        "--join".to_owned(),
        by.join(","),
        "--join-token-file".to_owned(),
        token.display().to_string(),
    ];
}

/// The members as some node knows them.
async fn members(cluster: &Cluster) -> Vec<Member> {
    let statuses = cluster.statuses().await;
    let newest = statuses
        .into_iter()
        .filter(|status| status.leader.is_some());
    let newest = newest.max_by_key(|status| (status.term, status.applied));
    newest.map(|status| status.members).unwrap_or_default()
}

/// Waits until the members are so.
async fn wait_for(cluster: &Cluster, what: &str, is_so: impl Fn(&[Member]) -> bool) {
    let begun = Instant::now();
    loop {
        let found = members(cluster).await;
        if is_so(&found) {
            return;
        }
        if begun.elapsed() > PATIENCE {
            let logs: String = (cluster.ids().into_iter())
                .map(|id| cluster.log(id, 300))
                .flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>())
                .filter(|line| !line.contains("placement::access"))
                .map(|line| line + "\n")
                .collect();
            panic!("{what}: {found:#?}\n{logs}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn role(members: &[Member], id: u64) -> Option<MemberRole> {
    members.iter().find(|one| one.id == id).map(|one| one.role)
}

async fn wait_for_log(cluster: &Cluster, id: u64, words: &str) {
    let begun = Instant::now();
    while !cluster.log(id, 200).contains(words) {
        let log = cluster.log(id, 40);
        assert!(begun.elapsed() < PATIENCE, "{words:?} is not said:\n{log}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn a_node_joins_by_a_token_once_and_finds_its_number_afterwards() {
    let config = format!("[audit]\nto = \"stderr\"\n{QUICK}");
    let mut cluster = Cluster::start_with(3, &config).await.unwrap();
    let token = ctl_in_time(&cluster, &["join-token", "create"]).await;
    assert!(token.starts_with("4-"), "the next number: {token}");
    assert!(
        ctl(&cluster, &["join-token", "list"])
            .unwrap()
            .contains("node 4: open")
    );
    let by_hand = ctl(&cluster, &["members", "add", "4", "--peer", "127.0.0.1:1"]).unwrap_err();
    assert!(
        by_hand.contains("kept for who comes with a join token"),
        "{by_hand}"
    );

    // Who guesses is told nothing.
    let wrong = token_file(&cluster, "wrong", "4-c0ffee");
    let founders = cluster.options().clone();
    joins(&mut cluster, &[1, 2], &wrong);
    cluster.add_place();
    cluster.start_node(4).unwrap();
    wait_for_log(&cluster, 4, "no node is awaited with this token").await;
    cluster.kill_9(4);
    assert_eq!(members(&cluster).await.len(), 3);

    let good = token_file(&cluster, "good", &token);
    joins(&mut cluster, &[1, 2], &good);
    cluster.start_node(4).unwrap();
    cluster.wait_ready(4).await.unwrap();
    wait_for(&cluster, "a learner", |members| {
        role(members, 4) == Some(MemberRole::Learner)
    })
    .await;
    assert!(
        ctl(&cluster, &["join-token", "list"])
            .unwrap()
            .contains("node 4: joined")
    );

    // Like what operators do, it has its records; the token itself is in none of them, nor in a log.
    let logs: String = (1..=4).map(|id| cluster.log(id, usize::MAX)).collect();
    let records = logs
        .lines()
        .filter(|line| line.contains("/v1/join-tokens/4/redeem"));
    let outcomes: BTreeSet<_> = records
        .map(|line| {
            (
                line.contains("let in as learner"),
                line.contains("\"outcome\":\"committed\""),
            )
        })
        .collect();
    assert_eq!(outcomes, BTreeSet::from([(false, false), (true, true)]));
    let secret = token.trim().split_once('-').unwrap().1;
    assert!(!logs.contains(secret), "the token is told");

    // The same token lets nobody else in, nor this node once it has lost its data.
    cluster.kill_9(4);
    let data = cluster.data_dir(4);
    let kept = cluster.directory().join("kept");
    fs::rename(&data, &kept).unwrap();
    cluster.start_node(4).unwrap();
    wait_for_log(&cluster, 4, "the token was used").await;
    cluster.kill_9(4);
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&kept, &data).unwrap();

    // With its data it needs neither a number nor the token, and what says how to join may stay.
    fs::remove_file(&good).unwrap();
    cluster.start_node(4).unwrap();
    cluster.wait_ready(4).await.unwrap();
    ctl_in_time(&cluster, &["members", "promote", "node-4"]).await;

    // What is taken back lets nobody in.
    let token = ctl_in_time(&cluster, &["join-token", "create", "--ttl", "60"]).await;
    assert!(token.starts_with("5-"), "{token}");
    ctl_in_time(&cluster, &["join-token", "revoke", "5"]).await;
    let late = token_file(&cluster, "late", &token);
    joins(&mut cluster, &[3], &late);
    cluster.add_place();
    cluster.start_node(5).unwrap();
    wait_for_log(&cluster, 5, "it is wrong, or was taken back").await;
    cluster.kill_9(5);
    *cluster.options_mut() = founders;
    assert_eq!(members(&cluster).await.len(), 4);
}

#[tokio::test]
async fn a_node_that_comes_back_elsewhere_is_the_same_node() {
    let mut cluster = Cluster::start_with(3, QUICK).await.unwrap();
    // The addresses are told once the cluster knows how.
    ctl_in_time(&cluster, &["join-token", "create"]).await;
    let leader = cluster.leader().await.unwrap();
    // A typing error costs nothing: where it is reached, it stays.
    let mistaken = leader % 3 + 1;
    cluster.stop_node(mistaken).await.unwrap();
    cluster.options_mut().flags = ["--peer-advertise", "127.0.0.1:9"]
        .map(str::to_owned)
        .into();
    cluster.start_node(mistaken).unwrap();
    cluster.wait_ready(mistaken).await.unwrap();
    wait_for_log(
        &cluster,
        mistaken,
        "the cluster knows what this node says of itself",
    )
    .await;
    let places: Vec<_> = cluster
        .ids()
        .iter()
        .map(|id| cluster.place(*id).peer())
        .collect();
    let known = members(&cluster).await.into_iter().map(|one| one.peer);
    assert_eq!(known.collect::<Vec<_>>(), places);
    cluster.stop_node(mistaken).await.unwrap();
    cluster.options_mut().flags.clear();
    cluster.start_node(mistaken).unwrap();
    cluster.wait_ready(mistaken).await.unwrap();

    let leader = cluster.leader().await.unwrap();
    for id in [leader % 3 + 1, leader] {
        cluster.stop_node(id).await.unwrap();
        cluster.move_node(id);
        let moved = cluster.place(id).clone();
        cluster.start_node(id).unwrap();
        cluster.wait_ready(id).await.unwrap();
        wait_for(&cluster, "a node elsewhere", |members| {
            let member = members.iter().find(|one| one.id == id);
            member.is_some_and(|one| one.peer == moved.peer() && one.api == moved.api())
        })
        .await;
        cluster.add_place();
    }
    cluster
        .client()
        .create_provider(&NewProvider::named("host"))
        .await
        .unwrap();
}

/// Writes until it is told to stop; gives what was acknowledged.
async fn write(client: Client, stop: Arc<AtomicBool>) -> BTreeSet<String> {
    let mut acknowledged = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        let name = format!("host-{}", Uuid::new_v4());
        if client
            .create_provider(&NewProvider::named(&name))
            .await
            .is_ok()
        {
            acknowledged.insert(name);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_lost_its_disk_is_replaced_under_its_name_and_no_write_is_lost() {
    let mut cluster = Cluster::start_with(3, QUICK).await.unwrap();
    let refused = ctl(&cluster, &["replace", "node-2"]);
    assert!(refused.unwrap_err().contains("node 2 is heard"));

    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(write(cluster.client_in_order([1, 3]), stop.clone()));
    cluster.kill_9(2);
    fs::remove_dir_all(cluster.data_dir(2)).unwrap();
    let token = ctl_in_time(&cluster, &["replace", "node-2"]).await;
    let file = token_file(&cluster, "token", &token);
    let founders = cluster.options().clone();
    joins(&mut cluster, &[1, 3], &file);
    cluster.start_node(2).unwrap();
    // What was begun goes on under the next leader.
    wait_for(&cluster, "the new one as a member", |members| {
        members.len() == 4
    })
    .await;
    let leader = cluster.leader().await.unwrap();
    cluster.kill_9(leader);
    *cluster.options_mut() = founders;
    cluster.start_node(leader).unwrap();
    wait_for(
        &cluster,
        "the new one in the place of the old one",
        |members| {
            let named = members.iter().map(|one| (one.id, one.name.as_str()));
            let all_vote = members.iter().all(|one| one.role == MemberRole::Voter);
            named.eq([(1, "node-1"), (3, "node-3"), (4, "node-2")]) && all_vote
        },
    )
    .await;
    cluster.wait_ready(2).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writing.await.unwrap();
    assert!(!acknowledged.is_empty());

    // The new one has all of it, and its vote counts.
    cluster.kill_9(1);
    let client = cluster.client_in_order([2]);
    let all = client.request(ApiRequest::get("/resource_providers"));
    let all = String::from_utf8(all.await.unwrap().body.to_vec()).unwrap();
    for name in &acknowledged {
        assert!(all.contains(name), "{name} is lost");
    }
    let begun = Instant::now();
    while client
        .create_provider(&NewProvider::named("after"))
        .await
        .is_err()
    {
        assert!(begun.elapsed() < PATIENCE, "no majority");
    }
}

#[tokio::test]
async fn a_learner_of_the_site_gets_the_vote_of_a_voter_that_is_lost_for_long() {
    let config = format!("[cluster]\nautopilot_after_s = 3\n{QUICK}");
    let mut cluster = Cluster::prepare(3, &config).unwrap();
    for (id, region) in [(1, "north"), (2, "south"), (3, "west")] {
        cluster.start_node_at(id, region).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    for (id, region) in [(4, "south"), (5, "north")] {
        assert_eq!(cluster.add_place().id, id);
        cluster.start_node_at(id, region).unwrap();
        cluster.admit(id).await.unwrap();
    }
    wait_for(&cluster, "sites", |members| {
        members.iter().all(|one| !one.region.is_empty())
    })
    .await;
    cluster.kill_9(2);
    wait_for(&cluster, "the vote of node 2 goes to node 4", |members| {
        role(members, 2) == Some(MemberRole::Learner) && role(members, 4) == Some(MemberRole::Voter)
    })
    .await;
    // It comes back as what it is now, and stays so.
    cluster.start_node_at(2, "south").unwrap();
    cluster.wait_ready(2).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let found = members(&cluster).await;
    let roles: Vec<_> = found.iter().map(|one| (one.id, one.role)).collect();
    use MemberRole::{Learner, Voter};
    assert_eq!(
        roles,
        [
            (1, Voter),
            (2, Learner),
            (3, Voter),
            (4, Voter),
            (5, Learner)
        ]
    );
    // Nobody stands in the west but the one that is lost.
    cluster.kill_9(3);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let found = members(&cluster).await;
    assert_eq!(role(&found, 3), Some(Voter), "{found:#?}");
    cluster
        .client_of(1)
        .create_provider(&NewProvider::named("host"))
        .await
        .unwrap();
}

#[tokio::test]
async fn among_nodes_with_certificates_a_token_goes_with_the_one_of_its_number() {
    let mut cluster = Cluster::start_secured(3, QUICK).await.unwrap();
    let begun = Instant::now();
    let mut made = Vec::new();
    while made.len() < 2 {
        let token = cluster
            .admin_of(1)
            .create_join_token(3600, None, false)
            .await;
        match token {
            Ok(token) => made.push(token.token.unwrap()),
            Err(why) => assert!(begun.elapsed() < PATIENCE, "{why}"),
        }
    }
    let (fourth, fifth) = (&made[0], &made[1]);
    assert!(fourth.starts_with("4-") && fifth.starts_with("5-"));
    let authority = cluster.options().authority.clone().unwrap();
    authority.node(4, 1).unwrap();
    cluster.add_place();
    let file = token_file(&cluster, "fifth", fifth);
    joins(&mut cluster, &[1], &file);
    cluster.start_node(4).unwrap();
    wait_for_log(&cluster, 4, "is no certificate for node-5").await;
    cluster.kill_9(4);

    let file = token_file(&cluster, "fourth", fourth);
    joins(&mut cluster, &[1], &file);
    cluster.start_node(4).unwrap();
    cluster.wait_ready(4).await.unwrap();
    wait_for(&cluster, "a learner", |members| {
        role(members, 4) == Some(MemberRole::Learner)
    })
    .await;
}
