//! The alerts and dashboards of `observability/`: what they ask for exists, and under a real Prometheus that watches a
//! real cluster each answers, and alerts fire by their cause.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use placement_client::{ApiRequest, Client};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host;
use placement_tests::ports::Ports;
use placement_tests::program::Program;
use placement_tests::python;
use placement_tests::skip::skipped;
use placement_tests::wait::until_ok;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::documents::anchors;
use crate::metrics::documented;

const DASHBOARDS: [&str; 2] = ["fleet.json", "api.json"];
/// Where the package puts the documents.
const INSTALLED: &str = "file:///usr/share/doc/placementd/";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn folder() -> PathBuf {
    repository().join("observability")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

fn alerts() -> String {
    read(&folder().join("alerts.yaml"))
}

/// The alerts with what stands below each.
fn each_alert(text: &str) -> Vec<(&str, &str)> {
    let alerts = text.split("      - alert: ").skip(1);
    alerts
        .map(|alert| alert.split_once('\n').unwrap())
        .collect()
}

/// The names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let is_metric = |word: &&str| word.starts_with("placement_") || word.starts_with("process_");
    words.filter(is_metric).collect()
}

/// What the panels of a dashboard ask for.
fn expressions(dashboard: &str) -> Vec<String> {
    let text = read(&folder().join("dashboards").join(dashboard));
    let value: Value = serde_json::from_str(&text).unwrap();
    let panels = value["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let asked = targets.flatten().map(|target| target["expr"].as_str());
    asked.map(|expr| expr.unwrap().to_owned()).collect()
}

#[test]
fn alerts_and_dashboards_ask_for_metrics_that_exist() {
    let documented = documented();
    let exists = |name: &str| {
        let suffixes = ["_bucket", "_sum", "_count"];
        let family = suffixes
            .into_iter()
            .filter_map(|suffix| name.strip_suffix(suffix));
        let mut histograms = family.filter_map(|family| documented.get(family));
        documented.contains_key(name) || histograms.any(|(kind, _)| kind == "histogram")
    };
    let asked: Vec<String> = DASHBOARDS.into_iter().flat_map(expressions).collect();
    assert!(asked.len() > 40, "only {} were found", asked.len());
    for text in [asked.join("\n"), alerts()] {
        let names = metrics_in(&text);
        assert!(names.len() > 20, "only {names:?} were found");
        for name in names {
            assert!(exists(name), "{name} is not in docs/metrics.md");
        }
    }
    assert!(!exists("placement_cows") && !exists("placement_ready_count"));
}

#[test]
fn each_alert_has_a_severity_and_a_chapter_that_exists() {
    let text = alerts();
    let alerts = each_alert(&text);
    assert!(alerts.len() > 30, "only {} were found", alerts.len());
    for (name, alert) in alerts {
        let mut lines = alert.lines().map(str::trim);
        let mut value = |key: &str| lines.find_map(|line| line.strip_prefix(key));
        let severity = value("labels: {severity: ").unwrap_or_default();
        assert!(["page}", "ticket}", "info}"].contains(&severity), "{name}");
        assert!(value("summary: ").is_some(), "{name}");
        let url = value("runbook_url: ").unwrap_or_default();
        let chapter = url
            .strip_prefix(INSTALLED)
            .and_then(|url| url.split_once('#'));
        let (document, anchor) = chapter.unwrap_or_else(|| panic!("{name}: {url:?}"));
        let document = read(&repository().join("docs").join(document));
        let found = anchors(&document).iter().any(|one| one == anchor);
        assert!(found, "{name} leads to {url}");
    }
}

#[test]
fn promtool_sees_each_alert_fire_and_end() {
    let text = alerts();
    let tests = read(&folder().join("alerts_test.yaml"));
    for (name, _) in each_alert(&text) {
        let fires = format!("alertname=\"{name}\"}}', value: 1}}");
        assert!(tests.contains(&fires), "no test makes {name} fire");
    }
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ] {
        let promtool = Command::new("promtool")
            .args(arguments)
            .current_dir(folder())
            .output();
        let Ok(output) = promtool else {
            return skipped("the tests of alerts by promtool", MISSING);
        };
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(output.status.success(), "{arguments:?}: {text}");
    }
}

