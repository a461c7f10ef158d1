//! Wall clocks that are wrong.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use placement_api::backend::Consistency;
use placement_api::world::{Clock, RealWorld};

use crate::fixture::{Machine, cluster_of, machines, uuid};

const DAY: i64 = 86_400;

/// The right time, and so many seconds more.
struct Set(AtomicI64);

impl Clock for Set {
    fn now(&self) -> SystemTime {
        let ahead = self.0.load(Ordering::Relaxed);
        SystemTime::now() + Duration::from_secs(u64::try_from(ahead).unwrap())
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

/// When a provider was made by its stamp, in seconds since 1970.
async fn stamp(machine: &Machine, number: u128) -> i64 {
    machine.create(number).await;
    let view = machine.view(Consistency::Linearizable).await.unwrap();
    let place = view.state.place(&uuid(number)).unwrap();
    view.state.node(place).created_at.0 / 1_000_000
}

/// The only voter was a day ahead, so the stamps of the log are for a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_join_token_that_is_issued_while_stamps_are_ahead_ends_in_its_time() {
    let clock = Arc::new(Set(AtomicI64::new(0)));
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
        if status.contains("the time of the token is up") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(status.contains("the time of the token is up"), "{status}");
    assert_eq!(machines[0].node().status().members.len(), 1);
    let (_, listed) = machines[0].admin("GET", "/v1/join-tokens", "").await;
    assert!(listed.contains("\"expired\""), "{listed}");
}
