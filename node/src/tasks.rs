//! The tasks of one node: spawned together, stopped together, and waited for, so that nothing of a
//! stopped node lives on (an open database, say).

use std::future::{Future, pending};
use std::panic::resume_unwind;

use placement_raft_store::runtime;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A group of tasks. Clones are the same group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    /// The runtime that they run on, whoever spawns them; `None`: that of whoever does, which is the
    /// only one in a simulation.
    home: Option<Handle>,
}

impl Tasks {
    /// A group whose tasks run on the runtime of the caller.
    pub(crate) fn here() -> Self {
        let home = match runtime::is_simulated() {
            true => None,
            false => Handle::try_current().ok(),
        };
        Self {
            home,
            ..Self::default()
        }
    }

    /// The same group; what is spawned through this value runs on another runtime, if one is given.
    pub(crate) fn on(&self, home: Option<Handle>) -> Self {
        Self {
            home: home.or_else(|| self.home.clone()),
            ..self.clone()
        }
    }

    /// Spawns a task that is dropped at its next await when the group is stopped.
    pub(crate) fn spawn<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = self.stop.clone();
        let future = self.tracker.track_future(async move {
            stop.run_until_cancelled_owned(future).await;
        });
        match &self.home {
            Some(home) => drop(home.spawn(future)),
            None => drop(runtime::spawn(future)),
        }
    }

    /// Carries something out on the group's runtime while the caller, who may be on another one, waits
    /// for it: a socket and the tasks that are spawned belong to the runtime on which they are made.
    pub(crate) async fn run<F>(&self, future: F) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(home) = &self.home else {
            return future.await;
        };
        match AbortOnDropHandle::new(home.spawn(future)).await {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime shuts down: nobody waits for the output any more.
                Err(_) => pending().await,
            },
        }
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
