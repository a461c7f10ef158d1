//! The one async runtime that openraft and the node use, in production and in simulations.
//!
//! In production it is tokio with the operating system's randomness. After [`simulate`] the calling
//! thread is a simulation: tasks are spawned on the thread's `LocalSet`, blocking work is done in
//! place, and random numbers come from a seeded generator, so that one seed gives one history.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use openraft::{AsyncRuntime, Instant as _, OptionalSend};
use openraft_rt_tokio::{TokioInstant as Instant, TokioRuntime};
use rand_openraft::rngs::StdRng;
use rand_openraft::{Rng, SeedableRng, TryRng};
use tokio::task::{JoinError, JoinHandle};

use crate::files;
use crate::gate::Gate;

/// Sizes at which work is split, in bytes. The product has one set; a simulation draws smaller ones, so that
/// small states reach the code behind them. And how late threads are, which in the product they are of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A frame between nodes that is longer goes in pieces of this size.
    pub piece: usize,
    /// Rows in one frame of a snapshot or backup.
    pub snapshot_frame: usize,
    /// Rows in one write when a whole state is put in place.
    pub install_batch: usize,
    /// Log entries in one write.
    pub log_batch: usize,
    /// A file of the archived log that is longer is followed by another one.
    pub archive_file: u64,
    /// Entries in a message that are longer are read off the async threads.
    pub read_inline: usize,
    /// Rows that are written and not flushed, until they are flushed.
    ///
    /// Only a simulation looks at it: in the product RocksDB flushes its write buffers in threads of its own, and
    /// what is on disk would depend on when they run.
    pub rows_buffer: usize,
    /// One in so many times a thread of a simulation comes to its work late, by up to [`Limits::late`].
    pub late_one_in: u64,
    /// The longest that it is late.
    pub late: Duration,
}

impl Limits {
    /// Those of the product.
    pub const PRODUCT: Self = Self {
        piece: 16 << 10,
        snapshot_frame: 1 << 20,
        install_batch: 4 << 20,
        log_batch: 16 << 20,
        archive_file: 8 << 20,
        read_inline: 64 << 10,
        rows_buffer: usize::MAX,
        late_one_in: 16,
        late: Duration::from_millis(8),
    };
}

thread_local! {
    static SIMULATED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
    static LIMITS: Cell<Limits> = const { Cell::new(Limits::PRODUCT) };
}

/// Turns the calling thread into a simulation, until the guard is dropped. Everything random that
/// [`Runtime`] hands out afterwards on this thread follows from `seed`.
pub fn simulate(seed: u64) -> SimulationGuard {
    simulate_within(seed, Limits::PRODUCT)
}

/// As [`simulate`], with other limits.
pub fn simulate_within(seed: u64, limits: Limits) -> SimulationGuard {
    let before = SIMULATED.with(|cell| cell.replace(Some(StdRng::seed_from_u64(seed))));
    SimulationGuard {
        before,
        limits: LIMITS.replace(limits),
        thread_bound: PhantomData,
    }
}

/// The limits of the calling thread.
pub fn limits() -> Limits {
    LIMITS.get()
}

/// Whether the calling thread is a simulation.
pub fn is_simulated() -> bool {
    SIMULATED.with(|cell| cell.borrow().is_some())
}

/// Ends a simulation when dropped.
#[must_use = "the simulation ends when this is dropped"]
#[derive(Debug)]
pub struct SimulationGuard {
    before: Option<StdRng>,
    limits: Limits,
    // The switch belongs to one thread, so its guard may not leave it.
    thread_bound: PhantomData<*const ()>,
}

impl Drop for SimulationGuard {
    fn drop(&mut self) {
        let before = self.before.take();
        SIMULATED.with(|cell| *cell.borrow_mut() = before);
        LIMITS.set(self.limits);
    }
}

/// A shorter sleep ends at once: tokio rounds up to whole milliseconds, and openraft has the news of a
/// sync wait for a microsecond.
const SLEEP_MIN: Duration = Duration::from_micros(50);
/// A deadline that is over by every clock's granularity.
const LONG_AGO: Duration = Duration::from_secs(1);
/// So many times in a row it ends at once. Who asks for the same deadline again waits for the time to pass, as
/// openraft's tick does just before its next beat; and simulated time passes only while all wait.
const AT_ONCE_MOST: u32 = 100;

thread_local! {
    /// The deadline that was asked for last, and how often.
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

/// How many items [`ahead`] hands over at once, and how many such pieces may wait.
const PIECE_ITEMS: usize = 1_000;
const PIECES_WAITING: usize = 4;

/// Lets an iterator run ahead of what consumes it, on a thread of its own. In a simulation they
/// take turns.
pub(crate) fn ahead<T: Send, R>(
    mut items: impl Iterator<Item = T> + Send,
    consume: impl FnOnce(&mut dyn Iterator<Item = T>) -> R,
) -> R {
    if is_simulated() {
        return consume(&mut items);
    }
    let (sender, receiver) = mpsc::sync_channel(PIECES_WAITING);
    thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let piece: Vec<T> = items.by_ref().take(PIECE_ITEMS).collect();
                // Who has stopped consuming has seen enough.
                if piece.is_empty() || sender.send(piece).is_err() {
                    break;
                }
            }
        });
        consume(&mut receiver.into_iter().flatten())
    })
}

/// How much a thread of [`yielding`] work stands back, as `nice` counts: a tenth of what others get.
const NICENESS: i32 = 10;

