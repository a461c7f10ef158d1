use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use placement_machine::SimulatedDisk;
use placement_raft_store::wire::{self, Blob, RecordVersion, WireSnapshotMeta, WireVote};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::fixture::{Machine, converged, disk_of, eventually, machines, settled};
use crate::storage::{connected, read_frame, write_frame};

/// A cluster whose nodes take a snapshot after this many entries.
async fn cluster(nodes: u64, snapshot_after: u64) -> Vec<Machine> {
    let mut machines = machines(nodes);
    for machine in &mut machines {
        machine.config.raft.snapshot_after = snapshot_after;
        machine.config.raft.log_keep = Some(10);
        machine.start().await;
    }
    settled(&machines).await;
    machines
}

/// Three nodes that send snapshots in small pieces at this rate.
async fn slow_cluster(bytes_per_s: u64) -> Vec<Machine> {
    let mut machines = machines(3);
    for machine in &mut machines {
        machine.config.raft.snapshot_after = 40;
        machine.config.raft.log_keep = Some(10);
        machine.config.raft.snapshot_chunk_bytes = 1024;
        machine.config.raft.snapshot_bytes_per_s = bytes_per_s;
        // The leader should stay, and would not if the transfer delayed its heartbeats.
        machine.set_election(5_000, 6_000);
        machine.start().await;
    }
    machines
}

fn snapshots(machine: &Machine) -> PathBuf {
    machine.config.data_dir.join("snapshots")
}

