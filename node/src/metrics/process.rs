//! What Linux says of this process, under the names that all exporters use.

use super::catalog::{self, Metric};

/// The numbers now; what cannot be read is absent.
pub(super) fn read() -> [(&'static Metric, Option<u64>); 3] {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let descriptors = std::fs::read_dir("/proc/self/fd").ok();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    [
        (
            &catalog::PROCESS_RESIDENT_MEMORY,
            status.and_then(|status| resident(&status)),
        ),
        (
            &catalog::PROCESS_OPEN_FDS,
            descriptors.map(|entries| entries.count() as u64),
        ),
        (&catalog::PROCESS_MAX_FDS, limit.current),
    ]
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
    fn memory_and_descriptors_of_this_process_are_read() {
        let [memory, descriptors, _] = read().map(|(_, value)| value);
        assert!(memory.unwrap() > 1 << 20);
        assert!(descriptors.unwrap() > 2);
        assert_eq!(resident("VmRSS:\t   12 kB\n"), Some(12 * 1024));
        assert_eq!(resident("VmRSS: many kB"), None);
    }
}
