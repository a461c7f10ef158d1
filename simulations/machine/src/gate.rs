//! A simulated process that can be stopped and continued, like SIGSTOP and SIGCONT. While it is
//! stopped, none of its tasks runs, its clocks advance and messages to it queue up.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use parking_lot::Mutex;
use placement_base::platform::Steps;
use placement_base::runtime::Stepped;

thread_local! {
    static CURRENT: RefCell<Option<Gate>> = const { RefCell::new(None) };
}

/// Controls whether the tasks of one simulated process run. Clones share the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    is_closed: bool,
    waiting: Vec<Waker>,
}

impl Gate {
    /// Stops all tasks of the process.
    pub fn close(&self) {
        self.inner.lock().is_closed = true;
    }

    /// Lets the tasks continue.
    pub fn open(&self) {
        let waiting = {
            let mut inner = self.inner.lock();
            inner.is_closed = false;
            std::mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Runs the first task of a process. Tasks that it spawns through
    /// [`placement_base::runtime`] belong to the process too.
    pub fn around<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Stepped::new(Rc::new(self.clone()), future)
    }

    /// The gate of the process whose task runs now.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Whether the task has to wait. If so, opening the gate wakes it.
    fn keeps(&self, context: &Context<'_>) -> bool {
        let mut inner = self.inner.lock();
        if inner.is_closed {
            inner.waiting.push(context.waker().clone());
        }
        inner.is_closed
    }
}

impl Steps for Gate {
    fn step(&self, context: &mut Context<'_>, poll: &mut dyn FnMut(&mut Context<'_>)) {
        if !self.keeps(context) {
            let _inside = GateGuard(CURRENT.replace(Some(self.clone())));
            poll(context);
        }
    }
}

/// Steps of tasks that belong to no process.
pub(crate) struct NoGate;

impl Steps for NoGate {
    fn step(&self, context: &mut Context<'_>, poll: &mut dyn FnMut(&mut Context<'_>)) {
        poll(context);
    }
}

/// Restores the previous gate, also when a task panics.
struct GateGuard(Option<Gate>);

impl Drop for GateGuard {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use placement_base::runtime;
    use tokio::task::LocalSet;
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stopped_process_does_not_run_and_its_timers_fire_late() {
        let _simulation = crate::simulate(1);
        let steps = Arc::new(Mutex::new(Vec::new()));
        let (gate, begun, seen) = (Gate::default(), Instant::now(), steps.clone());
        let process = gate.around(async move {
            let child = runtime::spawn(async move {
                for _ in 0..3 {
                    sleep(Duration::from_secs(1)).await;
                    seen.lock().push(begun.elapsed().as_secs());
                }
            });
            child.await.unwrap();
        });
        let tasks = LocalSet::new();
        let process = tasks.spawn_local(process);
        let story = async {
            sleep(Duration::from_millis(1500)).await;
            gate.close();
            sleep(Duration::from_secs(8)).await;
            assert_eq!(*steps.lock(), [1]);
            gate.open();
            process.await.unwrap();
        };
        tasks.run_until(story).await;
        assert_eq!(*steps.lock(), [1, 9, 10]);
    }
}
