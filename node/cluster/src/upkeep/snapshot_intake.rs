//! Receives snapshots. If a transfer is interrupted, the received part is retained, and the next
//! transfer continues after it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::wire::{WireSnapshotMeta, WireVote};
use placement_raft_store::{
    Snapshot, SnapshotData, SnapshotError, SnapshotFile, SnapshotMeta, SnapshotReceiver, Vote,
};
use tokio::time::{Instant, sleep};

use crate::running::Running;
use placement_peer::raft::messages::{SnapshotCall, SnapshotReply};
use placement_peer::transport::denied::Denied;
use placement_raft_store::disk_space;

/// An incomplete snapshot is dropped if nothing more arrives for this long.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// Interval between checks for incomplete snapshots.
const EVERY: Duration = Duration::from_secs(60);

/// Receives one snapshot at a time. A new snapshot replaces an incomplete one.
#[derive(Clone, Default)]
pub(crate) struct SnapshotIntake {
    // Locked only on blocking threads. So a call that is cancelled halfway does not lose the
    // received part.
    incoming: Arc<Mutex<Option<Incoming>>>,
}

struct Incoming {
    meta: WireSnapshotMeta,
    /// Length of the whole snapshot.
    bytes: u64,
    receiver: SnapshotReceiver,
    touched: Instant,
}

impl Incoming {
    fn matches_call(&self, call: &SnapshotCall) -> bool {
        (&self.meta, self.bytes) == (&call.meta, call.bytes)
    }
}

impl SnapshotIntake {
    /// Stores one part, sent by node `from`.
    pub(crate) async fn take(
        &self,
        running: &Arc<Running>,
        from: u64,
        call: SnapshotCall,
    ) -> Result<SnapshotReply, Denied> {
        if let Some(failure) = running.replica.failure() {
            let reason = format!("it is quarantined: {failure}");
            return Ok(SnapshotReply::NotNow(reason));
        }
        if call.offset < call.bytes {
            let node = running.clone();
            let with = move |incoming: &mut Option<Incoming>| take(incoming, &node, from, call);
            return self.blocking(with).await;
        }
        let vote = call.vote;
        let with = move |incoming: &mut Option<Incoming>| {
            incoming.take_if(|one| one.matches_call(&call) && one.receiver.length() == one.bytes)
        };
        let incoming = self.blocking(with).await.ok_or_else(another)?;
        install(running, from, vote, incoming).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        with: impl FnOnce(&mut Option<Incoming>) -> T + Send + 'static,
    ) -> T {
        let incoming = self.incoming.clone();
        runtime::blocking(move || with(&mut incoming.lock())).await
    }

    /// Drops an incomplete snapshot if no more parts of it arrive; runs forever.
    pub(crate) async fn clean(self) {
        loop {
            sleep(EVERY).await;
            let with = |incoming: &mut Option<Incoming>| {
                if (incoming.take_if(|one| one.touched.elapsed() >= KEPT)).is_some() {
                    log!(
                        SNAPSHOT_DROPPED,
                        "dropped an incomplete snapshot: no more parts of it arrived"
                    );
                }
            };
            self.blocking(with).await;
        }
    }
}

fn take(
    incoming: &mut Option<Incoming>,
    node: &Running,
    from: u64,
    call: SnapshotCall,
) -> Result<SnapshotReply, Denied> {
    check_end(&call)?;
    let is_held = incoming.as_ref().is_some_and(|one| one.matches_call(&call));
    // Only the first call of a transfer begins a snapshot, and it has no data. So a late part of
    // another snapshot cannot discard this one.
    let begins = call.offset == 0 && call.data.0.is_empty();
    if !is_held && !begins {
        return Err(another());
    }
    // Drop the other snapshot first: the disk may not have room for both.
    let mut one = match incoming.take().filter(|_| is_held) {
        Some(held) => held,
        None => match begin(node, from, &call) {
            Ok(begun) => begun,
            Err(reply) => return Ok(reply),
        },
    };
    if one.receiver.length() != call.offset {
        let offset = one.receiver.length();
        log!(
            SNAPSHOT_RESUMED,
            from,
            offset,
            "resuming an incoming snapshot"
        );
    } else if let Err(error) = one.receiver.write(&call.data.0) {
        // Drop the snapshot: it is unknown how much of the part was written, and its space is
        // needed.
        return Ok(not_now(&error));
    }
    one.touched = Instant::now();
    let offset = one.receiver.length();
    *incoming = Some(one);
    Ok(SnapshotReply::From { offset })
}

/// Rejects a part that extends beyond the announced length: the snapshot could never be completed.
fn check_end(call: &SnapshotCall) -> Result<(), Denied> {
    let SnapshotCall { bytes, offset, .. } = call;
    let end = offset.checked_add(call.data.0.len() as u64);
    if end.is_some_and(|end| end <= *bytes) {
        return Ok(());
    }
    let reason =
        format!("the part at byte {offset} extends beyond the announced length of {bytes} bytes");
    Err(Denied::Snapshot(reason))
}

fn another() -> Denied {
    Denied::Snapshot("no transfer of this snapshot is under way".to_owned())
}

