//! Alerts and dashboards of `observability/`: their metrics exist, and promtool sees each alert
//! fire and resolve. `alerts.rs` has a real Prometheus scrape real clusters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use placement_tests::python;
use placement_tests::skip::skipped;
use serde_json::Value;

use crate::documents::anchors;
use crate::metrics::documented;

const DASHBOARDS: [&str; 4] = [
    "fleet.json",
    "api.json",
    "raft-and-disks.json",
    "capacity.json",
];
/// URL of the documentation that the package installs.
const INSTALLED: &str = "file:///usr/share/doc/placementd/html/docs/";

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

/// Each alert's name and definition.
fn each_alert(text: &str) -> Vec<(&str, &str)> {
    let alerts = text.split("      - alert: ").skip(1);
    alerts
        .map(|alert| alert.split_once('\n').unwrap())
        .collect()
}

/// Names of metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c));
    let is_metric = |word: &&str| word.starts_with("placement_") || word.starts_with("process_");
    words.filter(is_metric).collect()
}

/// Queries of the panels of a dashboard.
fn expressions(dashboard: &str) -> Vec<String> {
    let text = read(&folder().join("dashboards").join(dashboard));
    let value: Value = serde_json::from_str(&text).unwrap();
    let panels = value["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array());
    let asked = targets.flatten().map(|target| target["expr"].as_str());
    asked.map(|expr| expr.unwrap().to_owned()).collect()
}

#[test]
fn alerts_and_dashboards_use_existing_metrics() {
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
fn each_alert_has_a_severity_and_an_existing_runbook_chapter() {
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
            .and_then(|url| url.split_once(".html#"));
        let (document, anchor) = chapter.unwrap_or_else(|| panic!("{name}: {url:?}"));
        let document = read(&repository().join(format!("docs/{document}.md")));
        let found = anchors(&document).iter().any(|one| one == anchor);
        assert!(found, "{name} leads to {url}");
    }
}

#[test]
fn promtool_sees_each_alert_fire_and_resolve() {
    let text = alerts();
    let tests = TESTS.map(|tests| read(&folder().join(tests))).concat();
    for (name, _) in each_alert(&text) {
        let fires = format!("alertname=\"{name}\"}}', value: 1}}");
        assert!(tests.contains(&fires), "no test makes {name} fire");
    }
    let [quick, slow] = TESTS;
    for arguments in [
        &["check", "rules", "alerts.yaml"][..],
        &["test", "rules", quick, slow],
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

const TESTS: [&str; 2] = ["alerts_test.yaml", "alerts_days_test.yaml"];
const MISSING: &str = "there is no promtool; Debian has it in the package prometheus";

#[test]
fn dashboards_are_up_to_date_with_their_script() {
    let made = tempfile::tempdir().unwrap();
    let script = folder().join("dashboards.py");
    python::run(python::interpreter().arg(script).arg(made.path())).unwrap();
    for name in DASHBOARDS {
        let kept = read(&folder().join("dashboards").join(name));
        let is_same = kept == read(&made.path().join(name));
        assert!(is_same, "run observability/dashboards.py: {name} differs");
    }
}
