use std::sync::Arc;

use futures::{FutureExt, stream};
use openraft::entry::RaftEntry;
use openraft::storage::RaftStateMachine;
use placement_raft_store::wire::{WireLogId, WireVote};
use placement_raft_store::{Entry, Payload, Store};
use tempfile::TempDir;

use super::*;
use placement_machine::new_store;

const CHUNK: usize = 10;
const TO: u64 = 2;

/// A node with a snapshot to send.
struct Origin {
    dir: TempDir,
    store: Store,
    sending: Sending,
}

/// The calls to the other node, with their times.
type Calls = Arc<Mutex<Vec<(Instant, SnapshotCall)>>>;

impl Origin {
    async fn new(bytes_per_s: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut store = new_store(dir.path());
        let log_id = WireLogId {
            term: 1,
            node: 1,
            index: 1,
        };
        let entry = Entry::new(log_id.into(), Payload::Blank);
        let entries = stream::iter([Ok((entry, None))]);
        store.machine.apply(entries).await.unwrap();
        let room = SpaceCheck::new(dir.path().to_owned(), &store);
        let sending = Sending::new(store.drafts.clone(), room, bytes_per_s);
        Self {
            dir,
            store,
            sending,
        }
    }

    async fn snapshot(&mut self) -> Snapshot {
        let current = self.store.machine.get_current_snapshot().await;
        current.unwrap().unwrap()
    }

    async fn file(&mut self) -> SnapshotFile {
        let snapshot = self.snapshot().await;
        self.store.drafts.write_down(&snapshot).await.unwrap()
    }

    /// Sends the snapshot to a node that answers each call after `takes`. Returns whether it was
    /// installed, and the calls.
    async fn send(
        &mut self,
        takes: Duration,
        answer: impl Fn(&SnapshotCall) -> Option<SnapshotReply>,
    ) -> (bool, Vec<(Instant, SnapshotCall)>) {
        let snapshot = self.snapshot().await;
        let calls = Calls::default();
        let call = |call: SnapshotCall| {
            calls.lock().push((Instant::now(), call.clone()));
            let answer = answer(&call);
            async move {
                tokio::time::sleep(takes).await;
                answer.ok_or(())
            }
            .boxed()
        };
        let sent = self
            .sending
            .send(TO, Vote::new_committed(1, 1), &snapshot, CHUNK, call);
        let arrived = sent.await.is_ok();
        let calls = std::mem::take(&mut *calls.lock());
        (arrived, calls)
    }
}

fn offsets(calls: &[(Instant, SnapshotCall)]) -> Vec<u64> {
    let calls = calls.iter().map(|(_, call)| call);
    let with_data = calls.filter(|call| !call.data.0.is_empty());
    with_data.map(|call| call.offset).collect()
}

fn is_first(call: &SnapshotCall) -> bool {
    call.offset == 0 && call.data.0.is_empty()
}

fn is_last(call: &SnapshotCall) -> bool {
    call.offset == call.bytes
}

