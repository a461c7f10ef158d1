use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use placement_base::backend::Consistency;
use placement_machine::SimulatedDisk;
use tokio::time::timeout;

use crate::fixture::{cluster, has, machines, settled};

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

/// After a crash the node does not know that its last entry was committed. It leads before it has
/// determined that, by an entry of its own, which must be on its disk.
#[tokio::test(flavor = "multi_thread")]
async fn only_voter_reads_all_acknowledged_writes_after_a_crash() {
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
    machines[0].env.storage.disk = Arc::new(disk);
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
async fn view_after_a_write_is_complete_as_of_its_beginning() {
    let mut machines = machines(1);
    let slow = Duration::from_millis(300);
    let disk = SimulatedDisk::new(1, slow..=slow);
    machines[0].env.storage.disk = Arc::new(disk);
    machines[0].config.reads.probe_ms = 0;
    machines[0].start().await;
    settled(&machines).await;
    let written = machines[0].create(1).await;
    let staleness = written.view.position.staleness.unwrap();
    assert!(staleness >= slow / 2, "{staleness:?}");
}
