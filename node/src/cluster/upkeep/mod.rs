//! What keeps a member fit: logs cut, disks watched, states compared, backups made, upgrades completed.

pub(crate) mod backups;
pub(crate) mod disk_watch;
pub(crate) mod divergence;
pub(crate) mod mirror;
pub(crate) mod room;
pub(crate) mod snapshot_intake;
pub(crate) mod snapshots;
pub(crate) mod upgrade;

use std::time::Duration;

/// How long what has failed so many times before waits for the next attempt: 5 s, and twice as long each time, at most
/// 5 minutes.
fn retry_after(failures: u32) -> Duration {
    Duration::from_secs((5_u64 << failures.min(10)).min(300))
}
