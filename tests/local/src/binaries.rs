//! Paths of the product's binaries.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, bail, ensure};

/// Path of `placementd`; the environment variable `PLACEMENTD` overrides it.
pub fn placementd() -> anyhow::Result<PathBuf> {
    find("placementd", "PLACEMENTD")
}

/// Path of `placementctl`; the environment variable `PLACEMENTCTL` overrides it.
pub fn placementctl() -> anyhow::Result<PathBuf> {
    find("placementctl", "PLACEMENTCTL")
}

/// Path of a tool, such as `run-cluster`.
pub fn tool(name: &str) -> anyhow::Result<PathBuf> {
    bring_up_to_date()?;
    existing(name)
}

/// Path of a `placementd` that stands for the next version, one feature level ahead. Built on
/// demand.
pub fn rehearsal() -> anyhow::Result<PathBuf> {
    if let Some(cargo) = std::env::var_os("CARGO") {
        build(&cargo, &["rehearsal"])?;
    }
    existing("placementd-rehearsal")
}

fn find(name: &str, variable: &str) -> anyhow::Result<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) => Ok(path.into()),
        None => tool(name),
    }
}

fn existing(name: &str) -> anyhow::Result<PathBuf> {
    let path = directory()?.join(name);
    ensure!(
        path.exists(),
        "{} does not exist; `cargo build --workspace --bins` or `cargo rehearsal` builds it",
        path.display()
    );
    Ok(path)
}

/// Directory of this build's binaries: a test runs from `deps` below it, a tool from the directory
/// itself.
fn directory() -> anyhow::Result<PathBuf> {
    let mut directory = std::env::current_exe().context("the path of this program is unknown")?;
    directory.pop();
    if directory.ends_with("deps") {
        directory.pop();
    }
    Ok(directory)
}

/// Builds the binaries, once per process: under `cargo test` those of other packages may be older
/// than their sources. A tool skips this, as its script has built everything.
fn bring_up_to_date() -> anyhow::Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let Some(cargo) = std::env::var_os("CARGO") else {
        return Ok(());
    };
    // The same package selection as in all other builds: another one would change features of
    // shared dependencies and compile them again.
    DONE.get_or_init(|| {
        build(&cargo, &["build", "--workspace", "--bins"]).map_err(|error| format!("{error:#}"))
    })
    .clone()
    .map_err(anyhow::Error::msg)
}

fn build(cargo: &std::ffi::OsStr, what: &[&str]) -> anyhow::Result<()> {
    let mut command = Command::new(cargo);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(what)
        .arg("--quiet");
    // Cargo sets these variables for a test. Build scripts that use them would run again, here and
    // in the next build outside of a test. Everything that depends on them would then be compiled
    // again: TLS, and so the server.
    for (name, _) in std::env::vars_os() {
        let of_the_test = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if (name.to_str())
            .is_some_and(|name| of_the_test.iter().any(|start| name.starts_with(start)))
        {
            command.env_remove(name);
        }
    }
    if directory()?.ends_with("release") {
        command.arg("--release");
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the binaries under test do not build: cargo ended with {status}");
    }
    Ok(())
}
