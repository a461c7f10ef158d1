//! What Linux says of this process, under the names that all exporters use.

use std::sync::OnceLock;

use super::catalog::{self, Metric};

/// So many ticks a second has proc(5) on each architecture that we build for.
const TICKS_PER_S: f64 = 100.0;

/// The numbers now; what cannot be read is absent.
pub(super) fn read() -> [(&'static Metric, Option<f64>); 5] {
    let stat = std::fs::read_to_string("/proc/self/stat").ok();
    let times = stat.and_then(|stat| times(&stat));
    let start = times.and_then(|(_, after_boot)| Some((*BOOT.get_or_init(boot))? + after_boot));
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let descriptors = std::fs::read_dir("/proc/self/fd").ok();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    [
        (
            &catalog::PROCESS_RESIDENT_MEMORY,
            status.and_then(|status| Some(number(&status, "VmRSS:")? * 1024.0)),
        ),
        (
            &catalog::PROCESS_OPEN_FDS,
            descriptors.map(|entries| entries.count() as f64),
        ),
        (
            &catalog::PROCESS_MAX_FDS,
            limit.current.map(|limit| limit as f64),
        ),
        (&catalog::PROCESS_CPU, times.map(|(busy, _)| busy)),
        (&catalog::PROCESS_START, start),
    ]
}

/// When the machine started, since 1970 in seconds. The kernel derives it from the wall clock at each read: what is read
/// once does not move with it. And the file is long on large machines.
static BOOT: OnceLock<Option<f64>> = OnceLock::new();

fn boot() -> Option<f64> {
    number(&std::fs::read_to_string("/proc/stat").ok()?, "btime ")
}

/// The first word behind this one, as in `VmRSS:     1234 kB` of proc_pid_status(5).
fn number(text: &str, word: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The processor time, and when the process started after the machine, in seconds: utime, stime and starttime of
/// proc_pid_stat(5).
fn times(stat: &str) -> Option<(f64, f64)> {
    // A program's name may have blanks and brackets; the third field follows.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let seconds = |field: usize| Some(fields.get(field - 3)?.parse::<f64>().ok()? / TICKS_PER_S);
    Some((seconds(14)? + seconds(15)?, seconds(22)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_descriptors_and_times_of_this_process_are_read() {
        let [memory, descriptors, _, busy, start] = read().map(|(_, value)| value);
        assert!(memory.unwrap() > 1e6);
        assert!(descriptors.unwrap() > 2.0);
        assert!(busy.unwrap() < 1e6);
        let file = std::fs::metadata("/proc/self/stat").unwrap();
        let now = file.modified().unwrap();
        let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - start.unwrap();
        assert!((-2.0..3600.0).contains(&age), "{age} s old");
    }

    #[test]
    fn a_number_is_found_behind_its_word() {
        assert_eq!(number("Vm: 1\nVmRSS:\t   12 kB\n", "VmRSS:"), Some(12.0));
        assert_eq!(number("VmRSS: many kB", "VmRSS:"), None);
        let stat = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9 0 1234 77";
        assert_eq!(times(stat), Some((2.0, 12.34)));
    }
}
