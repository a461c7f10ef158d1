use std::sync::Arc;
use std::time::Duration;

use placement_model::cluster::ClusterChanges;
use placement_model::{Cluster, Outcome, Stamped};
use placement_raft_store::{Applier, Rules};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::{cluster_of, create, machines, settled};

/// Longer than the longest election timeout (`ELECTION`): a leader that is silent for this long is
/// replaced.
const LONG: Duration = Duration::from_secs(5);
/// Long enough that other work of the machine causes no election, in milliseconds.
const ELECTION: (u64, u64) = (3_000, 4_000);

/// The single thread that serves the requests of one node.
struct RequestThread(Option<Runtime>);

impl RequestThread {
    fn new() -> Self {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        Self(Some(runtime))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it runs")
    }
}

impl Drop for RequestThread {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leader_whose_request_threads_are_all_busy_stays_leader() {
    let threads = [(); 3].map(|()| RequestThread::new());
    let mut machines = machines(3);
    for (machine, thread) in machines.iter_mut().zip(&threads) {
        machine.env.requests = Some(thread.runtime().handle().clone());
        machine.set_election(ELECTION.0, ELECTION.1);
    }
    let machines = cluster_of(machines).await;
    let leader = settled(&machines).await;
    let before = machines[leader].node().role();
    let (begun, begins) = tokio::sync::oneshot::channel();
    threads[leader].runtime().spawn(async {
        begun.send(()).unwrap();
        std::thread::sleep(LONG);
    });
    begins.await.unwrap();
    let busy = Instant::now();
    let other = &machines[(leader + 1) % 3];
    let asked = timeout(
        Duration::from_secs(1),
        machines[leader].api("GET", "/livez", ""),
    );
    assert!(asked.await.is_err(), "the thread is not busy");
    let mut number = 0;
    while busy.elapsed() < LONG {
        number += 1;
        other.create(number).await;
        assert!(other.sees(number).await);
    }
    assert_eq!(machines[leader].node().role(), before);
    assert_eq!(machines[leader].api("GET", "/livez", "").await.0, 200);
}

/// Takes long over the provider with number 1.
struct Slow;

impl Applier for Slow {
    fn apply(&self, index: u64, cluster: &Cluster, stamped: &Stamped) -> (Outcome, ClusterChanges) {
        if stamped.command == create(1) {
            std::thread::sleep(LONG);
        }
        Rules.apply(index, cluster, stamped)
    }
}

/// One thread for all three nodes, so that blocking it is noticed.
#[tokio::test(flavor = "current_thread")]
async fn command_that_takes_long_to_apply_delays_no_heartbeat() {
    let mut machines = machines(3);
    for machine in &mut machines {
        machine.env.storage.applier = Arc::new(Slow);
        machine.set_election(ELECTION.0, ELECTION.1);
    }
    let machines = cluster_of(machines).await;
    let leader = settled(&machines).await;
    let before = machines[leader].node().role();
    let beats = async {
        let (begun, mut last) = (Instant::now(), Instant::now());
        let mut longest = Duration::ZERO;
        while begun.elapsed() < LONG {
            sleep(Duration::from_millis(10)).await;
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        longest
    };
    let other = &machines[(leader + 1) % 3];
    let (_, longest) = tokio::join!(other.create(1), beats);
    assert!(longest < LONG / 2, "nothing went on for {longest:?}");
    assert_eq!(machines[leader].node().role(), before);
}
