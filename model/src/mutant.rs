//! Injected bugs, with which the simulations prove that their checks can fail.
//!
//! A place that can be made wrong asks `mutant!("name")`. In a build without debug assertions, as a
//! release is, that is the literal `false`, and neither the name nor what follows from it is in the
//! binary. Elsewhere a simulation chooses the bug for its own thread; no configuration reaches it.

/// Whether the simulation on this thread injects the bug, or one of these bugs.
#[cfg(debug_assertions)]
#[macro_export]
macro_rules! mutant {
    ($($name:literal)|+) => {
        $crate::mutant::is_injected(&[$($name),+])
    };
}

/// Always `false`: this build has no injected bugs.
#[cfg(not(debug_assertions))]
#[macro_export]
macro_rules! mutant {
    ($($name:literal)|+) => {
        false
    };
}

#[cfg(debug_assertions)]
pub use injection::{Injection, inject, is_injected};

#[cfg(debug_assertions)]
mod injection {
    use std::cell::Cell;

    thread_local! {
        static INJECTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Ends when it is dropped.
    #[derive(Debug)]
    #[must_use]
    pub struct Injection(());

    impl Drop for Injection {
        fn drop(&mut self) {
            INJECTED.set(None);
        }
    }

    /// Injects a bug into all that runs on this thread.
    pub fn inject(name: &'static str) -> Injection {
        INJECTED.set(Some(name));
        Injection(())
    }

    /// Whether one of these bugs is injected on this thread.
    // Not inlined, so that a binary that can inject them contains their names, which
    // `scripts/package` looks for.
    #[inline(never)]
    pub fn is_injected(names: &[&str]) -> bool {
        INJECTED.get().is_some_and(|name| names.contains(&name))
    }
}
