//! An operator skips an entry that no node can apply; the directory records it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::{
    append, applied, apply, blank, history, log_id, membership, new_dir, opened, options, provider,
    read_all, replay, run,
};
use openraft::storage::RaftLogStorage;
use placement_model::cluster::ClusterChanges;
use placement_model::{Cluster, Outcome, Stamped};
use placement_raft_store::{
    Applier, LogId, OpenError, Rules, SkipError, SkippedEntry, StoreOptions, applying, open,
    skip_entry, skipped,
};

fn skip(dir: &Path, index: u64, term: u64) -> Result<SkippedEntry, SkipError> {
    skip_entry(&options(dir), index, term)
}

fn refusal(dir: &Path, index: u64, term: u64) -> String {
    skip(dir, index, term).unwrap_err().to_string()
}

/// Panics at one entry, as a bug would on every node.
struct Poisoned {
    at: u64,
    seen: Mutex<Option<LogId>>,
}

impl Applier for Poisoned {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        if index == self.at {
            *self.seen.lock().unwrap() = applying();
            panic!("the bug");
        }
        Rules.apply(index, cluster, stamped)
    }
}

fn commit(dir: &Path, last: u64) {
    run(async {
        let mut store = opened(dir);
        append(&mut store.log, history(last)).await;
        let committed = Some(log_id(1, last));
        store.log.save_committed(committed).await.unwrap();
        // The next append makes the commit index durable.
        append(&mut store.log, vec![blank(1, last + 1)]).await;
    });
}

#[test]
fn node_starts_after_its_fatal_entry_is_skipped() {
    let dir = new_dir();
    commit(dir.path(), 20);
    let poisoned = Arc::new(Poisoned {
        at: 12,
        seen: Mutex::default(),
    });
    let start = || {
        let mut store = open(StoreOptions {
            applier: poisoned.clone(),
            ..options(dir.path())
        })
        .unwrap();
        run(async {
            replay(&mut store).await;
            applied(&store).index()
        })
    };
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(start));
    assert!(ended.is_err());
    let culprit = *poisoned.seen.lock().unwrap();
    assert_eq!(culprit, Some(log_id(1, 12)), "the id of the fatal entry");

    let done = skip(dir.path(), 12, 1).unwrap();
    assert_eq!(done.id, log_id(1, 12));
    assert!(done.command.contains("CreateProvider"), "{}", done.command);
    assert_eq!(start(), Some(20));
    let [trace] = skipped(dir.path()).unwrap().try_into().unwrap();
    assert!(
        trace.starts_with("entry T1-N1.12: CreateProvider"),
        "{trace}"
    );
    run(async {
        let mut store = opened(dir.path());
        let mut expected = history(20);
        expected[12] = blank(1, 12);
        expected.push(blank(1, 21));
        assert_eq!(read_all(&mut store.log).await, expected);
    });
}

#[test]
fn an_entry_that_cannot_be_skipped_is_refused() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        let mut entries = history(20);
        entries.push(membership(1, 21, &[1, 2, 3, 4]));
        append(&mut store.log, entries).await;
        let head: Vec<_> = (2..=9).map(|index| provider(1, index)).collect();
        apply(&mut store.machine, history(1)).await;
        apply(&mut store.machine, head).await;
        store.drafts.flush().await.unwrap();
        store.log.purge(log_id(1, 5)).await.unwrap();
        append(&mut store.log, vec![blank(1, 22)]).await;

        let error = skip(dir.path(), 12, 1).unwrap_err();
        assert!(
            matches!(error, SkipError::Open(OpenError::Locked { .. })),
            "{error}"
        );
    });
    let assert_refused = |index, term, words: &str| {
        let reason = refusal(dir.path(), index, term);
        assert!(reason.starts_with("nothing is skipped: "), "{reason}");
        assert!(reason.contains(words), "{reason}");
    };
    assert_refused(3, 1, "already contains entry 3");
    assert_refused(9, 1, "already contains entry 9; its last entry is T1-N1.9");
    assert_refused(
        12,
        2,
        "entry 12 has the log id T1-N1.12, which is not of term 2",
    );
    assert_refused(21, 1, "changes the membership");
    assert_refused(22, 1, "blank already");
    assert_refused(23, 1, "has no entry 23");
    assert_eq!(skipped(dir.path()).unwrap(), Vec::<String>::new());

    skip(dir.path(), 12, 1).unwrap();
    assert_refused(12, 1, "blank already");
    skip(dir.path(), 10, 1).unwrap();
    assert_eq!(skipped(dir.path()).unwrap().len(), 2);
    let wrong = StoreOptions {
        node: Some(2),
        ..options(dir.path())
    };
    let error = skip_entry(&wrong, 13, 1).unwrap_err();
    assert!(error.to_string().contains("belongs to node 1"), "{error}");
    opened(dir.path());
}
