//! Nodes join with tokens, return at new addresses, and replace other nodes.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use placement_client::{Client, Member, MemberRole, NewJoinToken};
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::wait::{PATIENCE, until_ok};
use uuid::Uuid;

/// Members according to the most advanced node; waits for a node that knows a leader.
async fn members(cluster: &Cluster) -> Vec<Member> {
    until_ok("a node that knows a leader", async || {
        let statuses = cluster.statuses().await;
        let led = statuses.iter().filter(|status| status.leader.is_some());
        let newest = led.max_by_key(|status| (status.term, status.applied));
        match newest {
            Some(status) => Ok(status.members.clone()),
            None => Err(statuses),
        }
    })
    .await
}

/// Waits until the members satisfy `is_so`.
pub(crate) async fn wait_for(cluster: &Cluster, what: &str, is_so: impl Fn(&[Member]) -> bool) {
    until_ok(what, async || {
        let found = members(cluster).await;
        if is_so(&found) { Ok(()) } else { Err(found) }
    })
    .await;
}

fn role(members: &[Member], id: u64) -> Option<MemberRole> {
    members.iter().find(|one| one.id == id).map(|one| one.role)
}

#[tokio::test]
async fn token_admits_one_node_once_and_the_node_keeps_its_number() {
    let config = "[audit]\nto = \"stderr\"\n";
    let mut cluster = Cluster::start_with(3, config).await.unwrap();
    let founders = cluster.options().clone();
    let token = cluster.ctl_in_time(&["join-token", "create"]).await;
    assert!(token.starts_with("4-"), "not a token for node 4: {token}");
    let list = ["join-token", "list"];
    cluster.until_shown(&list, 0, &["   4  open "]).await;

    // A guessed token is refused without a hint.
    cluster.add_place();
    cluster.give_token(4, "4-c0ffee").unwrap();
    cluster.start_node(4).unwrap();
    cluster
        .until_logged(&[4], "no node is expected with this token")
        .await;
    cluster.kill_9(4);
    assert_eq!(members(&cluster).await.len(), 3);

    cluster.give_token(4, &token).unwrap();
    cluster.start_node(4).unwrap();
    cluster.wait_ready(4).await.unwrap();
    wait_for(&cluster, "a learner", |members| {
        role(members, 4) == Some(MemberRole::Learner)
    })
    .await;
    cluster.until_shown(&list, 0, &["   4  joined "]).await;

    // Joins have audit records, like operators' actions. Neither records nor logs have the token
    // itself.
    let logs = || {
        (1..=4)
            .map(|id| cluster.log(id, usize::MAX))
            .collect::<String>()
    };
    until_ok(
        "records of the refused and of the accepted token",
        async || {
            let logs = logs();
            let records = logs
                .lines()
                .filter(|line| line.contains("/v1/join-tokens/4/redeem"));
            let outcomes: BTreeSet<_> = records
                .map(|line| {
                    (
                        line.contains("admitted as learner"),
                        line.contains("\"outcome\":\"committed\""),
                    )
                })
                .collect();
            let expected = BTreeSet::from([(false, false), (true, true)]);
            if outcomes == expected {
                Ok(())
            } else {
                Err(outcomes)
            }
        },
    )
    .await;
    let secret = token.trim().split_once('-').unwrap().1;
    assert!(!logs().contains(secret), "the token is in a log");

    // The token admits no other node, nor this one once it has lost its data.
    cluster.kill_9(4);
    let data = cluster.data_dir(4);
    let kept = cluster.directory().join("kept");
    fs::rename(&data, &kept).unwrap();
    cluster.start_node(4).unwrap();
    cluster.until_logged(&[4], "the token was used").await;
    cluster.kill_9(4);
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&kept, &data).unwrap();

    // With its data the node needs neither a number nor the token, and ignores settings about
    // joining.
    fs::remove_file(cluster.token_file(4)).unwrap();
    let options = cluster.options_mut();
    options.numbered = false;
    let join = ["--join", "127.0.0.1:1", "--join-token-file", "/nowhere"];
    options.flags = join.map(str::to_owned).into();
    cluster.start_node(4).unwrap();
    cluster.wait_ready(4).await.unwrap();
    *cluster.options_mut() = founders;
    (cluster.ctl_in_time(&["members", "promote", "node-4"])).await;

    // A revoked token admits no node.
    let create = ["join-token", "create", "--ttl", "1h"];
    let token = cluster.ctl_in_time(&create).await;
    assert!(token.starts_with("5-"), "{token}");
    cluster.ctl_in_time(&["join-token", "revoke", "5"]).await;
    cluster.add_place();
    cluster.give_token(5, &token).unwrap();
    cluster.start_node(5).unwrap();
    cluster
        .until_logged(&[5], "the token is wrong or was revoked")
        .await;
    cluster.kill_9(5);
    assert_eq!(members(&cluster).await.len(), 4);
}

