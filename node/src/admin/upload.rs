//! Receives a backup from an operator, and verifies it completely while it arrives.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures::StreamExt;
use placement_base::contain::{Panicked, contain_call};
use placement_base::runtime;
use placement_model::Cluster;
use placement_raft_store::{SnapshotError, receive_backup};
use placement_wire::IMPORT_BYTES_MAX;
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::timeout;

use super::{Failed, failed};

/// Maximum number of pieces that wait to be read.
const PIECES_WAITING: usize = 4;
/// Maximum pause in the transfer.
const SILENCE: Duration = Duration::from_secs(30);

/// The lock that allows one import at a time, held by each thread of the import.
pub(super) type ImportGuard = Arc<OwnedMutexGuard<()>>;

/// Receives the state in a backup.
///
/// # Errors
/// 400 if it is not a backup or damaged; 408 if the transfer stops; 409 if its format is newer; 413
/// if it is too long.
pub(super) async fn receive(body: Body, turn: ImportGuard) -> Result<Arc<Cluster>, Failed> {
    let (sender, pieces) = mpsc::channel(PIECES_WAITING);
    let source = BodyReader {
        pieces,
        piece: Bytes::new(),
    };
    let reading = runtime::spawn(runtime::blocking(move || {
        let _turn = turn;
        contain_call(|| receive_backup(source))
    }));
    feed(body, sender).await?;
    let read = reading.await.unwrap_or(Err(Panicked)).map_err(|Panicked| {
        let detail = "reading the backup has panicked, which is a bug; the log of this node has \
            the details";
        failed(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    read.map_err(|error: SnapshotError| {
        let status = if error.is_newer() {
            StatusCode::CONFLICT
        } else {
            StatusCode::BAD_REQUEST
        };
        failed(status, format!("the backup: {error}; nothing was changed"))
    })
}

/// Passes the pieces on. All are received even if the first are damaged, because a client may read
/// the answer only after it has sent everything.
async fn feed(body: Body, sender: mpsc::Sender<Bytes>) -> Result<(), Failed> {
    let mut stream = body.into_data_stream();
    let mut bytes = 0;
    loop {
        let piece = match timeout(SILENCE, stream.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None) => return Ok(()),
            Ok(Some(Err(_))) => {
                let detail = "the transfer of the backup was interrupted; nothing was changed";
                return Err(failed(StatusCode::REQUEST_TIMEOUT, detail));
            }
            Err(_) => {
                let detail = format!(
                    "no data of the backup arrived for {SILENCE:?}; nothing was \
                    changed"
                );
                return Err(failed(StatusCode::REQUEST_TIMEOUT, detail));
            }
        };
        bytes += piece.len() as u64;
        if bytes > IMPORT_BYTES_MAX {
            let detail = format!(
                "a backup for an import may have at most {IMPORT_BYTES_MAX} \
                bytes"
            );
            return Err(failed(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        // The reader stops when it finds damage.
        let _ = sender.send(piece).await;
    }
}

/// Source of the thread that reads the backup.
struct BodyReader {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for BodyReader {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let taken = self.piece.len().min(target.len());
        target[..taken].copy_from_slice(&self.piece.split_to(taken));
        Ok(taken)
    }
}
