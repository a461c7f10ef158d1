//! What keeps a member fit: logs cut, disks watched, states compared, backups made, upgrades
//! completed.

pub(crate) mod backups;
pub(crate) mod disk_watch;
pub(crate) mod divergence;
pub(crate) mod mirror;
pub(crate) mod room;
pub(crate) mod snapshot_intake;
pub(crate) mod snapshots;
pub(crate) mod upgrade;

use std::fmt::Display;
use std::time::Duration;

/// What fails again and again is logged once, and is tried again after 5 s, and twice as long each
/// time, at most 5 minutes.
#[derive(Default)]
struct Retries(u32);

impl Retries {
    /// How long to wait for the next attempt.
    fn after(&mut self, what: &'static str, error: impl Display) -> Duration {
        if self.0 == 0 {
            tracing::error!(%error, "{what}; it is tried again");
        }
        let failures = self.0.min(10);
        self.0 += 1;
        Duration::from_secs((5 << failures).min(300))
    }

    fn are_over(&mut self, what: &'static str) {
        if std::mem::take(&mut self.0) > 0 {
            tracing::info!("{what} again");
        }
    }
}
