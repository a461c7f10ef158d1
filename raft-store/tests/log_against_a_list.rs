//! The log behaves like a list of entries, for any sequence of operations and across restarts.

use crate::common::{append, blank, log_id, new_dir, options, provider, run};
use futures::TryStreamExt;
use openraft::storage::{RaftLogReader, RaftLogStorage};
use placement_raft_store::{Entry, LogId, LogStore, StoreOptions, open};
use proptest::prelude::*;

/// The log modelled as a list.
#[derive(Default)]
struct List {
    purged: Option<LogId>,
    entries: Vec<Entry>,
}

impl List {
    fn last(&self) -> Option<LogId> {
        self.entries
            .last()
            .map(|entry| entry.log_id)
            .or(self.purged)
    }

    fn end(&self) -> u64 {
        self.last().map_or(0, |id| id.index + 1)
    }

    fn range(&self, start: u64, end: u64) -> Vec<Entry> {
        let within = |entry: &&Entry| (start..end).contains(&entry.log_id.index);
        self.entries.iter().filter(within).cloned().collect()
    }
}

#[derive(Debug, Clone)]
enum Step {
    Append {
        entries: u64,
    },
    /// Truncates the last `back` entries, as a follower does for a new leader.
    Truncate {
        back: u64,
    },
    /// Purges `by` entries from the front, possibly beyond the end, as after a snapshot.
    Purge {
        by: u64,
    },
    Read {
        from: u64,
        length: u64,
    },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..12_u64).prop_map(|entries| Step::Append { entries }),
        2 => (0..8_u64).prop_map(|back| Step::Truncate { back }),
        2 => (0..10_u64).prop_map(|by| Step::Purge { by }),
        5 => (0..60_u64, 0..30_u64).prop_map(|(from, length)| Step::Read { from, length }),
        1 => Just(Step::Restart),
    ]
}

async fn check(log: &mut LogStore, list: &List, from: u64, length: u64) {
    let mut reader = log.get_log_reader().await;
    let read = reader
        .try_get_log_entries(from..from + length)
        .await
        .unwrap();
    assert_eq!(
        read,
        list.range(from, from + length),
        "{from}..{}",
        from + length
    );
    assert_eq!(reader.try_get_log_entries(..).await.unwrap(), list.entries);
    let first = list.purged.map_or(0, |id| id.index + 1);
    let streamed = reader.entries_stream(first..list.end()).await;
    assert_eq!(
        streamed.try_collect::<Vec<_>>().await.unwrap(),
        list.entries
    );
    let state = log.get_log_state().await.unwrap();
    assert_eq!(
        (state.last_purged_log_id, state.last_log_id),
        (list.purged, list.last())
    );
}

async fn play(steps: Vec<Step>, log_cache_bytes: usize) {
    let dir = new_dir();
    let options = StoreOptions {
        log_cache_bytes,
        ..options(dir.path())
    };
    let mut store = open(options.clone()).unwrap();
    let mut list = List::default();
    let mut term = 1;
    for step in steps {
        match step {
            Step::Append { entries } => {
                let end = list.end();
                let new: Vec<_> = (end..end + entries)
                    .map(|index| provider(term, index))
                    .collect();
                list.entries.extend(new.iter().cloned());
                append(&mut store.log, new).await;
            }
            Step::Truncate { back } => {
                let first = list.purged.map_or(0, |id| id.index + 1);
                let end = list.end().saturating_sub(back).max(first);
                list.entries.retain(|entry| entry.log_id.index < end);
                store.log.truncate_after(list.last()).await.unwrap();
                // The following entries are from another leader.
                term += 1;
                list.entries.push(blank(term, end));
                append(&mut store.log, vec![blank(term, end)]).await;
            }
            Step::Purge { by } => {
                let upto = list.purged.map_or(0, |id| id.index + 1) + by;
                let there = list.entries.iter().find(|entry| entry.log_id.index == upto);
                let upto = there.map_or(log_id(term, upto.max(list.end())), |entry| entry.log_id);
                list.entries.retain(|entry| entry.log_id.index > upto.index);
                list.purged = Some(upto);
                store.log.purge(upto).await.unwrap();
            }
            Step::Read { from, length } => check(&mut store.log, &list, from, length).await,
            Step::Restart => {
                drop(store);
                store = open(options.clone()).unwrap();
            }
        }
        check(&mut store.log, &list, 0, 5).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn the_log_is_a_list(
        steps in prop::collection::vec(step(), 1..40),
        log_cache_bytes in prop_oneof![Just(0_usize), Just(700), Just(1 << 20)],
    ) {
        run(play(steps, log_cache_bytes));
    }
}
