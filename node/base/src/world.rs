//! Clock, UUIDs, long computations and tasks as dependencies, so that simulations are
//! deterministic.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;
use placement_model::types::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::contain::contain_call;

/// Scheduling policy of idle work: Linux runs such threads only on otherwise idle processors and
/// preempts them immediately. Even threads with the highest `nice` value would delay others by some
/// milliseconds.
const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);

/// A clock, for headers that contain the current time and for the timestamps that the leader
/// assigns to commands. The model reads no clock; it uses these timestamps.
pub trait Clock: Send + Sync {
    /// Time of the wall clock.
    fn now(&self) -> SystemTime;

    /// Monotonic time since a fixed moment, for deadlines.
    fn monotonic(&self) -> Duration;

    /// Total time that the machine was suspended since a fixed moment. Timers stop during
    /// suspension.
    fn suspended(&self) -> Duration {
        Duration::ZERO
    }
}

/// A wall-clock time in microseconds since 1970; 0 for earlier times.
pub fn micros(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Generates UUIDs for requests, and for providers that are created without one.
pub trait UuidSource: Send + Sync {
    /// A new UUID, never returned before.
    fn uuid(&self) -> Uuid;
}

/// Runs long computations without delaying other requests or apply.
pub trait Offload: Send + Sync {
    /// Runs `work` to completion, even if the returned future is dropped. It runs on a thread for
    /// blocking work in production, and immediately in simulations.
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;

    /// Like [`Offload::run`] for work that only people wait for: it gets only the processor time
    /// that requests and Raft do not use.
    fn run_idly(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.run(work)
    }
}

/// Runs tasks that outlive a request.
pub trait Background: Send + Sync {
    /// Runs a task until it or this process ends.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// Result of a long computation; `None` if it panicked.
pub async fn compute<T: Send + 'static>(
    run: impl FnOnce(Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, mut made) = oneshot::channel();
    let work = move || drop(sender.send(work()));
    run(Box::new(work)).await;
    made.try_recv().ok()
}

/// The production environment: the system's clock and random numbers, and tokio's threads for
/// blocking work.
#[derive(Debug, Clone, Copy)]
pub struct RealWorld {
    started: std::time::Instant,
}

#[expect(clippy::disallowed_methods, reason = "this is the real world")]
impl Default for RealWorld {
    fn default() -> Self {
        Self {
            started: std::time::Instant::now(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the real world")]
impl Clock for RealWorld {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn suspended(&self) -> Duration {
        let since_boot = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
        // The monotonic clock is read first, so the result is never less than the suspended time.
        let awake = since_boot(ClockId::Monotonic);
        since_boot(ClockId::Boottime).saturating_sub(awake)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the real world")]
impl UuidSource for RealWorld {
    fn uuid(&self) -> Uuid {
        Uuid::new_v4()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the real world")]
impl Offload for RealWorld {
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let handle = tokio::task::spawn_blocking(|| contain_call(work));
        // If the work panics, the caller gets no result. Work that never begins belongs to a node
        // that is stopping.
        Box::pin(handle.map(drop))
    }

    fn run_idly(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let (sender, ended) = oneshot::channel::<()>();
        let idle = move || {
            // The policy affects only this thread and cannot be undone, so the work has a dedicated
            // thread. If setting it fails, the work runs at normal priority.
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, IDLE);
            let _ = contain_call(work);
            drop(sender);
        };
        let begun = std::thread::Builder::new()
            .name("idle".to_owned())
            .spawn(idle);
        match begun {
            Ok(_) => Box::pin(ended.map(drop)),
            // The caller gets no result.
            Err(_) => Box::pin(std::future::ready(())),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the real world")]
impl Background for RealWorld {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }
}

#[cfg(test)]
mod tests {
    use thread_priority::unix::thread_schedule_policy;

    use super::*;

    #[tokio::test]
    async fn idle_work_runs_with_idle_policy() {
        let (sender, policy) = oneshot::channel();
        let work = Box::new(move || _ = sender.send(thread_schedule_policy()));
        RealWorld::default().run_idly(work).await;
        assert_eq!(policy.await.unwrap().unwrap(), IDLE);
    }
}
