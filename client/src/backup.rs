//! Downloads a backup of a running cluster: `GET /v1/backup` of the admin listener.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use placement_wire::BackupReport;
use tokio::time::timeout;
use xxhash_rust::xxh3::xxh3_64;

use crate::connect::Trust;
use crate::connect_error::body_error;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::transport::{pool, request_error};

const DESCRIPTION: &str = "placement-backup";
/// Maximum time without received data; then the download fails.
const SILENCE: Duration = Duration::from_secs(30);

/// Errors of a backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// No node sent a backup, or the received backup is incomplete or invalid.
    #[error("{0}")]
    NotReceived(String),
    /// The backup cannot be written.
    #[error("{0}")]
    Write(#[from] io::Error),
}

/// A backup that is being received. Each piece is validated when it arrives.
pub struct BackupStream {
    /// Description of the backup.
    pub report: BackupReport,
    endpoint: String,
    body: Incoming,
    bytes: u64,
    frames: Frames,
}

impl BackupStream {
    /// Asks the nodes in turn, each with the timeout `patience`, until one sends a backup.
    ///
    /// # Errors
    /// [`BackupError::NotReceived`], with the reason for each node.
    pub async fn begin(
        endpoints: &[Endpoint],
        trust: &Trust,
        patience: Duration,
    ) -> Result<Self, BackupError> {
        let mut failures = Vec::new();
        for endpoint in endpoints {
            match timeout(patience, ask(endpoint, trust.clone(), patience)).await {
                Ok(Ok(begun)) => return Ok(begun),
                Ok(Err(reason)) => failures.push(format!("{endpoint}: {reason}")),
                Err(_) => failures.push(format!("{endpoint}: no answer within {patience:?}")),
            }
        }
        let reason = format!("no node sent a backup: {}", failures.join("; "));
        Err(BackupError::NotReceived(reason))
    }

    /// Number of received bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next piece; `None` after a complete and valid backup.
    ///
    /// # Errors
    /// [`BackupError::NotReceived`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, BackupError> {
        loop {
            let frame = match timeout(SILENCE, self.body.frame()).await {
                Ok(None) if self.frames.ended => return Ok(None),
                Ok(None) => return Err(self.broke_off("it is incomplete")),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(self.broke_off(&body_error(&error))),
                Err(_) => return Err(self.broke_off(&format!("no data for {SILENCE:?}"))),
            };
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            self.bytes += piece.len() as u64;
            self.frames.take(&piece).map_err(|reason| {
                let from = &self.endpoint;
                BackupError::NotReceived(format!(
                    "{from}: the received data is not a valid backup: \
                    {reason}"
                ))
            })?;
            return Ok(Some(piece));
        }
    }

    fn broke_off(&self, reason: &str) -> BackupError {
        let (endpoint, bytes) = (&self.endpoint, self.bytes);
        let reason =
            format!("{endpoint}: the backup was interrupted after {bytes} bytes: {reason}");
        BackupError::NotReceived(reason)
    }
}

async fn ask(
    endpoint: &Endpoint,
    trust: Trust,
    limit: Duration,
) -> Result<BackupStream, Box<dyn Error + Send + Sync>> {
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.uri_mut() = endpoint.url("/v1/backup")?;
    let answer = pool(trust, limit).request(request).await;
    let answer = answer.map_err(|error| request_error(&error))?;
    let (parts, body) = answer.into_parts();
    if parts.status != StatusCode::OK {
        let body = body.collect().await?.to_bytes();
        return Err(ApiError::parse(parts.status, &body).into());
    }
    let report = (parts.headers.get(DESCRIPTION))
        .and_then(|value| serde_json::from_slice(value.as_bytes()).ok())
        .ok_or("the response has no description of the backup")?;
    Ok(BackupStream {
        report,
        endpoint: endpoint.to_string(),
        body,
        bytes: 0,
        frames: Frames::default(),
    })
}

const MAGIC: &[u8; 8] = b"PLACSNAP";
const FRAME_HEAD: usize = 12;
const FRAME_BYTES_MAX: usize = 64 << 20;
const FOOTER: u8 = 3;

/// Validates the format of a backup while it is received: each frame has a valid checksum, and the
/// last one is the footer. `placementd check-backup` also checks the digest of the rows.
#[derive(Default)]
struct Frames {
    /// The incomplete last frame.
    part: Vec<u8>,
    begun: bool,
    ended: bool,
}

impl Frames {
    fn take(&mut self, piece: &[u8]) -> Result<(), &'static str> {
        self.part.extend_from_slice(piece);
        let mut done = 0;
        if !self.begun {
            let Some(magic) = self.part.first_chunk::<8>() else {
                return Ok(());
            };
            if magic != MAGIC {
                return Err("it does not begin with the magic number of backups");
            }
            (self.begun, done) = (true, MAGIC.len());
        }
        while !self.ended
            && let Some((length, checksum)) = head(&self.part[done..])
        {
            if length > FRAME_BYTES_MAX {
                return Err("a frame is too long");
            }
            let start = done + FRAME_HEAD;
            let Some(body) = self.part.get(start..start + length) else {
                break;
            };
            if xxh3_64(body) != checksum {
                return Err("a frame has a wrong checksum");
            }
            self.ended = body.first() == Some(&FOOTER);
            done = start + length;
        }
        self.part.drain(..done);
        if self.ended && !self.part.is_empty() {
            Err("there is data after the footer")
        } else {
            Ok(())
        }
    }
}

fn head(bytes: &[u8]) -> Option<(usize, u64)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, _) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    Some((length, u64::from_le_bytes(*checksum)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(xxh3_64(body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn backup() -> Vec<u8> {
        [
            MAGIC.to_vec(),
            frame(&[1, 9, 9]),
            frame(&[2; 300]),
            frame(&[FOOTER, 7]),
        ]
        .concat()
    }

    fn take(bytes: &[u8], piece: usize) -> Result<bool, &'static str> {
        let mut frames = Frames::default();
        for piece in bytes.chunks(piece) {
            frames.take(piece)?;
        }
        Ok(frames.ended)
    }

    #[test]
    fn a_backup_is_valid_in_pieces_of_any_size() {
        for piece in [1, 7, 100, 1000] {
            assert_eq!(take(&backup(), piece), Ok(true));
        }
    }

    #[test]
    fn truncated_and_changed_backups_are_detected() {
        let whole = backup();
        for length in 0..whole.len() {
            assert_eq!(take(&whole[..length], 64), Ok(false), "{length}");
        }
        for at in [0, 8 + 4, 8 + 13, 60] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(take(&changed, 64).is_err(), "{at}");
        }
        assert!(take(&[whole, vec![0]].concat(), 64).is_err());
    }
}
