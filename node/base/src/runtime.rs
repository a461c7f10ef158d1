//! Tasks, threads and random numbers. All crates of the node use this module for them; it calls the
//! thread's [`Platform`](crate::platform::Platform).

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc as threads;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rand_openraft::{Rng, TryRng};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::log_messages::log;
pub use crate::platform::Limits;
use crate::platform::{Steps, here};

/// The limits of the calling thread.
pub fn limits() -> Limits {
    here(|platform| platform.limits())
}

/// Number of items per piece that [`run_ahead`] hands over.
const PIECE_ITEMS: usize = 1_000;
/// Maximum number of pieces that wait for the consumer of [`run_ahead`].
const PIECES_WAITING: usize = 4;

/// Runs an iterator on a separate thread, ahead of its consumer.
pub fn run_ahead<T: Send, R>(
    mut items: impl Iterator<Item = T> + Send,
    consume: impl FnOnce(&mut dyn Iterator<Item = T>) -> R,
) -> R {
    let (sender, receiver) = threads::sync_channel(PIECES_WAITING);
    thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let piece: Vec<T> = items.by_ref().take(PIECE_ITEMS).collect();
                // Sending fails if the consumer has stopped early.
                if piece.is_empty() || sender.send(piece).is_err() {
                    break;
                }
            }
        });
        consume(&mut receiver.into_iter().flatten())
    })
}

/// Runs long work on a low-priority thread and waits for it.
///
/// # Panics
/// If `work` panics.
pub fn yielding<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let (mut work, mut done) = (Some(work), None);
    here(|platform| platform.yielding(&mut || done = work.take().map(|work| work())));
    done.expect("each platform runs the work before it returns")
}

/// Spawns a task: on tokio's workers, or on the thread's `LocalSet` if the platform requires it.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub fn spawn<T>(future: T) -> JoinHandle<T::Output>
where
    T: Future + Send + 'static,
    T::Output: Send + 'static,
{
    match here(|platform| platform.steps()) {
        None => tokio::task::spawn(future),
        Some(steps) => tokio::task::spawn_local(Stepped::new(steps, future)),
    }
}

/// The tokio runtime whose workers run tasks spawned on this thread; `None` if tasks stay on the
/// thread.
pub fn home() -> Option<Handle> {
    match here(|platform| platform.steps()) {
        None => Handle::try_current().ok(),
        Some(_) => None,
    }
}

/// A future that is polled only when its [`Steps`] permits.
pub struct Stepped<F> {
    steps: Rc<dyn Steps>,
    future: Pin<Box<F>>,
}

impl<F> Stepped<F> {
    /// `steps` decides when `future` is polled.
    pub fn new(steps: Rc<dyn Steps>, future: F) -> Self {
        let future = Box::pin(future);
        Self { steps, future }
    }
}

impl<F: Future> Future for Stepped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { steps, future } = &mut *self;
        let mut polled = Poll::Pending;
        steps.step(context, &mut |context| {
            polled = future.as_mut().poll(context);
        });
        polled
    }
}

/// Waits for the platform's delay before a thread starts its work.
pub async fn scheduled() {
    if let Some(late) = here(|platform| platform.scheduled()) {
        late.await;
    }
}

/// Runs blocking work off the async threads. Work that has begun is completed, even if the caller
/// no longer waits.
///
/// # Panics
/// If `work` panics.
pub async fn blocking<F, T>(work: F) -> T
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (sender, mut result) = oneshot::channel();
    let work = move || drop(sender.send(work()));
    let handle = here(|platform| platform.blocking(Box::new(work)));
    let done = handle.await;
    scheduled().await;
    match done {
        Ok(()) => (result.try_recv()).expect("finished work has sent its result"),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Blocking work is cancelled only when the runtime shuts down; then nothing waits for
            // the result.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Runs a watchdog on a dedicated thread, by the machine's real clock.
///
/// # Panics
/// If the thread cannot be started.
pub fn watchdog(name: &'static str, watch: impl FnOnce() + Send + 'static) {
    here(|platform| platform.watchdog(name, Box::new(watch)));
}

/// How long the process waits before it ends, so that the reason is written to the log.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Ends the process. The caller has logged the reason.
#[expect(
    clippy::disallowed_methods,
    reason = "no simulated process ends like this"
)]
pub fn end_process() -> ! {
    std::thread::sleep(LAST_WORDS);
    std::process::abort();
}

/// Sends jobs to a dedicated thread, which processes them in order. When this is dropped, the
/// thread finishes the queued jobs and ends.
pub struct Worker<T> {
    // Declared before the thread, so that it is dropped first: the thread ends when all senders are
    // dropped, and is then joined.
    queue: mpsc::UnboundedSender<T>,
    _thread: Joined,
}

impl<T> Worker<T> {
    /// `work` processes the jobs; `run` starts a thread for it.
    pub fn start<W: Future<Output = ()> + Send + 'static>(
        work: impl FnOnce(mpsc::UnboundedReceiver<T>) -> W,
        run: impl FnOnce(BoxFuture<'static, ()>) -> io::Result<Option<thread::JoinHandle<()>>>,
    ) -> io::Result<Self> {
        let (queue, receiver) = mpsc::unbounded_channel();
        let _thread = Joined(run(work(receiver).boxed())?);
        Ok(Self { queue, _thread })
    }

    /// Queues a job. Returns false if the thread has ended.
    pub fn send(&self, job: T) -> bool {
        self.queue.send(job).is_ok()
    }
}

/// Joins a thread when dropped.
struct Joined(Option<thread::JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take()
            && thread.join().is_err()
        {
            log!(
                DISK_THREAD_PANICKED,
                "a thread that writes to the disk has panicked"
            );
        }
    }
}

/// A random number from the platform's source.
pub fn random_u64() -> u64 {
    RuntimeRng.next_u64()
}

/// The random numbers of the calling thread's platform.
#[derive(Debug, Clone, Copy, Default)]
pub struct RuntimeRng;

impl TryRng for RuntimeRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut drawn = 0;
        here(|platform| platform.random(&mut |source| drawn = source.next_u32()));
        Ok(drawn)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut drawn = 0;
        here(|platform| platform.random(&mut |source| drawn = source.next_u64()));
        Ok(drawn)
    }

    fn try_fill_bytes(&mut self, target: &mut [u8]) -> Result<(), Infallible> {
        here(|platform| platform.random(&mut |source| source.fill_bytes(target)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::NICENESS;

    #[test]
    fn ahead_keeps_all_items_in_order_and_stops_with_its_consumer() {
        let many = 10 * PIECES_WAITING * PIECE_ITEMS + 1;
        let in_order = |items: &mut dyn Iterator<Item = usize>| items.eq(0..many);
        assert!(run_ahead(0..many, in_order));
        assert_eq!(run_ahead(0.., |items| items.nth(many)), Some(many));
    }

    #[test]
    fn yielding_work_has_low_priority_and_propagates_panics() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        assert_eq!(yielding(niceness), NICENESS.max(before));
        assert_eq!(niceness(), before, "this thread is unchanged");
        let panic = std::panic::catch_unwind(|| yielding(|| panic!("seen")));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"seen"));
    }
}
