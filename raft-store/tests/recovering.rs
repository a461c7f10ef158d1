//! A node can continue alone after a majority was lost, unless that is unsafe.

use std::fs;
use std::path::Path;

use crate::common::{
    CLUSTER, append, apply, blank, history, identity, log_id, membership, new_dir, opened, options,
    read_all, replay, run,
};
use openraft::storage::{RaftLogReader, RaftLogStorage};
use placement_raft_store::{
    Identity, Payload, RecoverError, Recovered, Vote, former_clusters, inspect, plan_recovery,
    recover,
};
use uuid::Uuid;

pub(crate) const NEW: Uuid = Uuid::from_u128(0x0ddba110_0000_4000_8000_000000000002);

/// A node with ten entries that has recorded entry 8 as committed.
pub(crate) fn survivor(dir: &Path) {
    run(async {
        let mut store = opened(dir);
        append(&mut store.log, history(9)).await;
        store.log.save_vote(&Vote::new(4, 2)).await.unwrap();
        store.log.save_committed(Some(log_id(1, 8))).await.unwrap();
        // The next append makes the commit index durable.
        append(&mut store.log, vec![blank(1, 10)]).await;
    });
}

/// A node whose rows are flushed up to entry 20, but whose log ends at entry 9.
pub(crate) fn ahead_of_its_log(dir: &Path) {
    run(async {
        let mut store = opened(dir);
        append(&mut store.log, history(9)).await;
        apply(&mut store.machine, history(20)).await;
        store.drafts.flush().await.unwrap();
    });
}

fn refusal(recovered: Result<Recovered, RecoverError>) -> String {
    recovered.unwrap_err().to_string()
}

#[test]
fn a_recovered_node_keeps_its_log_in_a_new_term_of_a_new_cluster() {
    let dir = new_dir();
    survivor(dir.path());
    let options = options(dir.path());
    let plan = plan_recovery(&options).unwrap();
    assert_eq!(plan.certain, Some(log_id(1, 8)));
    assert_eq!(plan.last, Some(log_id(1, 10)));
    assert_eq!(plan.members.members.len(), 3);
    assert_eq!(
        opened(dir.path()).identity,
        identity(1),
        "a plan changes nothing"
    );

    let done = recover(&options, NEW).unwrap();
    assert_eq!(done.was, identity(1));
    assert_eq!(done.is, Identity::for_new_cluster(NEW, 1));
    assert_eq!(done.entry, log_id(5, 11));
    assert_eq!(former_clusters(dir.path()).unwrap(), [CLUSTER]);
    run(async {
        let mut store = opened(dir.path());
        assert_eq!(store.identity, done.is);
        let mut reader = store.log.get_log_reader().await;
        let vote = reader.read_vote().await.unwrap();
        assert_eq!(vote, Some(Vote::new_committed(5, 1)));
        let entries = read_all(&mut store.log).await;
        assert_eq!(entries.len(), 12);
        let Payload::Membership(alone) = &entries[11].payload else {
            panic!("the last entry is {}", entries[11]);
        };
        assert_eq!(alone.voter_ids().collect::<Vec<_>>(), [1]);
        assert_eq!(alone.nodes().count(), 1);
    });
    let found = inspect(dir.path()).unwrap();
    assert_eq!(found.recovered.len(), 1);
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert!(refusal(recover(&options, NEW)).contains("only voter of its cluster already"));
}

/// The power fails after the rows were flushed and before the log was synced.
#[test]
fn a_node_whose_state_is_ahead_of_its_log_stays_the_only_voter() {
    let dir = new_dir();
    ahead_of_its_log(dir.path());
    let done = recover(&options(dir.path()), NEW).unwrap();
    assert_eq!(done.entry, log_id(2, 21));
    for _ in 0..2 {
        run(async {
            let mut store = opened(dir.path());
            let entries = read_all(&mut store.log).await;
            let [only] = &entries[..] else {
                panic!("{entries:?}");
            };
            let Payload::Membership(alone) = &only.payload else {
                panic!("{only}");
            };
            assert_eq!(alone.voter_ids().collect::<Vec<_>>(), [1]);
            replay(&mut store).await;
            assert_eq!(store.views.applied_index(), Some(20), "not committed yet");
        });
    }
}

/// The leader removed the node by its last entry, which no majority has.
#[test]
fn node_is_recovered_although_its_log_ends_with_its_removal() {
    let dir = new_dir();
    run(async {
        let mut store = opened(dir.path());
        append(&mut store.log, history(9)).await;
        apply(&mut store.machine, history(9)).await;
        store.drafts.flush().await.unwrap();
        append(&mut store.log, vec![membership(1, 10, &[2, 3])]).await;
    });
    let plan = plan_recovery(&options(dir.path())).unwrap();
    assert_eq!(plan.certain, Some(log_id(1, 9)));
    assert!(plan.members.members.contains_key(&1));
    let done = recover(&options(dir.path()), NEW).unwrap();
    assert_eq!(done.entry, log_id(2, 11));
    run(async {
        let entries = read_all(&mut opened(dir.path()).log).await;
        let Some(Payload::Membership(alone)) = entries.last().map(|last| &last.payload) else {
            panic!("{entries:?}");
        };
        assert_eq!(alone.voter_ids().collect::<Vec<_>>(), [1]);
    });
}

#[test]
fn unsafe_recovery_is_refused() {
    let running = new_dir();
    survivor(running.path());
    let store = opened(running.path());
    let reason = refusal(recover(&options(running.path()), NEW));
    assert!(reason.contains("in use by another placementd"), "{reason}");
    drop(store);

    let damaged = new_dir();
    survivor(damaged.path());
    fs::remove_file(damaged.path().join("boot")).unwrap();
    let reason = refusal(recover(&options(damaged.path()), NEW));
    assert!(reason.contains("is damaged (boot: "), "{reason}");
    assert!(reason.contains("restore a backup"), "{reason}");

    let empty = new_dir();
    run(async {
        let mut store = opened(empty.path());
        append(&mut store.log, vec![membership(0, 0, &[2, 3]), blank(1, 1)]).await;
    });
    let reason = refusal(recover(&options(empty.path()), NEW));
    assert!(reason.contains("not a member of its cluster"), "{reason}");

    let fresh = new_dir();
    let reason = refusal(recover(&options(fresh.path()), NEW));
    assert!(reason.contains("never taken part"), "{reason}");
    for dir in [&running, &damaged, &empty, &fresh] {
        let owner = placement_raft_store::identity(dir.path()).unwrap();
        assert_eq!(owner, Some(identity(1)), "nothing was changed");
    }
}
