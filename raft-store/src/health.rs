//! Whether this node's storage works and the node may take part in the cluster.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;

use crate::error::io_error;
use placement_base::log_messages::log;
use placement_base::platform::here;

/// The first failure of this node's storage. A failure is final: an operator must fix the cause and
/// restart the node. Clones share the failure.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<watch::Sender<Option<Arc<str>>>>);

impl Health {
    /// The failure, if any: `the log in DIR cannot be written: ...`.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Reports a failure, with the reason and what to do; the node is then quarantined. Only the
    /// first report is kept, because later failures are consequences of the first.
    pub fn report(&self, words: &str) {
        let first = self.0.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert_with(|| words.into());
            first
        });
        if first {
            log!(QUARANTINED, failure = words, "this node is now quarantined");
        }
    }

    /// Waits for a failure, possibly forever.
    pub async fn failed(&self) {
        let mut failures = self.0.subscribe();
        let failed = failures.wait_for(Option::is_some).await;
        failed.expect("this handle keeps the sender alive, so the wait ends only with a failure");
    }
}

/// The first failure of a part of the storage. All later writes fail, because no write may follow a
/// lost write.
#[derive(Debug)]
pub(crate) struct Failure {
    part: &'static str,
    dir: PathBuf,
    first: OnceLock<String>,
    health: Health,
}

impl Failure {
    pub(crate) fn new(part: &'static str, dir: &Path, health: &Health) -> Self {
        Self {
            part,
            dir: dir.to_owned(),
            first: OnceLock::new(),
            health: health.clone(),
        }
    }

    /// Returns the first failure as an error.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.first.get() {
            Some(words) => Err(io_error(words)),
            None => Ok(()),
        }
    }

    /// Records a failure, unless one is recorded already, and reports it.
    pub(crate) fn fail(&self, action: &str, error: &str) -> io::Error {
        // This message is sent to clients and other nodes, so simulations need the same path in
        // each run.
        let dir = here(|platform| platform.shown(&self.dir));
        let words = format!(
            "the {} in {} cannot be {action}: {error}. Fix the cause, then restart the node",
            self.part,
            dir.display()
        );
        self.first.get_or_init(|| words.clone());
        self.health.report(&words);
        io_error(words)
    }
}
