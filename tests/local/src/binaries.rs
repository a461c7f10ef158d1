//! Where the product's binaries are.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, bail, ensure};

/// The path of `placementd`; `PLACEMENTD` in the environment replaces it.
pub fn placementd() -> anyhow::Result<PathBuf> {
    find("placementd", "PLACEMENTD")
}

/// The path of `placementctl`; `PLACEMENTCTL` in the environment replaces it.
pub fn placementctl() -> anyhow::Result<PathBuf> {
    find("placementctl", "PLACEMENTCTL")
}

/// The path of a tool, such as `run-cluster`.
pub fn tool(name: &str) -> anyhow::Result<PathBuf> {
    bring_up_to_date()?;
    existing(name)
}

/// The path of `placementd` as its next version could be, one feature level ahead; built when it is
/// asked for.
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

/// The directory of this build's binaries: a test runs from `deps` below it, a tool from itself.
fn directory() -> anyhow::Result<PathBuf> {
    let mut directory = std::env::current_exe().context("where am I")?;
    directory.pop();
    if directory.ends_with("deps") {
        directory.pop();
    }
    Ok(directory)
}

/// Under `cargo test` the binaries of other packages may be older than their sources: builds them,
/// once per process. Nothing to do for a tool, which its script has built with the rest.
fn bring_up_to_date() -> anyhow::Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let Some(cargo) = std::env::var_os("CARGO") else {
        return Ok(());
    };
    // The same selection as everywhere: another one means other features of what is shared, and
    // with that another compilation of it.
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
    // What cargo tells a test of its package would have build scripts that look at it run again,
    // here and in the next build from outside, and all that stands on them compiled again: TLS, and
    // with it the server.
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
