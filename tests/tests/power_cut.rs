//! All nodes lose power at once during writes: real processes on a real disk that keeps only what
//! was synced.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use placement_client::{Claim, Client};
use placement_tests::cluster::Cluster;
use placement_tests::host::{self, claim};
use placement_tests::power::{LostData, Power};
use placement_tests::skip::skipped;
use placement_tests::wait::until;
use uuid::Uuid;

/// Frequent snapshots and purges, so that the power loss interrupts them too.
const CONFIG: &str = "[raft]\nsnapshot_after = 100\n\
    [log]\nlevel = \"warn,placement::access=off\"\n";
const WRITERS: u64 = 6;
/// Enough writes for each node to take a snapshot.
const WRITES: usize = 500;
const BUSY: Duration = Duration::from_millis(1_500);

/// Claims for new consumers through one node until `stop` is set. Returns the acknowledged claims.
async fn write(
    client: Client,
    host: Uuid,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
) -> BTreeSet<Uuid> {
    let mut acknowledged = BTreeSet::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok(consumer) = claim(&client, host).await {
            acknowledged.insert(consumer);
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    acknowledged
}

/// Writes 50 MB without a change of state, so that the log begins to overwrite its files in place.
async fn fill_the_log(client: &Client) {
    let claim = |nth: u32| {
        let name = format!("{nth:0255}");
        (Uuid::new_v4(), Claim::by(&name, &name))
    };
    for _ in 0..100 {
        let claims = (0..1_000).map(claim).collect();
        client.post_allocations(&claims).await.unwrap();
    }
}

/// Starts all nodes. Paths that contain `unsynced` are never synced; `{id}` stands for the node's
/// id.
fn start(cluster: &mut Cluster, power: &Power, unsynced: Option<&str>) {
    for id in cluster.ids() {
        let unsynced = unsynced.map(|words| words.replace("{id}", &id.to_string()));
        cluster.options_mut().environment = power.environment(id, unsynced.as_deref()).unwrap();
        cluster.start_node(id).unwrap();
    }
}

/// Cuts the power of all nodes during writes. Returns the acknowledged claims and the losses.
async fn cut_power(
    cluster: &mut Cluster,
    power: &Power,
    host: Uuid,
) -> (BTreeSet<Uuid>, Vec<LostData>) {
    let (stop, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let writers: Vec<_> = (0..WRITERS)
        .map(|nth| {
            let client = cluster.client_of(nth % 3 + 1).with_patience(BUSY);
            tokio::spawn(write(client, host, stop.clone(), count.clone()))
        })
        .collect();
    until("writes enough for a snapshot", async || {
        count.load(Ordering::Relaxed) > WRITES
    })
    .await;
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    let ids = cluster.ids().into_iter();
    let lost: Vec<_> = ids
        .map(|id| power.cut(id, &cluster.data_dir(id)).unwrap())
        .collect();
    eprintln!("{} acknowledged; {lost:?}", acknowledged.len());
    (acknowledged, lost)
}

/// Checks that all nodes restart with all acknowledged claims.
async fn survive(
    cluster: &mut Cluster,
    host: Uuid,
    acknowledged: &BTreeSet<Uuid>,
) -> anyhow::Result<()> {
    cluster.wait_healthy().await?;
    for id in cluster.ids() {
        let client = cluster.client_of(id);
        let there: BTreeSet<_> = client
            .provider_allocations(host)
            .await?
            .allocations
            .keys()
            .copied()
            .collect();
        let missing = acknowledged.difference(&there).count();
        anyhow::ensure!(
            missing == 0,
            "node {id} lost {missing} writes that were acknowledged"
        );
    }
    Ok(())
}

async fn host(cluster: &mut Cluster) -> Uuid {
    cluster.wait_healthy().await.unwrap();
    host::with_processors(&cluster.client()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_survive_power_loss_on_all_nodes() {
    let mut cluster = Cluster::prepare(3, CONFIG).unwrap();
    let Some(power) = Power::new(cluster.directory()) else {
        skipped("a loss of power on a real disk", "there is no C compiler");
        return;
    };
    start(&mut cluster, &power, None);
    let host = host(&mut cluster).await;
    let mut acknowledged = BTreeSet::new();
    let (mut lost_bytes, mut written_over) = (0, 0);
    for round in 0..3 {
        if round == 1 {
            fill_the_log(&cluster.client()).await;
        }
        let (more, lost) = cut_power(&mut cluster, &power, host).await;
        acknowledged.extend(more);
        lost_bytes += lost.iter().map(|lost| lost.bytes).sum::<u64>();
        written_over += lost.iter().map(|lost| lost.written_over).sum::<u64>();
        start(&mut cluster, &power, None);
        survive(&mut cluster, host, &acknowledged).await.unwrap();
        cluster.assert_equal_states().await;
    }
    assert!(lost_bytes > 0, "no unsynced bytes were lost");
    assert!(written_over > 0, "no file of the log was overwritten");
}

/// Proof that the test above can fail, for each kind of file that a node cannot recreate. Snapshots
/// and the names of the state's files can be recreated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_sync_is_detected() {
    let unsynced = [
        "/identity.new$",
        "/boot.new$",
        "/node-{id}/$",
        // RocksDB's write-ahead files, which contain the log; then its tables and their manifest.
        ".log$",
        ".sst$",
        "/MANIFEST-",
        "/log/$",
    ];
    for unsynced in unsynced {
        let mut cluster = Cluster::prepare(3, CONFIG).unwrap();
        let Some(power) = Power::new(cluster.directory()) else {
            skipped("missing syncs", "there is no C compiler");
            return;
        };
        start(&mut cluster, &power, Some(unsynced));
        let host = host(&mut cluster).await;
        let (acknowledged, _) = cut_power(&mut cluster, &power, host).await;
        start(&mut cluster, &power, None);
        match survive(&mut cluster, host, &acknowledged).await {
            Ok(()) => panic!("no loss is detected although {unsynced} is not synced"),
            Err(why) => eprintln!("{unsynced}: {why:.200}"),
        }
        if unsynced == ".log$" {
            // Other files record how far the log reached, so no node starts from scratch.
            let log = cluster.log(1, 3);
            assert!(log.contains("has lost"), "{log}");
        }
    }
}
