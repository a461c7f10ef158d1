//! The id of a cluster in settings and flags.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The id of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterId(pub Uuid);

/// A text is not the id of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the UUID of a cluster, which `placementctl status` prints")]
pub struct NoClusterId;

impl FromStr for ClusterId {
    type Err = NoClusterId;

    fn from_str(text: &str) -> Result<Self, NoClusterId> {
        match text.parse() {
            Ok(id) if !Uuid::is_nil(&id) => Ok(Self(id)),
            _ => Err(NoClusterId),
        }
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
