//! Errors of a node that is started on the wrong directory, and the start count.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{
    self, CLUSTER, append, apply, assert_says, entry, history, identity, new_dir, opened, options,
    refusal, run, state_with,
};
use openraft::storage::RaftStateMachine;
use placement_model::command::RaiseLevel;
use placement_model::{Command, Level};
use placement_raft_store::{
    Identity, LOG_DIR, OpenError, STATE_DIR, StoreOptions, create, inspect, open,
};
use tempfile::TempDir;
use uuid::Uuid;

#[test]
fn a_second_node_on_the_same_directory_is_refused() {
    let dir = new_dir();
    let first = opened(dir.path());
    let error = refusal(options(dir.path()));
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    assert_says(&error, "in use by another placementd");
    assert_says(&error, &format!("(process {})", std::process::id()));
    let error = create(dir.path(), identity(2)).unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error}");
    drop(first);
    opened(dir.path());
}

#[test]
fn the_directory_of_another_cluster_or_node_is_refused() {
    let dir = new_dir();
    let other = Uuid::from_u128(99);
    let error = refusal(StoreOptions {
        cluster: Some(other),
        ..options(dir.path())
    });
    assert_says(
        &error,
        &format!("belongs to cluster {CLUSTER}, not to {other}"),
    );
    let error = refusal(StoreOptions {
        node: Some(2),
        ..options(dir.path())
    });
    assert_says(&error, "belongs to node 1, not to node 2");
    let right = StoreOptions {
        cluster: Some(CLUSTER),
        node: Some(1),
        ..options(dir.path())
    };
    let boot = open(right).unwrap().boot;
    assert_eq!(boot, 1, "a refused start is not counted");
}

#[test]
fn a_directory_of_a_newer_format_is_refused() {
    let dir = new_dir();
    let path = dir.path().join("identity");
    let mut newer = fs::read(&path).unwrap();
    newer[0] = 9;
    fs::write(&path, &newer).unwrap();
    let error = refusal(options(dir.path()));
    assert!(matches!(error, OpenError::NewerFormat { .. }), "{error}");
    assert_says(&error, "start it with the newer version");
}

