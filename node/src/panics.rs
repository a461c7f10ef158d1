//! Panics end the request in which they happen, or else the process.
//!
//! A request shares no half-done work with others, so its client is answered 500 and the node
//! continues. Any other work (replication, apply, a connection, a watcher) would be missing if the
//! node continued without it. So the process ends, and a supervisor restarts the node.

use placement_raft_store::LogId;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use placement_base::contain;
use placement_base::log_messages::log;
use placement_base::runtime::end_process;

/// Maximum size of a core dump, in bytes. It is not 0, because that limit applies only to files: a
/// program that collects dumps would still get one. With 1, the kernel creates no dump at all.
/// Source: Linux, `do_coredump`.
const CORE_BYTES: u64 = 1;

/// Disables core dumps for a panic: they would contain tokens, passwords and the state, and take
/// long on a disk that is full or hangs.
pub(crate) fn disable_core_dumps() {
    let before = getrlimit(Resource::Core);
    // A limit that is lower already stays.
    let limit = before
        .maximum
        .map_or(CORE_BYTES, |maximum| maximum.min(CORE_BYTES));
    let limit = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    if let Err(error) = setrlimit(Resource::Core, limit) {
        log!(
            CORE_DUMPS_NOT_DISABLED,
            %error,
            "cannot disable core dumps; a core dump would contain secrets"
        );
    }
}

/// Logs panics, and ends the process unless the panic happened in a request. The standard hook
/// writes to standard error itself and could block there. The message of a panic may contain a
/// client's text, so it is a field, which is escaped.
pub(crate) fn end_the_process() {
    std::panic::set_hook(Box::new(|panic| {
        let reason = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map(ToString::to_string);
        if contain::is_contained() {
            log!(
                REQUEST_PANICKED,
                reason,
                place,
                "a request panicked; this is a bug"
            );
            return;
        }
        let backtrace = std::backtrace::Backtrace::force_capture().to_string();
        log!(
            PANICKED,
            reason,
            place,
            backtrace,
            "panicked; this is a bug, and the process ends"
        );
        if let Some(id) = placement_raft_store::applying() {
            log!(ENTRY_NOT_APPLIED, "{}", way_around(id));
        }
        end_process();
    }));
}

/// Instructions for a log entry that cannot be applied: every node reads it again at every start.
fn way_around(id: LogId) -> String {
    let (term, index) = (id.committed_leader_id().term, id.index);
    format!(
        "entry {id} of the log was being applied. If each start ends this way, stop all nodes, and \
        run on each of them: placementd skip-entry --config FILE --index {index} --term {term} \
        --i-understand"
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use futures::FutureExt;

    use super::*;
    use crate::logging::{LogFormat, Logging};
    use placement_base::contain::{Panicked, contain};

    /// Runs a test in a child process.
    fn child(name: &str) -> std::process::Output {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .output()
            .unwrap()
    }

    #[test]
    #[ignore = "runs in a process of its own"]
    #[expect(clippy::disallowed_methods, reason = "a thread that is no request's")]
    fn a_watcher_that_panics() {
        let _logging = Logging::start(LogFormat::Human, "info", None).unwrap();
        let watcher = std::thread::spawn(|| panic!("the watcher is gone"));
        let _ = watcher.join();
        println!("and life goes on");
    }

    #[test]
    #[ignore = "runs in a process of its own"]
    fn a_request_that_panics() {
        let logging = Logging::start(LogFormat::Human, "info", None).unwrap();
        let request = contain(async {
            std::future::ready(()).await;
            panic!("this request is gone")
        });
        assert_eq!(request.now_or_never(), Some(Err::<(), _>(Panicked)));
        println!("and life goes on");
        logging.finish();
    }

    #[test]
    fn panic_outside_of_requests_ends_the_process_with_a_reason() {
        let output = child("panics::tests::a_watcher_that_panics");
        assert!(!output.status.success());
        let (logged, printed) = (
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout),
        );
        assert!(logged.contains("the watcher is gone"), "{logged}");
        assert!(logged.contains("the process ends"), "{logged}");
        assert!(!printed.contains("and life goes on"), "{printed}");
    }

    #[test]
    fn way_around_an_entry_is_a_command() {
        let id = placement_raft_store::wire::WireLogId {
            term: 5,
            node: 2,
            index: 123,
        };
        let words = way_around(id.into());
        assert!(words.starts_with("entry T5-N2.123 of the log"), "{words}");
        let (_, command) = words.split_once("placementd ").unwrap();
        let command: Vec<_> = command.split(' ').collect();
        let expected = "skip-entry --config FILE --index 123 --term 5 --i-understand";
        assert_eq!(command.join(" "), expected);
    }

    #[test]
    fn panic_in_a_request_ends_only_that() {
        let output = child("panics::tests::a_request_that_panics");
        let (logged, printed) = (
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&output.stdout),
        );
        assert!(output.status.success(), "{logged}{printed}");
        assert!(logged.contains("this request is gone"), "{logged}");
        assert!(printed.contains("and life goes on"), "{printed}");
    }
}
