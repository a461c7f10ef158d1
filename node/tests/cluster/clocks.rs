//! Clusters with wrong wall clocks.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use placement_base::backend::Consistency;
use placement_base::world::{Clock, RealWorld};

use crate::fixture::{Machine, cluster_of, machines, settled, uuid};

const DAY: i64 = 86_400;

const HOUR: i64 = 3_600;
/// A reported clock expires after ten seconds.
const FORGOTTEN: Duration = Duration::from_secs(11);

/// A clock that differs from the right time by a number of seconds.
#[derive(Default)]
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> SystemTime {
        let ahead = self.0.load(Ordering::Relaxed);
        let by = Duration::from_secs(ahead.unsigned_abs());
        if ahead < 0 {
            SystemTime::now() - by
        } else {
            SystemTime::now() + by
        }
    }

    fn monotonic(&self) -> Duration {
        RealWorld::default().monotonic()
    }
}

impl Set {
    fn to(&self, ahead_s: i64) {
        self.0.store(ahead_s, Ordering::Relaxed);
    }
}

/// The right time, in seconds since 1970.
fn right_time() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap()
}

/// The creation stamp of a new provider, in seconds since 1970.
async fn stamp(machine: &Machine, number: u128) -> i64 {
    machine.create(number).await;
    let view = machine.view(Consistency::Linearizable).await.unwrap();
    let place = view.state.place(&uuid(number)).unwrap();
    view.state.node(place).created_at.0 / 1_000_000
}

/// A cluster whose nodes have adjustable clocks, and those clocks.
async fn with_clocks(count: u64) -> (Vec<Machine>, Vec<Arc<Set>>) {
    let mut machines = machines(count);
    let clocks: Vec<_> = machines.iter().map(|_| Arc::new(Set::default())).collect();
    for (machine, clock) in machines.iter_mut().zip(&clocks) {
        machine.env.clock = clock.clone();
        machine.set_election(3_000, 6_000);
    }
    (cluster_of(machines).await, clocks)
}

/// Waits until a node reports this problem.
async fn reports(machine: &Machine, words: &str) {
    let mut status = String::new();
    for _ in 0..300 {
        status = machine.admin("GET", "/v1/status", "").await.1;
        if status.contains(words) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("{words}: {status}");
}

/// Checks that writes through a node have the right time, and that it advances.
async fn has_right_time(machine: &Machine, numbers: std::ops::Range<u128>) {
    for number in numbers {
        let (begun, at) = (right_time(), stamp(machine, number).await);
        assert!((begun..=right_time()).contains(&at), "{at} for {begun}");
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    }
}

/// If two clocks differ, no node knows which is right, so neither overrules the leader's.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clock_of_a_follower_does_not_stop_log_time_while_a_voter_is_away() {
    for voters in [3, 2] {
        let (mut machines, clocks) = with_clocks(voters).await;
        let leader = settled(&machines).await;
        let others: Vec<_> = (0..machines.len()).filter(|at| *at != leader).collect();
        let slow = others[0];
        clocks[slow].to(-HOUR);
        for away in &others[1..] {
            reports(&machines[slow], "s behind the clocks of a majority").await;
            machines[*away].kill().await;
            tokio::time::sleep(FORGOTTEN).await;
        }
        let mut both = [machines[leader].id(), machines[slow].id()];
        both.sort_unstable();
        let differ = format!(
            "the clocks of nodes {} and {} differ by 3",
            both[0], both[1]
        );
        for at in [leader, slow] {
            reports(&machines[at], &differ).await;
        }
        assert!(
            machines[leader].leads(),
            "the test needs a leader whose clock is right"
        );
        has_right_time(&machines[leader], 1..4).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_with_a_slow_clock_stamps_by_the_clocks_of_a_majority() {
    let (machines, clocks) = with_clocks(3).await;
    let leader = settled(&machines).await;
    clocks[leader].to(-HOUR);
    let behind = "s behind the clocks of a majority of the voters";
    reports(&machines[leader], behind).await;
    assert!(
        machines[leader].leads(),
        "the test needs a leader whose clock is behind"
    );
    let (begun, at) = (right_time(), stamp(&machines[leader], 1).await);
    assert!(at >= begun - 5, "{at} for {begun}");
}

/// The only voter was a day ahead, so the stamps of the log stay ahead for a day.
#[tokio::test(flavor = "multi_thread")]
async fn join_token_issued_while_stamps_are_ahead_expires_in_time() {
    let clock = Arc::new(Set::default());
    let mut machines = machines(1);
    machines[0].env.clock = clock.clone();
    let machines = cluster_of(machines).await;
    clock.to(DAY);
    let begun = right_time();
    assert!(stamp(&machines[0], 1).await >= begun + DAY);
    clock.to(0);
    assert!(stamp(&machines[0], 2).await >= begun + DAY);
    let mut issued = (0, String::new());
    for _ in 0..100 {
        // A new cluster does not know tokens for a moment.
        issued = machines[0]
            .admin("POST", "/v1/join-tokens", "{\"ttl_s\": 60}")
            .await;
        if issued.0 == 200 || issued.0 == 201 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let made: serde_json::Value = serde_json::from_str(&issued.1).unwrap();
    let token = made["token"].as_str().unwrap();
    clock.to(62);

    let mut joiner = Machine::new(2);
    let file = joiner.config.data_dir.with_file_name("token");
    std::fs::write(&file, token).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    joiner.config.cluster.join = vec![machines[0].config.peer.listen.clone()];
    joiner.config.cluster.join_token_file = Some(file);
    joiner.start().await;
    let mut status = String::new();
    for _ in 0..150 {
        status = joiner.admin("GET", "/v1/status", "").await.1;
        if status.contains("the token has expired") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(status.contains("the token has expired"), "{status}");
    assert_eq!(machines[0].node().status().members.len(), 1);
    let (_, listed) = machines[0].admin("GET", "/v1/join-tokens", "").await;
    assert!(listed.contains("\"expired\""), "{listed}");
}
