//! A healthy cluster: every panel has data, every rule is evaluated, and no page fires during
//! rolling restarts under load.

use std::collections::BTreeSet;
use std::fs;

use placement_client::{ApiRequest, Client};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host;
use placement_tests::prometheus::{Job, Prometheus, shorten_durations};
use placement_tests::skip::skipped;
use placement_tests::wait::until_ok;
use serde_json::Value;
use uuid::Uuid;

use super::{MISSING, alerts, during, folder, in_a_hurry, pause};

const JOB: &str = "placementd";
/// Number of restarts of each node.
const ROUNDS: usize = 2;

/// Speeds up the rules twenty times. As with the real rules, an election or the restart of a node
/// takes less time than the `for` duration of an alert.
fn twentyfold(minutes: f64) -> f64 {
    (3.0 * minutes).clamp(6.0, 60.0)
}

/// Queries of the panels of all dashboards.
fn expressions() -> BTreeSet<String> {
    let boards = fs::read_dir(folder().join("dashboards")).unwrap();
    let mut found = BTreeSet::new();
    for board in boards {
        let text = fs::read_to_string(board.unwrap().path()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let panels = value["panels"].as_array().unwrap().iter();
        let targets = panels.filter_map(|panel| panel["targets"].as_array());
        let asked = targets.flatten().map(|target| target["expr"].as_str());
        found.extend(asked.map(|expr| expr.unwrap().to_owned()));
    }
    found
}

/// Asserts that each query returns a series; the test has produced data for all of them.
async fn every_panel_has_data(prometheus: &Prometheus) {
    let expressions = expressions();
    assert!(expressions.len() > 60, "only {}", expressions.len());
    for kept in expressions {
        let expression = shorten_durations(&kept, in_a_hurry).replace("$job", JOB);
        let expression = expression.replace("$__rate_interval", "25s");
        until_ok(&expression, async || {
            match prometheus.series(&expression).await? {
                0 => Err("no series".to_owned()),
                _ => Ok(()),
            }
        })
        .await;
    }
}

/// Asserts that every alert was evaluated without an error.
async fn every_alert_is_evaluated(prometheus: &Prometheus) {
    let rules = prometheus.get(ApiRequest::get("/api/v1/rules")).await;
    let rules = rules.unwrap()["groups"][0]["rules"].clone();
    let rules = rules.as_array().unwrap();
    assert!(rules.len() > 40);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

/// Alerts of severity `page` that fire.
async fn pages(prometheus: &Prometheus) -> Vec<Value> {
    let found = prometheus.get(ApiRequest::get("/api/v1/alerts")).await;
    let alerts = found.unwrap()["alerts"].as_array().unwrap().clone();
    let pages = alerts
        .into_iter()
        .filter(|alert| alert["state"] == "firing" && alert["labels"]["severity"] == "page");
    pages.collect()
}

/// Claims, searches and reads; one search in twenty finds nothing.
async fn load(client: &Client, provider: Uuid, number: u32) {
    // The outcome of a claim may be unknown when its node stops.
    let _ = host::claim(client, provider).await;
    let class = if number.is_multiple_of(20) {
        "PCPU"
    } else {
        "VCPU"
    };
    for path in [
        format!("/allocation_candidates?resources={class}:1"),
        format!("/resource_providers/{provider}/usages"),
    ] {
        let answer = client.request(ApiRequest::get(&path)).await.unwrap();
        assert!(answer.status.is_success(), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_fires_during_rolling_restarts_under_load() {
    let backups = tempfile::tempdir().unwrap();
    let config = format!(
        "{STEADY_LEADER}[backup]\ndirectory = {:?}\n\
         [[fits]]\nname = \"small\"\nquery = \"resources=VCPU:1\"\n",
        backups.path()
    );
    let mut cluster = Cluster::start_secured(3, &config).await.unwrap();
    let authority = cluster.options().authority.clone().unwrap();
    for id in cluster.ids() {
        authority.renew_node(id, 90).unwrap();
    }
    let rules = shorten_durations(&alerts(), twentyfold);
    let Some(prometheus) = Prometheus::watch(&[Job::for_cluster(JOB, &cluster)], &rules) else {
        return skipped("alerts of a healthy cluster", MISSING);
    };
    let client = cluster
        .client()
        .with_patience(placement_tests::wait::PATIENCE);
    let provider = host::with_processors(&client).await;
    let mut number = 0;
    let loads = async || {
        number += 1;
        load(&client, provider, number).await;
    };
    during(loads, async {
        every_panel_has_data(&prometheus).await;
        every_alert_is_evaluated(&prometheus).await;
        let restarts = async {
            for _ in 0..ROUNDS {
                for id in cluster.ids() {
                    cluster.stop_node(id).await.unwrap();
                    cluster.start_node(id).unwrap();
                    cluster.wait_ready(id).await.unwrap();
                    pause(2_000).await;
                }
            }
            pause(5_000).await;
        };
        let looks = async || {
            assert_eq!(pages(&prometheus).await, [] as [Value; 0]);
            pause(500).await;
        };
        during(looks, restarts).await;
    })
    .await;
    assert!(number > 50, "only {number} rounds of load");
}
