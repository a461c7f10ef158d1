//! Whether this node's storage still works, and can be vouched for.

use std::sync::Arc;

use tokio::sync::watch;

/// The first failure of this node's storage. A failure is final: the node has to be started again after its cause is
/// removed. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<watch::Sender<Option<Arc<str>>>>);

impl Health {
    /// The failure, if there is one: `the log in DIR cannot be written: ...`.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.0.borrow().clone()
    }

    /// Ends this node's part, with the reason and what to do. Only the first report is kept, as the others follow
    /// from it.
    pub fn report(&self, words: &str) {
        let first = self.0.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert_with(|| words.into());
            first
        });
        if first {
            tracing::error!(failure = words, "this node stops taking part");
        }
    }

    /// Waits for a failure, perhaps for ever.
    pub async fn failed(&mut self) -> Arc<str> {
        let mut failures = self.0.subscribe();
        let failed = failures.wait_for(Option::is_some).await;
        let failure = failed.ok().and_then(|failure| failure.clone());
        failure.expect("its sender is held here, and waits for a failure")
    }
}