const MISSING: &str =
    "there is no promtool or no prometheus; Debian has both in the package prometheus";

#[test]
fn dashboards_are_what_their_script_writes() {
    let made = tempfile::tempdir().unwrap();
    let script = folder().join("dashboards.py");
    python::run(python::interpreter().arg(script).arg(made.path())).unwrap();
    for name in DASHBOARDS {
        let kept = read(&folder().join("dashboards").join(name));
        let is_same = kept == read(&made.path().join(name));
        assert!(is_same, "run observability/dashboards.py: {name} differs");
    }
}

/// A Prometheus that watches a cluster; gone when dropped.
struct Prometheus {
    _process: Program,
    client: Client,
    directory: TempDir,
    _port: Ports,
}

/// What a node without a leader takes to answer is less than that.
const SCRAPE: &str = "3s";

impl Prometheus {
    /// `None` where there is no such program. An alert lasts for a moment before it fires, not for minutes.
    fn watch(cluster: &Cluster) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let ids = cluster.ids().into_iter();
        let targets = ids.map(|id| cluster.place(id).admin());
        let tls = cluster.directory().join("tls");
        let config = json!({
            "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": "1s"},
            "rule_files": ["alerts.yaml"],
            "scrape_configs": [{
                "job_name": "placementd",
                "scheme": "https",
                "tls_config": {
                    "ca_file": tls.join("ca.pem"),
                    "cert_file": tls.join("admin-test.pem"),
                    "key_file": tls.join("admin-test-key.pem"),
                },
                "static_configs": [{"targets": targets.collect::<Vec<_>>()}],
            }],
        });
        let kept = alerts();
        let quick = kept.lines().map(|line| match line.trim_start() {
            lasting if lasting.starts_with("for: ") => "        for: 4s\n".to_owned(),
            _ => format!("{line}\n"),
        });
        std::fs::write(
            directory.path().join("alerts.yaml"),
            quick.collect::<String>(),
        )
        .unwrap();
        // JSON is YAML.
        std::fs::write(directory.path().join("config.yaml"), config.to_string()).unwrap();
        let port = Ports::claim(1);
        let address = format!("127.0.0.1:{}", port.first());
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let process = Command::new("prometheus")
            .current_dir(directory.path())
            .args(["--config.file=config.yaml", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .ok()?;
        Some(Self {
            _process: Program(process),
            client: Client::new([format!("http://{address}")]).unwrap(),
            directory,
            _port: port,
        })
    }

    async fn get(&self, request: ApiRequest) -> Result<Value, String> {
        let log = || read(&self.directory.path().join("log"));
        let answer = self.client.request_once(request).await;
        let answer = answer.map_err(|error| format!("{error}: {}", log()))?;
        let value: Value = serde_json::from_slice(&answer.body)
            .map_err(|error| format!("{error}: {:?}", answer.body))?;
        match value["status"] == "success" {
            true => Ok(value["data"].clone()),
            false => Err(value.to_string()),
        }
    }

    /// How many series an expression gives.
    async fn series(&self, expression: &str) -> Result<usize, String> {
        let request = ApiRequest::get("/api/v1/query").query("query", expression);
        let found = self.get(request).await?;
        Ok(found["result"].as_array().map_or(1, Vec::len))
    }

    /// The alerts that fire.
    async fn firing(&self) -> Result<BTreeSet<String>, String> {
        let found = self.get(ApiRequest::get("/api/v1/alerts")).await?;
        let alerts = found["alerts"].as_array().cloned().unwrap_or_default();
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        let names = firing.map(|alert| alert["labels"]["alertname"].as_str());
        Ok(names.map(|name| name.unwrap().to_owned()).collect())
    }

    /// Waits until these alerts fire and those do not.
    async fn until_firing(&self, expected: &[&str], others: &[&str]) {
        let what = format!("{expected:?} without {others:?}");
        until_ok(&what, async || {
            let firing = self.firing().await?;
            let fire = expected.iter().all(|name| firing.contains(*name));
            let rest = others.iter().all(|name| !firing.contains(*name));
            (fire && rest).then_some(()).ok_or(format!("{firing:?}"))
        })
        .await;
    }
}

