//! Injected bugs, by which simulations prove that their checks can fail.
//!
//! The code checks `mutant!("name")` where a bug can be injected. In a build without debug
//! assertions, such as a release, the macro expands to `false`, and the binary contains neither the
//! name nor the faulty code. In other builds a simulation selects the bug for its own thread; no
//! configuration can select one.

/// Whether the simulation on this thread injects one of these bugs.
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

    /// Guard of an injected bug. Dropping the guard removes the bug.
    #[derive(Debug)]
    #[must_use]
    pub struct Injection(());

    impl Drop for Injection {
        fn drop(&mut self) {
            INJECTED.set(None);
        }
    }

    /// Injects a bug into all code on this thread.
    pub fn inject(name: &'static str) -> Injection {
        INJECTED.set(Some(name));
        Injection(())
    }

    /// Whether one of these bugs is injected on this thread.
    // Not inlined, so that a binary that can inject bugs contains their names. `scripts/package`
    // searches for the names.
    #[inline(never)]
    pub fn is_injected(names: &[&str]) -> bool {
        INJECTED.get().is_some_and(|name| names.contains(&name))
    }
}
