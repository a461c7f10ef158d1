use std::path::Path;

use placement_peer::raft::messages::{CommitPoint, SnapshotReply};
use placement_peer::tls::Gate;
use placement_peer::transport::reception;
use placement_raft_store::Member;
use placement_raft_store::wire::{Blob, WireSnapshotMeta, WireVote};
use tokio::time::Instant;
use uuid::Uuid;

use super::*;
use crate::fixtures::{SingleMember, without_cluster};
use crate::replica::Replica;

struct NoOperators;

impl AdminApi for NoOperators {
    fn carry_out(&self, _: u64, _: Order) -> BoxFuture<'_, OrderReply> {
        unreachable!("no order is given in these tests")
    }
}

async fn service() -> (SingleMember, PeerService) {
    let alone = SingleMember::start().await;
    let service = PeerService::new(alone.bootstrap.clone(), Arc::new(NoOperators));
    (alone, service)
}

fn hello(alone: &SingleMember, from: u64) -> Hello {
    Hello {
        oldest: 1,
        newest: 1,
        cluster: alone.bootstrap.peers.cluster(),
        from,
        to: Some(1),
        introduction: false,
        level: Level::NEWEST.0,
        region: String::new(),
    }
}

#[tokio::test]
async fn calls_of_a_removed_node_and_commands_of_an_unknown_one_are_rejected() {
    let (alone, service) = service().await;
    let running = &alone.running;
    let set_members = async |ids: &[u64]| {
        let membership = Membership(running);
        let mut members = running.replica.members();
        members.retain(|id, _| ids.contains(id));
        for id in ids {
            members.entry(*id).or_default();
        }
        let (now, voters) = membership.now();
        membership
            .set_membership(now, voters, members)
            .await
            .unwrap();
        let is_set = |replica: &Replica| replica.members().keys().eq(ids);
        alone.becomes("one of these members", is_set).await;
    };
    set_members(&[1, 2, 3]).await;
    for node in [1, 2, 3] {
        service.greet(&hello(&alone, node), 1).unwrap();
        service.admits(node, Method::Admin).unwrap();
    }
    // This node may lag behind: a node that it does not know may be a new member, and may even
    // lead.
    for method in [
        Method::Append,
        Method::Vote,
        Method::Snapshot,
        Method::ReadIndex,
    ] {
        service.admits(4, method).unwrap();
    }
    for method in [Method::Admin, Method::Operate] {
        let refused = service.admits(4, method);
        assert!(matches!(refused, Err(Denied::NotAMember { node: 4, .. })));
    }

    set_members(&[1, 2]).await;
    Membership(running).retire(3).await.unwrap();
    for method in [
        Method::Append,
        Method::Vote,
        Method::PreVote,
        Method::TransferLeader,
        Method::Snapshot,
        Method::Write,
        Method::ReadIndex,
        Method::Admin,
        Method::Operate,
    ] {
        let refused = service.admits(3, method).unwrap_err();
        assert!(
            matches!(refused, Denied::Removed { node: 3, .. }),
            "{method:?}"
        );
    }
    let refused = service.greet(&hello(&alone, 3), 1).unwrap_err();
    assert!(
        refused.to_string().starts_with("node 3 was removed"),
        "{refused}"
    );
    service.greet(&hello(&alone, 2), 1).unwrap();
    alone.stop().await;
}

/// It could not read the log of the others.
#[tokio::test]
async fn node_whose_version_is_below_the_level_of_the_cluster_is_rejected() {
    let (alone, service) = service().await;
    let mut older = hello(&alone, 2);
    older.level = Level::FIRST.0 - 1;
    let refused = service.greet(&older, 1).unwrap_err().to_string();
    let words = "node 2 supports feature levels up to 0, but the cluster is at 1";
    assert!(refused.contains(words), "{refused}");
    let levels = &alone.bootstrap.peers;
    assert_eq!(levels.level_of(2), None);
    service.greet(&hello(&alone, 2), 1).unwrap();
    assert_eq!(levels.level_of(2), Some(Level::NEWEST));
    alone.stop().await;
}

