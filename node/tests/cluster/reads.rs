use std::fs;
use std::path::Path;
use std::time::Duration;

use placement_node::doors::{Consistency, PlacementIndex, Unavailable};
use placement_raft_store::Disk;
use placement_raft_store::simulation::SimulatedDisk;
use tokio::time::{Instant, timeout};

use crate::estate::{cluster, has, machines, settled};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_gives_read_your_writes_on_another_node() {
    let machines = cluster(3).await;
    for number in 1..20 {
        let written = machines[0].create(number).await;
        let token = Consistency::Session(written.index);
        let view = machines[1].view(token).await.unwrap();
        assert!(has(&view.state, number));
        assert!(view.position.index >= Some(written.index));
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (to.join(entry.file_name()), entry.file_type().unwrap());
        if kind.is_dir() {
            copy(&entry.path(), &path);
        } else if kind.is_file() {
            fs::copy(entry.path(), path).unwrap();
        }
    }
}

/// A crash leaves it without the news that its last entry was committed. It leads before it has found that out, by an
/// entry of its own, which must be on its disk.
#[tokio::test(flavor = "multi_thread")]
async fn the_only_voter_reads_all_that_it_has_acknowledged_after_a_crash() {
    let mut machines = cluster(1).await;
    for number in 1..10 {
        machines[0].create(number).await;
    }
    let dir = machines[0].config.data_dir.clone();
    let as_crashed = dir.with_extension("crashed");
    copy(&dir, &as_crashed);
    machines[0].kill().await;
    fs::remove_dir_all(&dir).unwrap();
    fs::rename(&as_crashed, &dir).unwrap();
    let slow = Duration::from_millis(500);
    let disk = SimulatedDisk::new(1, slow..=slow);
    machines[0].env.storage.disk = Disk::Simulated(disk);
    machines[0].start().await;
    // A read that began before the node led would ask it as any other node does.
    let view = loop {
        let read = machines[0].view(Consistency::Linearizable);
        if let Ok(Ok(view)) = timeout(Duration::from_millis(10), read).await {
            break view;
        }
    };
    assert!(has(&view.state, 9), "{:?}", view.position);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_after_a_write_is_complete_as_of_when_the_write_began() {
    let mut machines = machines(1);
    let slow = Duration::from_millis(300);
    let disk = SimulatedDisk::new(1, slow..=slow);
    machines[0].env.storage.disk = Disk::Simulated(disk);
    machines[0].config.reads.probe_ms = 0;
    machines[0].start().await;
    settled(&machines).await;
    let written = machines[0].create(1).await;
    let staleness = written.view.position.staleness.unwrap();
    assert!(staleness >= slow / 2, "{staleness:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_history_is_told_apart() {
    let machines = cluster(1).await;
    let written = machines[0].create(1).await;
    let foreign = PlacementIndex {
        epoch: written.index.epoch.wrapping_add(1),
        index: 1,
    };
    let error = machines[0]
        .view(Consistency::Session(foreign))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        Unavailable::ForeignIndex {
            epoch: written.index.epoch
        }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bounded_read_is_as_fresh_as_it_says() {
    let machines = cluster(3).await;
    machines[0].create(1).await;
    let bound = Duration::from_millis(500);
    // What was written within the bound may be missing.
    tokio::time::sleep(bound).await;
    for machine in &machines {
        let asked = Instant::now();
        let view = machine.view(Consistency::Bounded(bound)).await.unwrap();
        assert!(has(&view.state, 1));
        // The promise was checked at some time since, and the view has aged from then on.
        let staleness = view.position.staleness.unwrap();
        assert!(staleness <= bound + asked.elapsed(), "{staleness:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_below_a_round_trip_is_met_by_one_linearizable_read() {
    let machines = cluster(3).await;
    machines[0].create(1).await;
    for machine in &machines {
        let asked = Instant::now();
        let bound = Consistency::Bounded(Duration::from_nanos(1));
        let view = machine.view(bound).await.unwrap();
        assert!(has(&view.state, 1));
        assert!(asked.elapsed() < Duration::from_secs(3));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn alone_a_node_reads_locally_and_promises_nothing_more() {
    let mut machines = machines(3);
    for machine in &mut machines {
        machine.config.cluster.wait_ms = 1_000;
        machine.start().await;
    }
    settled(&machines).await;
    let written = machines[0].create(1).await;
    machines[2]
        .view(Consistency::Session(written.index))
        .await
        .unwrap();
    assert!(machines[2].sees(1).await);
    machines[0].kill().await;
    machines[1].kill().await;

    let local = machines[2].view(Consistency::Local).await.unwrap();
    assert!(has(&local.state, 1));
    tokio::time::sleep(Duration::from_millis(300)).await;
    for consistency in [
        Consistency::Linearizable,
        Consistency::Bounded(Duration::from_millis(100)),
        Consistency::Session(PlacementIndex {
            index: written.index.index + 1000,
            ..written.index
        }),
    ] {
        let error = machines[2].view(consistency).await.unwrap_err();
        assert!(
            matches!(error, Unavailable::NothingCommitted { .. }),
            "{consistency:?}: {error}"
        );
    }
    let old = machines[2]
        .view(Consistency::Local)
        .await
        .unwrap()
        .position
        .staleness;
    assert!(old.unwrap() >= Duration::from_millis(300), "{old:?}");
}

/// Nobody has to be asked then; but the log may have more than what was applied.
#[tokio::test(flavor = "multi_thread")]
async fn the_only_voter_sees_all_that_it_has_acknowledged_after_each_start() {
    let mut machines = cluster(1).await;
    for number in 1..=100 {
        machines[0].create(number).await;
        if number % 20 == 0 {
            machines[0].kill().await;
            machines[0].start().await;
            assert!(machines[0].sees(number).await);
        }
    }
}
