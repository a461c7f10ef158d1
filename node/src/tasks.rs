//! The tasks of one node: spawned together, stopped together, and waited for, so that nothing of a
//! stopped node lives on (an open database, say).

use std::future::Future;

use placement_raft_store::runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A group of tasks. Clones are the same group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Spawns a task that is dropped at its next await when the group is stopped.
    pub(crate) fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = self.stop.clone();
        let future = self.tracker.track_future(async move {
            stop.run_until_cancelled_owned(future).await;
        });
        drop(runtime::spawn(future));
    }

    /// Stops all tasks and waits until the last one is gone.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Stops all tasks without waiting, as a crash does.
    pub(crate) fn abandon(&self) {
        self.stop.cancel();
        self.tracker.close();
    }
}