/// After openraft has stopped, it logs an error for each request. Members ask each voter for its
/// vote with each read, so these lines would fill the log of a quarantined node.
#[tokio::test]
async fn quarantined_node_answers_the_others_without_an_error_in_its_log_each_time() {
    let (alone, service) = service().await;
    let replica = &alone.running.replica;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    let written = || std::fs::read_to_string(&file).unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::ERROR)
        .with_ansi(false)
        .with_writer(Arc::new(std::fs::File::create(&file).unwrap()))
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    assert!(replica.leads());
    replica.health.report("the disk is full");
    alone
        .becomes("stopped", |replica| {
            replica.raft_status().running_state.is_err()
        })
        .await;
    assert!(!replica.leads() && replica.leader().is_none());

    for method in [Method::Append, Method::Vote, Method::PreVote] {
        let refused = service.admits(2, method).unwrap_err();
        assert!(matches!(refused, Denied::Stopped(_)), "{refused}");
    }
    let caller = Caller {
        node: 2,
        records: RecordVersion::NEWEST,
    };
    let ask = async |method| {
        let body = wire::encode(RecordVersion::NEWEST, &());
        service.call(caller, method, body.into()).await
    };
    ask(Method::HeldVote).await.unwrap_err();
    let point: Option<CommitPoint> = wire::decode(&ask(Method::ReadPoint).await.unwrap()).unwrap();
    assert!(point.is_none());
    let log = written();
    assert_eq!(log.matches("event=\"quarantined\"").count(), 1, "{log}");
    assert!(!log.contains("RaftMsg"), "{log}");

    // openraft itself would log an error.
    let asked = replica.raft.with_raft_state(|_| ()).await;
    assert!(asked.is_err() && written().contains("RaftMsg"));
    alone.stop().await;
}

/// A node that belongs to no cluster and listens at the returned address.
async fn listening(node: u64, dir: &Path) -> (Arc<Bootstrap>, String) {
    let bootstrap = without_cluster(node, dir);
    let listener = bootstrap.env.net.bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let service = Arc::new(PeerService::new(bootstrap.clone(), Arc::new(NoOperators)));
    let (damage, tasks) = (bootstrap.peers.damage.clone(), bootstrap.tasks.clone());
    let serving = reception::serve(listener, Gate::Plain, service, damage, tasks.clone());
    tasks.spawn(serving);
    (bootstrap, address)
}

#[tokio::test]
async fn new_node_whose_version_is_below_the_level_of_the_cluster_is_not_added() {
    let (alone, _service) = service().await;
    let dir = tempfile::tempdir().unwrap();
    let (older, address) = listening(2, dir.path()).await;
    older.peers.agree_to(Level(Level::FIRST.0 - 1));
    let member = Member {
        peer: address,
        ..Member::default()
    };
    let refused = Membership(&alone.running).add(2, member).await;
    let reason = refused.unwrap_err().to_string();
    let words = "node 2 supports feature levels up to 0, but the cluster is at 1";
    assert!(reason.contains(words), "{reason}");
    assert!(!alone.running.replica.is_member(2));
    assert!(older.slot.get().is_none(), "it was not invited");
    older.tasks.stop().await;
    alone.stop().await;
}

#[tokio::test]
async fn node_may_describe_only_itself() {
    let (alone, service) = service().await;
    let describe = |id| MembershipChange::Describe {
        id,
        member: Box::default(),
        start: Some(1),
    };
    let admin = async |from, change: MembershipChange| {
        let caller = Caller {
            node: from,
            records: RecordVersion::NEWEST,
        };
        let body = wire::encode(RecordVersion::NEWEST, &change);
        service.call(caller, Method::Admin, body.into()).await
    };
    // A member that describes another one could redirect that node's address to itself.
    for (from, of) in [(2, 1), (1, 2)] {
        let refused = admin(from, describe(of)).await.unwrap_err();
        assert!(matches!(refused, Denied::Misused(_)), "{refused}");
    }
    admin(1, describe(1)).await.unwrap();

    // A member that could ask for votes or lead in another node's name could collect votes for that
    // node, or depose a leader.
    let vote = WireVote {
        term: 99,
        node: 1,
        committed: false,
    };
    let call = VoteCall {
        vote,
        last: None,
        transfer: false,
    };
    for method in [Method::PreVote, Method::Vote] {
        let refused = service.vote(2, method, call.clone()).await.unwrap_err();
        assert!(matches!(refused, Denied::Misused(_)), "{refused}");
    }
    let call = TransferCall {
        from: vote,
        to: 1,
        last: None,
    };
    let refused = service.transfer(2, call).await.unwrap_err();
    assert!(matches!(refused, Denied::Misused(_)), "{refused}");

    let call = JoinCall {
        node: 8,
        token: String::new(),
        nonce: Uuid::from_u128(9),
        member: Member::default(),
    };
    let refused = service.join(9, call).await.unwrap_err();
    assert!(matches!(refused, Denied::Misused(_)), "{refused}");
    alone.stop().await;
}

