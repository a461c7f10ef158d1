//! Format of snapshot files. The format is logical: it contains rows as the tables encode them and
//! nothing specific to RocksDB, so another storage engine could read it.
//!
//! ```text
//! magic "PLACSNAP"
//! frame*   length of the body (u32), XXH3-64 of the body (u64), body; numbers little-endian
//!   body 1   header: a record with cluster, epoch, coverage, digest, last timestamp
//!   body 2   rows: table tag (u8), key length (u32), key, value length (u32), value; repeated
//!   body 3   footer: a record with the number of rows; nothing follows
//! ```

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use placement_model::cluster::digest_of;
use placement_model::state::Digest;
use placement_model::types::{PartitionId, Timestamp};
use placement_model::{Change, Cluster, Level};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_64;

use super::views::AppliedState;
use crate::identity::Identity;
use crate::tables::{self, Table};
use crate::wire::{self, RecordVersion, WireError, WireSnapshotMeta};
use placement_base::runtime;

const MAGIC: &[u8; 8] = b"PLACSNAP";

const HEADER: u8 = 1;
const ROWS: u8 = 2;
const FOOTER: u8 = 3;

/// Longer frames are rejected as damaged.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// The header of a snapshot. Each change of the format increments the version of this record, so
/// that an older binary reports a newer version instead of damage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) cluster: Uuid,
    pub(super) epoch: u64,
    pub(super) covers: WireSnapshotMeta,
    /// The digest of the rows, formatted by [`placement_model::state::Digest`].
    pub(super) digest: String,
    /// `None` before the first command.
    pub(super) last_stamp: Option<Timestamp>,
}

impl Header {
    /// The header of a snapshot of a state.
    pub(super) fn new(identity: &Identity, applied: &AppliedState) -> Self {
        Self {
            cluster: identity.cluster,
            epoch: identity.epoch,
            covers: WireSnapshotMeta::from(&applied.covers()),
            digest: applied.digest().to_string(),
            last_stamp: applied.last_stamp,
        }
    }

    /// Rejects a snapshot of another cluster or epoch than the node's.
    pub(super) fn check(&self, identity: &Identity) -> Result<(), SnapshotError> {
        check_history(identity, self.cluster, self.epoch)
    }
}

/// Rejects data of another cluster or epoch than the node's.
pub(crate) fn check_history(
    identity: &Identity,
    cluster: Uuid,
    epoch: u64,
) -> Result<(), SnapshotError> {
    if cluster != identity.cluster {
        return Err(SnapshotError::OtherCluster(cluster));
    }
    if epoch != identity.epoch {
        return Err(SnapshotError::OtherEpoch(epoch));
    }
    Ok(())
}

#[derive(Debug, Serialize, Deserialize)]
struct Footer {
    rows: u64,
}

/// Why a snapshot file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file does not begin with the magic of snapshots.
    #[error("the file is not a snapshot of placementd")]
    NotASnapshot,
    /// The feature level is unknown to this binary.
    #[error("it has feature level {0}, but this placementd knows levels up to {newest}", newest = Level::NEWEST)]
    NewerLevel(Level),
    /// A newer binary wrote it.
    #[error("it contains {0}")]
    NewerRecord(WireError),
    /// It belongs to another cluster.
    #[error("it belongs to cluster {0}, not to this cluster")]
    OtherCluster(Uuid),
    /// It belongs to another epoch of this cluster.
    #[error("it belongs to epoch {0} of this cluster, not to the current epoch")]
    OtherEpoch(u64),
    /// It ends at another entry, or has other members, than its sender announced.
    #[error("its coverage differs from its sender's announcement")]
    OtherCoverage,
    /// Stored data does not read back as written.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// This node cannot read its copy; the snapshot may be intact.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl SnapshotError {
    /// Whether a newer version of placementd could read the file.
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::NewerRecord(_) | Self::NewerLevel(_))
    }

    /// Whether it belongs to another cluster or epoch.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, Self::OtherCluster(_) | Self::OtherEpoch(_))
    }
}

impl From<WireError> for SnapshotError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Newer(_) => Self::NewerRecord(error),
            WireError::Empty | WireError::Damaged(_) => Self::Damaged(error.to_string()),
        }
    }
}

/// Writes a state as a snapshot or a backup.
///
/// # Errors
/// Those of `target`.
pub fn write(
    target: &mut impl Write,
    identity: &Identity,
    applied: &AppliedState,
) -> io::Result<()> {
    let version = applied.record_version();
    let header = Header::new(identity, applied);
    target.write_all(MAGIC)?;
    write_record(target, version, HEADER, &header)?;
    let frame_bytes = runtime::limits().snapshot_frame;
    let mut rows = 0;
    let mut body = vec![ROWS];
    for (partition, change) in applied.cluster.rows() {
        let row = tables::row(version, partition, &change);
        let value = row.value.expect("a state has no deleted rows");
        body.push(row.table.tag());
        push_bytes(&mut body, &row.key)?;
        push_bytes(&mut body, &value)?;
        rows += 1;
        if body.len() > frame_bytes {
            write_frame(target, &body)?;
            body.truncate(1);
        }
    }
    if body.len() > 1 {
        write_frame(target, &body)?;
    }
    write_record(target, version, FOOTER, &Footer { rows })
}

/// Writes a frame of kind `kind` that contains a record.
pub(crate) fn write_record(
    target: &mut impl Write,
    version: RecordVersion,
    kind: u8,
    record: &impl Serialize,
) -> io::Result<()> {
    let mut body = vec![kind];
    wire::encode_into(&mut body, version, record);
    write_frame(target, &body)
}

