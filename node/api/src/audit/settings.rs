//! `[audit]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::settings::{Invalid, settings};

settings! {
    /// The audit log.
    AuditSection {
        /// Where a record of each write, of each refused request and of each operator's action
        /// goes, as a line of JSON: `none`, `file` or `stderr`.
        to: Target = Target::None,
        /// The file; made if missing, for its owner alone. Its directory must exist. SIGHUP opens
        /// it again, for logrotate.
        file: PathBuf = PathBuf::from("/var/log/placementd/audit.log"),
        /// `strict`: a write is acknowledged once its record is on the disk (standard error: once
        /// it is written), and answered 503 while none can be written (a disk that is full or
        /// hangs). `best-effort`: a write waits for nothing, and a crash or a full disk loses
        /// records. Reads and other nodes go on in any case.
        mode: AuditMode = AuditMode::Strict,
    }
}

/// Where records go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the setting says it")]
pub enum Target {
    None,
    File,
    Stderr,
}

/// What a write owes to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditMode {
    /// It is acknowledged once the record is kept, and refused while none can be.
    Strict,
    /// It waits for nothing.
    BestEffort,
}

impl AuditSection {
    /// Whether the file may be where it is.
    ///
    /// # Errors
    /// It is in the data directory.
    pub fn check(&self, data_dir: &Path) -> Result<(), Invalid> {
        let is_ours = self.file.starts_with(data_dir) || self.file.file_name().is_none();
        if self.to == Target::File && is_ours {
            let message = "must be a file outside of data_dir, which the node alone writes to";
            return Err(Invalid::new("audit.file", message));
        }
        Ok(())
    }
}
