//! Alerts about requests, capacity, holds, policy, audit, backups and their copies.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use placement_client::holds::HoldTerm;
use placement_client::{ApiRequest, Claim, Inventory};
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::prometheus::Job;
use placement_tests::s3::{Mood, Store};
use placement_tests::small_disk::SmallDisk;
use uuid::Uuid;

use super::{Story, during, pause};

pub(super) const JOB: &str = "placementd-edge";

/// More requests than the queue of audit records has room for.
const REFUSED: usize = 5_000;
const SOUND_POLICY: &str = "\"placement:usages\": \"rule:admin_api\"\n";

pub(super) struct Stage {
    cluster: Cluster,
    store: Store,
    policy: PathBuf,
    records: SmallDisk,
    backups: SmallDisk,
}

impl Stage {
    pub(super) async fn set() -> Self {
        let store = Store::start().await;
        let mut cluster = Cluster::prepare(1, "").unwrap();
        let at = |name: &str| cluster.directory().join(name);
        let (policy, records, backups) = (at("policy.yaml"), at("records"), at("backups"));
        fs::write(&policy, SOUND_POLICY).unwrap();
        let config = format!(
            "[policy]\nfile = {policy:?}\n[backup]\ndirectory = {backups:?}\nevery_s = 2\n{}\
             [audit]\nto = \"file\"\nfile = {:?}\nmode = \"best-effort\"\n",
            store.settings(),
            records.join("audit.log")
        );
        fs::write(at("placementd.toml"), config).unwrap();
        let disk = |at| SmallDisk::mount(at, 32).expect("disks can be mounted");
        let (records, backups) = (disk(&records), disk(&backups));
        cluster.start_node(1).unwrap();
        cluster.wait_healthy().await.unwrap();
        Self {
            cluster,
            store,
            policy,
            records,
            backups,
        }
    }

    pub(super) fn job(&self) -> Job {
        Job::for_cluster(JOB, &self.cluster)
    }

    pub(super) async fn play(mut self, story: Story<'_>) {
        let pid = self.cluster.process(1).pid();
        tokio::join!(
            self.policy(&story),
            self.audit(&story),
            self.backups(&story),
            self.requests(&story),
            self.full_class(&story),
            self.class_that_ends(&story),
            self.overdue_hold(&story),
        );
        // Last, since this alert needs a limit that leaves no descriptors for connections.
        descriptors(&story, pid).await;
    }

    async fn policy(&self, story: &Story<'_>) {
        for (text, alert) in [
            // No line end: a half-written file.
            ("\"placement:usages\": \"ru", "PlacementPolicyRefused"),
            (
                "\"placement:usages\": \"rule:nowhere\"\n",
                "PlacementPolicyMistakes",
            ),
        ] {
            fs::write(&self.policy, text).unwrap();
            story.fires(&[alert]).await;
            fs::write(&self.policy, SOUND_POLICY).unwrap();
            story.ended(&[alert]).await;
        }
    }

    async fn audit(&self, story: &Story<'_>) {
        let reader = self.cluster.client().with_token("someone");
        self.records.fill();
        for _ in 0..REFUSED / 8 {
            let refused = || reader.request_once(ApiRequest::get("/usages?project_id=p"));
            let answers = futures::future::join_all((0..8).map(|_| refused())).await;
            assert_eq!(answers[0].as_ref().unwrap().status, 403);
        }
        let lost = ["PlacementAuditFailed", "PlacementAuditRecordsLost"];
        story.fires(&lost).await;
        fs::remove_file(self.records.ballast()).unwrap();
        story.ended(&lost).await;
    }

    async fn backups(&self, story: &Story<'_>) {
        let copies = ["PlacementCopyingFails", "PlacementBackupsNotCopied"];
        self.store.set_mood(Mood::Forbids);
        story.fires(&copies).await;
        self.store.set_mood(Mood::Well);
        story.ended(&copies).await;

        let none = [
            "PlacementBackupFails",
            "PlacementBackupOverdue",
            "PlacementKeptLogLags",
        ];
        self.backups.fill();
        let client = self.cluster.client();
        let writes = async || {
            host::create(&client, &Uuid::new_v4().to_string()).await;
            pause(100).await;
        };
        during(writes, story.fires(&none)).await;
        self.cluster.admin_of(1).compact().await.unwrap();
        fs::remove_file(self.backups.ballast()).unwrap();
        story.fires(&["PlacementKeptLogHasGap"]).await;
        story.ended(&none).await;
        story.ended(&["PlacementKeptLogHasGap"]).await;
    }