/// The snapshots that a machine sends or receives.
fn snapshot_files(machine: &Machine) -> Vec<PathBuf> {
    let files = std::fs::read_dir(snapshots(machine)).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// Makes a follower miss so many entries that the leader's log no longer has them. Returns the
/// leader and the follower, which is stopped.
async fn left_behind(machines: &mut [Machine], entries: u128) -> (usize, usize) {
    let leader = settled(machines).await;
    let away = (leader + 1) % 3;
    machines[away].kill().await;
    write_until_cut(&machines[leader], 1..entries + 1, Some(50)).await;
    (leader, away)
}

/// Creates these providers and waits until the log of the leader has no entry up to `index`.
async fn write_until_cut(leader: &Machine, numbers: Range<u128>, index: Option<u64>) {
    for number in numbers {
        leader.create(number).await;
    }
    eventually("a log that is cut", || {
        (leader.node().status().purged > index).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshot_that_cannot_be_written_ends_no_node_and_is_sent_later() {
    let mut machines = cluster(3, 30).await;
    let (leader, away) = left_behind(&mut machines, 99).await;
    sleep(Duration::from_secs(1)).await;
    let written = snapshot_files(&machines[leader]);
    assert!(written.is_empty(), "{written:?}, for a node that is away");
    let aside = machines[leader].config.data_dir.join("aside");
    std::fs::rename(snapshots(&machines[leader]), &aside).unwrap();
    std::fs::write(snapshots(&machines[leader]), b"").unwrap();
    machines[away].start().await;
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        let (_, metrics) = machines[leader].admin("GET", "/metrics", "").await;
        let failed = "placement_raft_snapshots_failed_total ";
        let failed = metrics.lines().find_map(|line| line.strip_prefix(failed));
        if failed != Some("0") {
            break;
        }
        assert!(Instant::now() < give_up, "{metrics}");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(machines[leader].node().status().storage_failure, None);
    machines[leader].create(100).await;
    std::fs::remove_file(snapshots(&machines[leader])).unwrap();
    std::fs::rename(&aside, snapshots(&machines[leader])).unwrap();
    converged(&machines).await;
    assert!(machines[away].sees(100).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_transfer_completes_while_writes_continue() {
    let mut machines = slow_cluster(4 * 1024).await;
    let mut number = 300;
    let (leader, away) = left_behind(&mut machines, number).await;
    machines[away].start().await;
    // During the transfer the log grows by more than is kept, and other nodes would build
    // snapshots.
    let (mut sends, mut sent) = (false, None);
    let give_up = Instant::now() + Duration::from_secs(60);
    loop {
        for _ in 0..20 {
            number += 1;
            machines[leader].create(number).await;
        }
        let newest = machines[leader].node().status().snapshot;
        let (status, body) = machines[leader].admin("POST", "/v1/compact", "").await;
        let sent_before = std::mem::replace(
            &mut sends,
            status == 503 && body.contains("is receiving a snapshot"),
        );
        if sent_before && sends {
            assert_eq!(newest, *sent.get_or_insert(newest), "a newer one is built");
        }
        let status = machines[away].node().status();
        if status.applied > Some(300) && sent.is_some() {
            break;
        }
        assert!(Instant::now() < give_up, "{status:?}");
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(settled(&machines).await, leader);
    converged(&machines).await;
    eventually("a snapshot after the transfer", || {
        let status = machines[leader].node().status();
        (status.snapshot > Some(300)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_snapshot_is_refused_and_rewritten_by_its_sender() {
    let mut machines = slow_cluster(16 * 1024).await;
    let (leader, away) = left_behind(&mut machines, 200).await;
    machines[leader].create(500).await;
    machines[away].start().await;
    eventually("a first piece of the snapshot that has arrived", || {
        let mut files = snapshot_files(&machines[away]).into_iter();
        files.find(|path| path.metadata().is_ok_and(|file| file.len() > 0))
    })
    .await;
    // In place, near its end: the leader sends from the file that it has open.
    let sent = snapshot_files(&machines[leader]);
    let [sent] = sent.as_slice() else {
        panic!("one snapshot that is sent: {sent:?}");
    };
    let bytes = std::fs::read(sent).unwrap();
    let late = bytes.len() - 100;
    let file = OpenOptions::new().write(true).open(sent).unwrap();
    file.write_all_at(&[bytes[late] ^ 1], late as u64).unwrap();
    assert!(machines[away].sees(500).await);
    converged(&machines).await;
    for machine in &machines {
        assert_eq!(machine.node().status().storage_failure, None);
    }
    assert_eq!(settled(&machines).await, leader);
    let (_, metrics) = machines[leader].admin("GET", "/metrics", "").await;
    let damaged = "placement_raft_snapshots_damaged_total 1";
    assert!(metrics.lines().any(|line| line == damaged), "{metrics}");
    machines[away].create(501).await;
}

#[derive(Serialize)]
struct Call {
    vote: WireVote,
    meta: WireSnapshotMeta,
    bytes: u64,
    offset: u64,
    data: Blob,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Reply {
    From { offset: u64 },
    NotNow(String),
}

/// A part of a snapshot of `bytes` bytes.
async fn call(
    stream: &mut TcpStream,
    leader: &Machine,
    bytes: u64,
    offset: u64,
    data: &'static [u8],
) -> Reply {
    let call = Call {
        vote: WireVote {
            term: leader.node().status().term,
            node: leader.id(),
            committed: true,
        },
        meta: WireSnapshotMeta::default(),
        bytes,
        offset,
        data: Blob(data.into()),
    };
    let mut body = vec![5];
    body.extend(wire::encode(RecordVersion::FIRST, &call));
    write_frame(stream, 4, 1, &body).await;
    let answer = read_frame(stream).await;
    let answer = answer.get(9..).unwrap();
    wire::decode(answer).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(answer)))
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_snapshot_is_kept_and_one_without_room_is_not_begun() {
    let machines = cluster(3, 1_000).await;
    let leader = settled(&machines).await;
    let (from, to) = (&machines[leader], &machines[(leader + 1) % 3]);
    let incoming = || snapshot_files(to).len();

    let mut stream = connected(from, to).await;
    let begun = call(&mut stream, from, 100, 0, b"").await;
    assert_eq!(begun, Reply::From { offset: 0 });
    let begun = call(&mut stream, from, 100, 0, b"12345").await;
    assert_eq!(begun, Reply::From { offset: 5 });
    drop(stream);

    let mut stream = connected(from, to).await;
    let again = call(&mut stream, from, 100, 0, b"").await;
    assert_eq!(again, Reply::From { offset: 5 });
    let again = call(&mut stream, from, 100, 5, b"678").await;
    assert_eq!(again, Reply::From { offset: 8 });
    assert_eq!(incoming(), 1);
    let other = call(&mut stream, from, 101, 0, b"").await;
    assert_eq!(
        other,
        Reply::From { offset: 0 },
        "another snapshot begins at its beginning"
    );
    assert_eq!(incoming(), 1);

    let huge = call(&mut stream, from, 1 << 60, 0, b"").await;
    assert!(
        matches!(&huge, Reply::NotNow(reason) if reason.contains("bytes of free space")),
        "{huge:?}"
    );
    assert_eq!(incoming(), 0);
    assert_eq!(to.node().status().storage_failure, None);
}

/// Starts machines whose logs are cut soon and whose disks may hang. Returns the disks.
async fn start_with_short_logs(machines: &mut [Machine]) -> Vec<SimulatedDisk> {
    let mut disks = Vec::new();
    for machine in machines {
        machine.config.raft.snapshot_after = 30;
        machine.config.raft.log_keep = Some(10);
        machine.config.disk.hung_after_ms = 0;
        disks.push(disk_of(machine));
        machine.start().await;
    }
    disks
}

/// While openraft sends entries to a member, it removes none that the member has not acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn member_that_acknowledges_nothing_does_not_keep_the_log_of_the_leader() {
    let mut machines = machines(3);
    let disks = start_with_short_logs(&mut machines).await;
    let leader = settled(&machines).await;
    let slow = (leader + 1) % 3;
    machines[leader].create(1).await;
    converged(&machines).await;
    disks[slow].set_hanging(true);
    write_until_cut(&machines[leader], 2..200, Some(100)).await;
    let (_, metrics) = machines[leader].admin("GET", "/metrics", "").await;
    let given_up = "placement_raft_given_up_streams_total ";
    let given_up = metrics.lines().find_map(|line| line.strip_prefix(given_up));
    assert_ne!(given_up, Some("0"), "{metrics}");
    disks[slow].set_hanging(false);
    converged(&machines).await;
    assert!(machines[slow].sees(199).await);
}

/// The snapshot has no outcomes for the clients of the node, so the node asks the leader again.
#[tokio::test(flavor = "multi_thread")]
async fn write_that_waits_at_a_follower_is_answered_after_a_snapshot() {
    let mut machines = machines(3);
    for machine in &mut machines {
        machine.config.cluster.wait_ms = 60_000;
        // The leader should stay.
        machine.set_election(60_000, 61_000);
    }
    let disks = start_with_short_logs(&mut machines).await;
    let leader = settled(&machines).await;
    let slow = (leader + 1) % 3;
    machines[slow].create(1).await;
    converged(&machines).await;
    disks[slow].set_hanging(true);
    // The leader no longer has entries for the follower, which forwards a write.
    write_until_cut(&machines[leader], 2..200, Some(100)).await;
    let written = machines[slow].create(1_000);
    let later = async {
        while !machines[leader].sees(1_000).await {
            sleep(Duration::from_millis(20)).await;
        }
        let committed = machines[leader].node().status().applied;
        write_until_cut(&machines[leader], 200..300, committed).await;
        disks[slow].set_hanging(false);
    };
    futures::join!(written, later);
    assert!(machines[slow].sees(1_000).await);
    converged(&machines).await;
}
