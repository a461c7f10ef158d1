//! Alerts about full, slow, hung and failing disks, clocks, network links, and a node that holds
//! back the feature level.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::prometheus::Job;
use placement_tests::shim;
use placement_tests::small_disk::SmallDisk;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::{Story, during, pause};

pub(super) const JOB: &str = "placementd-disks";

/// Preloaded library. While the gate file of a fault exists, the fault is active: syncs take 1.5 s,
/// hang, or fail in a flush (EIO) or in a compaction (ENOSPC), or the wall clock is a minute ahead.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static int is(const char *what) {
    char gate[4096];
    snprintf(gate, sizeof gate, "%s-%s", getenv("PLACEMENT_TEST_GATE"), what);
    return access(gate, F_OK) == 0;
}
static int by(const char *thread) {
    char name[16];
    pthread_getname_np(pthread_self(), name, sizeof name);
    return strcmp(name, thread) == 0;
}
static int sync_by(const char *name, int fd) {
    if (is("slow")) usleep(1500000);
    while (is("hangs")) usleep(10000);
    // RocksDB's threads: "high" flushes, "low" compacts.
    if (is("fails") && by("rocksdb:high")) { errno = EIO; return -1; }
    if (is("full") && by("rocksdb:low")) { errno = ENOSPC; return -1; }
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    return real(fd);
}
int fdatasync(int fd) { return sync_by("fdatasync", fd); }
int fsync(int fd) { return sync_by("fsync", fd); }
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME && is("ahead")) time->tv_sec += 60;
    return result;
}
"#;

/// Size of a disk that is reported as nearly full.
const NEARLY_FULL_MB: u32 = 900;
const ROOMY_MB: u32 = 2_000;

pub(super) struct Stage {
    cluster: Cluster,
    disks: Vec<SmallDisk>,
    provider: Uuid,
}

impl Stage {
    /// `None` if no disk can be mounted, or there is no C compiler.
    pub(super) async fn set() -> Option<Self> {
        let config = "[raft]\nround_trip_ms = 200\n[disk]\nhung_after_ms = 60000\n";
        let mut cluster = Cluster::prepare_far(3, config).unwrap();
        let shim = shim::compile(cluster.directory(), SHIM)?;
        let mut disks = Vec::new();
        for id in cluster.ids() {
            disks.push(SmallDisk::mount(&cluster.data_dir(id), NEARLY_FULL_MB)?);
            let gate = cluster
                .directory()
                .join(format!("node-{id}"))
                .display()
                .to_string();
            let options = cluster.options_mut();
            // The next version. Node 3 holds the cluster at the feature level of the current
            // version.
            options.binary = Some(binaries::rehearsal().unwrap());
            options.environment = vec![
                ("LD_PRELOAD".to_owned(), shim.display().to_string()),
                ("PLACEMENT_TEST_GATE".to_owned(), gate),
            ];
            if id == 3 {
                options.flags = vec!["--cluster-level-max".to_owned(), "1".to_owned()];
            }
            cluster.start_node(id).unwrap();
        }
        cluster.options_mut().flags.clear();
        cluster.wait_healthy().await.unwrap();
        let provider = host::with_processors(&cluster.client()).await;
        // Longer than the election timeouts are designed for.
        cluster.set_round_trips(|_, _| Duration::from_millis(300));
        Some(Self {
            cluster,
            disks,
            provider,
        })
    }

    pub(super) fn job(&self) -> Job {
        Job::for_cluster(JOB, &self.cluster)
    }

    fn gate(&self, id: u64, what: &str) -> PathBuf {
        self.cluster.directory().join(format!("node-{id}-{what}"))
    }

    fn open(&self, id: u64, what: &str) {
        fs::write(self.gate(id, what), "").unwrap();
    }

    fn close(&self, id: u64, what: &str) {
        fs::remove_file(self.gate(id, what)).unwrap();
    }

    pub(super) async fn play(mut self, story: Story<'_>) {
        let client = self.cluster.client();
        let provider = self.provider;
        let megabyte = vec![7; 1 << 20];
        // A claim may fail while the leadership changes.
        let claims = async || {
            let _ = host::claim(&client, provider).await;
            pause(20).await;
        };
        during(claims, async {
            self.beginnings(&story).await;
            let ballast = self.disks[0].ballast();
            let mut file = fs::File::create(&ballast).unwrap();
            let fills = async || {
                file.write_all(&megabyte).unwrap();
                pause(500).await;
            };
            during(fills, async {
                self.slow(&story).await;
                self.compactions(&story).await;
                story.fires(&["PlacementDiskFills"]).await;
            })
            .await;
            fs::remove_file(ballast).unwrap();
            self.failed(&story).await;
            story.ended(&["PlacementDiskFills"]).await;
        })
        .await;
    }

    /// Alerts whose causes exist from the start.
    async fn beginnings(&mut self, story: &Story<'_>) {
        let wrong = [
            "PlacementRoundTripTooLong",
            "PlacementDiskNearlyFull",
            "PlacementFramesDamaged",
            "PlacementClockDiffers",
            "PlacementLevelHeldDown",
        ];
        self.open(1, "ahead");
        let peer = self.cluster.place(1).peer();
        // A frame length, and content that does not match its checksum.
        let mut damaged = [0x55; 64];
        damaged[..4].copy_from_slice(&60_u32.to_be_bytes());
        let garbage = async || {
            let mut stream = TcpStream::connect(&peer).await.unwrap();
            // The other side closes the connection at once.
            let _ = stream.write_all(&damaged).await;
            pause(1_000).await;
        };
        during(garbage, story.fires(&wrong)).await;
        self.cluster.set_round_trips(|_, _| Duration::ZERO);
        self.disks.iter().for_each(|disk| disk.resize(ROOMY_MB));
        self.close(1, "ahead");
        self.cluster.stop_node(3).await.unwrap();
        self.cluster.start_node(3).unwrap();
        self.cluster.wait_ready(3).await.unwrap();
        story.ended(&wrong).await;
    }

    async fn slow(&self, story: &Story<'_>) {
        self.open(3, "hangs");
        story.fires(&["PlacementDiskHangs"]).await;
        self.close(3, "hangs");
        story.ended(&["PlacementDiskHangs"]).await;

        let slow = ["PlacementSlowSync", "PlacementSlowWrites"];
        for id in self.cluster.ids() {
            self.open(id, "slow");
        }
        story.fires(&slow).await;
        for id in self.cluster.ids() {
            self.close(id, "slow");
        }
        story.ended(&slow).await;
    }

    async fn compactions(&self, story: &Story<'_>) {
        self.open(3, "full");
        let admin = self.cluster.admin_of(3);
        let compact = async || {
            let _ = admin.compact().await;
            pause(500).await;
        };
        during(compact, story.fires(&["PlacementDatabaseErrors"])).await;
        self.close(3, "full");
        story.ended(&["PlacementDatabaseErrors"]).await;
    }

    async fn failed(&mut self, story: &Story<'_>) {
        let failed = ["PlacementStorageFailed", "PlacementSnapshotsFail"];
        self.open(2, "fails");
        let admin = self.cluster.admin_of(2);
        // The flush fails.
        let compact = async || drop(admin.compact().await);
        during(compact, story.fires(&failed)).await;
        self.close(2, "fails");
        self.cluster.kill_9(2);
        self.cluster.start_node(2).unwrap();
        story.ended(&failed).await;
    }
}
