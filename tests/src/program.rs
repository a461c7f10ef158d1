//! Programs that a test runs next to nodes.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A program that is killed when dropped, if it still runs.
pub struct Program(pub Child);

impl Deref for Program {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
