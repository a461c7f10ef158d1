//! A snapshot on its way in. What has arrived stays when the transfer is interrupted, so that the next
//! one goes on from there.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use placement_raft_store::wire::{WireSnapshotMeta, WireVote};
use placement_raft_store::{
    Snapshot, SnapshotData, SnapshotError, SnapshotFile, SnapshotMeta, SnapshotReceiver, Vote,
    runtime,
};
use tokio::time::{Instant, sleep};

use crate::cluster::running::Running;
use crate::disk_space;
use crate::rpc::denied::Denied;
use crate::rpc::message::{SnapshotCall, SnapshotReply};

/// How long the part that has arrived waits for the rest.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(60);

/// Takes one snapshot in at a time. Another one replaces what has arrived of the one before.
#[derive(Clone, Default)]
pub(crate) struct Intake {
    // Locked where the disk may be waited for, and nowhere else: a call that is given up halfway
    // leaves what has arrived in its place.
    incoming: Arc<Mutex<Option<Incoming>>>,
}

struct Incoming {
    head: Head,
    receiver: SnapshotReceiver,
    touched: Instant,
}

/// The head of a transfer.
struct Head {
    transfer: u64,
    vote: WireVote,
    meta: WireSnapshotMeta,
    bytes: u64,
}

impl Intake {
    /// Carries out one call of the node `from`.
    pub(crate) async fn take(
        &self,
        running: &Running,
        from: u64,
        call: SnapshotCall,
    ) -> Result<SnapshotReply, Denied> {
        match call {
            SnapshotCall::Begin {
                transfer,
                vote,
                meta,
                bytes,
            } => {
                let head = Head {
                    transfer,
                    vote,
                    meta,
                    bytes,
                };
                self.begin(running, from, head).await
            }
            SnapshotCall::Chunk {
                transfer,
                offset,
                data,
            } => {
                let with = move |incoming: &mut Option<Incoming>| {
                    let due = one(incoming, transfer)?;
                    due.touched = Instant::now();
                    if due.receiver.length() != offset {
                        return Err(Denied::Snapshot(format!(
                            "the bytes from {} on are due, not those from {offset}",
                            due.receiver.length()
                        )));
                    }
                    Ok(match due.receiver.write(&data.0) {
                        Ok(()) => SnapshotReply::Continue,
                        Err(error) => {
                            // What was written of the piece is not known; and its room is needed.
                            *incoming = None;
                            not_now(&error)
                        }
                    })
                };
                self.blocking(with).await
            }
            SnapshotCall::Finish { transfer } => {
                let with = move |incoming: &mut Option<Incoming>| {
                    incoming.take_if(|one| one.head.transfer == transfer)
                };
                let incoming = self.blocking(with).await.ok_or_else(another)?;
                install(running, from, incoming).await
            }
        }
    }

    async fn begin(
        &self,
        running: &Running,
        from: u64,
        head: Head,
    ) -> Result<SnapshotReply, Denied> {
        if let Some(failure) = running.replica.failure() {
            let reason = format!("it is quarantined: {failure}");
            return Ok(SnapshotReply::NotNow { reason });
        }
        let snapshots = running.snapshots.clone();
        let dir = running.replica.config.data_dir.clone();
        let leave = running.replica.config.disk.min_free_bytes;
        let with = move |incoming: &mut Option<Incoming>| {
            if let Some(held) = incoming.as_mut()
                && (&held.head.meta, held.head.bytes) == (&head.meta, head.bytes)
            {
                held.head = head;
                held.touched = Instant::now();
                let offset = held.receiver.length();
                tracing::info!(from, offset, "a snapshot goes on coming in");
                return Ok(SnapshotReply::From { offset });
            }
            // The one before is given up first: the disk may not hold both.
            *incoming = None;
            // The file, and its rows while those of before are not compacted away.
            let needed = leave.saturating_add(head.bytes.saturating_mul(2));
            if leave > 0
                && let Some(free) = disk_space::free(&dir)
                && free < needed
            {
                let reason = format!("it needs {needed} bytes of room, and has {free}");
                return Ok(SnapshotReply::NotNow { reason });
            }
            let receiver = match snapshots.receive() {
                Ok(receiver) => receiver,
                Err(error) => return Ok(not_now(&error)),
            };
            tracing::info!(from, bytes = head.bytes, "a snapshot comes in");
            *incoming = Some(Incoming {
                head,
                receiver,
                touched: Instant::now(),
            });
            Ok(SnapshotReply::Continue)
        };
        self.blocking(with).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        with: impl FnOnce(&mut Option<Incoming>) -> T + Send + 'static,
    ) -> T {
        let incoming = self.incoming.clone();
        runtime::blocking(move || with(&mut incoming.lock())).await
    }

