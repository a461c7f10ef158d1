//! Where audit records go, and what happens when they cannot.

use std::path::PathBuf;

use super::{AuditSection, Config, ConfigError};

/// Where records go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    File(PathBuf),
    Stderr,
}

/// What a write owes to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditMode {
    /// It is acknowledged once the record is kept, and refused while none can be.
    Strict,
    /// It waits for nothing.
    BestEffort,
}

impl AuditSection {
    /// `None`: nothing is recorded.
    pub(crate) fn target(&self) -> Result<Option<Target>, ConfigError> {
        match self.to.as_str() {
            "none" => Ok(None),
            "stderr" => Ok(Some(Target::Stderr)),
            "file" => Ok(Some(Target::File(self.file.clone()))),
            other => {
                let message = format!("{other:?} is not one of none, file, stderr");
                Err(ConfigError::invalid("audit.to", message))
            }
        }
    }

    /// `mode`.
    pub(crate) fn mode(&self) -> Result<AuditMode, ConfigError> {
        match self.mode.as_str() {
            "strict" => Ok(AuditMode::Strict),
            "best-effort" => Ok(AuditMode::BestEffort),
            other => Err(ConfigError::invalid(
                "audit.mode",
                format!("{other:?} is neither strict nor best-effort"),
            )),
        }
    }
}

impl Config {
    pub(super) fn validate_audit(&self) -> Result<(), ConfigError> {
        self.audit.mode()?;
        let Some(Target::File(path)) = self.audit.target()? else {
            return Ok(());
        };
        if path.starts_with(&self.data_dir) || path.file_name().is_none() {
            let message = "must be a file outside of data_dir, which the node alone writes to";
            return Err(ConfigError::invalid("audit.file", message));
        }
        Ok(())
    }
}
