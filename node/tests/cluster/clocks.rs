//! Wall clocks that are wrong.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use placement_node::doors::Consistency;
use placement_node::world::{Clock, RealWorld};

use crate::estate::{Machine, cluster_of, eventually, machines, settled, uuid};

const DAY: i64 = 86_400;

/// The right time, and so many seconds more.
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> SystemTime {
        let ahead = self.0.load(Ordering::Relaxed);
        SystemTime::now() + Duration::from_secs(u64::try_from(ahead).unwrap())
    }

    fn monotonic(&self) -> Duration {
        RealWorld::new().monotonic()
    }
}

impl Set {
    fn to(&self, ahead_s: i64) {
        self.0.store(ahead_s, Ordering::Relaxed);
    }
}

async fn with_clocks(count: u64) -> (Vec<Machine>, Vec<Arc<Set>>) {
    let mut machines = machines(count);
    let clocks: Vec<_> = machines
        .iter()
        .map(|_| Arc::new(Set(AtomicI64::new(0))))
        .collect();
    for (machine, clock) in machines.iter_mut().zip(&clocks) {
        machine.env.clock = clock.clone();
    }
    (cluster_of(machines).await, clocks)
}

/// How many seconds after the right time a provider was made, by its stamp.
async fn stamped_ahead(machine: &Machine, number: u128) -> i64 {
    machine.create(number).await;
    let view = machine.view(Consistency::Linearizable).await.unwrap();
    let place = view.state.place(&uuid(number)).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    view.state.node(place).created_at.0 / 1_000_000 - i64::try_from(now.as_secs()).unwrap()
}

/// Where they are those of a majority, they are the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_clock_is_ahead_stamps_writes_by_those_of_the_majority() {
    let (machines, clocks) = with_clocks(3).await;
    let leader = settled(&machines).await;
    clocks[leader].to(DAY);
    let ahead = stamped_ahead(&machines[leader], 1).await;
    assert!(ahead.abs() < 10, "{ahead} s");
    let problem = machines[leader].node().status().clock_problem.unwrap();
    assert!(problem.contains("s ahead of the clocks"), "{problem}");
    let other = machines[(leader + 1) % 3].node().status();
    assert_eq!(other.clock_problem, None);
    clocks[leader].to(0);
    assert_eq!(machines[leader].node().status().clock_problem, None);

    for clock in &clocks {
        clock.to(DAY);
    }
    eventually("the leader knows the clocks of the others", || {
        (machines[leader].node().status().clock_problem)
            .is_none()
            .then_some(())
    })
    .await;
    let ahead = stamped_ahead(&machines[leader], 2).await;
    assert!((ahead - DAY).abs() < 10, "{ahead} s");
}

/// The only voter was a day ahead, so the stamps of the log are for a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_that_is_issued_while_stamps_are_ahead_ends_in_its_time() {
    let (machines, clocks) = with_clocks(1).await;
    settled(&machines).await;
    clocks[0].to(DAY);
    assert!(stamped_ahead(&machines[0], 1).await > DAY - 10);
    clocks[0].to(0);
    assert!(stamped_ahead(&machines[0], 2).await > DAY - 10);
    let mut issued = (0, String::new());
    for _ in 0..100 {
        // A cluster that has just been formed knows no tokens for a moment.
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
    clocks[0].to(62);

    let mut joiner = Machine::new(2);
    let file = joiner.config.data_dir.with_file_name("token");
    std::fs::write(&file, token).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    joiner.config.cluster.join = vec![machines[0].config.peer.listen.clone()];
    joiner.config.cluster.join_token_file = Some(file);
    joiner.start().await;
    let mut said = String::new();
    for _ in 0..150 {
        said = joiner.admin("GET", "/v1/status", "").await.1;
        if said.contains("the time of the token is up") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(said.contains("the time of the token is up"), "{said}");
    assert_eq!(machines[0].node().status().members.len(), 1);
    let (_, listed) = machines[0].admin("GET", "/v1/join-tokens", "").await;
    assert!(listed.contains("\"over\""), "{listed}");
}
