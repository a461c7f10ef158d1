//! The tasks of one node: they are stopped together and awaited, so that no task of a stopped node
//! still holds a resource such as an open database.

use std::future::{Future, pending};
use std::panic::resume_unwind;
use std::sync::Arc;

use crate::log_messages::log;
use crate::runtime;
use crate::world::Background;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A group of tasks. Clones are the same group.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
    /// The first vital task that has ended.
    ended: Arc<watch::Sender<Option<&'static str>>>,
    /// The runtime of the tasks, independent of the caller. `None`: the caller's runtime, as in a
    /// simulation, which has only one.
    home: Option<Handle>,
}

impl Background for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.spawn(task);
    }
}

/// Belongs to a vital task and is dropped when the task ends, for whatever reason.
struct Life {
    name: &'static str,
    tasks: Tasks,
}

impl Drop for Life {
    fn drop(&mut self) {
        if self.tasks.stop.is_cancelled() {
            return;
        }
        log!(
            VITAL_TASK_ENDED,
            task = self.name,
            "a vital task has ended; this is a bug"
        );
        self.tasks.ended.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(self.name);
            is_first
        });
    }
}

impl Tasks {
    /// A group whose tasks run on the runtime of the caller.
    pub fn on_current_runtime() -> Self {
        Self {
            home: runtime::home(),
            ..Self::default()
        }
    }

    /// A handle of the same group that spawns tasks on the runtime `home`, if it is given.
    pub fn on_runtime(&self, home: Option<Handle>) -> Self {
        Self {
            home: home.or_else(|| self.home.clone()),
            ..self.clone()
        }
    }

    /// Spawns a task that is dropped at its next await when the group is stopped.
    pub fn spawn<F>(&self, future: F)
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

    /// Spawns a vital task, named by its work. If it ends before the group is stopped,
    /// [`Tasks::ended`] and [`Tasks::until_one_ended`] return its name.
    pub fn spawn_vital<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let life = Life {
            name,
            tasks: self.clone(),
        };
        self.spawn(async move {
            let _life = life;
            future.await;
        });
    }

    /// The first vital task that has ended, if one has.
    pub fn ended(&self) -> Option<&'static str> {
        *self.ended.borrow()
    }

    /// Waits until a vital task has ended, and returns its name.
    pub async fn until_one_ended(&self) -> &'static str {
        let mut ended = self.ended.subscribe();
        let name = ended
            .wait_for(Option::is_some)
            .await
            .expect("the sender is in `self`");
        name.expect("the wait ends only with a name")
    }

    /// Runs a future on the group's runtime while the caller, possibly on another one, waits: a
    /// socket and spawned tasks belong to the runtime on which they are created.
    pub async fn run<F>(&self, future: F) -> F::Output
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
                // The runtime is shutting down, so nothing waits for the output any more.
                Err(_) => pending().await,
            },
        }
    }

    /// Stops all tasks and waits until the last one has ended.
    pub async fn stop(&self) {
        self.abandon();
        self.tracker.wait().await;
    }

    /// Stops all tasks without waiting, like a crash.
    pub fn abandon(&self) {
        self.stop.cancel();
        self.tracker.close();
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn end_of_a_vital_task_is_reported_unless_all_are_stopped() {
        let tasks = Tasks::on_current_runtime();
        tasks.spawn(ready(()));
        tasks.spawn_vital("waiting", pending());
        tokio::task::yield_now().await;
        assert_eq!(tasks.ended(), None);
        tasks.spawn_vital("proposing", ready(()));
        assert_eq!(tasks.until_one_ended().await, "proposing");
        tasks.spawn_vital("reading", ready(()));
        tasks.stop().await;
        assert_eq!(tasks.ended(), Some("proposing"));

        let stopped = Tasks::on_current_runtime();
        stopped.spawn_vital("waiting", pending());
        stopped.stop().await;
        assert_eq!(stopped.ended(), None);
    }
}
