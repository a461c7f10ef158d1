//! Memory of processes, as Linux counts it: proc(5).

use anyhow::Context;

/// Resident memory of a process, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Resident memory at present.
    pub resident: u64,
    /// Peak since the start, or since [`forget_peak`].
    pub peak: u64,
}

/// Reads the memory of a process.
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

/// Resets the peak to the current resident memory.
pub fn forget_peak(pid: u32) -> anyhow::Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    std::fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
}

/// Memory growth of processes; has the resident memory of each at the start, in bytes.
pub struct Growth(Vec<(u32, u64)>);

impl Growth {
    /// Starts to count the growth of these processes.
    pub fn start(pids: impl IntoIterator<Item = u32>) -> anyhow::Result<Self> {
        let begun = pids.into_iter().map(|pid| {
            forget_peak(pid)?;
            Ok((pid, memory(pid)?.resident))
        });
        Ok(Self(begun.collect::<anyhow::Result<_>>()?))
    }

    /// The largest growth of one process, in bytes.
    pub fn most(&self) -> anyhow::Result<u64> {
        let mut most = 0;
        for (pid, before) in &self.0 {
            most = most.max(memory(*pid)?.peak.saturating_sub(*before));
        }
        Ok(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_this_process_is_read() {
        let pid = std::process::id();
        let memory = memory(pid).expect("this process runs");
        assert!(memory.resident > 0 && memory.peak >= memory.resident);
    }
}