    async fn requests(&self, story: &Story<'_>) {
        let client = self.cluster.client();
        let provider = host::with_processors(&client).await;
        let consumer = host::claim(&client, provider).await.unwrap();
        // A claim for a new consumer, although the consumer exists.
        let stale = Claim::by("project", "user").and(provider, &[("VCPU", 1)]);
        let asks = async || {
            let refused = client.put_allocations(consumer, &stale).await;
            assert!(refused.is_err());
            let search = ApiRequest::get("/allocation_candidates?resources=PCPU:1");
            client.request_once(search).await.unwrap();
            pause(20).await;
        };
        let alerts = ["PlacementConflicts", "PlacementEmptySearches"];
        during(asks, story.fires(&alerts)).await;
        story.ended(&alerts).await;
    }

    async fn full_class(&self, story: &Story<'_>) {
        let client = self.cluster.client();
        let provider = host::create(&client, "full").await;
        let offer = [("MEMORY_MB", Inventory::with_total(100))];
        client
            .replace_inventories(provider, 0, offer)
            .await
            .unwrap();
        let consumer = Uuid::new_v4();
        let claim = Claim::by("project", "user").and(provider, &[("MEMORY_MB", 96)]);
        client.put_allocations(consumer, &claim).await.unwrap();
        story.fires(&["PlacementClassFull"]).await;
        client.delete_allocations(consumer).await.unwrap();
        story.ended(&["PlacementClassFull"]).await;
    }

    async fn class_that_ends(&self, story: &Story<'_>) {
        let client = self.cluster.client();
        let offer = |total| [("DISK_GB", Inventory::with_total(total))];
        let provider = host::create(&client, "shrinking").await;
        let stocked = client.replace_inventories(provider, 0, offer(1_000_000));
        stocked.await.unwrap();
        let claims = async || {
            let claim = Claim::by("project", "user").and(provider, &[("DISK_GB", 100)]);
            let claimed = client.put_allocations(Uuid::new_v4(), &claim).await;
            claimed.unwrap();
            pause(500).await;
        };
        during(claims, async {
            // No end is predicted for a class with less than two days of history.
            pause(25_000).await;
            story.fires(&["PlacementCapacityEnds"]).await;
            // No other host has the class.
            story.fires(&["PlacementHostLossNotSurvivable"]).await;
        })
        .await;
        let more = host::create(&client, "more").await;
        // Also for the consumer of another story.
        let processors = ("VCPU", Inventory::with_total(10));
        let offer = offer(1_000_000).into_iter().chain([processors]);
        client.replace_inventories(more, 0, offer).await.unwrap();
        story.ended(&["PlacementCapacityEnds"]).await;
        story.ended(&["PlacementHostLossNotSurvivable"]).await;
    }

    async fn overdue_hold(&self, story: &Story<'_>) {
        let client = self.cluster.client();
        let provider = host::create(&client, "held").await;
        // More than enough, also for the consumers of other stories.
        let offer = [("VCPU", Inventory::with_total(1_000_000_000))];
        client
            .replace_inventories(provider, 0, offer)
            .await
            .unwrap();
        let holder = host::hold(&client, provider, host::PAST_DUE).await;
        story.fires(&["PlacementHoldOverdue"]).await;
        let term = HoldTerm {
            due: Some(host::FUTURE_DUE.to_owned()),
            ..HoldTerm::default()
        };
        let renew = ApiRequest::put(&format!("/placementd/v1/holds/{holder}"));
        client.call(renew.json(&term)).await.unwrap();
        story.ended(&["PlacementHoldOverdue"]).await;
    }
}

async fn descriptors(story: &Story<'_>, pid: u32) {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let limit = |most: String| {
        let pid = pid.to_string();
        let set = Command::new("prlimit")
            .args(["--pid", &pid, &format!("--nofile={most}:")])
            .status();
        assert!(set.unwrap().success(), "prlimit of util-linux");
    };
    let before = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let before = before
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let before = before.unwrap().split_whitespace().nth(3).unwrap();
    limit((open * 6 / 5).to_string());
    story.fires(&["PlacementDescriptorsNearLimit"]).await;
    limit(before.to_owned());
    story.ended(&["PlacementDescriptorsNearLimit"]).await;
}
