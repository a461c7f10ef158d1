//! The lock of what apply, the thread that writes and readers share. Where the tests of this crate
//! explore interleavings, another task may go on before each lock is taken and after it is
//! released.

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

    /// Runs a test once for each of so many interleavings of its `shuttle` threads, the same ones
    /// each time.
    pub(crate) fn explore(interleavings: usize, test: impl Fn() + Send + Sync + 'static) {
        let mut config = Config::new();
        // RocksDB needs more than the default.
        config.stack_size = 4 << 20;
        let scheduler = RandomScheduler::new_from_seed(1, interleavings);
        EXPLORES.set(true);
        Runner::new(scheduler, config).run(test);
        EXPLORES.set(false);
    }

    fn others_may_go_on() {
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
            others_may_go_on();
            // All tasks are on one thread, which must not wait for itself.
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
            others_may_go_on();
        }
    }
}
