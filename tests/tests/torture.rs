//! Bad days in short; `scripts/torture` gives a cluster long ones and holds it to the bars. How fast the
//! others are served depends on the machine, so no more is asked here than that they are.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use placement_tests::cluster::Cluster;
use placement_tests::torture::{Load, MEMORY_MAX, hostile, overload};

/// For each attack and each load.
const EACH: Duration = Duration::from_millis(1_500);
const CONFIG: &str = "[log]\nlevel = \"warn,placement::access=off\"\n";
const BUSY: &str = "It is safe to send the request again";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_hostile_clients_do_the_others_are_served() {
    let mut cluster = Cluster::start_with(3, CONFIG).await.unwrap();
    let say = |outcome: &_| eprintln!("{outcome}");
    for outcome in hostile(&mut cluster, EACH, say).await.unwrap() {
        assert!(outcome.told.all_answered(), "{outcome}");
        assert!(outcome.memory <= MEMORY_MAX, "{outcome}");
        assert!(!outcome.seen.writes.is_empty(), "{outcome}");
        assert!(!outcome.seen.reads.is_empty(), "{outcome}");
        let other = |failed: &&String| !failed.contains(BUSY);
        assert_eq!(outcome.seen.failed.iter().find(other), None, "{outcome}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_clients_are_borne() {
    let mut cluster = Cluster::start_with(3, CONFIG).await.unwrap();
    let outcome = overload(&mut cluster, Load::Clients, EACH).await.unwrap();
    eprintln!("{outcome}");
    assert!(outcome.memory <= MEMORY_MAX, "{outcome}");
    assert!(outcome.goodput > 0.25 * outcome.peak, "{outcome}");
}
