//! New clusters that start from a backup of a cluster with a history: restarts, removed and
//! replaced nodes, join tokens, partitions, log files of several starts, and more rows than fit in
//! one frame or batch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::common::{
    self, CLUSTER, append, blank, entry, identity, log_id, logged, membership, new_dir, opened,
    options, provider, run, stamp,
};
use openraft::storage::RaftLogStorage;
use placement_model::command::{
    CreatePartition, CreateProvider, IssueJoinToken, RaiseLevel, RedeemJoinToken, RetireNode,
    WriteId,
};
use placement_model::types::{PartitionId, ProviderUuid, Routes, Timestamp};
use placement_model::{Change, Cluster, Command, Level, Stamped};
use placement_raft_store::wire::RecordVersion;
use placement_raft_store::{
    AppliedState, Backup, BackupDir, Entry, NewCluster, OpenError, Payload, RestoreError, Rules,
    StoredMembership, Until, begin_restore, boots, check_restored, create, recover,
};
use tempfile::TempDir;
use uuid::Uuid;

/// Enough rows of 200 bytes for several frames and more than one batch.
const MANY: u64 = 24_000;
const SOUTH: PartitionId = PartitionId(1);

fn command(index: u64, command: Command) -> Entry {
    entry(1, index, command)
}

/// The same entry with a changed command.
fn with(mut one: Entry, change: impl FnOnce(&mut Stamped)) -> Entry {
    if let Payload::Normal(command) = &one.payload {
        let mut stamped = command.stamped().clone();
        change(&mut stamped);
        one.payload = Payload::Normal(logged(stamped));
    }
    one
}

/// The entry as written by node 1 in its start number `boot`.
fn of_boot(boot: u64, one: Entry) -> Entry {
    with(one, |stamped| {
        stamped.write_id = stamped.write_id.map(|id| WriteId { boot, ..id });
    })
}

fn token(index: u64, token: &str) -> Entry {
    let issue = IssueJoinToken {
        token: token.to_owned(),
        seconds: 3600,
        above: 3,
        replaces: None,
        expires_at: Timestamp::default(),
    };
    command(index, Command::IssueJoinToken(issue))
}

/// A provider with a long name in the partition.
fn in_the_south(index: u64) -> Entry {
    let create = Command::CreateProvider(CreateProvider {
        uuid: ProviderUuid(Uuid::from_u128(u128::from(index) + 1)),
        name: format!("{index}-{}", "x".repeat(150)).try_into().unwrap(),
        parent: None,
    });
    with(command(index, create), |stamped| stamped.partition = SOUTH)
}

/// Node 1 has started three times, node 3 was replaced by node 4, which joined with a token, and
/// another token is unused.
fn life(last: u64) -> Vec<Entry> {
    let name = "south".to_owned().try_into().unwrap();
    let redeem = RedeemJoinToken {
        node: 4,
        token: "spent".to_owned(),
        nonce: "nonce".to_owned(),
    };
    let head = vec![
        membership(0, 0, &[1, 2, 3]),
        blank(1, 1),
        provider(1, 2),
        of_boot(2, provider(1, 3)),
        provider(1, 4),
        token(5, "spent"),
        command(6, Command::RedeemJoinToken(redeem)),
        membership(1, 7, &[1, 2, 3, 4]),
        membership(1, 8, &[1, 2, 4]),
        command(9, Command::RetireNode(RetireNode { node: 3 })),
        token(10, "open"),
        command(
            11,
            Command::CreatePartition(CreatePartition {
                name,
                routes: Routes::default(),
            }),
        ),
    ];
    head.into_iter()
        .chain((12..=last).map(|index| match index % 2 {
            0 => provider(1, index),
            _ => in_the_south(index),
        }))
        .filter(|entry| entry.log_id.index <= last)
        .map(|entry| match entry.log_id.index {
            0..4 => entry,
            _ => of_boot(3, entry),
        })
        .collect()
}

fn carry_out(entries: &[Entry]) -> AppliedState {
    let mut applied = AppliedState::default();
    for entry in entries {
        match &entry.payload {
            Payload::Normal(logged) => {
                let (_, changes) = applied.cluster.apply(logged.stamped());
                std::sync::Arc::make_mut(&mut applied.cluster).commit(&changes);
                applied.last_stamp = Some(logged.stamped().at);
            }
            Payload::Membership(members) => {
                applied.membership =
                    StoredMembership::new(Some(entry.log_id), members.clone()).into();
            }
            Payload::Blank => {}
        }
        applied.last = Some(entry.log_id);
    }
    applied
}

