//! Sends snapshots to other nodes: in pieces, at a limited rate, resuming interrupted transfers.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use placement_base::coverage::RarePath;
use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::wire::Blob;
use placement_raft_store::{Drafts, LogId, Snapshot, SnapshotData, SnapshotFile, Vote};
use tokio::time::{Instant, sleep_until};

use super::messages::{SnapshotCall, SnapshotReply};
use placement_raft_store::disk_space::SpaceCheck;

/// A transfer that makes no progress for this long is treated as ended.
const STALLED: Duration = Duration::from_secs(30);
/// Maximum time for which a transfer may delay the purge of the log and the building of newer
/// snapshots.
const KEEPS_WAITING: Duration = Duration::from_secs(30 * 60);
/// First pause before a snapshot is offered again to a node that cannot accept it.
const AGAIN_MIN: Duration = Duration::from_secs(2);
/// Maximum pause before a snapshot is offered again to a node that cannot accept it.
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// The snapshots that this node sends to others. While it sends a snapshot, it builds no newer one
/// and retains the log entries after the snapshot.
pub struct Sending {
    drafts: Drafts,
    room: SpaceCheck,
    /// Maximum rate, in bytes per second; 0: no fixed limit.
    bytes_per_s: u64,
    recipients: Mutex<BTreeMap<u64, Recipient>>,
}

/// A node that needs a snapshot.
struct Recipient {
    /// The last log entry that the snapshot to send covers.
    covers: Option<LogId>,
    begun: Instant,
    /// When the last part arrived at the node or, before the first part, when the node was first
    /// called. `None` if the node does not accept the snapshot or cannot be reached.
    moved: Option<Instant>,
    /// Whether a part has arrived at the node.
    has_some: bool,
    /// Whether this node is writing the snapshot to a file, or the other node is verifying and
    /// installing it.
    at_work: bool,
    /// Set while the node cannot accept the snapshot.
    put_off: Option<PutOff>,
}

struct PutOff {
    pause: Duration,
    until: Instant,
}

/// Why a snapshot was not installed.
pub(super) enum Unsent<E> {
    /// A call to the receiver failed.
    Call(E),
    /// The transfer failed and must be repeated, with this snapshot or a newer one. Contains the
    /// reason, as text.
    Again(String),
}

impl Sending {
    pub fn new(drafts: Drafts, room: SpaceCheck, bytes_per_s: u64) -> Self {
        Self {
            drafts,
            room,
            bytes_per_s,
            recipients: Mutex::default(),
        }
    }

    /// The node to which a snapshot is being sent, if there is one.
    pub fn under_way(&self) -> Option<u64> {
        let recipients = self.recipients.lock();
        let mut under_way = recipients
            .iter()
            .filter(|(_, recipient)| recipient.is_under_way());
        under_way.next().map(|(id, _)| *id)
    }