fn takes_all(call: &SnapshotCall) -> Option<SnapshotReply> {
    Some(if is_last(call) {
        SnapshotReply::Done(WireVote {
            term: 1,
            node: 1,
            committed: true,
        })
    } else {
        SnapshotReply::From {
            offset: call.offset + call.data.0.len() as u64,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn interrupted_transfer_resumes_where_it_ended() {
    let mut origin = Origin::new(0).await;
    let until_30 = |call: &SnapshotCall| match call.offset {
        30 => None,
        _ => takes_all(call),
    };
    let (arrived, calls) = origin.send(Duration::ZERO, until_30).await;
    assert!(!arrived);
    assert_eq!(offsets(&calls), [0, 10, 20, 30]);
    assert_eq!(origin.sending.under_way(), Some(TO));

    let from_30 = |call: &SnapshotCall| {
        if is_first(call) {
            Some(SnapshotReply::From { offset: 30 })
        } else {
            takes_all(call)
        }
    };
    let (arrived, calls) = origin.send(Duration::ZERO, from_30).await;
    assert!(arrived);
    let length = origin.file().await.length();
    let rest: Vec<u64> = (30..length).step_by(CHUNK).collect();
    assert_eq!(offsets(&calls), rest);
    assert_eq!(origin.sending.under_way(), None);
}

/// If the log were purged while the node is contacted, the node would need another snapshot after
/// this one.
#[tokio::test(start_paused = true)]
async fn transfer_is_under_way_from_its_first_call_on() {
    let mut origin = Origin::new(0).await;
    let snapshot = origin.snapshot().await;
    let sending = &origin.sending;
    let call = |_| {
        assert_eq!(sending.under_way(), Some(TO));
        async { Err(()) }.boxed()
    };
    // Writing the file has taken long.
    sending.begin(TO, snapshot.meta.last_log_id);
    tokio::time::sleep(STALLED).await;
    let sent = sending.send(TO, Vote::new_committed(1, 1), &snapshot, CHUNK, call);
    assert!(sent.await.is_err());
    assert_eq!(sending.under_way(), None, "it cannot be reached");
}

#[tokio::test(start_paused = true)]
async fn stalled_transfer_keeps_nothing_waiting() {
    let mut origin = Origin::new(0).await;
    let never = |call: &SnapshotCall| match call.offset {
        30 => None,
        _ => takes_all(call),
    };
    origin.send(Duration::ZERO, never).await;
    tokio::time::sleep(STALLED).await;
    assert_eq!(origin.sending.under_way(), None);
    // A transfer that always makes progress counts as ended after `KEEPS_WAITING`.
    let begun = Instant::now();
    while begun.elapsed() < KEEPS_WAITING {
        origin.send(Duration::ZERO, never).await;
        tokio::time::sleep(STALLED / 2).await;
    }
    assert_eq!(origin.sending.under_way(), None);
}

#[tokio::test(start_paused = true)]
async fn transfer_is_under_way_until_it_is_installed() {
    let mut origin = Origin::new(0).await;
    let snapshot = origin.snapshot().await;
    let call = |call: SnapshotCall| {
        async move {
            if is_last(&call) {
                tokio::time::sleep(STALLED * 3).await;
            }
            takes_all(&call).ok_or(())
        }
        .boxed()
    };
    let vote = Vote::new_committed(1, 1);
    let sent = origin.sending.send(TO, vote, &snapshot, CHUNK, call);
    let looked = async {
        tokio::time::sleep(STALLED * 2).await;
        origin.sending.under_way()
    };
    let (sent, under_way) = tokio::join!(sent, looked);
    assert!(sent.is_ok());
    assert_eq!(under_way, Some(TO));
    assert_eq!(origin.sending.under_way(), None);
}

#[tokio::test(start_paused = true)]
async fn node_without_room_is_asked_less_and_less_often() {
    let mut origin = Origin::new(0).await;
    let no_room = |_: &SnapshotCall| Some(SnapshotReply::NotNow("no room".to_owned()));
    let mut asked = Vec::new();
    for _ in 0..4 {
        let (arrived, calls) = origin.send(Duration::ZERO, no_room).await;
        assert!(!arrived);
        assert_eq!(calls.len(), 1, "{calls:?}");
        asked.push(calls[0].0);
        assert_eq!(origin.sending.under_way(), None);
    }
    let pauses: Vec<_> = asked.windows(2).map(|two| two[1] - two[0]).collect();
    let expected = [1, 2, 4].map(|times| AGAIN_MIN * times);
    for (pause, expected) in pauses.iter().zip(expected) {
        assert!(*pause >= expected && *pause < expected * 2, "{pauses:?}");
    }
    let (arrived, _) = origin.send(Duration::ZERO, takes_all).await;
    assert!(arrived);
}

#[tokio::test(start_paused = true)]
async fn refused_snapshot_is_built_again_if_it_is_bad() {
    let refused = |call: &SnapshotCall| {
        if is_last(call) {
            Some(SnapshotReply::Refused("it is damaged".to_owned()))
        } else {
            takes_all(call)
        }
    };
    let mut origin = Origin::new(0).await;
    let path = origin.file().await.path().to_owned();
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(!origin.send(Duration::ZERO, refused).await.0);
    assert_eq!(origin.store.metrics.counters.snapshots_damaged.get(), 1);
    let begun = Instant::now();
    let (arrived, calls) = origin.send(Duration::ZERO, takes_all).await;
    assert!(arrived);
    assert!(calls[0].0 - begun < AGAIN_MIN, "it is sent at once");

    // A snapshot that is undamaged on this node was damaged during the transfer.
    assert!(!origin.send(Duration::ZERO, refused).await.0);
    assert_eq!(origin.store.metrics.counters.snapshots_damaged.get(), 1);
    let begun = Instant::now();
    let (_, calls) = origin.send(Duration::ZERO, takes_all).await;
    assert!(
        calls[0].0 - begun >= AGAIN_MIN / 2,
        "it is sent after a pause"
    );
    drop(origin.dir);
}

#[tokio::test(start_paused = true)]
async fn transfer_takes_its_rate_and_half_of_the_link_at_most() {
    for (rate, takes, expected) in [
        (CHUNK as u64, Duration::ZERO, Duration::from_secs(1)),
        (0, Duration::from_secs(3), Duration::from_secs(6)),
    ] {
        let mut origin = Origin::new(rate).await;
        let (arrived, calls) = origin.send(takes, takes_all).await;
        assert!(arrived);
        let chunks = &calls[1..calls.len() - 1];
        assert!(chunks.len() > 5);
        for two in chunks.windows(2) {
            let pause = two[1].0 - two[0].0;
            assert!(pause >= expected && pause < expected * 2, "{pause:?}");
        }
    }
}