#[tokio::test]
async fn node_with_new_addresses_is_the_same_member() {
    let mut cluster = Cluster::start(3).await.unwrap();
    // Nodes report their addresses once the cluster can record them.
    cluster.ctl_in_time(&["join-token", "create"]).await;
    let leader = cluster.leader().await.unwrap();
    // A wrong address is refused: members keep the address at which they reach the node.
    let mistaken = leader % 3 + 1;
    cluster.stop_node(mistaken).await.unwrap();
    cluster.options_mut().flags = ["--peer-advertise", "127.0.0.1:9"]
        .map(str::to_owned)
        .into();
    cluster.start_node(mistaken).unwrap();
    cluster.wait_ready(mistaken).await.unwrap();
    cluster
        .until_logged(
            &[mistaken],
            "the cluster has this node's current description",
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
    host::create(&cluster.client(), "host").await;
}

/// Writes until `stop` is set; returns the acknowledged writes.
async fn write(client: Client, host: Uuid, stop: Arc<AtomicBool>) -> BTreeSet<Uuid> {
    let mut acknowledged = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        acknowledged.extend(host::claim(&client, host).await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    acknowledged
}

#[tokio::test]
async fn member_without_its_data_names_the_next_step_once() {
    let mut cluster = Cluster::start(3).await.unwrap();
    cluster.kill_9(2);
    fs::remove_dir_all(cluster.data_dir(2)).unwrap();
    cluster.start_node(2).unwrap();
    let lost = "has no data, although it is a member";
    let replace = "`placementctl replace 2`";
    let degraded = ["node 2 is not ready: ", lost, replace];
    (cluster.until_shown(&["status"], 1, &degraded)).await;
    let log = cluster.log(2, 1000);
    assert_eq!(log.matches("data-lost").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn voter_without_its_disk_is_replaced_and_no_write_is_lost() {
    let mut cluster = Cluster::start(3).await.unwrap();
    cluster.options_mut().flags = ["--node-name", "db"].map(str::to_owned).into();
    cluster.stop_node(2).await.unwrap();
    cluster.start_node(2).unwrap();
    cluster.options_mut().flags.clear();
    wait_for(&cluster, "the name of a node", |members| {
        members.iter().any(|one| one.name == "db")
    })
    .await;
    let refused = ["node 2 is reachable"];
    (cluster.until_shown(&["replace", "db"], 1, &refused)).await;

    let stop = Arc::new(AtomicBool::new(false));
    let client = cluster.client_in_order([1, 3]);
    let host = host::with_processors(&client).await;
    let writing = tokio::spawn(write(client, host, stop.clone()));
    cluster.kill_9(2);
    fs::remove_dir_all(cluster.data_dir(2)).unwrap();
    let first = cluster.ctl_in_time(&["replace", "db"]).await;
    assert!(first.starts_with("4-"), "{first}");
    let token = cluster.ctl_in_time(&["replace", "db"]).await;
    // The replacement uses one token; the unused one becomes invalid.
    let tokens = cluster.ctl(&["join-token", "list"]);
    let open: Vec<_> = tokens
        .lines()
        .filter(|line| line.contains("  open "))
        .collect();
    assert!(
        matches!(open[..], [only] if only.trim_start().starts_with("5 ")),
        "{tokens}"
    );
    cluster.give_token(2, &token).unwrap();
    cluster.start_node(2).unwrap();
    // The replacement continues under the next leader.
    wait_for(&cluster, "the new one as a member", |members| {
        members.len() == 4
    })
    .await;
    // Node 5 is the new node. It replaces node 2 and may be the leader already.
    let leader = match cluster.leader().await.unwrap() {
        5 => 2,
        old => old,
    };
    cluster.kill_9(leader);
    cluster.start_node(leader).unwrap();
    wait_for(&cluster, "the replacement of the old node", |members| {
        let named = members.iter().map(|one| (one.id, one.name.as_str()));
        let all_vote = members.iter().all(|one| one.role == MemberRole::Voter);
        named.eq([(1, "node-1"), (3, "node-3"), (5, "db")]) && all_vote
    })
    .await;
    cluster.wait_ready(2).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    let acknowledged = writing.await.unwrap();
    assert!(!acknowledged.is_empty());

    // The new node has all data, and its vote counts.
    cluster.kill_9(1);
    let client = cluster.client_in_order([2]).with_patience(PATIENCE);
    let there = client.provider_allocations(host).await.unwrap().allocations;
    for consumer in &acknowledged {
        assert!(there.contains_key(consumer), "{consumer} is lost");
    }
    host::create(&client, "after").await;
}

#[tokio::test]
async fn learner_of_the_site_gets_the_vote_of_a_lost_voter() {
    let config = "[cluster]\nautopilot_after_s = 5\n";
    let mut cluster = Cluster::prepare(3, config).unwrap();
    for (id, region) in [(1, "north"), (2, "south"), (3, "west")] {
        cluster.start_node_at(id, region).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    for (id, region) in [(4, "south"), (5, "north")] {
        assert_eq!(cluster.add_place().id, id);
        cluster.admit(id).await.unwrap();
        cluster.start_node_at(id, region).unwrap();
        cluster.wait_ready(id).await.unwrap();
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
    // Node 2 returns as a learner and stays one. No other node is in the west, so node 3 keeps its
    // vote when it is lost for as long.
    cluster.start_node_at(2, "south").unwrap();
    cluster.wait_ready(2).await.unwrap();
    cluster.kill_9(3);
    tokio::time::sleep(Duration::from_secs(12)).await;
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
    host::create(&cluster.client_of(1), "host").await;
}

#[tokio::test]
async fn token_is_accepted_only_with_the_certificate_of_its_number() {
    let mut cluster = Cluster::start_secured(3, "").await.unwrap();
    let admin = cluster.admin_of(1);
    let token = async || {
        let made = async || admin.create_join_token(&NewJoinToken::default()).await;
        until_ok("a token", made).await.token.unwrap()
    };
    let (fourth, fifth) = (&token().await, &token().await);
    assert!(fourth.starts_with("4-") && fifth.starts_with("5-"));
    let authority = cluster.options().authority.clone().unwrap();
    authority.node(4, 1).unwrap();
    cluster.add_place();
    cluster.give_token(4, fifth).unwrap();
    cluster.start_node(4).unwrap();
    cluster
        .until_logged(&[4], "is not a certificate for node-5")
        .await;
    cluster.kill_9(4);

    cluster.give_token(4, fourth).unwrap();
    cluster.start_node(4).unwrap();
    cluster.wait_ready(4).await.unwrap();
    wait_for(&cluster, "a learner", |members| {
        role(members, 4) == Some(MemberRole::Learner)
    })
    .await;
}
