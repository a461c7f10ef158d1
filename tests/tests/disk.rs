//! Full disks: nodes refuse writes, report the reason, and lose no data.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::time::Duration;

use http::StatusCode;
use placement_client::{Claim, Client, Error};
use placement_tests::cluster::Cluster;
use placement_tests::host::{self, claim};
use placement_tests::skip::skipped;
use placement_tests::small_disk::SmallDisk;
use placement_tests::wait::{PATIENCE, until, until_ok};
use uuid::Uuid;

/// Time until a leader has checked the disks.
const LOOKED_AFTER: Duration = Duration::from_secs(6);
/// A number of writes that do not fit on the small disks.
const WRITES_MAX: usize = 2_000;

/// Writes many consumers in one log entry, to use up the preallocated space of the log's file.
async fn write_much(client: &Client, host: Uuid) {
    let claims = (0..500)
        .map(|_| {
            (
                Uuid::new_v4(),
                Claim::by("project", "user").and(host, &[("VCPU", 1)]),
            )
        })
        .collect();
    let _ = client.post_allocations(&claims).await;
}

/// Whether claims are refused because disks are nearly full.
async fn are_refused(client: &Client, host: Uuid) -> bool {
    match claim(client, host).await {
        Ok(_) => false,
        Err(error) => error.status() == Some(StatusCode::INSUFFICIENT_STORAGE),
    }
}

/// Starts a healthy cluster with a small disk per node; also returns a client that waits and a
/// provider to claim from. `None` if no disk can be mounted.
async fn on_small_disks(config: &str) -> Option<(Cluster, Vec<SmallDisk>, Client, Uuid)> {
    let mut cluster = Cluster::prepare(3, config).unwrap();
    let mut disks = Vec::new();
    for id in cluster.ids() {
        disks.push(SmallDisk::mount(&cluster.data_dir(id), 48)?);
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let client = cluster.client().with_patience(PATIENCE);
    let host = host::with_processors(&client).await;
    Some((cluster, disks, client, host))
}

#[tokio::test]
async fn nearly_full_disks_refuse_claims_but_allow_deletions() {
    let config = "[disk]\nmin_free_bytes = 16000000\n";
    let Some((cluster, _disks, client, host)) = on_small_disks(config).await else {
        skipped(
            "nearly full disks under a cluster",
            "no small disk can be mounted",
        );
        return;
    };
    let held = claim(&client, host).await.unwrap();

    let ballast = vec![7; 40 << 20];
    let fill = |id| {
        let path = cluster.data_dir(id).join("ballast");
        let mut file = fs::File::create(&path).unwrap();
        let room = rustix::fs::statvfs(&path).unwrap();
        let room = usize::try_from(room.f_bavail * room.f_frsize).unwrap();
        file.write_all(&ballast[..room.saturating_sub(12_000_000)])
            .unwrap();
    };
    // One nearly full disk is not a majority, so claims continue, under this leader and under the
    // next one. The sleep gives the next leader time to check the disks.
    let full = cluster.leader().await.unwrap();
    fill(full);
    cluster.until_logged(&[full], "disk-nearly-full").await;
    claim(&client, host).await.unwrap();
    cluster.leader_other_than(Some(full)).await.unwrap();
    tokio::time::sleep(LOOKED_AFTER).await;
    claim(&client, host).await.unwrap();

    cluster.ids().into_iter().for_each(fill);
    until("refused claims", async || are_refused(&client, host).await).await;
    assert_eq!(
        client.provider(host).await.unwrap().uuid,
        host,
        "reads are served"
    );
    client.delete_allocations(held).await.unwrap();

    for id in cluster.ids() {
        fs::remove_file(cluster.data_dir(id).join("ballast")).unwrap();
    }
    until_ok("room", async || claim(&client, host).await).await;
    for status in cluster.statuses().await {
        assert_eq!(status.storage_failure, None, "{status:?}");
    }
}

#[tokio::test]
async fn full_disks_on_all_nodes_lose_no_data_and_recover() {
    let config = "[cluster]\nwait_ms = 2000\n[disk]\nmin_free_bytes = 0\n";
    let Some((mut cluster, disks, client, host)) = on_small_disks(config).await else {
        skipped("full disks under a cluster", "no small disk can be mounted");
        return;
    };
    let mut acknowledged = BTreeSet::new();
    for _ in 0..50 {
        acknowledged.insert(until_ok("a claim", async || claim(&client, host).await).await);
    }

    disks.iter().for_each(SmallDisk::fill);
    // The files of the logs may have a little space left, which is soon used up.
    let hasty = cluster.client().with_patience(Duration::from_secs(1));
    let before = acknowledged.len();
    let (mut refused, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    while refused.len() + unknown.len() < 5 {
        write_much(&hasty, host).await;
        let consumer = Uuid::new_v4();
        let one = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
        match hasty.put_allocations(consumer, &one).await {
            Ok(()) => acknowledged.insert(consumer),
            Err(Error::OutcomeUnknown { .. }) => unknown.insert(consumer),
            Err(_) => refused.insert(consumer),
        };
        assert!(
            acknowledged.len() - before < WRITES_MAX,
            "writes are not refused"
        );
    }

    for id in cluster.ids() {
        fs::remove_file(cluster.data_dir(id).join("ballast")).unwrap();
        cluster.kill_9(id);
    }
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    acknowledged.insert(until_ok("a claim", async || claim(&client, host).await).await);
    let seen = client.provider_allocations(host).await.unwrap();
    let is_there = |consumer: &&Uuid| seen.allocations.contains_key(*consumer);
    assert_eq!(acknowledged.iter().find(|one| !is_there(one)), None, "lost");
    // A refused write was not committed. A write with an unknown outcome was committed once or not
    // at all.
    assert_eq!(
        refused.iter().find(is_there),
        None,
        "a refused write exists"
    );
    for consumer in unknown.iter().filter(is_there) {
        let written = client.allocations(*consumer).await.unwrap();
        assert_eq!(written.consumer_generation, Some(1), "{written:?}");
    }
    cluster.assert_equal_states().await;
}
