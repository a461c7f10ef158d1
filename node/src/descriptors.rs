//! File descriptors: raises the limit to the system's maximum, and limits connections accordingly.
//! A node without descriptors can reach neither its disk nor the other nodes.

use std::sync::Arc;

use placement_base::log_messages::log;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;

/// Descriptors reserved for other purposes than clients' connections: files of the disk, other
/// nodes, operators, and rejected clients.
const OTHERS: usize = 1024;

/// Raises the soft limit to the hard limit. Shells and supervisors set the soft limit to 1024 for
/// programs that use `select`; this program does not use it.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        log!(
            OPEN_FILES_LIMIT_LOW,
            %error,
            soft = limit.current,
            "cannot raise the limit of open files"
        );
    }
}

/// A semaphore for the connections of clients, shared by all listeners: as many permits as there
/// are descriptors for them. `connections_max` is the limit of each of `listeners`.
pub(crate) fn for_clients(listeners: usize, connections_max: usize) -> Arc<Semaphore> {
    let wanted = listeners.saturating_mul(connections_max);
    let limit = getrlimit(Resource::Nofile).current;
    let share = limit.map_or(usize::MAX, |limit| {
        share_of(usize::try_from(limit).unwrap_or(usize::MAX))
    });
    if share < wanted {
        log!(
            OPEN_FILES_LIMIT_LOW,
            limit,
            share,
            wanted,
            listeners,
            "the system's limit of open files is too low for [api] max_connections on each listener"
        );
    }
    Arc::new(Semaphore::new(
        share.min(wanted).min(Semaphore::MAX_PERMITS),
    ))
}

fn share_of(limit: usize) -> usize {
    limit.saturating_sub(OTHERS).max(limit / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_others_leave_and_a_quarter_at_least() {
        let shares = [256, 1024, 1500, 8192].map(share_of);
        assert_eq!(shares, [64, 256, 476, 7168]);
    }
}
