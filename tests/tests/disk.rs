//! Full disks: a node whose disk is full refuses writes, says why, leaves leadership and loses nothing; nor do all of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use placement_client::{Claim, Client, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::skip::skipped;
use uuid::Uuid;

/// A small file system in memory; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` without the right to mount.
    fn mount(at: &Path) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=48m,mode=0700", "tmpfs"])
            .arg(at)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

fn fill(disk: &Path) {
    let path = disk.join("ballast");
    let mut file = fs::File::create(path).unwrap();
    for size in [1 << 20, 4096, 1] {
        let block = vec![7; size];
        while file.write_all(&block).is_ok() {}
    }
}

/// Many consumers in one entry of the log: what is left of the log's file is soon used up.
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

async fn write(client: &Client, host: Uuid) -> Result<Uuid, placement_client::Error> {
    let consumer = Uuid::new_v4();
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
    client
        .put_allocations(consumer, &claim)
        .await
        .map(|()| consumer)
}

#[tokio::test]
async fn a_full_disk_costs_the_leader_its_office_and_nobody_any_data() {
    let mut cluster =
        Cluster::prepare(3, "[cluster]\nwait_ms = 2000\n[disk]\nmin_free_bytes = 0\n").unwrap();
    let Some(_disk) = SmallDisk::mount(&cluster.data_dir(1)) else {
        skipped(
            "a full disk under a cluster",
            "no small disk can be mounted",
        );
        return;
    };
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let client = cluster
        .client()
        .with_patience(Duration::from_secs(60))
        .repeating_unknown();
    let host = Uuid::new_v4();
    client
        .create_provider(&NewProvider::named("host").uuid(host))
        .await
        .unwrap();
    client
        .replace_inventories(host, 0, [("VCPU", Inventory::of(1_000_000))])
        .await
        .unwrap();
    let asked = Instant::now();
    while cluster.leader().await.unwrap() != 1 {
        assert!(
            asked.elapsed() < Duration::from_secs(20),
            "node 1 does not lead"
        );
        let _ = cluster
            .placementctl(&["transfer-leader", "--to", "1"])
            .unwrap();
    }
    let mut acknowledged = vec![write(&client, host).await.unwrap()];

    fill(&cluster.data_dir(1));
    // Its log's file may have some room left; it ends soon.
    let through_others = Client::new([cluster.place(2).api_url(), cluster.place(3).api_url()])
        .unwrap()
        .with_patience(Duration::from_secs(60));
    let asked = Instant::now();
    loop {
        write_much(&through_others, host).await;
        if let Ok(consumer) = write(&through_others, host).await {
            acknowledged.push(consumer);
        }
        let leads =
            cluster.statuses().await.iter().any(|status| {
                status.node_id != 1 && status.leader.is_some_and(|leader| leader != 1)
            });
        if leads {
            break;
        }
        assert!(
            asked.elapsed() < Duration::from_secs(60),
            "node 1 leads with a full disk"
        );
    }
    acknowledged.push(write(&through_others, host).await.unwrap());

    // The node itself: either it has ended and its log says why, or it says so to whoever asks.
    let said = cluster.log(1, 200);
    let words = ["space", "disk", "storage"];
    assert!(
        words.iter().any(|word| said.to_lowercase().contains(word)),
        "{said}"
    );
    let refused = cluster.client_of(1).with_patience(Duration::ZERO);
    assert!(write(&refused, host).await.is_err());

    // With room again it comes back, and has everything.
    cluster.kill_9(1);
    fs::remove_file(cluster.data_dir(1).join("ballast")).unwrap();
    cluster.start_node(1).unwrap();
    cluster.wait_ready(1).await.unwrap();
    let seen = cluster
        .client_of(1)
        .provider_allocations(host)
        .await
        .unwrap();
    for consumer in acknowledged {
        assert!(
            seen.allocations.contains_key(&consumer),
            "{consumer} is lost"
        );
    }
}

/// Whether a claim is taken: the status that is answered.
async fn claim(client: &Client, host: Uuid, consumer: Uuid) -> u16 {
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
    match client.put_allocations(consumer, &claim).await {
        Ok(()) => 204,
        Err(error) => error.status().map_or(0, |status| status.as_u16()),
    }
}