    /// Throws away what waits for its rest in vain.
    pub(crate) async fn clean(self) {
        loop {
            sleep(EVERY).await;
            let with = |incoming: &mut Option<Incoming>| {
                if (incoming.take_if(|one| one.touched.elapsed() >= KEPT)).is_some() {
                    tracing::warn!("a part of a snapshot is thrown away: its rest does not come");
                }
            };
            self.blocking(with).await;
        }
    }
}

fn one(incoming: &mut Option<Incoming>, transfer: u64) -> Result<&mut Incoming, Denied> {
    let mine = incoming
        .as_mut()
        .filter(|one| one.head.transfer == transfer);
    mine.ok_or_else(another)
}

fn another() -> Denied {
    Denied::Snapshot("another one comes in, or none".to_owned())
}

fn not_now(error: &io::Error) -> SnapshotReply {
    let reason = format!("it cannot be written there: {error}");
    SnapshotReply::NotNow { reason }
}

async fn install(
    running: &Running,
    from: u64,
    incoming: Incoming,
) -> Result<SnapshotReply, Denied> {
    let Incoming { head, receiver, .. } = incoming;
    if receiver.length() != head.bytes {
        return Err(Denied::Snapshot(format!(
            "it has {} bytes, but {} came in",
            head.bytes,
            receiver.length()
        )));
    }
    let meta: SnapshotMeta = head.meta.try_into()?;
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
                running.outgrown(from, &refused);
            } else {
                tracing::error!(
                    peer = from,
                    reason,
                    "refused a snapshot that came in; it is sent again"
                );
            }
            return Ok(SnapshotReply::Refused { reason });
        }
    };
    let (raft, snapshots) = (running.replica.raft.clone(), running.snapshots.clone());
    // To its end, whether or not the caller still waits for it.
    let installed = runtime::spawn(async move {
        let path = file.path().to_owned();
        let snapshot = Snapshot {
            meta: meta.clone(),
            snapshot: SnapshotData::File(file),
        };
        let vote = Vote::from(head.vote);
        let answer = raft.install_full_snapshot(vote, snapshot).await;
        if answer.is_ok() {
            snapshots.give_up(&meta, &path);
        }
        answer
    });
    let answer = installed.await.map_err(Denied::stopped)?;
    let answer = answer.map_err(Denied::stopped)?;
    Ok(SnapshotReply::Done((&answer.vote).into()))
}

#[cfg(test)]
mod tests {
    use placement_raft_store::{Identity, StoreOptions, create, open};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_partial_snapshot_is_dropped_after_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity {
            cluster: uuid::Uuid::from_u128(1),
            epoch: 1,
            node: 1,
        };
        create(dir.path(), identity).unwrap();
        let store = open(StoreOptions::new(dir.path())).unwrap();
        let files = || {
            std::fs::read_dir(dir.path().join("snapshots"))
                .unwrap()
                .count()
        };
        let intake = Intake::default();
        *intake.incoming.lock() = Some(Incoming {
            head: Head {
                transfer: 1,
                vote: (&Vote::new_committed(1, 1)).into(),
                meta: WireSnapshotMeta::default(),
                bytes: 100,
            },
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
