//! Clock, UUIDs, long computations and tasks: injected, so that simulations stay deterministic.

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

/// Linux runs such threads when a processor has nothing else to do, and interrupts them at once
/// when it has. Those with the highest `nice` would keep others waiting for some milliseconds.
const IDLE: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);

/// Tells the time: for headers that say "now", and for the stamps that the leader puts on commands.
/// The model itself reads no clock; its time is in its log.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> SystemTime;

    /// Time since some fixed moment; never goes back. Used for deadlines.
    fn monotonic(&self) -> Duration;

    /// How long the machine was suspended since some fixed moment: timers stand still in the
    /// meantime.
    fn suspended(&self) -> Duration {
        Duration::ZERO
    }
}

/// A time of a wall clock in microseconds since 1970; 0 before.
pub fn micros(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Makes UUIDs: of providers that are created without one, and of requests.
pub trait UuidSource: Send + Sync {
    /// A UUID that was never used.
    fn uuid(&self) -> Uuid;
}

/// Runs long computations where they hold up neither other requests nor apply.
pub trait Offload: Send + Sync {
    /// Runs `work` to its end, whether or not the returned future is still waited for. In
    /// production on a thread for blocking work, in simulations at once.
    fn run(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;

    /// The same for what only people wait for: it gets the time that requests and Raft leave.
    fn run_idly(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        self.run(work)
    }
}

/// Runs what goes on after the future of a request has ended.
pub trait Background: Send + Sync {
    /// Runs a task until it ends, or this process does.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// What a long computation makes; `None` if it panicked.
pub async fn compute<T: Send + 'static>(
    run: impl FnOnce(Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, mut made) = oneshot::channel();
    let work = move || drop(sender.send(work()));
    run(Box::new(work)).await;
    made.try_recv().ok()
}

/// The real world: the system's clock, its random numbers, tokio's threads for blocking work.
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
        // In this order, so that it is never less than it was.
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
        // A request that panicked is logged, and misses what it was to be given; one that was not
        // begun is of a node that stops.
        Box::pin(handle.map(drop))
    }

    fn run_idly(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        let (sender, ended) = oneshot::channel::<()>();
        let idle = move || {
            // Of this thread alone, and for good: so it is one of its own. Without it, it only runs
            // as others do.
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, IDLE);
            let _ = contain_call(work);
            drop(sender);
        };
        let begun = std::thread::Builder::new()
            .name("idle".to_owned())
            .spawn(idle);
        match begun {
            Ok(_) => Box::pin(ended.map(drop)),
            // What was to be made is missed.
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
    async fn idle_work_gets_what_others_leave() {
        let (sender, policy) = oneshot::channel();
        let work = Box::new(move || _ = sender.send(thread_schedule_policy()));
        RealWorld::default().run_idly(work).await;
        assert_eq!(policy.await.unwrap().unwrap(), IDLE);
    }
}
