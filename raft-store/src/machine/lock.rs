//! The mutex shared by apply, the row writer and readers. While a test of this crate explores
//! interleavings, another task may run before each lock is taken and after it is released.

#[cfg(test)]
pub(super) use explored::{Mutex, explore};
#[cfg(not(test))]
pub(super) use parking_lot::Mutex;

#[cfg(test)]
mod explored {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};

    use parking_lot::MutexGuard;
    use shuttle::scheduler::RandomScheduler;
    use shuttle::{Config, Runner};

    thread_local! {
        static EXPLORES: Cell<bool> = const { Cell::new(false) };
    }

    /// Runs a test once for each of `interleavings` schedules of its `shuttle` threads. The
    /// schedules are the same in each run.
    pub(crate) fn explore(interleavings: usize, test: impl Fn() + Send + Sync + 'static) {
        let mut config = Config::new();
        // RocksDB needs a larger stack than the default.
        config.stack_size = 4 << 20;
        let scheduler = RandomScheduler::new_from_seed(1, interleavings);
        EXPLORES.set(true);
        Runner::new(scheduler, config).run(test);
        EXPLORES.set(false);
    }

    fn yield_to_others() {
        if EXPLORES.get() && !std::thread::panicking() {
            shuttle::thread::yield_now();
        }
    }

    #[derive(Default)]
    pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> Guard<'_, T> {
            yield_to_others();
            // All tasks share one thread, which must not block on itself.
            while EXPLORES.get() && self.0.is_locked() {
                shuttle::thread::yield_now();
            }
            Guard(Some(self.0.lock()))
        }
    }

    pub(crate) struct Guard<'a, T>(Option<MutexGuard<'a, T>>);

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            self.0.as_ref().expect("it is locked until it is dropped")
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            self.0.as_mut().expect("it is locked until it is dropped")
        }
    }

    impl<T> Drop for Guard<'_, T> {
        fn drop(&mut self) {
            self.0 = None;
            yield_to_others();
        }
    }
}
