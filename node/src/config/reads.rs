//! What reads promise to clients that do not say (`[reads]`).

use std::time::Duration;

use super::{Config, ConfigError};
use crate::doors::Consistency;
use crate::http::ReadSettings;

const REGIONAL: Duration = Duration::from_millis(250);
const EDGE: Duration = Duration::from_secs(2);

impl Config {
    /// `[reads]`.
    pub fn read_settings(&self) -> Result<ReadSettings, ConfigError> {
        let default = self.default_consistency()?;
        let bound = |usual| match self.reads.bound_ms {
            0 => usual,
            ms => Duration::from_millis(ms),
        };
        let (usual, advisory) = match self.reads.profile.as_str() {
            "strict" => (default, default),
            "regional" => (
                Consistency::Linearizable,
                Consistency::Bounded(bound(REGIONAL)),
            ),
            "edge" => {
                let all = Consistency::BoundedOrLocal(bound(EDGE));
                (all, all)
            }
            other => {
                let words = format!("{other:?} is none of strict, regional, edge");
                return Err(ConfigError::invalid("reads.profile", words));
            }
        };
        if usual != default && default != Consistency::Linearizable {
            let words = "is for the profile \"strict\": take one of the two out";
            return Err(ConfigError::invalid("reads.default", words));
        }
        Ok(ReadSettings {
            usual,
            advisory,
            session_cookie: self.reads.session_cookie,
        })
    }

    /// Whether this node goes on answering while it is cut off.
    pub(crate) fn answers_cut_off(&self) -> bool {
        self.reads.profile == "edge"
    }

    fn default_consistency(&self) -> Result<Consistency, ConfigError> {
        let text = self.reads.default.trim();
        let bound = text
            .strip_prefix("bounded;max=")
            .and_then(|seconds| seconds.parse::<f64>().ok())
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if let Some(bound) = bound {
            return Ok(Consistency::Bounded(bound));
        }
        match text {
            "linearizable" => Ok(Consistency::Linearizable),
            "local" => Ok(Consistency::Local),
            _ => Err(ConfigError::invalid(
                "reads.default",
                format!("{text:?} is none of linearizable, bounded;max=SECONDS, local"),
            )),
        }
    }
}
