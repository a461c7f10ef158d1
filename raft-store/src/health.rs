//! Whether this node's storage still works, and can be vouched for.

use std::sync::Arc;

use tokio::sync::watch;

/// The first failure of this node's storage, in words. A failure is final: the node has to be
/// started again after its cause is removed.
#[derive(Debug, Clone)]
pub struct Health {
    failure: watch::Receiver<Option<Arc<str>>>,
    reporter: Reporter,
}

impl Health {
    /// The failure, if there is one: `the log in DIR cannot be written: ...`.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.failure.borrow().clone()
    }

    /// Ends this node's part for a reason that the store cannot see, in words that say what to do.
    pub fn report(&self, words: &str) {
        self.reporter.report(words);
    }

    /// Waits for a failure, perhaps for ever.
    pub async fn failed(&mut self) -> Arc<str> {
        if let Ok(failure) = self.failure.wait_for(Option::is_some).await
            && let Some(words) = failure.clone()
        {
            return words;
        }
        // The store is closed: no failure can follow.
        std::future::pending().await
    }
}

/// Reports failures of the store.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    failure: Arc<watch::Sender<Option<Arc<str>>>>,
}

impl Reporter {
    pub(crate) fn new() -> (Self, Health) {
        let (sender, receiver) = watch::channel(None);
        let reporter = Self {
            failure: Arc::new(sender),
        };
        let health = Health {
            failure: receiver,
            reporter: reporter.clone(),
        };
        (reporter, health)
    }

    /// Reports a failure; only the first one is kept, as the others follow from it.
    pub(crate) fn report(&self, words: &str) {
        let first = self.failure.send_if_modified(|failure| {
            let first = failure.is_none();
            failure.get_or_insert_with(|| words.into());
            first
        });
        if first {
            tracing::error!(failure = words, "this node stops taking part");
        }
    }
}