/// Writes a frame: length, checksum, body.
fn write_frame(target: &mut impl Write, body: &[u8]) -> io::Result<()> {
    if body.len() > FRAME_BYTES_MAX {
        return Err(io::Error::other("a row is too long for a snapshot"));
    }
    target.write_all(&length(body)?.to_le_bytes())?;
    target.write_all(&xxh3_64(body).to_le_bytes())?;
    target.write_all(body)
}

fn push_bytes(body: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    body.extend_from_slice(&length(bytes)?.to_le_bytes());
    body.extend_from_slice(bytes);
    Ok(())
}

fn length(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(io::Error::other)
}

/// Reads only the header of a snapshot.
pub(super) fn read_header(source: &mut impl Read) -> Result<Header, SnapshotError> {
    let mut magic = [0; MAGIC.len()];
    match read_exact(source, &mut magic) {
        Ok(()) if &magic == MAGIC => {}
        Err(SnapshotError::Io(error)) => return Err(SnapshotError::Io(error)),
        _ => return Err(SnapshotError::NotASnapshot),
    }
    let body = read_frame(source)?;
    let record = body
        .strip_prefix(&[HEADER])
        .ok_or_else(|| damaged("no header"))?;
    Ok(wire::decode(record)?)
}

/// Reads and verifies a whole snapshot: each frame against its checksum, the rows against their
/// number and, if it is in this binary's format, their digest.
pub(super) fn read(source: &mut (impl Read + Send)) -> Result<(Header, Cluster), SnapshotError> {
    let header = read_header(source)?;
    let cluster = tables::load(Rows::new(source), |reason| damaged(&reason))?;
    header.check_digest(cluster.digest())?;
    Ok((header, cluster))
}

/// Verifies a whole snapshot like [`read`] without keeping its rows in memory. Also returns the
/// feature level.
pub(super) fn check(source: &mut impl Read) -> Result<(Header, Level), SnapshotError> {
    let header = read_header(source)?;
    let (mut digests, mut level) = (BTreeMap::<_, Digest>::new(), Level::default());
    for row in Rows::new(source) {
        let (partition, row) = row?;
        digests
            .entry(partition)
            .or_default()
            .count_in(Digest::from_change(&row));
        if let Change::PutLevel(found) = row {
            level = level.max(found);
        }
    }
    header.check_digest(digest_of(digests))?;
    Ok((header, level))
}

impl Header {
    /// Ignores a digest in another version's format; the checksums still protect the rows.
    fn check_digest(&self, found: Digest) -> Result<(), SnapshotError> {
        match found.agrees_with(&self.digest) {
            Some(false) => Err(damaged("its rows do not match its digest")),
            _ => Ok(()),
        }
    }
}

/// The rows of a snapshot, up to its footer or the first damage. Ends without an error only if the
/// number of rows matches the footer.
struct Rows<'a, R> {
    source: &'a mut R,
    body: Vec<u8>,
    position: usize,
    count: u64,
    is_over: bool,
}

impl<R: Read> Iterator for Rows<'_, R> {
    type Item = Result<(PartitionId, Change), SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let row = self.step().transpose();
        self.is_over = !matches!(row, Some(Ok(_)));
        row
    }
}

impl<'a, R: Read> Rows<'a, R> {
    fn new(source: &'a mut R) -> Self {
        Self {
            source,
            body: Vec::new(),
            position: 0,
            count: 0,
            is_over: false,
        }
    }

    fn step(&mut self) -> Result<Option<(PartitionId, Change)>, SnapshotError> {
        while self.position == self.body.len() {
            self.body = read_frame(self.source)?;
            self.position = 1;
            match self.body.first() {
                Some(&ROWS) => {}
                Some(&FOOTER) => {
                    let footer: Footer = wire::decode(&self.body[1..])?;
                    if self.source.read(&mut [0])? != 0 {
                        return Err(damaged("data follows its footer"));
                    }
                    if self.count != footer.rows {
                        let reason = format!("{} rows instead of {}", self.count, footer.rows);
                        return Err(damaged(&reason));
                    }
                    return Ok(None);
                }
                _ => return Err(damaged("a frame of unknown kind")),
            }
        }
        let mut rest = &self.body[self.position..];
        let tag = take(&mut rest, 1)?[0];
        let table = Table::from_tag(tag).ok_or_else(|| damaged("a row of an unknown table"))?;
        let (key, value) = (take_bytes(&mut rest)?, take_bytes(&mut rest)?);
        let row = tables::read(table, key, value)?;
        self.position = self.body.len() - rest.len();
        self.count += 1;
        Ok(Some(row))
    }
}

/// The next length-prefixed bytes of a frame.
fn take_bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], SnapshotError> {
    let length = take(rest, 4)?.try_into().expect("four bytes were taken");
    take(rest, u32::from_le_bytes(length) as usize)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], SnapshotError> {
    let taken = rest.split_off(..length);
    taken.ok_or_else(|| damaged("a row that is cut off"))
}

/// The body of the next frame, if it matches its checksum.
pub(crate) fn read_frame(source: &mut impl Read) -> Result<Vec<u8>, SnapshotError> {
    let mut length = [0; 4];
    let mut checksum = [0; 8];
    read_exact(source, &mut length)?;
    read_exact(source, &mut checksum)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(damaged("a frame that is too long"));
    }
    let mut body = vec![0; length];
    read_exact(source, &mut body)?;
    if xxh3_64(&body) != u64::from_le_bytes(checksum) {
        return Err(damaged("the checksum of a frame does not match"));
    }
    Ok(body)
}

fn read_exact(source: &mut impl Read, target: &mut [u8]) -> Result<(), SnapshotError> {
    source
        .read_exact(target)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is cut off"),
            _ => SnapshotError::Io(error),
        })
}

fn damaged(reason: &str) -> SnapshotError {
    SnapshotError::Damaged(reason.to_owned())
}
