//! Each alert of `observability/` fires when its cause occurs and resolves when the cause ends.
//! Real clusters are scraped by a real Prometheus whose rules have shortened durations.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "alerts/disks.rs"]
mod disks;
#[path = "alerts/edge.rs"]
mod edge;
#[path = "alerts/keystone.rs"]
mod keystone;
#[path = "alerts/members.rs"]
mod members;
#[path = "alerts/rolling.rs"]
mod rolling;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use placement_tests::prometheus::{Job, Prometheus, shorten_durations};
use placement_tests::skip::skipped;

const MISSING: &str = "prometheus is not installed (Debian package: prometheus)";

/// Alerts whose cause no test can produce; only `alerts_test.yaml` makes them fire.
const ELSEWHERE: [(&str, &str); 1] = [(
    "PlacementInternalErrors",
    "only a bug makes a request fail with 500, and no such bug is known",
)];

/// Thresholds that take too long to reach, and their replacements.
const THRESHOLDS: [(&str, &str); 4] = [
    (
        "placement_backup_copy_failures_total[15s]) > 2",
        "placement_backup_copy_failures_total[15s]) > 0",
    ),
    (
        "placement_raft_follower_lag > 10000",
        "placement_raft_follower_lag > 100",
    ),
    (
        "placement_backup_log_index > 1000 and",
        "placement_backup_log_index > 50 and",
    ),
    (
        "copied_timestamp_seconds > 600",
        "copied_timestamp_seconds > 8",
    ),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../observability")
}

fn alerts() -> String {
    fs::read_to_string(folder().join("alerts.yaml")).unwrap()
}

/// Turns minutes into seconds: at least 8, so that a window has samples even if a scrape fails, and
/// at most 25.
fn in_a_hurry(minutes: f64) -> f64 {
    minutes.clamp(8.0, 25.0)
}

/// A cluster under test, and its scrape job.
struct Story<'a> {
    prometheus: &'a Prometheus,
    job: &'static str,
    /// Alerts of all clusters that have fired and resolved.
    done: &'a Mutex<BTreeSet<String>>,
}

impl Story<'_> {
    async fn fires(&self, alerts: &[&str]) {
        let begun = Instant::now();
        self.prometheus.until_firing(self.job, alerts).await;
        eprintln!("{alerts:?} fired after {:.1?}", begun.elapsed());
    }

    /// Waits until these alerts resolve. Call it after [`Story::fires`], once the cause has ended.
    async fn ended(&self, alerts: &[&str]) {
        let begun = Instant::now();
        self.prometheus.until_ended(self.job, alerts).await;
        eprintln!("{alerts:?} ended after {:.1?}", begun.elapsed());
        let alerts = alerts.iter().map(ToString::to_string);
        self.done.lock().extend(alerts);
    }
}

/// Repeats an action until `done` completes.
async fn during<T>(mut again: impl AsyncFnMut(), done: impl Future<Output = T>) -> T {
    let forever = async {
        loop {
            again().await;
        }
    };
    tokio::select! {
        () = forever => unreachable!("the loop never ends"),
        done = done => done,
    }
}

async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_alert_fires_with_its_cause_and_resolves_without_it() {
    let mut rules = shorten_durations(&alerts(), in_a_hurry);
    for (kept, quick) in THRESHOLDS {
        assert!(rules.contains(kept), "{kept}");
        rules = rules.replace(kept, quick);
    }
    let Some(disks) = disks::Stage::set().await else {
        return skipped(
            "alerts by their cause",
            "no small disk can be mounted, or there is no C compiler",
        );
    };
    let (members, edge, keystone) =
        tokio::join!(members::set(), edge::Stage::set(), keystone::Stage::set());
    let jobs = [
        Job::for_cluster(members::JOB, &members),
        disks.job(),
        edge.job(),
        keystone.job(),
    ];
    let Some(prometheus) = Prometheus::watch(&jobs, &rules) else {
        return skipped("alerts by their cause", MISSING);
    };
    let done = Mutex::new(BTreeSet::new());
    let story = |job| Story {
        prometheus: &prometheus,
        job,
        done: &done,
    };
    tokio::join!(
        members::play(story(members::JOB), members),
        disks.play(story(disks::JOB)),
        edge.play(story(edge::JOB)),
        keystone.play(story(keystone::JOB)),
    );
    let text = alerts();
    let all: BTreeSet<_> = text
        .split("- alert: ")
        .skip(1)
        .map(|of| of.lines().next().unwrap().to_owned())
        .collect();
    let mut done = done.into_inner();
    for (alert, why) in ELSEWHERE {
        assert!(
            done.insert(alert.to_owned()),
            "{alert} fired, although {why}"
        );
    }
    assert_eq!(done, all);
}
