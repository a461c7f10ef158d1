//! Whose data directory this is, and how often its node has started.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::open::OpenError;
use crate::wire;

/// The layout of the data directory that this binary writes.
pub const FORMAT: u32 = 1;

const IDENTITY: &str = "identity";
const BOOT: &str = "boot";

/// Whose data directory it is. Written once, when the cluster is formed or the node joins it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster.
    pub cluster: Uuid,
    /// Which history of the cluster: another one after a snapshot is restored into it.
    pub epoch: u64,
    /// The node. Never given to another directory: a node that lost its data joins under a new id.
    pub node: u64,
}

/// The file: its first field tells a binary that is too old that it is too old.
#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    identity: Identity,
}

/// Reads whose directory it is; `None` if it is nobody's yet.
///
/// # Errors
/// [`OpenError::NewerFormat`], [`OpenError::Damaged`] or [`OpenError::Io`].
pub fn identity(dir: &Path) -> Result<Option<Identity>, OpenError> {
    let path = dir.join(IDENTITY);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(OpenError::io("read", &path, error)),
    };
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    // The format first: a newer one may have another shape altogether.
    let format = bytes
        .split_first()
        .and_then(|(_, record)| rmp_serde::from_slice::<Format>(record).ok())
        .map_or(FORMAT, |record| record.format);
    if format > FORMAT {
        return Err(OpenError::NewerFormat {
            dir: dir.to_owned(),
            format,
        });
    }
    match wire::decode::<Record>(&bytes) {
        Ok(record) => Ok(Some(record.identity)),
        Err(wire::WireError::Newer(version)) => Err(OpenError::NewerFormat {
            dir: dir.to_owned(),
            format: u32::from(version),
        }),
        Err(error) => Err(OpenError::Damaged {
            path,
            reason: error.to_string(),
        }),
    }
}

/// Makes `dir` the data directory of a new node: when a cluster is formed, or a node joins one.
///
/// # Errors
/// [`OpenError::Exists`] if it is somebody's already, [`OpenError::NotEmpty`] if it holds other
/// files, [`OpenError::Locked`], or [`OpenError::Io`].
pub fn create(dir: &Path, identity: Identity) -> Result<(), OpenError> {
    fs::create_dir_all(dir).map_err(|error| OpenError::io("create", dir, error))?;
    let _lock = crate::open::lock(dir)?;
    if let Some(found) = self::identity(dir)? {
        return Err(OpenError::Exists {
            dir: dir.to_owned(),
            found,
        });
    }
    if dir.join(crate::open::LOG_DIR).exists() || dir.join(crate::open::STATE_DIR).exists() {
        return Err(OpenError::NotEmpty {
            dir: dir.to_owned(),
        });
    }
    let record = Record {
        format: FORMAT,
        identity,
    };
    write_durably(dir, IDENTITY, &wire::encode(&record))
}

/// How often the node has started so far.
pub(crate) fn boots(dir: &Path) -> Result<u64, OpenError> {
    let path = dir.join(BOOT);
    match fs::read(&path) {
        Ok(bytes) => wire::decode::<u64>(&bytes).map_err(|error| OpenError::Damaged {
            path,
            reason: error.to_string(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(OpenError::io("read", &path, error)),
    }
}

/// Counts one more start of the node, durably, and returns the count.
pub(crate) fn next_boot(dir: &Path) -> Result<u64, OpenError> {
    let boot = boots(dir)? + 1;
    write_durably(dir, BOOT, &wire::encode(&boot))?;
    Ok(boot)
}

/// Puts a whole file in place: after a crash it is the old one or the new one.
fn write_durably(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), OpenError> {
    let path = dir.join(name);
    let draft = dir.join(format!("{name}.new"));
    let write = || -> io::Result<()> {
        let mut file = File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, &path)?;
        sync_dir(dir)
    };
    write().map_err(|error| OpenError::io("write", &path, error))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
