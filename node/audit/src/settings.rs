//! Settings of the table `[audit]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use placement_base::settings::{Invalid, settings};

settings! {
    /// Settings of the audit log.
    AuditSection {
        /// Destination of the records of writes, rejected requests and operator actions, as lines
        /// of JSON: `none`, `file` or `stderr`.
        to: Target = Target::None,
        /// Path of the file for `to = "file"`. The file is created if it is missing, and only its
        /// owner can read it. Its directory must exist. SIGHUP reopens the file, for logrotate.
        file: PathBuf = PathBuf::from("/var/log/placementd/audit.log"),
        /// `strict`: a write is acknowledged only after its record is on disk or, if `to` is
        /// `stderr`, written to standard error. While records cannot be written, because the disk
        /// is full or hangs, the node answers writes with 503. `best-effort`: writes do not wait,
        /// and a crash or a full disk loses records. Reads and other nodes are not affected in
        /// either mode.
        mode: AuditMode = AuditMode::Strict,
    }
}

/// Destination of audit records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the setting says it")]
pub enum Target {
    None,
    File,
    Stderr,
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditMode {
    /// After its record is written. Writes are rejected while records cannot be written.
    Strict,
    /// Without waiting for its record.
    BestEffort,
}

impl AuditSection {
    /// Checks the location of the file.
    ///
    /// # Errors
    /// It is in the data directory.
    pub fn check(&self, data_dir: &Path) -> Result<(), Invalid> {
        let is_ours = self.file.starts_with(data_dir) || self.file.file_name().is_none();
        if self.to == Target::File && is_ours {
            let message = "must be a file outside data_dir, which is reserved for the node";
            return Err(Invalid::new("audit.file", message));
        }
        Ok(())
    }
}
