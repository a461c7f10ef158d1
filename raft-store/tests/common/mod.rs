//! Helpers of the store's tests: data directories, entries and commands.
#![allow(dead_code, reason = "each test uses some of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::stream;
use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::vote::leader_id_adv::LeaderId;
use placement_model::command::{CreateProvider, WriteId};
use placement_model::types::{PartitionId, ProviderUuid, Timestamp};
use placement_model::{Command, Stamped};
use placement_raft_store::wire::RecordVersion;
use placement_raft_store::{
    Entry, Identity, LogId, LogStore, LoggedCommand, Member, Membership, OpenError, Payload,
    Snapshot, SnapshotData, SnapshotFile, SnapshotMeta, StateMachine, Store, StoreOptions, create,
    open, wal_files,
};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) const CLUSTER: Uuid = Uuid::from_u128(0x0c0ffee0_0000_4000_8000_000000000001);

pub(crate) fn identity(node: u64) -> Identity {
    Identity {
        cluster: CLUSTER,
        epoch: 7,
        node,
    }
}

/// A new data directory of node 1.
pub(crate) fn new_dir() -> TempDir {
    let dir = TempDir::new().unwrap();
    create(dir.path(), identity(1)).unwrap();
    dir
}

/// Options that keep tests small.
pub(crate) fn options(dir: &Path) -> StoreOptions {
    StoreOptions {
        block_cache_bytes: 4 << 20,
        write_buffer_bytes: 4 << 20,
        log_buffer_bytes: 4 << 20,
        ..StoreOptions::new(dir)
    }
}

pub(crate) fn opened(dir: &Path) -> Store {
    open(options(dir)).unwrap()
}

/// A snapshot in a file, ready to send.
pub(crate) struct Built {
    pub(crate) meta: SnapshotMeta,
    pub(crate) file: SnapshotFile,
}

pub(crate) async fn build(store: &mut Store) -> Built {
    store.drafts.cover().await.unwrap();
    let snapshot = current(store).await;
    let file = store.drafts.write_down(&snapshot).await.unwrap();
    let meta = snapshot.meta;
    Built { meta, file }
}

/// The snapshot that openraft gets for sending.
pub(crate) async fn current(store: &mut Store) -> Snapshot {
    store.machine.get_current_snapshot().await.unwrap().unwrap()
}

/// Installs a received file.
pub(crate) async fn install(
    store: &mut Store,
    meta: &SnapshotMeta,
    file: SnapshotFile,
) -> io::Result<()> {
    let file = SnapshotData::File(file);
    store.machine.install_snapshot(meta, file).await
}

pub(crate) fn log_id(term: u64, index: u64) -> LogId {
    LogId::new(LeaderId { term, node_id: 1 }, index)
}

/// The timestamp of the command at an index.
pub(crate) fn stamp(index: u64) -> Timestamp {
    Timestamp(1_700_000_000_000_000 + i64::try_from(index).unwrap())
}

pub(crate) fn entry(term: u64, index: u64, command: Command) -> Entry {
    let stamped = Stamped {
        partition: PartitionId::DEFAULT,
        routes: 0,
        at: stamp(index),
        write_id: Some(WriteId {
            origin: 1,
            boot: 1,
            sequence: index,
            answered_below: 0,
        }),
        command,
        request_id: None,
    };
    Entry::new(log_id(term, index), Payload::Normal(logged(stamped)))
}

/// A command with its record.
pub(crate) fn logged(stamped: Stamped) -> LoggedCommand {
    LoggedCommand::encoded(RecordVersion::NEWEST, stamped)
}

/// An entry that creates its own provider, with a modified write id of node 1.
pub(crate) fn provider_by(index: u64, write: impl FnOnce(WriteId) -> WriteId) -> Entry {
    let mut one = provider(1, index);
    if let Payload::Normal(logged_command) = &one.payload {
        let mut stamped = logged_command.stamped().clone();
        stamped.write_id = stamped.write_id.map(write);
        one.payload = Payload::Normal(logged(stamped));
    }
    one
}

/// An entry that creates its own provider.
pub(crate) fn provider(term: u64, index: u64) -> Entry {
    let command = Command::CreateProvider(CreateProvider {
        uuid: ProviderUuid(Uuid::from_u128(u128::from(index) + 1)),
        name: format!("cn{index}").try_into().unwrap(),
        parent: None,
    });
    entry(term, index, command)
}

