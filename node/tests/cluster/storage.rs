use placement_base::backend::{Consistency, Unavailable};

use placement_model::Level;
use placement_raft_store::wire::{self, RecordVersion, WireLogId, WireVote};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use xxhash_rust::xxh3::xxh3_64;

use crate::fixture::{Machine, cluster, create, eventually, has, settled};

#[tokio::test(flavor = "multi_thread")]
async fn leader_whose_disk_is_gone_is_quarantined_and_nothing_is_lost() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    machines[leader].create(1).await;
    // Open files stay; the next new one cannot be created.
    std::fs::remove_dir_all(machines[leader].config.data_dir.join("state")).unwrap();
    machines[leader].admin("POST", "/v1/compact", "").await;

    let failure = eventually("a failed disk", || {
        machines[leader].node().status().storage_failure
    })
    .await;
    let error = machines[leader].submit(create(2)).await.unwrap_err();
    assert!(
        matches!(error, Unavailable::NothingCommitted { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(&failure), "{error}");
    let (status, body) = machines[leader].api("GET", "/readyz", "").await;
    assert_eq!(status, 503);
    assert!(body.contains(&failure), "{body}");
    let local = machines[leader].view(Consistency::Local).await.unwrap();
    assert!(has(&local.state, 1));

    let sick = machines.remove(leader);
    settled(&machines).await;
    machines[0].create(2).await;
    for machine in &machines {
        assert!(machine.sees(1).await && machine.sees(2).await);
    }
    drop(sick);
}

#[tokio::test(flavor = "multi_thread")]
async fn node_that_cannot_read_newer_entries_is_quarantined() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    machines[leader].create(1).await;
    let report_unreadable_call = (leader + 1) % machines.len();
    let answer = send_newer_entry(&machines[leader], &machines[report_unreadable_call]).await;
    assert!(answer.contains("a record of version 99"), "{answer}");

    let failure = eventually("a node that says why it leaves", || {
        machines[report_unreadable_call]
            .node()
            .status()
            .storage_failure
    })
    .await;
    for words in ["a record of version 99", "start a version of placementd"] {
        assert!(failure.contains(words), "{failure}");
    }
    let (status, body) = machines[report_unreadable_call]
        .api("GET", "/readyz", "")
        .await;
    assert_eq!(status, 503);
    assert!(body.contains(&failure), "{body}");

    let left = machines.remove(report_unreadable_call);
    settled(&machines).await;
    machines[0].create(2).await;
    for machine in &machines {
        assert!(machine.sees(1).await && machine.sees(2).await);
    }
    drop(left);
}

/// A member that leads in the name of another could make nodes follow a leader that was not
/// elected.
#[tokio::test(flavor = "multi_thread")]
async fn append_in_the_name_of_another_node_is_rejected() {
    let machines = cluster(3).await;
    let leader = settled(&machines).await;
    let [from, to] = [1, 2].map(|next| &machines[(leader + next) % 3]);
    let vote = WireVote {
        term: to.node().status().term + 1,
        node: machines[leader].id(),
        committed: true,
    };
    let answer = send_append(from, to, vote, &[]).await;
    let words = "send entries only for itself";
    assert!(answer.contains(words), "{answer}");
}

/// Sends a log entry whose record is newer than any version, as the node `from`; returns the
/// answer.
async fn send_newer_entry(from: &Machine, to: &Machine) -> String {
    let vote = WireVote {
        term: from.node().status().term,
        node: from.id(),
        committed: true,
    };
    send_append(from, to, vote, &[&[99]]).await
}

/// Sends an append with these encoded entries, as the node `from`; returns the answer.
async fn send_append(from: &Machine, to: &Machine, vote: WireVote, entries: &[&[u8]]) -> String {
    let mut stream = connected(from, to).await;

    // An append: vote, previous entry, commit index, number of entries, stream.
    let count = u32::try_from(entries.len()).unwrap();
    let head = (
        vote,
        None::<WireLogId>,
        None::<WireLogId>,
        count,
        None::<u64>,
    );
    let head = wire::encode(RecordVersion::FIRST, &head);
    let mut body = vec![1];
    for part in [head.as_slice()].iter().chain(entries) {
        body.extend(u32::try_from(part.len()).unwrap().to_be_bytes());
        body.extend(*part);
    }
    write_frame(&mut stream, 4, 1, &body).await;
    String::from_utf8_lossy(&read_frame(&mut stream).await).into_owned()
}

/// A connection to another node, as the node `from` opens it.
pub(crate) async fn connected(from: &Machine, to: &Machine) -> TcpStream {
    #[derive(Serialize)]
    struct Hello {
        pub oldest: u16,
        pub newest: u16,
        pub cluster: Option<uuid::Uuid>,
        pub from: u64,
        pub to: Option<u64>,
        pub introduction: bool,
        pub level: Level,
        pub region: String,
    }
    let mut stream = TcpStream::connect(&to.config.peer.listen).await.unwrap();
    let hello = Hello {
        oldest: 1,
        newest: 1,
        cluster: from
            .node()
            .status()
            .cluster_id
            .map(|id| id.parse().unwrap()),
        from: from.id(),
        to: Some(to.id()),
        introduction: false,
        level: Level::NEWEST,
        region: String::new(),
    };
    let hello = wire::encode_named(&hello);
    write_frame(&mut stream, 1, 0, &hello).await;
    assert_eq!(read_frame(&mut stream).await[0], 2, "a welcome");
    stream
}

/// Bytes of the two checksums of a frame, before its body.
const CHECKSUMS: usize = 8 + 4;

pub(crate) async fn write_frame(stream: &mut TcpStream, kind: u8, call: u64, body: &[u8]) {
    let length = u32::try_from(9 + CHECKSUMS + body.len()).unwrap();
    let mut frame = length.to_be_bytes().to_vec();
    frame.push(kind);
    frame.extend(call.to_be_bytes());
    frame.extend(xxh3_64(body).to_be_bytes());
    frame.extend((xxh3_64(&frame) as u32).to_be_bytes());
    frame.extend(body);
    stream.write_all(&frame).await.unwrap();
}

/// The kind, the call, the body.
pub(crate) async fn read_frame(stream: &mut TcpStream) -> Vec<u8> {
    let length = stream.read_u32().await.unwrap();
    let mut frame = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut frame).await.unwrap();
    frame.drain(9..9 + CHECKSUMS);
    frame
}
