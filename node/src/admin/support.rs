//! What explains an incident to a person who was not there: the last lines of the log, the settings, the machine. As
//! text, and without secrets.

use std::fs::read_to_string;

use axum::extract::State;
use placement_raft_store::runtime;

use super::Admin;
use crate::logging;

/// What the system says of the machine, of the limits of a container, and of this process.
const HOST: [&str; 14] = [
    "/etc/os-release",
    "/proc/version",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/sys/fs/cgroup/cpu.max",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory.current",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/self/io",
];

pub(super) async fn log() -> String {
    logging::last_lines()
}

/// Those with which this process has started.
pub(super) async fn settings(State(admin): State<Admin>) -> String {
    admin.settings.to_string()
}

pub(super) async fn host() -> String {
    runtime::blocking(|| HOST.map(file).concat()).await
}

fn file(path: &str) -> String {
    let text = read_to_string(path).unwrap_or_else(|error| format!("{error}\n"));
    format!("== {path}\n{text}\n")
}