fn voters(ids: &[u64]) -> BTreeMap<u64, String> {
    ids.iter().map(|id| (*id, format!("node{id}:1"))).collect()
}

/// The rows that clients can see: all except sessions and joins, which belong to nodes.
fn of_clients(cluster: &Cluster) -> BTreeSet<String> {
    let rows = cluster.rows().filter(|(_, row)| {
        !matches!(
            row,
            Change::PutSession(..) | Change::PutOutcome(..) | Change::PutJoin(..)
        )
    });
    rows.map(|row| format!("{row:?}")).collect()
}

fn restore(backup: &Backup, dir: &Path, node: u64, cluster: NewCluster) -> Uuid {
    let members = voters(&[1, 2, 3]);
    let restored = backup.restore(&options(dir), node, &members, cluster);
    restored.unwrap().cluster
}

#[test]
fn restored_cluster_reuses_node_ids() {
    let whole = carry_out(&life(MANY));
    assert!(whole.cluster.is_retired(3));
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&whole, 1).unwrap();
    let backup = Backup::read(kept.path(), Until::End, &Rules).unwrap();
    assert_eq!(backup.info.digest, whole.digest().to_string());

    let dirs = [(); 3].map(|()| TempDir::new().unwrap());
    let dir = |node: u64| dirs[usize::try_from(node).unwrap() - 1].path();
    let new = restore(&backup, dir(1), 1, NewCluster::Drawn(7));
    for node in [2, 3] {
        assert_eq!(
            restore(&backup, dir(node), node, NewCluster::Named(new)),
            new
        );
    }
    let mut digests = BTreeSet::new();
    for node in [1, 2, 3] {
        // The node refuses to start if it has started less often than its state records, or if rows
        // are missing.
        let applied = run(async { opened(dir(node)).views.current() });
        digests.insert(applied.digest().to_string());
        let cluster = &applied.cluster;
        assert_eq!(of_clients(cluster), of_clients(&whole.cluster));
        assert_eq!(applied.last_stamp, whole.last_stamp);
        for id in 1..=5 {
            assert!(!cluster.is_retired(id), "node {id}");
        }
        let joins = cluster.default_partition().joins();
        for (id, row) in joins {
            let is_spent = row.token.is_empty() && row.nonce.is_some();
            assert!(
                is_spent,
                "the token of node {id} is valid in the new cluster"
            );
        }
        assert!(cluster.partition(SOUTH).is_some());
    }
    assert_eq!(digests.len(), 1, "all nodes begin with the same state");
    assert!(boots(dir(1)).unwrap() > 3, "node 1 had started three times");
}

/// The log has one file per start of the node, with a backup in between.
#[test]
fn every_entry_can_be_the_end_of_a_restore() {
    let (root, last) = (TempDir::new().unwrap(), 40);
    let entries = life(last);
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    let up_to = |index: u64| carry_out(&life(index));
    for end in [5, 9, 20, last] {
        let mut log = kept.log().unwrap();
        let next = log.next();
        let these = entries.iter().filter(|one| one.log_id.index >= next);
        let these: Vec<_> = (these.filter(|one| one.log_id.index <= end).cloned()).collect();
        (log.append(RecordVersion::NEWEST, &these, stamp(end))).unwrap();
        if end == 5 || end == 20 {
            kept.back_up(&up_to(end - 2), 9).unwrap();
        }
    }
    for index in 3..=last {
        let by_index = Backup::read(kept.path(), Until::Index(index), &Rules).unwrap();
        assert_eq!(by_index.info.digest, up_to(index).digest().to_string());
        assert_eq!((by_index.info.index, by_index.ends_early), (index, None));
        let left = by_index.left_out;
        assert_eq!(left.map_or(0, |left| left.entries), last - index);
        if let Some(left) = left {
            assert_eq!((left.first.index, left.last.index), (index + 1, last));
            assert_eq!(left.last.at, Some(stamp(last)));
        }
        // If the entry has a timestamp, a restore up to that time gives the same state.
        if carry_out(&life(index)).last_stamp == Some(stamp(index)) {
            let by_time = Backup::read(kept.path(), Until::Time(stamp(index)), &Rules).unwrap();
            assert_eq!(by_time.info.digest, by_index.info.digest);
            assert_eq!(by_time.wrong_times, None);
        }
    }
    let beyond = Backup::read(kept.path(), Until::Index(99), &Rules).unwrap();
    assert!(
        beyond
            .ends_early
            .unwrap()
            .contains("the archived log ends there")
    );
    assert_eq!((beyond.info.index, beyond.left_out), (last, None));
    let before = Backup::read(kept.path(), Until::Index(2), &Rules).unwrap_err();
    assert!(
        before.to_string().contains("the oldest covers entry 3"),
        "{before}"
    );
}