#[tokio::test]
async fn guesses_do_not_delay_a_node_with_a_token() {
    let (alone, service) = service().await;
    let fresh = [Uuid::from_u128(7), Uuid::from_u128(8)];
    let (token, _) = (alone.bootstrap.slot)
        .issue_token(fresh, 600, None)
        .await
        .unwrap();
    let (node, secret) = token.split_once('-').unwrap();
    let node: u64 = node.parse().unwrap();
    let come = async |token: &str| {
        let call = JoinCall {
            node,
            token: token.to_owned(),
            nonce: Uuid::from_u128(9),
            member: Member {
                peer: "127.0.0.1:2".to_owned(),
                ..Member::default()
            },
        };
        let joined = service.join(node, call).await.unwrap();
        joined.unwrap_err().to_string()
    };
    let begun = Instant::now();
    // A text without the form of a token is rejected without a lookup.
    assert!(come("no token").await.contains("no node is expected"));
    assert!(begun.elapsed() < GUESS / 2);
    let guesses = futures::future::join_all((0..20).map(|_| come("guess")));
    let known = async {
        sleep(GUESS / 10).await;
        come(secret).await
    };
    let (guesses, known) = futures::join!(guesses, known);
    assert!(known.starts_with("the new node at"), "{known}");
    let looked_up = guesses
        .iter()
        .filter(|words| words.contains("no node is expected"));
    assert_eq!(looked_up.count(), 1, "{guesses:?}");
    assert!(begun.elapsed() >= GUESS, "guessing is fast");
    alone.stop().await;
}

/// Sends a part of a snapshot of 100 bytes, as node `from`, in the name of the leader `leads`.
async fn send_part(
    service: &PeerService,
    [from, leads]: [u64; 2],
    offset: u64,
    data: &'static [u8],
) -> Result<SnapshotReply, Denied> {
    let call = SnapshotCall {
        vote: WireVote {
            term: 9,
            node: leads,
            committed: true,
        },
        meta: WireSnapshotMeta::default(),
        bytes: 100,
        offset,
        data: Blob(data.into()),
    };
    let caller = Caller {
        node: from,
        records: RecordVersion::NEWEST,
    };
    let body = wire::encode(RecordVersion::NEWEST, &call);
    let answer = service.call(caller, Method::Snapshot, body.into()).await?;
    Ok(wire::decode(&answer).unwrap())
}

#[tokio::test]
async fn snapshot_in_the_name_of_another_node_is_rejected() {
    let (alone, service) = service().await;
    let refused = send_part(&service, [2, 3], 0, b"").await.unwrap_err();
    assert!(matches!(refused, Denied::Misused(_)), "{refused}");
    let begun = send_part(&service, [3, 3], 0, b"").await.unwrap();
    assert!(matches!(begun, SnapshotReply::From { offset: 0 }));
    alone.stop().await;
}

#[tokio::test]
async fn part_of_a_snapshot_counts_once_and_an_incomplete_one_is_not_installed() {
    let (alone, service) = service().await;
    let send =
        async |offset: u64, data: &'static [u8]| send_part(&service, [2, 2], offset, data).await;
    let arrived = |reply: Result<SnapshotReply, Denied>| match reply {
        Ok(SnapshotReply::From { offset }) => offset,
        other => panic!("{other:?}"),
    };
    assert_eq!(arrived(send(0, b"").await), 0);
    assert_eq!(arrived(send(0, b"12345").await), 5);
    // The same part again, late.
    assert_eq!(arrived(send(0, b"12345").await), 5);
    // The sender claims that everything has arrived.
    let refused = send(100, b"").await.unwrap_err();
    assert!(matches!(refused, Denied::Snapshot(_)), "{refused}");
    assert_eq!(arrived(send(0, b"").await), 5, "what has arrived stays");
    assert_eq!(arrived(send(5, b"678").await), 8);
    alone.stop().await;
}
