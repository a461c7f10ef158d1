//! Runs apply, the row writer and ledger readers in many interleavings of their steps.

use std::sync::Arc;

use openraft::entry::RaftEntry;
use openraft::vote::RaftLeaderId;
use openraft::vote::leader_id_adv::LeaderId;
use placement_model::command::CreateProvider;
use placement_model::types::{PartitionId, ProviderUuid, Timestamp};
use placement_model::{Command, Stamped};
use shuttle::thread;
use uuid::Uuid;

use super::core::Core;
use super::ledger::{Ledger, LedgerError};
use super::lock::explore;
use super::snapshot_dir::SnapshotDir;
use super::views::AppliedState;
use crate::base::Base;
use crate::data_dir::create_any;
use crate::logged::LoggedCommand;
use crate::options::StoreOptions;
use crate::types::{Entry, LogId, Payload};
use crate::wire::RecordVersion;

const INTERLEAVINGS: usize = 60;

/// Entry `index` creates a provider.
fn entry(index: u64) -> Entry {
    let command = Command::CreateProvider(CreateProvider {
        uuid: ProviderUuid(Uuid::from_u128(index.into())),
        name: format!("cmp-{index}").try_into().unwrap(),
        parent: None,
    });
    let stamped = Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at: Timestamp(i64::try_from(index).unwrap()),
        write_id: None,
        command,
        request_id: None,
    };
    let command = LoggedCommand::encoded(RecordVersion::NEWEST, stamped);
    let id = LogId::new(LeaderId::new(1, 1), index);
    Entry::new(id, Payload::Normal(command))
}

struct Node {
    core: Core,
    _dir: tempfile::TempDir,
}

impl Node {
    /// A node that keeps few ledger entries and writes its rows only on request.
    fn new() -> Arc<Self> {
        let dir = tempfile::TempDir::new().unwrap();
        create_any(dir.path());
        let options = StoreOptions {
            ledger_bytes: 1000,
            rows_behind: usize::MAX,
            ledger_behind: usize::MAX,
            ..StoreOptions::new(dir.path())
        };
        let base = Base::enter(&options).unwrap();
        let snapshots = SnapshotDir::open(&base).unwrap();
        let core = Core::open(&base, snapshots).unwrap();
        Arc::new(Self { core, _dir: dir })
    }

    fn apply(&self, entries: impl IntoIterator<Item = u64>) {
        for index in entries {
            self.core.apply(vec![(entry(index), None)]).unwrap();
        }
    }

    fn take(&self, snapshot: &AppliedState) {
        let replace = || self.core.database.replace("snapshot", snapshot);
        self.core.behind.replace(snapshot, replace).unwrap();
        self.core.publish(snapshot.clone());
    }

    fn write(&self, times: usize) {
        for _ in 0..times {
            self.core.write_rows().unwrap();
        }
    }

    /// Checks that every read returns all entries or fails with [`LedgerError::Gone`].
    fn read(&self, times: usize) {
        let ledger = self.core.ledger();
        for _ in 0..times {
            let floor = ledger.floor().index;
            let up_to = self.core.current().index().unwrap_or_default();
            match places(&ledger, floor, up_to) {
                Ok(found) => assert_eq!(found, (floor + 1..=up_to).collect::<Vec<_>>()),
                Err(LedgerError::Gone(floor)) => assert!(floor.index > 0),
                Err(error) => panic!("{error}"),
            }
            let mut found: Vec<_> = ledger
                .backward(up_to, usize::MAX)
                .unwrap()
                .iter()
                .map(|entry| entry.index)
                .collect();
            found.reverse();
            let floor = ledger.floor().index;
            found.retain(|index| *index > floor);
            assert_eq!(found, (floor + 1..=up_to).collect::<Vec<_>>());
        }
    }

    /// Checks that the rows on disk match the current state, and that the ledger is complete up to
    /// it.
    fn check(&self) {
        self.core.make_rows_durable().unwrap();
        let (found, applied) = (self.core.database.load().unwrap(), self.core.current());
        assert_eq!(found.last, applied.last);
        assert_eq!(found.digest(), applied.digest());
        self.read(1);
    }
}

fn places(ledger: &Ledger, after: u64, up_to: u64) -> Result<Vec<u64>, LedgerError> {
    let entries = ledger.forward(after, up_to, usize::MAX)?;
    Ok(entries.iter().map(|entry| entry.index).collect())
}

#[test]
fn readers_miss_no_entry_while_entries_are_written_and_dropped() {
    explore(INTERLEAVINGS, || {
        let node = Node::new();
        let [writer, reader] = [(); 2].map(|()| Arc::clone(&node));
        let writer = thread::spawn(move || writer.write(6));
        let reader = thread::spawn(move || reader.read(6));
        node.apply(1..=24);
        writer.join().unwrap();
        reader.join().unwrap();
        node.check();
        assert!(node.core.ledger().floor().index > 0, "some are dropped");
    });
}

#[test]
fn rows_being_written_do_not_mix_with_a_snapshot() {
    let leader = Node::new();
    leader.apply(1..=40);
    let snapshot: AppliedState = leader.core.current().as_ref().clone();
    explore(INTERLEAVINGS, move || {
        let node = Node::new();
        let [writer, reader] = [(); 2].map(|()| Arc::clone(&node));
        let writer = thread::spawn(move || writer.write(4));
        let reader = thread::spawn(move || reader.read(4));
        node.apply(1..=8);
        node.take(&snapshot);
        node.apply(41..=44);
        writer.join().unwrap();
        reader.join().unwrap();
        node.check();
        assert_eq!(node.core.ledger().floor().index, 40);
    });
}

/// Two covers end in any order. An older one would keep the log longer than needed.
#[test]
fn openraft_gets_the_newest_cover_whichever_ends_last() {
    let node = Node::new();
    node.apply(1..=4);
    let older = node.core.cover().unwrap();
    node.apply(5..=8);
    let newer = node.core.cover().unwrap();
    for order in [[&older, &newer], [&newer, &older]] {
        for covered in order {
            node.core.keep_covered(Arc::clone(covered));
        }
        let taken = node.core.take_covered().unwrap();
        assert_eq!(taken.last, newer.last);
    }
    assert!(node.core.take_covered().is_none());
}