/// A leader's clock was a day ahead for one entry, and the timestamps of all later entries follow
/// it.
#[test]
fn restore_warns_if_log_time_is_ahead() {
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    let entries = life(30);
    kept.back_up(&carry_out(&life(12)), 1).unwrap();
    let day = 86_400_000_000;
    let ahead: Vec<_> = entries
        .into_iter()
        .map(|one| match one.log_id.index {
            0..=20 => one,
            _ => with(one, |stamped| stamped.at.0 += day),
        })
        .collect();
    // Archived one second after the timestamp of its last entry, by a correct clock.
    let kept_at = Timestamp(stamp(30).0 + 1_000_000);
    let mut log = kept.log().unwrap();
    (log.append(RecordVersion::NEWEST, &ahead, kept_at)).unwrap();
    let kept = copied(kept.path());

    let now = Timestamp(stamp(30).0 + 2_000_000);
    let read = |until| Backup::read(kept.path(), until, &Rules).unwrap();
    let by_time = read(Until::Time(now));
    assert_eq!(by_time.info.index, 20);
    let left = by_time.left_out.unwrap();
    assert_eq!(
        (left.entries, left.first.index, left.last.index),
        (10, 21, 30)
    );
    let words = by_time.wrong_times.unwrap();
    assert!(
        words.contains("--until-index") && words.contains("86399 s"),
        "{words}"
    );
    let by_index = read(Until::Index(30));
    assert_eq!((by_index.info.index, by_index.wrong_times), (30, None));
    assert_eq!(by_index.left_out, None);
}

/// The last leader did not know the timestamps of earlier leaders.
#[test]
fn restored_state_has_the_greatest_timestamp_of_its_log() {
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&carry_out(&life(12)), 1).unwrap();
    let entries: Vec<_> = (life(30).into_iter())
        .map(|one| match one.log_id.index {
            30 => with(one, |stamped| stamped.at = stamp(13)),
            _ => one,
        })
        .collect();
    let mut log = kept.log().unwrap();
    (log.append(RecordVersion::NEWEST, &entries, stamp(31))).unwrap();
    let backup = Backup::read(kept.path(), Until::End, &Rules).unwrap();
    assert_eq!(backup.info.index, 30);
    assert_eq!(backup.applied.last_stamp, Some(stamp(29)));
}

/// A copy of a backup directory, in which the files have new times.
fn copied(dir: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let target = copy.path().join(entry.file_name());
        fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
    }
    copy
}

/// The warning of a restore to a moment after all entries, whose timestamps differ by one
/// microsecond. Each item of `kept_at` is the last index of a batch and its archiving time, in
/// seconds after the last entry.
fn warning_where_kept_at(kept_at: &[(u64, i64)]) -> Option<String> {
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&carry_out(&life(12)), 1).unwrap();
    let mut log = kept.log().unwrap();
    let after = |seconds: i64| Timestamp(stamp(30).0 + seconds * 1_000_000);
    for (to, seconds) in kept_at {
        let next = log.next();
        let these: Vec<_> = life(*to)
            .into_iter()
            .filter(|one| one.log_id.index >= next)
            .collect();
        (log.append(RecordVersion::NEWEST, &these, after(*seconds))).unwrap();
    }
    let copy = copied(kept.path());
    let restored = Backup::read(copy.path(), Until::Time(after(0)), &Rules).unwrap();
    assert_eq!(restored.info.index, 30);
    restored.wrong_times
}

