//! File descriptors: as many as the system gives this process, and no more connections than they
//! allow. A node that runs out of them can reach neither its disk nor the other nodes.

use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;

/// What a node needs besides its clients' connections: files of the disk, the other nodes,
/// operators, and clients that are turned away.
const OTHERS: usize = 1024;

/// Raises the soft limit to the hard one. Shells and supervisors set it to 1024 for programs that
/// use `select`, which this one does not.
pub(crate) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, soft = limit.current, "cannot raise the limit of open files");
    }
}

/// Places for connections of clients, as many as the process has descriptors for: all listeners
/// share them. `connections_max` is what each of `listeners` takes at most.
pub(crate) fn for_clients(listeners: usize, connections_max: usize) -> Arc<Semaphore> {
    let wanted = listeners.saturating_mul(connections_max);
    let limit = getrlimit(Resource::Nofile).current;
    let share = limit.map_or(usize::MAX, |limit| {
        share_of(usize::try_from(limit).unwrap_or(usize::MAX))
    });
    if share < wanted {
        tracing::warn!(
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
