//! What a process has cost so far, as Linux counts it: proc(5).

use std::time::Duration;

use anyhow::Context;

/// Ticks of `utime` and `stime` per second; Linux shows 100 on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of all threads of a process, user's and kernel's.
pub fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let ticks = ticks(&stat).with_context(|| format!("{path} reads `{stat}`"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

/// Processor time of all processes of a process group that run now.
pub fn cpu_time_of_group(group: u32) -> anyhow::Result<Duration> {
    let mut sum = 0;
    for entry in std::fs::read_dir("/proc").context("cannot read /proc")? {
        // What is no process, or has just ended, has no such file.
        let Ok(stat) = std::fs::read_to_string(entry?.path().join("stat")) else {
            continue;
        };
        if process_group(&stat) == Some(group) {
            sum += ticks(&stat).with_context(|| format!("a process has the stat `{stat}`"))?;
        }
    }
    Ok(Duration::from_secs_f64(sum as f64 / TICKS_PER_SECOND))
}

/// `pgrp`: the 5th field.
fn process_group(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(2)?.parse().ok()
}

/// `utime` and `stime`: the 14th and 15th field. The second, a name in parentheses, may have
/// blanks and parentheses in it.
fn ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Memory in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// In memory now.
    pub resident: u64,
    /// The most since the start, or since [`forget_peak`].
    pub peak: u64,
}

/// The memory of a process.
pub fn memory(pid: u32) -> anyhow::Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let field = |name| kibibytes(&status, name).with_context(|| format!("{path} has no {name}"));
    Ok(Memory {
        resident: field("VmRSS:")?,
        peak: field("VmHWM:")?,
    })
}

fn kibibytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(number * 1024)
}

/// Makes what is resident now the new peak.
pub fn forget_peak(pid: u32) -> anyhow::Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    std::fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1 2";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(process_group(stat), Some(42));
    }

    #[test]
    fn this_process_has_a_cost() {
        let pid = std::process::id();
        let memory = memory(pid).expect("this process runs");
        assert!(memory.resident > 0 && memory.peak >= memory.resident);
        assert!(cpu_time(pid).is_ok());
    }
}