pub(crate) fn blank(term: u64, index: u64) -> Entry {
    Entry::new(log_id(term, index), Payload::Blank)
}

pub(crate) fn membership(term: u64, index: u64, voters: &[u64]) -> Entry {
    let member = |id: &u64| {
        let member = Member {
            api: format!("http://node{id}:8778"),
            peer: format!("node{id}:8779"),
            admin: format!("node{id}:8780"),
            ..Member::default()
        };
        (*id, member)
    };
    let members: BTreeMap<u64, Member> = voters.iter().map(member).collect();
    let voters: BTreeSet<u64> = voters.iter().copied().collect();
    let membership = Membership::new(vec![voters], members).unwrap();
    Entry::new(log_id(term, index), Payload::Membership(membership))
}

/// A history of a node: members, a new leader, then providers up to `last`.
pub(crate) fn history(last: u64) -> Vec<Entry> {
    let head = [membership(0, 0, &[1, 2, 3]), blank(1, 1)];
    head.into_iter()
        .chain((2..=last).map(|index| provider(1, index)))
        .collect()
}

pub(crate) async fn append(log: &mut LogStore, entries: Vec<Entry>) {
    log.blocking_append(entries).await.unwrap();
}

pub(crate) async fn apply(machine: &mut StateMachine, entries: Vec<Entry>) {
    machine
        .apply(stream::iter(
            entries.into_iter().map(|entry| Ok((entry, None))),
        ))
        .await
        .unwrap();
}

/// All entries of the log.
pub(crate) async fn read_all(log: &mut LogStore) -> Vec<Entry> {
    use openraft::storage::RaftLogReader;
    log.get_log_reader()
        .await
        .try_get_log_entries(..)
        .await
        .unwrap()
}

/// Applies the committed entries that the state does not contain, like openraft at its start.
pub(crate) async fn replay(store: &mut Store) {
    openraft::StorageHelper::new(&mut store.log, &mut store.machine)
        .with_id(1)
        .get_initial_state()
        .await
        .unwrap();
}

/// Runs `future` to completion on a new runtime.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// Runs `future` to completion on this thread, with all tasks that it spawns, in simulated time.
pub(crate) fn run_here<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// The error of opening a store.
pub(crate) fn refusal(options: StoreOptions) -> OpenError {
    open(options).err().expect("the directory was opened")
}

#[track_caller]
pub(crate) fn assert_says(error: &impl Display, words: &str) {
    let error = error.to_string();
    assert!(error.contains(words), "{words:?} is not in: {error}");
}

/// The newest file of the write-ahead log in a data directory.
pub(crate) fn newest_wal(dir: &Path) -> PathBuf {
    let files = wal_files(&dir.join("log")).unwrap();
    files.into_keys().max().expect("an open log has a file")
}

/// Sends a file to another node, in small pieces.
pub(crate) fn send(file: &SnapshotFile, to: &Store) -> SnapshotFile {
    let mut receiver = to.snapshots.receive().unwrap();
    loop {
        let piece = file.read_at(receiver.length(), 1000).unwrap();
        if piece.is_empty() {
            break;
        }
        receiver.write(&piece).unwrap();
    }
    assert_eq!(receiver.length(), file.length());
    receiver.finish().unwrap()
}

/// Makes a node receive, verify and install a snapshot.
pub(crate) async fn take_over(to: &mut Store, snapshot: &Built) {
    let received = send(&snapshot.file, to);
    let received = to.snapshots.verify(&snapshot.meta, received).unwrap();
    install(to, &snapshot.meta, received).await.unwrap();
}

/// Number of durations in a histogram.
pub(crate) fn observations(histogram: &Histogram) -> u64 {
    let mut registry = Registry::default();
    registry.register("durations", "Durations", histogram.clone());
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(text.contains("le=\"+Inf\""), "{text}");
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("durations_count "));
    count.unwrap().parse().unwrap()
}

pub(crate) fn applied(store: &Store) -> Arc<placement_raft_store::AppliedState> {
    store.views.current()
}

/// The state's database of a stopped node, with these column families.
pub(crate) fn state_with(dir: &Path, families: &[&str]) -> rocksdb::DB {
    let mut options = rocksdb::Options::default();
    options.create_missing_column_families(true);
    rocksdb::DB::open_cf(&options, dir.join("state"), families).unwrap()
}
