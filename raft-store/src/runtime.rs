//! The async runtime for openraft: tokio, with tasks and random numbers from the thread's
//! [`Platform`](placement_base::platform::Platform).

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use openraft::{AsyncRuntime, Instant as _, OptionalSend};
use openraft_rt_tokio::{TokioInstant as Instant, TokioRuntime};
use placement_base::runtime::{RuntimeRng, blocking, spawn};
use tokio::task::{JoinError, JoinHandle};

/// Shorter sleeps end immediately: tokio rounds up to whole milliseconds, and openraft sleeps for
/// one microsecond before it reports a sync.
const SLEEP_MIN: Duration = Duration::from_micros(50);
/// Subtracted from the current time to get a deadline that has certainly expired, for any
/// resolution of the clock.
const LONG_AGO: Duration = Duration::from_secs(1);
/// Maximum number of consecutive sleeps until the same deadline that end immediately. openraft's
/// tick repeats the same deadline shortly before its next beat, until the time has passed.
/// Simulated time passes only while all tasks wait, so further sleeps really wait.
const AT_ONCE_MOST: u32 = 100;

thread_local! {
    /// The last requested deadline, and the number of consecutive requests for it.
    static ASKED: Cell<Option<(Instant, u32)>> = const { Cell::new(None) };
}

fn ends_at_once(deadline: Instant, now: Instant) -> bool {
    if deadline <= now || deadline >= now + SLEEP_MIN {
        return deadline <= now;
    }
    let times = match ASKED.get() {
        Some((before, times)) if before == deadline => times + 1,
        _ => 1,
    };
    ASKED.set(Some((deadline, times)));
    times <= AT_ONCE_MOST
}

/// The runtime for openraft.
#[derive(Debug)]
pub struct Runtime(TokioRuntime);

impl AsyncRuntime for Runtime {
    type JoinError = JoinError;
    type JoinHandle<T: OptionalSend + 'static> = JoinHandle<T>;
    type Sleep = tokio::time::Sleep;
    type Instant = Instant;
    type TimeoutError = tokio::time::error::Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = tokio::time::Timeout<T>;
    type ThreadLocalRng = RuntimeRng;
    type Mpsc = openraft_rt_tokio::TokioMpsc;
    type Watch = openraft_rt_tokio::TokioWatch;
    type Oneshot = openraft_rt_tokio::TokioOneshot;
    type Mutex<T: OptionalSend + 'static> = openraft_rt_tokio::TokioMutex<T>;

    #[track_caller]
    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        spawn(future)
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        TokioRuntime::sleep(duration)
    }

    fn sleep_until(deadline: Self::Instant) -> Self::Sleep {
        let now = Self::Instant::now();
        if ends_at_once(deadline, now) {
            TokioRuntime::sleep_until(now - LONG_AGO)
        } else {
            TokioRuntime::sleep_until(deadline)
        }
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> Self::Timeout<R, F> {
        TokioRuntime::timeout(duration, future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: Self::Instant,
        future: F,
    ) -> Self::Timeout<R, F> {
        TokioRuntime::timeout_at(deadline, future)
    }

    fn is_panic(join_error: &Self::JoinError) -> bool {
        join_error.is_panic()
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        RuntimeRng
    }

    fn new(threads: usize) -> Self {
        Self(TokioRuntime::new(threads))
    }

    fn block_on<F, T>(&mut self, future: F) -> T
    where
        F: Future<Output = T>,
    {
        self.0.block_on(future)
    }

    #[expect(clippy::manual_async_fn, reason = "the future must be Send")]
    fn spawn_blocking<F, T>(work: F) -> impl Future<Output = Result<T, std::io::Error>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        async move { Ok(blocking(work).await) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_passes_the_suite_of_openraft() {
        // Runs openraft's own requirements for channels, clocks and tasks.
        openraft::testing::runtime::Suite::<Runtime>::test_all();
    }

    #[tokio::test(start_paused = true)]
    async fn time_passes_for_repeated_sleeps_to_one_deadline() {
        let begun = Instant::now();
        let soon = begun + Duration::from_micros(20);
        let mut asked = 0;
        while Instant::now() < soon {
            Runtime::sleep_until(soon).await;
            asked += 1;
            assert!(asked <= AT_ONCE_MOST + 1, "no time passes");
        }
        assert_eq!(asked, AT_ONCE_MOST + 1);
        Runtime::sleep_until(begun + Duration::from_millis(2)).await;
        assert!(begun.elapsed() >= Duration::from_millis(2));
    }
}