    /// Sends a snapshot to the node `to` by `call`. Returns that node's vote.
    pub(super) async fn send<'a, E>(
        &self,
        to: u64,
        vote: Vote,
        snapshot: &Snapshot,
        chunk_bytes: usize,
        call: impl Fn(SnapshotCall) -> BoxFuture<'a, Result<SnapshotReply, E>>,
    ) -> Result<Vote, Unsent<E>> {
        if let Some(until) = self.begin(to, snapshot.meta.last_log_id) {
            sleep_until(until).await;
        }
        self.change(to, |recipient| recipient.at_work = true);
        let written = self.write_down(snapshot).await;
        self.change(to, |recipient| recipient.at_work = false);
        let file = match written {
            Ok(file) => file,
            Err(error) => {
                let reason = format!("this node cannot write it to a file: {error}");
                return Err(self.put_off(to, reason));
            }
        };
        log!(
            SNAPSHOT_SENDING,
            target_node = to,
            bytes = file.length(),
            "sending a snapshot"
        );
        let bytes = file.length();
        let part = |offset, data: Vec<u8>| SnapshotCall {
            vote: (&vote).into(),
            meta: (&snapshot.meta).into(),
            bytes,
            offset,
            data: Blob(data.into()),
        };
        self.change(to, Recipient::asked);
        let mut reply = call(part(0, Vec::new())).await.map_err(|error| {
            self.change(to, Recipient::unanswered);
            Unsent::Call(error)
        })?;
        if matches!(reply, SnapshotReply::From { offset: 1.. }) {
            RarePath::SnapshotResumed.ran();
        }
        let mut begun = Instant::now();
        loop {
            let offset = match reply {
                SnapshotReply::From { offset } => offset,
                SnapshotReply::Done(vote) => {
                    self.recipients.lock().remove(&to);
                    return Ok(vote.into());
                }
                SnapshotReply::NotNow(reason) => return Err(self.put_off(to, reason)),
                SnapshotReply::Refused(reason) => {
                    return Err(self.look_at_own(to, reason).await);
                }
            };
            if offset >= bytes {
                self.change(to, |recipient| recipient.at_work = true);
                reply = (call(part(bytes, Vec::new())).await).map_err(Unsent::Call)?;
                self.change(to, |recipient| recipient.at_work = false);
                if matches!(reply, SnapshotReply::From { .. }) {
                    return Err(Unsent::Again("it was not installed".to_owned()));
                }
                continue;
            }
            self.moved(to);
            let took = begun.elapsed();
            if offset > 0 {
                self.pause(begun, took, chunk_bytes).await;
            }
            begun = Instant::now();
            let data = match read(&file, offset, chunk_bytes).await {
                Ok(data) => data,
                Err(error) => {
                    let reason = format!("this node cannot read it: {error}");
                    return Err(self.look_at_own(to, reason).await);
                }
            };
            reply = call(part(offset, data)).await.map_err(Unsent::Call)?;
        }
    }

    async fn write_down(&self, snapshot: &Snapshot) -> io::Result<SnapshotFile> {
        if let SnapshotData::State(_) = snapshot.snapshot {
            self.room.check(self.room.snapshot_bytes()).await?;
        }
        self.drafts.write_down(snapshot).await
    }

    /// Records the snapshot for a node. Returns the time until which the caller must wait before it
    /// calls the node; `None` if it need not wait.
    fn begin(&self, to: u64, covers: Option<LogId>) -> Option<Instant> {
        let mut recipients = self.recipients.lock();
        let recipient = (recipients.entry(to)).or_insert_with(|| Recipient::new(covers, None));
        if recipient.covers != covers {
            *recipient = Recipient::new(covers, recipient.put_off.take());
        }
        // The previous call of `send` may have been cancelled.
        recipient.at_work = false;
        recipient.put_off.as_ref().map(|put_off| put_off.until)
    }

    fn change(&self, to: u64, change: impl FnOnce(&mut Recipient)) {
        if let Some(recipient) = self.recipients.lock().get_mut(&to) {
            change(recipient);
        }
    }

    fn moved(&self, to: u64) {
        self.change(to, |recipient| {
            recipient.moved = Some(Instant::now());
            recipient.has_some = true;
            if recipient.put_off.take().is_some() {
                log!(
                    SNAPSHOT_ACCEPTED,
                    target_node = to,
                    "the node accepts the snapshot now"
                );
            }
        });
    }

    /// Pauses the transfer to a node, each time for longer. Logs the reason the first time. For
    /// example, one of the two disks is full.
    fn put_off<E>(&self, to: u64, reason: String) -> Unsent<E> {
        if let Some(recipient) = self.recipients.lock().get_mut(&to) {
            let pause = match &recipient.put_off {
                Some(before) => (before.pause * 2).min(AGAIN_MAX),
                None => {
                    log!(
                        SNAPSHOT_DELAYED,
                        target_node = to,
                        reason,
                        "a node has not received the snapshot that it needs; retrying"
                    );
                    AGAIN_MIN
                }
            };
            RarePath::SnapshotPutOff.ran();
            recipient.moved = None;
            recipient.put_off = Some(PutOff {
                pause,
                until: Instant::now() + pause,
            });
        }
        Unsent::Again(reason)
    }

    /// After the receiver has found the snapshot damaged: checks whether it is damaged on this
    /// node's disk, too.
    async fn look_at_own<E>(&self, to: u64, reason: String) -> Unsent<E> {
        match self.drafts.repair().await {
            Ok(true) => {
                log!(
                    SNAPSHOT_SENT_AGAIN,
                    target_node = to,
                    reason,
                    "sending the snapshot again"
                );
                Unsent::Again(reason)
            }
            Ok(false) => self.put_off(to, reason),
            Err(error) => self.put_off(to, format!("{reason}; writing it again failed: {error}")),
        }
    }

    /// Waits before the next part, so that the transfer uses at most half of the rate that link and
    /// disks can sustain, and at most the configured rate.
    async fn pause(&self, begun: Instant, took: Duration, chunk_bytes: usize) {
        let least = match self.bytes_per_s {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(chunk_bytes as f64 / rate as f64),
        };
        sleep_until(begun + least.max(took * 2)).await;
    }
}

impl Recipient {
    fn new(covers: Option<LogId>, put_off: Option<PutOff>) -> Self {
        let now = Instant::now();
        Self {
            covers,
            begun: now,
            moved: put_off.is_none().then_some(now),
            has_some: false,
            at_work: false,
            put_off,
        }
    }

    /// Restarts the time limit for the first call to the node: writing the snapshot to a file may
    /// have taken long.
    fn asked(&mut self) {
        if !self.has_some {
            self.moved = self.moved.map(|_| Instant::now());
        }
    }

    /// Ends the transfer if the node has received no part yet: an unreachable node must not delay
    /// the purge of the log.
    fn unanswered(&mut self) {
        if !self.has_some {
            self.moved = None;
        }
    }

    fn is_under_way(&self) -> bool {
        let moves = self.moved.is_some_and(|moved| moved.elapsed() < STALLED);
        (moves || self.at_work) && self.begun.elapsed() < KEEPS_WAITING
    }
}

async fn read(file: &SnapshotFile, offset: u64, bytes: usize) -> std::io::Result<Vec<u8>> {
    let file = file.clone();
    runtime::blocking(move || file.read_at(offset, bytes)).await
}

#[cfg(test)]
mod tests;