/// A leader's clock was behind the log time: entries written after the requested moment are
/// restored, too.
#[test]
fn restore_warns_if_log_time_stood_still() {
    let words = warning_where_kept_at(&[(20, 1), (24, 60), (27, 900), (30, 1801)]).unwrap();
    let is_whole = words.contains("stood still for 1800 s") && words.contains("--until-index");
    assert!(is_whole, "{words}");
    // Many concurrent writes have such timestamps, too, and a node that was down after the first
    // batch archives the rest later.
    for kept_at in [
        &[(30, 1)][..],
        &[(25, 1), (30, 1800)],
        &[(23, 1), (26, 2), (30, 3)],
    ] {
        assert_eq!(warning_where_kept_at(kept_at), None);
    }
}

/// The second file begins with the last entries of the first one.
#[test]
fn entries_in_two_files_do_not_hide_that_log_time_stood_still() {
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&carry_out(&life(12)), 1).unwrap();
    let mut log = kept.log().unwrap();
    let after = |seconds: i64| Timestamp(stamp(30).0 + seconds * 1_000_000);
    for (from, to, seconds) in [(0, 20, 1), (21, 24, 60), (23, 27, 900), (28, 30, 1801)] {
        let these: Vec<_> = (life(to).into_iter())
            .filter(|one| one.log_id.index >= from)
            .collect();
        (log.append(RecordVersion::NEWEST, &these, after(seconds))).unwrap();
    }
    let restored = Backup::read(kept.path(), Until::Time(after(0)), &Rules).unwrap();
    assert_eq!(restored.info.index, 30);
    let words = restored.wrong_times.unwrap();
    assert!(words.contains("stood still for 1800 s"), "{words}");
}

#[test]
fn failed_restore_prevents_creating_an_empty_node() {
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&carry_out(&life(12)), 1).unwrap();
    let backup = Backup::read(kept.path(), Until::End, &Rules).unwrap();
    let dir = TempDir::new().unwrap();
    begin_restore(dir.path()).unwrap();
    let other = NewCluster::Named(CLUSTER);
    let refused = backup.restore(&options(dir.path()), 1, &voters(&[1, 2, 3]), other);
    assert!(matches!(refused, Err(RestoreError::Refused(_))));
    let empty = create(dir.path(), identity(1)).unwrap_err();
    assert!(matches!(empty, OpenError::RestoreUnfinished { .. }));
    assert!(
        empty.to_string().contains("Run the restore again"),
        "{empty}"
    );

    begin_restore(dir.path()).unwrap();
    restore(&backup, dir.path(), 1, NewCluster::Drawn(7));
    check_restored(dir.path()).unwrap();
    assert!(matches!(
        begin_restore(dir.path()),
        Err(OpenError::Exists { .. })
    ));
}

/// A newer version has raised the level: this one cannot decide the later entries.
#[test]
fn archived_log_is_not_restored_beyond_a_level_that_is_unknown() {
    let root = TempDir::new().unwrap();
    let kept = BackupDir::open(root.path(), identity(1)).unwrap();
    kept.back_up(&carry_out(&life(12)), 1).unwrap();
    let to = Level(Level::NEWEST.0 + 1);
    let raise = command(21, Command::RaiseLevel(RaiseLevel { to }));
    let mut entries = life(20);
    entries.extend([raise, provider(1, 22)].map(|one| of_boot(3, one)));
    let mut log = kept.log().unwrap();
    (log.append(RecordVersion::NEWEST, &entries, stamp(22))).unwrap();

    let read = |until| Backup::read(kept.path(), until, &Rules);
    let words = read(Until::End).unwrap_err().to_string();
    assert!(words.contains(&format!("feature level {to}")), "{words}");
    let before = read(Until::Index(20)).unwrap();
    assert_eq!(
        before.info.digest,
        carry_out(&life(20)).digest().to_string()
    );
}

/// The node keeps its whole history.
#[test]
fn one_node_of_a_cluster_with_history_continues_alone() {
    let dir = new_dir();
    let entries = life(60);
    let whole = carry_out(&entries);
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, entries).await;
        let committed = Some(log_id(1, 50));
        store.log.save_committed(committed).await.unwrap();
        append(&mut store.log, vec![blank(1, 61)]).await;
    });
    let new = Uuid::from_u128(7);
    recover(&options(dir.path()), new).unwrap();
    let applied = run(async {
        let mut store = opened(dir.path());
        let all = common::read_all(&mut store.log).await;
        common::apply(&mut store.machine, all).await;
        store.views.current()
    });
    assert_eq!(applied.digest(), whole.digest());
    assert!(applied.cluster.is_retired(3), "the history continues");
    assert_eq!(applied.membership.voter_ids().collect::<Vec<_>>(), [1]);
}
