//! `GET /v1/backup`: the state of this node, as a file.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream;
use placement_model::types::Timestamp;
use placement_raft_store::{BackupInfo, runtime, write_backup};
use placement_wire::BackupReport;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

use super::{Admin, Answer, failed};

/// What the backup holds, as JSON, in the answer.
const DESCRIPTION: HeaderName = HeaderName::from_static("placement-backup");
/// Bytes that are sent at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Pieces that wait to be sent, at most.
const PIECES_WAITING: usize = 4;

/// Lets one backup be taken at a time: each holds on to a state that has passed.
#[derive(Clone)]
pub(crate) struct OneAtATime(Arc<Semaphore>);

impl Default for OneAtATime {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// What a backup holds.
pub(crate) fn backup_report(info: &BackupInfo) -> BackupReport {
    BackupReport {
        cluster_id: info.cluster.to_string(),
        epoch: info.epoch,
        index: info.index,
        term: info.term,
        digest: info.digest.clone(),
        time: info.last_stamp.and_then(rfc3339),
        feature_level: info.level.0,
    }
}

pub(crate) fn rfc3339(stamp: Timestamp) -> Option<String> {
    let nanos = i128::from(stamp.0) * 1_000;
    let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
    moment.format(&Rfc3339).ok()
}

pub(super) async fn backup(State(admin): State<Admin>) -> Answer {
    let running = admin.running()?;
    let Ok(turn) = admin.backups.0.clone().try_acquire_owned() else {
        return Err(failed(
            StatusCode::CONFLICT,
            "a backup of this node is being taken already; try again once it is done, or on another \
             node",
        ));
    };
    let deadline = Instant::now() + admin.bootstrap.config.wait();
    if let Err(unavailable) = running.linearize(deadline).await {
        return Err(failed(
            StatusCode::SERVICE_UNAVAILABLE,
            &unavailable.to_string(),
        ));
    }
    let applied = running.replica.views.current();
    let identity = running.replica.identity;
    let report = backup_report(&BackupInfo::of(&identity, &applied));
    let report = serde_json::to_string(&report).expect("texts and numbers can be written");
    let report = HeaderValue::try_from(report).expect("no text in it has other than plain letters");

    let (sender, pieces) = mpsc::channel(PIECES_WAITING);
    runtime::spawn(runtime::blocking(move || {
        let mut target = BufWriter::with_capacity(PIECE_BYTES, Pieces(sender.clone()));
        let written = write_backup(&mut target, &identity, &applied).and_then(|()| target.flush());
        if let Err(error) = written {
            // An answer that breaks off is no backup; if no one listens any more, so be it.
            let _ = sender.blocking_send(Err(error));
        }
    }));
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        ),
        (DESCRIPTION, report),
    ];
    let rate = admin.bootstrap.config.raft.snapshot_bytes_per_s;
    Ok((headers, paced(pieces, rate, turn)).into_response())
}

/// The pieces no faster than snapshots are sent.
fn paced(
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    bytes_per_s: u64,
    turn: OwnedSemaphorePermit,
) -> Body {
    let begun = (pieces, Instant::now(), turn);
    Body::from_stream(stream::unfold(
        begun,
        move |(mut pieces, due, turn)| async move {
            sleep_until(due).await;
            let piece = pieces.recv().await?;
            let takes = match (&piece, bytes_per_s) {
                (Ok(bytes), 1..) => {
                    Duration::from_secs_f64(bytes.len() as f64 / bytes_per_s as f64)
                }
                _ => Duration::ZERO,
            };
            Some((piece, (pieces, Instant::now() + takes, turn)))
        },
    ))
}

/// Where the thread that writes the backup puts it.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        match sent {
            Ok(()) => Ok(bytes.len()),
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
