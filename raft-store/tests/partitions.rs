//! Several partitions in one store: each is restored from disk and from a snapshot, and a deleted
//! partition leaves no rows.

use std::collections::BTreeMap;
use std::io::Cursor;

use crate::common::{
    applied, apply, build, entry, history, identity, logged, new_dir, opened, provider, run,
    take_over,
};
use placement_model::Command;
use placement_model::command::{CreatePartition, DeletePartition, RaiseLevel};
use placement_model::types::{PartitionId, PartitionName, Routes};
use placement_model::{Cluster, Level};
use placement_raft_store::{
    AppliedState, Entry, Payload, check_backup, create, inspect_rows, write_backup,
};
use tempfile::TempDir;

const NORTH: PartitionId = PartitionId(1);
const SOUTH: PartitionId = PartitionId(2);

fn name(text: &str) -> PartitionName {
    text.parse().unwrap()
}

fn create_partition(index: u64, text: &str) -> Entry {
    let (name, routes) = (name(text), Routes::default());
    let create = CreatePartition { name, routes };
    entry(1, index, Command::CreatePartition(create))
}

fn delete_partition(index: u64, text: &str) -> Entry {
    let (name, force) = (name(text), false);
    let delete = DeletePartition { name, force };
    entry(1, index, Command::DeletePartition(delete))
}

/// An entry that creates the same provider as [`provider`], in a partition.
fn provider_in(partition: PartitionId, index: u64) -> Entry {
    let mut one = provider(1, index);
    if let Payload::Normal(command) = &mut one.payload {
        let mut stamped = command.stamped().clone();
        stamped.partition = partition;
        *command = logged(stamped);
    }
    one
}

/// Four providers in the default partition, then two partitions with some more.
fn clouds() -> Vec<Entry> {
    let mut entries = history(5);
    let to = Level::NEWEST;
    entries.push(entry(1, 6, Command::RaiseLevel(RaiseLevel { to })));
    entries.push(create_partition(7, "north"));
    entries.push(create_partition(8, "south"));
    entries.extend((9..=20).map(|index| provider_in(NORTH, index)));
    entries.extend((21..=23).map(|index| provider_in(SOUTH, index)));
    entries
}

/// Number of providers in each partition.
fn providers(cluster: &Cluster) -> BTreeMap<u16, usize> {
    let sizes = (cluster.states()).map(|(id, state)| (id.0, state.sizes().providers));
    sizes.collect()
}

/// Number of rows on disk, by table.
fn rows(dir: &TempDir) -> BTreeMap<&'static str, u64> {
    let tables = inspect_rows(dir.path()).unwrap().into_iter();
    tables
        .map(|part| {
            assert_eq!(part.problem, None);
            (part.table, part.rows)
        })
        .collect()
}

#[test]
fn deleted_partition_leaves_no_rows_and_its_id_is_not_reused() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        apply(&mut store.machine, clouds()).await;
        store.drafts.cover().await.unwrap();
    });
    let digest = run(async {
        let mut store = opened(dir.path());
        let all = providers(&applied(&store).cluster);
        assert_eq!(all, [(0, 4), (1, 12), (2, 3)].into());
        // All rows of the partition are removed, whether they are written or pending.
        let last = [provider_in(NORTH, 24), delete_partition(25, "north")];
        apply(&mut store.machine, last.into()).await;
        let late = [provider_in(NORTH, 26), create_partition(27, "north")];
        apply(&mut store.machine, late.into()).await;
        store.drafts.cover().await.unwrap();
        applied(&store).digest()
    });
    let on_disk = rows(&dir);
    assert_eq!(on_disk["providers"], 4 + 3, "{on_disk:?}");
    assert_eq!(on_disk["partitions"], 3, "{on_disk:?}");
    run(async {
        let mut store = opened(dir.path());
        assert_eq!(applied(&store).digest(), digest);
        let all = providers(&applied(&store).cluster);
        assert_eq!(all, [(0, 4), (2, 3), (3, 0)].into());
        apply(&mut store.machine, vec![provider_in(PartitionId(3), 28)]).await;
        assert_eq!(providers(&applied(&store).cluster)[&3], 1);
    });
}

#[test]
fn snapshots_and_backups_contain_all_partitions() {
    let (leader_dir, follower_dir) = (new_dir(), TempDir::new().unwrap());
    create(follower_dir.path(), identity(2)).unwrap();
    run(async {
        let mut leader = opened(leader_dir.path());
        apply(&mut leader.machine, clouds()).await;
        let snapshot = build(&mut leader).await;
        let mut follower = opened(follower_dir.path());
        // The follower has a partition that the snapshot does not contain.
        let mut early = history(5);
        early.push(create_partition(6, "lost"));
        apply(&mut follower.machine, early).await;
        take_over(&mut follower, &snapshot).await;
        let (ours, theirs) = (applied(&leader), applied(&follower));
        assert_eq!(ours.digest(), theirs.digest());
        assert_eq!(providers(&ours.cluster), providers(&theirs.cluster));
        drop(follower);
        let follower = opened(follower_dir.path());
        assert_eq!(applied(&follower).digest(), ours.digest());

        let mut backup = Vec::new();
        let state: &AppliedState = &ours;
        write_backup(&mut backup, &identity(1), state).unwrap();
        let info = check_backup(Cursor::new(&backup)).unwrap();
        assert_eq!(info.digest, ours.digest().to_string());
        assert_eq!(info.level, Level::NEWEST);
    });
}
