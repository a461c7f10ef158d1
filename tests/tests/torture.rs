//! Short attacks and overload. `scripts/torture` runs long ones and checks limits; latencies depend
//! on the machine, so this only checks that the other clients are served.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use placement_tests::cluster::Cluster;
use placement_tests::torture::{Load, MEMORY_MAX, hostile, overload};

/// Duration of each attack and each load.
const EACH: Duration = Duration::from_millis(1_500);
const CONFIG: &str = "[cluster]\nwait_ms = 5000\n[log]\nlevel = \"warn,placement::access=off\"\n";
/// Maximum number of observations. A cluster that does not tolerate overload fails in each of them;
/// other load of the machine disturbs only some.
const OBSERVATIONS: usize = 3;
/// Words of an error after which nothing was committed.
const NOTHING_COMMITTED: &str = "It is safe to send the request again";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_clients_are_served_while_hostile_ones_attack() {
    let cluster = Cluster::start_with_optional_tls(3, CONFIG).await;
    let mut cluster = cluster.unwrap();
    let say = |outcome: &_| eprintln!("{outcome}");
    let outcomes = hostile(&mut cluster, EACH, say).await.unwrap();
    for outcome in &outcomes {
        assert!(outcome.answers.all_answered(), "{outcome}");
        assert!(outcome.memory <= MEMORY_MAX, "{outcome}");
        let mut attempts = outcomes.iter().filter(|one| one.attack == outcome.attack);
        assert!(attempts.any(|one| one.seen.any_answered()), "{outcome}");
        let other = |failed: &&String| !failed.contains(NOTHING_COMMITTED);
        assert_eq!(outcome.harm().find(other), None, "{outcome}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_the_peak_load_is_tolerated() {
    let mut outcomes = Vec::new();
    while outcomes.len() < OBSERVATIONS {
        let mut cluster = Cluster::start_with(3, CONFIG).await.unwrap();
        let outcome = overload(&mut cluster, Load::Clients, EACH).await.unwrap();
        eprintln!("{outcome}");
        assert!(outcome.memory <= MEMORY_MAX, "{outcome}");
        if outcome.goodput > 0.25 * outcome.peak {
            return;
        }
        outcomes.push(outcome.to_string());
    }
    panic!("all observations failed: {outcomes:#?}");
}
