//! `[peer] compress`.

use super::{Config, ConfigError};

/// To whom messages go packed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Compress {
    /// To nobody.
    Never,
    /// To nodes of other regions.
    #[default]
    Regions,
    /// To all.
    Always,
}

impl Compress {
    /// Whether messages go packed from a node of one region to one of the other.
    pub(crate) fn between(self, ours: &str, theirs: &str) -> bool {
        match self {
            Self::Never => false,
            Self::Regions => ours != theirs,
            Self::Always => true,
        }
    }
}

impl Config {
    /// `[peer] compress`.
    pub(crate) fn compress(&self) -> Result<Compress, ConfigError> {
        match self.peer.compress.as_str() {
            "never" => Ok(Compress::Never),
            "regions" => Ok(Compress::Regions),
            "always" => Ok(Compress::Always),
            other => Err(ConfigError::invalid(
                "peer.compress",
                format!("{other:?} is none of regions, always, never"),
            )),
        }
    }
}
