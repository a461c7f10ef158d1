//! Preloaded libraries that change the system calls of a node.

#![allow(clippy::unwrap_used)] // A test may fail.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles C source to a library for `LD_PRELOAD`. `None` without a C compiler.
///
/// # Panics
/// If the source cannot be written into the directory.
pub fn compile(dir: &Path, source: &str) -> Option<PathBuf> {
    let (file, library) = (dir.join("shim.c"), dir.join("shim.so"));
    fs::write(&file, source).unwrap();
    let compiled = Command::new("cc")
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .args([&library, &file])
        .arg("-ldl")
        .status();
    compiled
        .is_ok_and(|status| status.success())
        .then_some(library)
}
