//! Maintenance of a member: cuts the log, watches disks, compares states, makes backups, completes
//! upgrades.

pub(crate) mod backups;
pub(crate) mod disk_watch;
pub(crate) mod divergence;
pub(crate) mod leases;
pub(crate) mod mirror;
pub(crate) mod room;
pub(crate) mod snapshot_intake;
pub(crate) mod snapshots;
pub(crate) mod upgrade;

use std::time::Duration;

/// Backoff for a repeated failure: it is retried after 5 s, then after twice as long each time, at
/// most 5 minutes.
#[derive(Default)]
struct Retries(u32);

impl Retries {
    /// Whether the last attempt failed: only the first failure in a row is logged.
    fn have_begun(&self) -> bool {
        self.0 > 0
    }

    /// How long to wait before the next attempt.
    fn next_pause(&mut self) -> Duration {
        let failures = self.0.min(10);
        self.0 += 1;
        Duration::from_secs((5 << failures).min(300))
    }

    /// Ends the backoff. Returns whether the last attempt had failed.
    fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.0) > 0
    }
}
