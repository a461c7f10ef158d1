//! Linux' statistics of this process, under the names that all exporters use.

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::catalog::{self, Metric};

/// The current values; unreadable ones are absent.
pub(super) fn read() -> [(&'static Metric, Option<f64>); 4] {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let memory = status.and_then(|status| Some(number(&status, "VmRSS:")? * 1024.0));
    let descriptors = std::fs::read_dir("/proc/self/fd")
        .ok()
        .map(|entries| entries.count() as f64);
    let limit = getrlimit(Resource::Nofile).current;
    let busy = clock_gettime(ClockId::ProcessCPUTime);
    let busy = busy.tv_sec as f64 + busy.tv_nsec as f64 / 1e9;
    [
        (&catalog::PROCESS_RESIDENT_MEMORY, memory),
        (&catalog::PROCESS_OPEN_FDS, descriptors),
        (&catalog::PROCESS_MAX_FDS, limit.map(|limit| limit as f64)),
        (&catalog::PROCESS_CPU, Some(busy)),
    ]
}

/// The first word after `word`, as in `VmRSS:     1234 kB` of proc_pid_status(5).
fn number(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_descriptors_and_time_of_this_process_are_read() {
        let [memory, descriptors, _, busy] = read().map(|(_, value)| value);
        assert!(memory.unwrap() > 1e6);
        assert!(descriptors.unwrap() > 2.0);
        assert!((1e-6..1e6).contains(&busy.unwrap()));
    }

    #[test]
    fn number_is_found_after_its_word() {
        assert_eq!(number("Vm: 1\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12.0));
        assert_eq!(number("VmRSS: many kB", "VmRSS:"), None);
    }
}
