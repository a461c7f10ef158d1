//! Where audit records go, and what happens when they cannot.

use std::path::PathBuf;

use super::load::check_address;
use super::{AuditSection, Config, ConfigError};

/// The least that a file may be renamed at: a batch of records is written into one file.
const FILE_MIN_BYTES: u64 = 1024 * 1024;

/// Where records go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    File {
        path: PathBuf,
        /// `None`: it is not renamed here.
        max_bytes: Option<u64>,
        keep: u64,
    },
    Stderr,
    /// The socket of a local syslog.
    Socket(PathBuf),
    /// `host:port`.
    Udp(String),
}

/// What a record looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Cadf,
}

/// What becomes of writes whose records cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    Refuse,
    GoOn,
}

impl AuditSection {
    /// `None`: nothing is recorded.
    pub(crate) fn target(&self) -> Result<Option<Target>, ConfigError> {
        Ok(Some(match self.to.as_str() {
            "none" => return Ok(None),
            "stderr" => Target::Stderr,
            "file" => Target::File {
                path: self.file.clone(),
                max_bytes: (self.file_max_bytes > 0).then_some(self.file_max_bytes),
                keep: self.keep,
            },
            "syslog" if self.syslog.starts_with('/') => Target::Socket(self.syslog.clone().into()),
            "syslog" => {
                check_address("audit.syslog", &self.syslog, false)?;
                Target::Udp(self.syslog.clone())
            }
            other => {
                let message = format!("{other:?} is none of none, file, stderr, syslog");
                return Err(ConfigError::invalid("audit.to", message));
            }
        }))
    }

    /// `format`.
    pub(crate) fn form(&self) -> Result<Form, ConfigError> {
        match self.format.as_str() {
            "json" => Ok(Form::Json),
            "cadf" => Ok(Form::Cadf),
            other => Err(ConfigError::invalid(
                "audit.format",
                format!("{other:?} is neither json nor cadf"),
            )),
        }
    }

    /// `on_failure`.
    pub(crate) fn on_failure(&self) -> Result<OnFailure, ConfigError> {
        match self.on_failure.as_str() {
            "refuse" => Ok(OnFailure::Refuse),
            "go-on" => Ok(OnFailure::GoOn),
            other => Err(ConfigError::invalid(
                "audit.on_failure",
                format!("{other:?} is neither refuse nor go-on"),
            )),
        }
    }
}

impl Config {
    pub(super) fn validate_audit(&self) -> Result<(), ConfigError> {
        let audit = &self.audit;
        audit.form()?;
        audit.on_failure()?;
        if audit.wait_ms == 0 {
            return Err(ConfigError::invalid("audit.wait_ms", "must not be 0"));
        }
        let Some(Target::File {
            path, max_bytes, ..
        }) = audit.target()?
        else {
            return Ok(());
        };
        if path.starts_with(&self.data_dir) || path.file_name().is_none() {
            let message = "must be a file outside of data_dir, which the node alone writes to";
            return Err(ConfigError::invalid("audit.file", message));
        }
        if max_bytes.is_some_and(|bytes| bytes < FILE_MIN_BYTES) {
            let message = format!("must be 0 or at least {FILE_MIN_BYTES}");
            return Err(ConfigError::invalid("audit.file_max_bytes", message));
        }
        Ok(())
    }
}
