//! A backup that an operator sends, read whole while it comes, and believed in nothing.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures::StreamExt;
use placement_api::contain::{Panicked, contain_call};
use placement_model::Cluster;
use placement_raft_store::{SnapshotError, receive_backup, runtime};
use placement_wire::IMPORT_BYTES_MAX;
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::timeout;

use super::{Failed, failed};

/// Pieces that wait to be read, at most.
const PIECES_WAITING: usize = 4;
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(30);

/// That of one import, held by each thread that works for it.
pub(super) type Turn = Arc<OwnedMutexGuard<()>>;

/// All that is in the backup.
///
/// # Errors
/// 400 if it is no backup, or damaged; 408, 413.
pub(super) async fn receive(body: Body, turn: Turn) -> Result<Arc<Cluster>, Failed> {
    let (sender, pieces) = mpsc::channel(PIECES_WAITING);
    let source = Pieces {
        pieces,
        piece: Bytes::new(),
    };
    let reading = runtime::spawn(runtime::blocking(move || {
        let _turn = turn;
        contain_call(|| receive_backup(source))
    }));
    feed(body, sender).await?;
    let read = reading.await.unwrap_or(Err(Panicked));
    let read = read.map_err(|Panicked| {
        let detail = "the reading of the backup has panicked, which is a bug; the log of this node says where";
        failed(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })?;
    read.map_err(|error: SnapshotError| {
        let status = match error.is_newer() {
            true => StatusCode::CONFLICT,
            false => StatusCode::BAD_REQUEST,
        };
        failed(status, format!("the backup: {error}; nothing was changed"))
    })
}

/// Hands the pieces on. All are taken, also if the first are damaged: a client reads no answer
/// before it has sent all.
async fn feed(body: Body, sender: mpsc::Sender<Bytes>) -> Result<(), Failed> {
    let mut stream = body.into_data_stream();
    let mut bytes = 0;
    loop {
        let piece = match timeout(SILENCE, stream.next()).await {
            Ok(Some(Ok(piece))) => piece,
            Ok(None) => return Ok(()),
            Ok(Some(Err(_))) => {
                let detail = "the backup broke off; nothing was changed";
                return Err(failed(StatusCode::REQUEST_TIMEOUT, detail));
            }
            Err(_) => {
                let detail = format!("the backup stood still for {SILENCE:?}; nothing was changed");
                return Err(failed(StatusCode::REQUEST_TIMEOUT, detail));
            }
        };
        bytes += piece.len() as u64;
        if bytes > IMPORT_BYTES_MAX {
            let detail = format!("a backup to be imported has {IMPORT_BYTES_MAX} bytes at most");
            return Err(failed(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        // Who has found damage reads no further.
        let _ = sender.send(piece).await;
    }
}

/// Where the thread that reads the backup takes it from.
struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    piece: Bytes,
}

impl Read for Pieces {
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