/// A healthy cluster with a small disk for each node, a patient client, and a provider to claim from.
/// `None` where no disk can be mounted.
async fn on_small_disks(config: &str) -> Option<(Cluster, Vec<SmallDisk>, Client, Uuid)> {
    let mut cluster = Cluster::prepare(3, config).unwrap();
    let mut disks = Vec::new();
    for id in cluster.ids() {
        disks.push(SmallDisk::mount(&cluster.data_dir(id))?);
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    let client = cluster.client().with_patience(Duration::from_secs(60));
    let host = Uuid::new_v4();
    let named = NewProvider::named("host").uuid(host);
    client.create_provider(&named).await.unwrap();
    let offer = [("VCPU", Inventory::of(1_000_000))];
    client.replace_inventories(host, 0, offer).await.unwrap();
    Some((cluster, disks, client, host))
}

#[tokio::test]
async fn nearly_full_disks_take_no_claims_but_give_back_until_there_is_room_again() {
    let config = "[disk]\nmin_free_bytes = 16000000\n";
    let Some((cluster, _disks, client, host)) = on_small_disks(config).await else {
        skipped(
            "nearly full disks under a cluster",
            "no small disk can be mounted",
        );
        return;
    };
    let held = Uuid::new_v4();
    assert_eq!(claim(&client, host, held).await, 204);

    let ballast = vec![7; 40 << 20];
    let fill = |id| {
        let path = cluster.data_dir(id).join("ballast");
        let mut file = fs::File::create(&path).unwrap();
        let room = rustix::fs::statvfs(&path).unwrap();
        let room = usize::try_from(room.f_bavail * room.f_frsize).unwrap();
        file.write_all(&ballast[..room.saturating_sub(12_000_000)])
            .unwrap();
    };
    // One disk is no majority: whoever leads, claims go on.
    fill(cluster.leader().await.unwrap());
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(claim(&client, host, Uuid::new_v4()).await, 204);

    cluster.ids().into_iter().for_each(fill);
    let asked = Instant::now();
    while claim(&client, host, Uuid::new_v4()).await != 507 {
        assert!(asked.elapsed() < Duration::from_secs(30), "claims go on");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(
        client.provider(host).await.unwrap().uuid,
        host,
        "reads go on"
    );
    client.delete_allocations(held).await.unwrap();

    for id in cluster.ids() {
        fs::remove_file(cluster.data_dir(id).join("ballast")).unwrap();
    }
    let asked = Instant::now();
    while claim(&client, host, Uuid::new_v4()).await != 204 {
        assert!(asked.elapsed() < Duration::from_secs(30), "there is room");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for status in cluster.statuses().await {
        assert_eq!(status.storage_failure, None, "{status:?}");
    }
}

#[tokio::test]
async fn disks_that_are_full_on_all_nodes_at_once_lose_nothing_and_need_no_more_than_room() {
    let config = "[cluster]\nwait_ms = 2000\n[disk]\nmin_free_bytes = 0\n";
    let Some((mut cluster, _disks, client, host)) = on_small_disks(config).await else {
        skipped("full disks under a cluster", "no small disk can be mounted");
        return;
    };
    let mut acknowledged = Vec::new();
    for _ in 0..50 {
        acknowledged.push(write(&client, host).await.unwrap());
    }

    for id in cluster.ids() {
        fill(&cluster.data_dir(id));
    }
    // Their logs' files may have some room left; it ends soon.
    let hasty = cluster.client().with_patience(Duration::from_secs(1));
    let asked = Instant::now();
    let mut refused = 0;
    while refused < 5 {
        write_much(&hasty, host).await;
        match write(&hasty, host).await {
            Ok(consumer) => acknowledged.push(consumer),
            Err(_) => refused += 1,
        }
        assert!(asked.elapsed() < Duration::from_secs(60), "it goes on");
    }

    for id in cluster.ids() {
        fs::remove_file(cluster.data_dir(id).join("ballast")).unwrap();
        cluster.kill_9(id);
    }
    for id in cluster.ids() {
        cluster.start_node(id).unwrap();
    }
    cluster.wait_healthy().await.unwrap();
    acknowledged.push(write(&client, host).await.unwrap());
    let seen = client.provider_allocations(host).await.unwrap();
    for consumer in acknowledged {
        assert!(
            seen.allocations.contains_key(&consumer),
            "{consumer} is lost"
        );
    }
    cluster.assert_equal_states().await;
}