/// Does long work on a thread that stands back behind all others of the machine, and waits for it. In
/// a simulation it is done in place.
///
/// # Panics
/// If `work` panics.
pub(crate) fn yielding<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if is_simulated() {
        return work();
    }
    let done = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // On Linux this is about the calling thread alone. If it may not, it is in the way of others.
            let _ = rustix::process::setpriority_process(None, NICENESS);
            work()
        });
        thread.join()
    });
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Spawns a task: on tokio's workers, or in a simulation on the thread's `LocalSet`.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub fn spawn<T>(future: T) -> JoinHandle<T::Output>
where
    T: Future + Send + 'static,
    T::Output: Send + 'static,
{
    if is_simulated() {
        match Gate::current() {
            Some(gate) => tokio::task::spawn_local(gate.around(future)),
            None => tokio::task::spawn_local(future),
        }
    } else {
        tokio::task::spawn(future)
    }
}

/// Other tasks take so many turns at most before a thread of a simulation has begun, and before its result is seen.
const TURNS_MAX: u64 = 3;

/// In a simulation, lets other tasks go on for as long as a thread may take to come to its work: for some turns,
/// now and then for some milliseconds. Elsewhere threads do that themselves.
pub async fn scheduled() {
    if !is_simulated() {
        return;
    }
    let drawn = random_u64();
    for _ in 0..drawn % (TURNS_MAX + 1) {
        tokio::task::yield_now().await;
    }
    let (drawn, limits) = (drawn / (TURNS_MAX + 1), limits());
    if drawn.is_multiple_of(limits.late_one_in) {
        let thousandths = drawn / limits.late_one_in % 1000;
        let late = limits.late.mul_f64(thousandths as f64 / 1000.0);
        tokio::time::sleep(late).await;
    }
}

/// Runs blocking work off the async threads; in a simulation in a task of its own, while others go on before
/// and after it. What was begun is ended, whether or not it is still waited for.
///
/// # Panics
/// If `work` panics.
#[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
pub async fn blocking<F, T>(work: F) -> T
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let handle = match is_simulated() {
        true => spawn(async move {
            scheduled().await;
            match files::until_power_fails(work) {
                Some(value) => value,
                // Nothing of this machine goes on.
                None => std::future::pending().await,
            }
        }),
        false => tokio::task::spawn_blocking(work),
    };
    let done = handle.await;
    scheduled().await;
    match done {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels blocking work: no result is awaited any more.
            Err(_) => std::future::pending().await,
        },
    }
}

/// A random number from the runtime's source: seeded in a simulation.
pub fn random_u64() -> u64 {
    RuntimeRng.next_u64()
}

/// Random numbers of the calling thread, see [`Runtime`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RuntimeRng;

impl RuntimeRng {
    fn with<R>(simulated: impl FnOnce(&mut StdRng) -> R, real: impl FnOnce() -> R) -> R {
        SIMULATED.with(|cell| match cell.borrow_mut().as_mut() {
            Some(rng) => simulated(rng),
            None => real(),
        })
    }
}

impl TryRng for RuntimeRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(Self::with(
            |rng| rng.next_u32(),
            || rand_openraft::rng().next_u32(),
        ))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(Self::with(
            |rng| rng.next_u64(),
            || rand_openraft::rng().next_u64(),
        ))
    }

    fn try_fill_bytes(&mut self, target: &mut [u8]) -> Result<(), Infallible> {
        let simulated = is_simulated();
        if simulated {
            Self::with(|rng| rng.fill_bytes(target), || ());
        } else {
            rand_openraft::rng().fill_bytes(target);
        }
        Ok(())
    }
}

/// The runtime that openraft is given.
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
        match ends_at_once(deadline, now) {
            true => TokioRuntime::sleep_until(now - LONG_AGO),
            false => TokioRuntime::sleep_until(deadline),
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
    fn openraft_is_content_with_the_runtime() {
        // The suite's own demands on channels, clocks and tasks.
        openraft::testing::runtime::Suite::<Runtime>::test_all();
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_a_moment_again_and_again_sees_it_come() {
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

    #[test]
    fn what_runs_ahead_comes_whole_and_in_its_order_or_is_left_when_enough_was_seen() {
        let many = 10 * PIECES_WAITING * PIECE_ITEMS + 1;
        let in_order = |items: &mut dyn Iterator<Item = usize>| items.eq(0..many);
        assert!(ahead(0..many, in_order));
        assert_eq!(ahead(0.., |items| items.nth(many)), Some(many));
        let _simulation = simulate(1);
        assert!(ahead(0..many, in_order));
    }

    #[test]
    fn long_work_stands_back_and_its_panics_are_seen() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        assert_eq!(yielding(niceness), NICENESS.max(before));
        assert_eq!(niceness(), before, "this thread goes on as it was");
        let panic = std::panic::catch_unwind(|| yielding(|| panic!("seen")));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"seen"));
        let _simulation = simulate(1);
        assert_eq!(yielding(niceness), before, "in place");
    }

    #[test]
    fn one_seed_gives_one_sequence_of_random_numbers() {
        let sequence = |seed| {
            let _simulation = simulate(seed);
            [random_u64(), random_u64(), random_u64()]
        };
        assert_eq!(sequence(7), sequence(7));
        assert_ne!(sequence(7), sequence(8));
        assert!(!is_simulated(), "dropping the guard ends the simulation");
        assert_ne!([random_u64(), random_u64()], [random_u64(), random_u64()]);
    }
}