/// Each expression gives a series, as each thing that is shown has happened.
async fn every_panel_has_data(prometheus: &Prometheus) {
    for dashboard in DASHBOARDS {
        for expression in expressions(dashboard) {
            let expression = expression.replace("$job", "placementd");
            let expression = expression.replace("$__rate_interval", "1m");
            until_ok(&expression, async || {
                match prometheus.series(&expression).await? {
                    0 => Err("no series".to_owned()),
                    _ => Ok(()),
                }
            })
            .await;
        }
    }
}

/// Every alert was evaluated without an error.
async fn every_alert_is_evaluated(prometheus: &Prometheus) {
    let rules = prometheus.get(ApiRequest::get("/api/v1/rules")).await;
    let rules = rules.unwrap()["groups"][0]["rules"].clone();
    let rules = rules.as_array().unwrap();
    assert!(rules.len() > 30);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

const ABSENT: [&str; 4] = [
    "PlacementQuorumLost",
    "PlacementCanLoseNone",
    "PlacementNodeDown",
    "PlacementNodeNotReady",
];

#[tokio::test]
async fn alerts_fire_by_their_cause_under_a_real_prometheus() {
    let backups = tempfile::tempdir().unwrap();
    let backup = format!(
        "{STEADY_LEADER}[backup]\ndirectory = {:?}\n",
        backups.path().display().to_string()
    );
    let mut cluster = Cluster::start_secured(3, &backup).await.unwrap();
    let Some(prometheus) = Prometheus::watch(&cluster) else {
        return skipped("alerts under a real Prometheus", MISSING);
    };
    let leader = cluster.leader().await.unwrap();
    let followers = cluster.followers().await.unwrap();
    let [one, other] = followers[..] else {
        panic!("two nodes follow: {followers:?}");
    };
    let client = cluster.client_of(leader);
    let vcpu = host::with_processors(&client).await;
    host::claim(&client, vcpu).await.unwrap();
    for class in ["VCPU", "MEMORY_MB"] {
        let search = format!("/allocation_candidates?resources={class}:1");
        client.request(ApiRequest::get(&search)).await.unwrap();
    }
    every_panel_has_data(&prometheus).await;
    every_alert_is_evaluated(&prometheus).await;
    prometheus.until_firing(&[], &ABSENT).await;

    // A node that was drained is not ready, and no one is called for that.
    cluster.admin_of(one).drain().await.unwrap();
    prometheus
        .until_firing(&["PlacementNodeDrained"], &ABSENT)
        .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    prometheus
        .until_firing(&["PlacementNodeDrained"], &ABSENT)
        .await;
    cluster.admin_of(one).undrain().await.unwrap();
    prometheus
        .until_firing(&[], &["PlacementNodeDrained"])
        .await;

    cluster.kill_9(one);
    prometheus
        .until_firing(
            &["PlacementNodeDown", "PlacementCanLoseNone"],
            &["PlacementQuorumLost", "PlacementNodeNotReady"],
        )
        .await;
    cluster.kill_9(other);
    prometheus
        .until_firing(
            &[
                "PlacementQuorumLost",
                "PlacementNodeDown",
                "PlacementNodeNotReady",
            ],
            &[],
        )
        .await;
    cluster.start_node(one).unwrap();
    cluster.start_node(other).unwrap();
    prometheus.until_firing(&[], &ABSENT).await;
}
