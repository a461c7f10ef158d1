//! What Linux says of this process, under the names that all exporters use.

/// The numbers now; what cannot be read is absent.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) resident_memory_bytes: Option<u64>,
    pub(super) open_fds: Option<u64>,
    pub(super) max_fds: Option<u64>,
}

impl Process {
    pub(super) fn read() -> Self {
        Self {
            resident_memory_bytes: std::fs::read_to_string("/proc/self/status")
                .ok()
                .and_then(|status| resident(&status)),
            open_fds: std::fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| entries.count() as u64),
            max_fds: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        }
    }
}

/// The line `VmRSS:     1234 kB` of proc_pid_status(5).
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_tells_of_this_process() {
        let process = Process::read();
        assert!(process.resident_memory_bytes.unwrap() > 1 << 20);
        assert!(process.open_fds.unwrap() > 2);
        assert_eq!(resident("VmRSS:\t   12 kB\n"), Some(12 * 1024));
        assert_eq!(resident("VmRSS: many kB"), None);
    }
}