#[test]
fn a_damaged_identity_is_named() {
    let dir = new_dir();
    fs::write(dir.path().join("identity"), b"\x01not a record").unwrap();
    let error = refusal(options(dir.path()));
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert_says(&error, "identity is damaged");
    fs::write(dir.path().join("identity"), b"").unwrap();
    let error = refusal(options(dir.path()));
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn node_is_created_once_and_only_in_an_empty_directory() {
    let dir = new_dir();
    let (epoch, other) = (9, identity(2));
    let again = create(dir.path(), Identity { epoch, ..other }).unwrap_err();
    assert_says(&again, "node 1 of cluster");
    assert_eq!(opened(dir.path()).identity, identity(1));

    let other = TempDir::new().unwrap();
    fs::create_dir(other.path().join("log")).unwrap();
    let error = create(other.path(), identity(1)).unwrap_err();
    assert!(matches!(error, OpenError::NotEmpty { .. }), "{error}");
}

#[test]
fn a_directory_without_an_owner_is_refused() {
    let empty = TempDir::new().unwrap();
    let error = refusal(options(empty.path()));
    assert!(matches!(error, OpenError::Missing { .. }), "{error}");
    let nowhere = refusal(options(&empty.path().join("nowhere")));
    assert!(matches!(nowhere, OpenError::Missing { .. }), "{nowhere}");
}

#[test]
fn a_node_whose_log_is_gone_is_refused_before_it_can_vote_again() {
    let dir = new_dir();
    drop(opened(dir.path()));
    let log = dir.path().join("log");
    let aside = dir.path().join("aside");
    let assert_refused = |what| {
        let error = refusal(options(dir.path()));
        let words = error.to_string();
        assert!(
            matches!(error, OpenError::LogGone { .. }),
            "{what}: {words}"
        );
        let lost = format!("{} is gone, but node 1 of cluster", log.display());
        assert_says(&words, &lost);
        assert_says(&words, "does not know how it voted");
        assert_says(&words, "join again");
    };

    fs::rename(&log, &aside).unwrap();
    assert_refused("no directory");
    fs::create_dir(&log).unwrap();
    assert_refused("an empty directory");
    fs::remove_dir(&log).unwrap();
    fs::rename(&aside, &log).unwrap();
    fs::rename(log.join("CURRENT"), &aside).unwrap();
    assert_refused("no database");
    fs::rename(&aside, log.join("CURRENT")).unwrap();
    let boot = opened(dir.path()).boot;
    assert_eq!(
        boot, 2,
        "with its log back it starts; a refused start is not counted"
    );
}

/// A node that was created, but stopped before its first start was complete, has not voted.
#[test]
fn a_first_start_that_was_cut_off_can_be_repeated() {
    let dir = new_dir();
    fs::create_dir(dir.path().join("log")).unwrap();
    assert_eq!(opened(dir.path()).boot, 1, "no database yet");
    fs::remove_file(dir.path().join("boot")).unwrap();
    assert_eq!(opened(dir.path()).boot, 1, "not counted yet");
}

#[test]
fn a_start_that_fails_is_not_counted() {
    let dir = new_dir();
    fs::write(dir.path().join("state"), "where a database should be").unwrap();
    refusal(options(dir.path()));
    fs::remove_file(dir.path().join("state")).unwrap();
    assert_eq!(opened(dir.path()).boot, 1);
}

/// Checks that an inspection and a start report an unknown table.
fn assert_table_unknown(dir: &Path, table: &str) {
    let expected = format!("holds the table \"{table}\", which this placementd does not know");
    let problems = inspect(dir).unwrap().problems;
    let [problem] = &problems[..] else {
        panic!("not one problem: {problems:?}");
    };
    assert_eq!(problem.part, "state");
    assert_says(&problem.words, &expected);
    assert_says(&refusal(options(dir)), &expected);
}

#[test]
fn a_row_of_a_table_of_a_newer_binary_is_refused() {
    // Tags between those of known tables, and after them.
    for tag in [19, 254] {
        let dir = new_dir();
        drop(opened(dir.path()));
        let db = state_with(dir.path(), &["rows"]);
        let rows = db.cf_handle("rows").unwrap();
        db.put_cf(rows, [tag, 0, 0], b"value").unwrap();
        drop(db);
        assert_table_unknown(dir.path(), &tag.to_string());
    }
}

/// Early builds had a column family per table, and one called `meta`.
#[test]
fn a_directory_with_a_column_family_per_table_is_refused_once_it_holds_something() {
    let dir = new_dir();
    drop(opened(dir.path()));
    drop(state_with(dir.path(), &["rows", "meta", "providers"]));
    drop(opened(dir.path()));
    let mut db = state_with(dir.path(), &["rows", "meta", "providers"]);
    let meta = db.cf_handle("meta").unwrap();
    db.put_cf(meta, b"applied", b"value").unwrap();
    db.drop_cf("rows").unwrap();
    drop(db);
    assert_table_unknown(dir.path(), "meta");
}

/// The other nodes run a newer version, and raised the level after this node was last connected.
#[test]
fn node_stops_before_an_unknown_level_and_continues_after_upgrade() {
    let dir = new_dir();
    let beyond = Level(Level::NEWEST.0 + 1);
    run(async {
        let mut store = opened(dir.path());
        let known = history(5);
        append(&mut store.log, known.clone()).await;
        apply(&mut store.machine, known).await;
        let raise = entry(1, 6, Command::RaiseLevel(RaiseLevel { to: beyond }));
        let later = vec![raise, common::provider(1, 7)];
        append(&mut store.log, later.clone()).await;
        let entries = later.into_iter().map(|entry| Ok((entry, None)));
        let refused = store.machine.apply(futures::stream::iter(entries)).await;
        let words = refused.unwrap_err().to_string();
        assert_says(&words, &format!("is {beyond} from entry 6 on"));
        assert_eq!(store.health.failure().as_deref(), Some(words.as_str()));
        let index = store.views.applied_index();
        assert_eq!(index, Some(5), "entries from 6 on are not applied");
    });
    // After a restart the state is still before that entry, which a newer version can apply.
    let store = opened(dir.path());
    assert_eq!(store.views.current().cluster.level(), Level::FIRST);
}

/// Positions of the record types in a manifest of one block.
fn record_types(manifest: &[u8]) -> Vec<usize> {
    let mut types = Vec::new();
    let mut at = 0;
    while at < manifest.len() {
        types.push(at + 6);
        at += 7 + usize::from(u16::from_le_bytes([manifest[at + 4], manifest[at + 5]]));
    }
    types
}

/// The manifest of a database in a new data directory.
fn manifest(dir: &Path, database: &str) -> PathBuf {
    let mut files = (fs::read_dir(dir.join(database)).unwrap()).map(|file| file.unwrap().path());
    let is_manifest = |path: &PathBuf| path.to_string_lossy().contains("MANIFEST-");
    files.find(is_manifest).unwrap()
}

/// Flips a bit of the type of each record of a manifest, and starts a node: returns the errors.
#[expect(
    clippy::disallowed_methods,
    reason = "a start that does not end must not block the test"
)]
fn starts_with_flipped_types(database: &str, bit: u8) -> Vec<String> {
    let mut errors = Vec::new();
    loop {
        let dir = new_dir();
        drop(opened(dir.path()));
        let file = manifest(dir.path(), database);
        let mut bytes = fs::read(&file).unwrap();
        assert!(bytes.len() < 32 << 10, "the manifest has one block");
        let Some(&at) = record_types(&bytes).get(errors.len()) else {
            return errors;
        };
        bytes[at] ^= 1 << bit;
        fs::write(&file, bytes).unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || sender.send(refusal(options(dir.path()))));
        let error = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
        errors.push(error.to_string());
    }
}

/// RocksDB read a manifest or log with a certain flipped bit without end.
#[test]
fn a_start_ends_whatever_bit_of_a_record_type_flips() {
    for database in [LOG_DIR, STATE_DIR] {
        let errors: Vec<_> = (0..8)
            .flat_map(|bit| starts_with_flipped_types(database, bit))
            .collect();
        let unread = |error: &&String| error.contains("a type of another kind of file");
        assert!(errors.iter().filter(unread).count() > 1, "{errors:?}");
    }
}
