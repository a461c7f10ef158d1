//! `GET /v1/backup`: the state of this node, as a file.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream;
use placement_base::runtime;
use placement_model::types::Timestamp;
use placement_raft_store::{BackupInfo, write_backup};
use placement_wire::BackupReport;
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::{Instant, sleep_until};

use super::{Admin, HandlerResult, failed};

/// Response header with the description of the backup, as JSON.
const DESCRIPTION: HeaderName = HeaderName::from_static("placement-backup");
/// Bytes per sent piece.
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of pieces that wait to be sent.
const PIECES_WAITING: usize = 4;

/// Converts the description of a backup for the response.
pub(crate) fn backup_report(info: &BackupInfo) -> BackupReport {
    BackupReport {
        cluster_id: info.cluster.to_string(),
        epoch: info.epoch,
        index: info.index,
        term: info.term,
        digest: info.digest.clone(),
        time: info.last_stamp.and_then(Timestamp::rfc3339),
        feature_level: info.level.0,
    }
}

pub(super) async fn backup(State(admin): State<Admin>) -> HandlerResult {
    let running = admin.running()?;
    let Ok(turn) = admin.backups.clone().try_lock_owned() else {
        let detail = "a backup of this node is already in progress; retry once it is done, or \
            use another node";
        return Err(failed(StatusCode::CONFLICT, detail));
    };
    let deadline = Instant::now() + admin.bootstrap.config.wait();
    let linearized = running.linearize(deadline).await;
    linearized.map_err(|unavailable| failed(StatusCode::SERVICE_UNAVAILABLE, unavailable))?;
    let applied = running.replica.views.current();
    let identity = running.replica.identity;
    let report = backup_report(&BackupInfo::new(&identity, &applied));
    let report = serde_json::to_string(&report).expect("strings and numbers can be serialized");

    let (sender, pieces) = mpsc::channel(PIECES_WAITING);
    runtime::spawn(runtime::blocking(move || {
        let mut target = BufWriter::with_capacity(PIECE_BYTES, BodyWriter(sender.clone()));
        let written = write_backup(&mut target, &identity, &applied).and_then(|()| target.flush());
        if let Err(error) = written {
            // The client sees a truncated answer, which is not a valid backup. If the client is
            // gone, the error is dropped.
            let _ = sender.blocking_send(Err(error));
        }
    }));
    let form = [(header::CONTENT_TYPE, "application/octet-stream")];
    let rate = admin.bootstrap.config.raft.snapshot_bytes_per_s;
    let body = paced(pieces, rate, turn);
    Ok((form, [(DESCRIPTION, report)], body).into_response())
}

/// Limits the rate to that of snapshots, `[raft] snapshot_bytes_per_s`.
fn paced(
    pieces: mpsc::Receiver<io::Result<Bytes>>,
    bytes_per_s: u64,
    turn: OwnedMutexGuard<()>,
) -> Body {
    let begun = (pieces, Instant::now(), turn);
    let next = move |(mut pieces, due, turn): (mpsc::Receiver<io::Result<Bytes>>, _, _)| async move {
        sleep_until(due).await;
        let piece = pieces.recv().await?;
        let seconds = match (&piece, bytes_per_s) {
            (Ok(bytes), 1..) => bytes.len() as f64 / bytes_per_s as f64,
            _ => 0.0,
        };
        let due = Instant::now() + Duration::from_secs_f64(seconds);
        Some((piece, (pieces, due, turn)))
    };
    Body::from_stream(stream::unfold(begun, next))
}

/// Sends the output of the backup writer in pieces.
struct BodyWriter(mpsc::Sender<io::Result<Bytes>>);

impl Write for BodyWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
