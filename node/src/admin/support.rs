//! Diagnostics of a node for support: recent log lines, settings and host, as text without secrets.

use std::fs::read_to_string;

use axum::extract::State;
use placement_base::runtime;

use super::Admin;
use crate::logging;

/// Files of the system about the host and this process.
const HOST: [&str; 11] = [
    "/etc/os-release",
    "/proc/version",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/self/limits",
    "/proc/self/status",
    "/proc/self/io",
];
/// Files of the control group with its limits, such as those of a unit or a container.
const GROUP: [&str; 3] = ["cpu.max", "memory.max", "memory.current"];

pub(super) async fn log() -> String {
    logging::last_lines()
}

/// The settings since the start of this process.
pub(super) async fn settings(State(admin): State<Admin>) -> String {
    admin.settings.to_string()
}

pub(super) async fn host() -> String {
    runtime::blocking(|| {
        let group = control_group();
        let limits = GROUP.map(|name| file(&format!("{group}/{name}")));
        [HOST.map(file).concat(), limits.concat()].concat()
    })
    .await
}

/// The directory of this process's control group, which is the root in a container.
fn control_group() -> String {
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    format!(
        "/sys/fs/cgroup{}",
        own.unwrap_or_default().trim_end_matches('/')
    )
}

fn file(path: &str) -> String {
    let text = read_to_string(path).unwrap_or_else(|error| format!("{error}\n"));
    format!("== {path}\n{text}\n")
}
