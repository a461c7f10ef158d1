//! Limits how often the same message is logged.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Minimum time between equal messages about one node.
const PAUSE: Duration = Duration::from_secs(30);

/// The last message about each node.
#[derive(Default)]
pub(crate) struct LogThrottle {
    last: Mutex<BTreeMap<u64, (String, Instant)>>,
}

impl LogThrottle {
    /// Maximum number of remembered messages: callers choose the node id that they claim, so an
    /// unlimited map could fill the memory.
    const REMEMBERED: usize = 64;

    /// Whether the message `what` about a node should be logged now.
    pub(crate) fn is_due(&self, node: u64, what: &str) -> bool {
        let mut last = self.last.lock();
        let is_old = |(logged, at): &(String, Instant)| logged == what && at.elapsed() < PAUSE;
        if last.get(&node).is_some_and(is_old) {
            return false;
        }
        if last.len() >= Self::REMEMBERED {
            last.clear();
        }
        last.insert(node, (what.to_owned(), Instant::now()));
        true
    }
}