/// Creates the file for a snapshot, if the disk has enough free space.
fn begin(node: &Running, from: u64, call: &SnapshotCall) -> Result<Incoming, SnapshotReply> {
    let config = &node.replica.config;
    let leave = config.disk.min_free_bytes;
    // Space for the file, and for its rows until the old rows are compacted away.
    let needed = leave.saturating_add(call.bytes.saturating_mul(2));
    if leave > 0
        && let Some(free) = disk_space::free_now(&config.data_dir)
        && free < needed
    {
        let reason = format!(
            "the receiver needs {needed} bytes of free space for the snapshot and has {free}"
        );
        return Err(SnapshotReply::NotNow(reason));
    }
    let receiver = node.snapshots.receive().map_err(|error| not_now(&error))?;
    log!(
        SNAPSHOT_RECEIVING,
        from,
        bytes = call.bytes,
        "receiving a snapshot"
    );
    Ok(Incoming {
        meta: call.meta.clone(),
        bytes: call.bytes,
        receiver,
        touched: Instant::now(),
    })
}

fn not_now(error: &io::Error) -> SnapshotReply {
    SnapshotReply::NotNow(format!("the receiver cannot write the snapshot: {error}"))
}

async fn install(
    running: &Running,
    from: u64,
    vote: WireVote,
    incoming: Incoming,
) -> Result<SnapshotReply, Denied> {
    let Incoming { meta, receiver, .. } = incoming;
    let meta: SnapshotMeta = meta.try_into()?;
    let snapshots = running.snapshots.clone();
    let verified = runtime::blocking({
        let meta = meta.clone();
        move || -> Result<SnapshotFile, SnapshotError> {
            snapshots.verify(&meta, receiver.finish()?)
        }
    });
    let file = match verified.await {
        Ok(file) => file,
        Err(SnapshotError::Io(error)) => return Ok(not_now(&error)),
        Err(refused) => {
            let reason = refused.to_string();
            if refused.is_newer() {
                running.report_unreadable_call(from, &refused);
            } else {
                log!(
                    SNAPSHOT_REJECTED,
                    peer = from,
                    reason,
                    "rejected an incoming snapshot; it will be sent again"
                );
            }
            return Ok(SnapshotReply::Refused(reason));
        }
    };
    let (raft, snapshots) = (running.replica.raft.clone(), running.snapshots.clone());
    // A separate task, so that the installation completes even if the caller stops waiting.
    let installed = runtime::spawn(async move {
        let path = file.path().to_owned();
        let snapshot = Snapshot {
            meta: meta.clone(),
            snapshot: SnapshotData::File(file),
        };
        let answer = (raft.install_full_snapshot(Vote::from(vote), snapshot)).await;
        if answer.is_ok() {
            snapshots.give_up(&meta, &path);
        }
        answer
    });
    let answer = installed
        .await
        .map_err(Denied::stopped)?
        .map_err(Denied::stopped)?;
    Ok(SnapshotReply::Done((&answer.vote).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::SingleMember;
    use placement_machine::new_store;
    use placement_raft_store::wire::Blob;

    /// A part of a snapshot of 100 bytes.
    fn part(offset: u64, length: usize) -> SnapshotCall {
        SnapshotCall {
            vote: (&Vote::new(1, 1)).into(),
            meta: WireSnapshotMeta::default(),
            bytes: 100,
            offset,
            data: Blob(vec![0; length].into()),
        }
    }

    /// The old rows stay until a compaction.
    #[tokio::test]
    async fn snapshot_is_begun_with_room_for_its_file_and_its_rows() {
        let alone = SingleMember::start().await;
        let node = &alone.running;
        let free = disk_space::free_now(&node.replica.config.data_dir).unwrap();
        let large = SnapshotCall {
            bytes: free / 4 * 3,
            ..part(0, 0)
        };
        let Err(SnapshotReply::NotNow(reason)) = begin(node, 2, &large) else {
            panic!("it is begun");
        };
        assert!(reason.contains("bytes of free space"), "{reason}");
        assert!(begin(node, 2, &part(0, 0)).is_ok());
        alone.stop().await;
    }

    #[test]
    fn part_that_ends_beyond_its_snapshot_is_refused() {
        assert!(check_end(&part(90, 10)).is_ok());
        for (offset, length) in [(90, 11), (0, 101), (u64::MAX, 1)] {
            let refused = check_end(&part(offset, length)).unwrap_err();
            assert!(refused.to_string().contains("100 bytes"), "{refused}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_partial_snapshot_is_dropped_after_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let store = new_store(dir.path());
        let files = || {
            std::fs::read_dir(dir.path().join("snapshots"))
                .unwrap()
                .count()
        };
        let intake = SnapshotIntake::default();
        *intake.incoming.lock() = Some(Incoming {
            meta: WireSnapshotMeta::default(),
            bytes: 100,
            receiver: store.snapshots.receive().unwrap(),
            touched: Instant::now(),
        });
        let cleaning = runtime::spawn(intake.clone().clean());
        sleep(KEPT / 2).await;
        assert_eq!(files(), 1);
        sleep(KEPT / 2 + EVERY * 2).await;
        assert_eq!(files(), 0);
        cleaning.abort();
    }
}
