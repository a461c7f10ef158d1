//! The `/metrics` endpoint as monitoring reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, UNIX_EPOCH};

use placement_client::claims::{ClaimRequest, Claimant, Order, Want};
use placement_client::{ApiRequest, Client};
use placement_model::types::Timestamp;
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::host::{FUTURE_DUE, claim, create, hold, with_processors};
use placement_tests::skip::skipped;
use placement_tests::wait::until_ok;
use serde_json::json;
use uuid::Uuid;

/// Type and label names of each metric.
pub(crate) type Families = BTreeMap<String, (String, BTreeSet<String>)>;

/// A client of a node's operator socket.
fn operators_listener(cluster: &Cluster, id: u64) -> Client {
    let socket = cluster.data_dir(id).join("admin.sock");
    Client::new([format!("unix:{}", socket.display())]).unwrap()
}

/// Metrics of a node, requested as by Prometheus.
async fn scrape(cluster: &Cluster, id: u64) -> String {
    let client = operators_listener(cluster, id);
    let accept =
        "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1";
    let request = ApiRequest::get("/metrics").header("accept", accept);
    let answer = client.call(request).await.unwrap();
    let format = answer.headers["content-type"].to_str().unwrap();
    assert_eq!(format, "text/plain; version=0.0.4; charset=utf-8");
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Settings for metrics per partition. A leader has more metrics than a follower, so the leader
/// must not change.
const PARTITIONED: &str = "[raft]\nround_trip_ms = 400\n[[partitions]]\nname = \"north\"\n\
    [[fits]]\nname = \"small\"\nquery = \"resources=VCPU:1\"\n";

/// A leader that has served a write, a read, a request to an unknown path, and a request of another
/// partition.
async fn busy_leader(cluster: &Cluster) -> u64 {
    let leader = cluster.leader().await.unwrap();
    let client = cluster.client_of(leader);
    let host = with_processors(&client).await;
    claim(&client, host).await.unwrap();
    let consumer = Uuid::new_v4();
    let claimant = Claimant {
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        ..Claimant::default()
    };
    let wanted = ClaimRequest {
        consumers: [(consumer.to_string(), claimant)].into(),
        want: Some(Want {
            query: "resources=VCPU:1".to_owned(),
            order: Order::Any,
        }),
        ..ClaimRequest::default()
    };
    // The feature level must be raised first.
    until_ok("a claim", async || client.claim(&wanted).await).await;
    client.delete_allocations(consumer).await.unwrap();
    // With a single partition each path belongs to it.
    let empty = "/allocation_candidates?resources=PCPU:1";
    for path in ["/resource_providers/cows", "/cows", empty] {
        client.request(ApiRequest::get(path)).await.unwrap();
    }
    cluster
        .create_partition("north", &[], &["/north"])
        .await
        .unwrap();
    let north = ApiRequest::get("/north/traits");
    client.request(north).await.unwrap();
    leader
}

/// Metrics that the text describes and shows.
fn families(text: &str) -> Families {
    let mut families = Families::new();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, kind) = described.split_once(' ').unwrap();
            families.insert(name.to_owned(), (kind.to_owned(), BTreeSet::new()));
        }
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let sample = line.rsplit_once(' ').unwrap().0;
        let (name, labels) = sample.split_once('{').unwrap_or((sample, "}"));
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .filter_map(|suffix| name.strip_suffix(suffix))
            .find(|family| families.contains_key(*family))
            .unwrap_or(name);
        let known = families.get_mut(family);
        let (_, seen) = known.unwrap_or_else(|| panic!("{line} has no HELP line"));
        let labels = labels.trim_end_matches('}').split("\",");
        let keys = labels.filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        seen.extend(keys.filter(|key| key != "le"));
    }
    families
}

/// Metrics that `docs/metrics.md` lists.
pub(crate) fn documented() -> Families {
    let page = include_str!("../../docs/metrics.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        let (name, labels) = cells[1].split_once('{').unwrap_or((cells[1], ""));
        let labels = labels
            .trim_end_matches('}')
            .split(',')
            .filter(|label| !label.is_empty())
            .map(str::to_owned)
            .collect();
        (name.to_owned(), (cells[2].to_owned(), labels))
    })
    .collect()
}

#[tokio::test]
async fn leader_shows_exactly_the_documented_metrics() {
    let cluster = Cluster::start_secured(3, PARTITIONED).await.unwrap();
    let leader = busy_leader(&cluster).await;
    let expected = documented();
    assert!(expected.len() > 30);
    let client = cluster.client_of(leader);
    // The age of its state is known once it has confirmed its leadership with a quorum, and the
    // pace of a follower after writes in ten different seconds.
    until_ok("the documented metrics", async || {
        let write = ApiRequest::put("/traits/CUSTOM_NEW");
        client.request(write).await.unwrap();
        let found = families(&scrape(&cluster, leader).await);
        if found == expected {
            Ok(())
        } else {
            Err(found)
        }
    })
    .await;
    let text = scrape(&cluster, leader).await;
    for sample in [
        "placement_raft_leads 1\n",
        "placement_claims_total{outcome=\"claimed\"} 1\n",
        "placement_claims_total{outcome=\"group\"} 0\n",
        "placement_claim_choice_bucket{le=\"0.0\"} 1\n",
        "placement_claim_choice_count 1\n",
        "placement_claims_over_ceiling_total{resource_class=\"consumers\"} 0\n",
        "placement_partition_providers{partition=\"default\"} 1\n",
        "placement_inventory_used{partition=\"default\",resource_class=\"VCPU\"} 1.0\n",
        "placement_rocksdb_wal_bytes{db=\"log\"}",
        "# TYPE placement_disk_used_bytes gauge\n",
        // The label is the matched route; other paths count as `none`.
        "{method=\"GET\",route=\"/resource_providers/{uuid}\",status=\"404\"}",
        "{method=\"GET\",route=\"none\",status=\"404\"}",
    ] {
        assert!(text.contains(sample), "{sample} is missing in\n{text}");
    }
}

/// Value of a sample.
async fn value(cluster: &Cluster, id: u64, sample: &str) -> Option<f64> {
    let text = scrape(cluster, id).await;
    let line = text.lines().find_map(|line| line.strip_prefix(sample))?;
    line.trim().parse().ok()
}

/// Waits until a sample has this value.
async fn shows(cluster: &Cluster, id: u64, sample: &str, expected: f64) {
    until_ok(&format!("{sample} {expected}"), async || {
        let found = value(cluster, id, sample).await;
        (found == Some(expected)).then_some(()).ok_or(found)
    })
    .await;
}

#[tokio::test]
async fn drained_node_and_lost_voter_appear_in_the_metrics() {
    let mut cluster = Cluster::start_with(3, STEADY_LEADER).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let followers = cluster.followers().await.unwrap();
    let [drained, lost] = followers[..] else {
        panic!("two nodes follow: {followers:?}");
    };
    shows(&cluster, leader, "placement_raft_voters ", 3.0).await;
    shows(&cluster, leader, "placement_raft_can_lose ", 1.0).await;
    let not_ready = "placement_unavailable_total{code=\"placement.unavailable.not_ready\"} ";
    for (metric, expected) in [
        ("placement_ready ", 1.0),
        ("placement_drained ", 0.0),
        (not_ready, 0.0),
    ] {
        assert_eq!(value(&cluster, drained, metric).await, Some(expected));
    }

    cluster.admin_of(drained).drain().await.unwrap();
    let client = cluster.client_of(drained);
    let root = client.request_once(ApiRequest::get("/")).await.unwrap();
    assert_eq!(root.status, 503);
    for (metric, expected) in [
        ("placement_ready ", 0.0),
        ("placement_drained ", 1.0),
        (not_ready, 1.0),
    ] {
        assert_eq!(value(&cluster, drained, metric).await, Some(expected));
    }
    cluster.admin_of(drained).undrain().await.unwrap();
    shows(&cluster, drained, "placement_ready ", 1.0).await;
    shows(&cluster, drained, "placement_drained ", 0.0).await;

    cluster.kill_9(lost);
    shows(&cluster, leader, "placement_raft_can_lose ", 0.0).await;
    cluster.kill_9(drained);
    shows(&cluster, leader, "placement_ready ", 0.0).await;
    // No scrape waits for a leader, but other load of the machine may delay one.
    let mut took = Duration::MAX;
    for _ in 0..3 {
        // Longer than values are cached between scrapes.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let begun = Instant::now();
        assert_eq!(value(&cluster, leader, "placement_ready ").await, Some(0.0));
        took = took.min(begun.elapsed());
    }
    assert!(took < Duration::from_millis(900), "{took:?}");
}

#[tokio::test]
async fn deleted_partition_has_no_series_and_totals_do_not_fall() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let requests = "placement_partition_requests_total{partition=\"north\"} ";
    let searches = "placement_searches_total{result=\"empty\"} ";
    for life in 1..=2 {
        let made = cluster.create_partition("north", &[], &["/north"]);
        made.await.unwrap();
        let search = ApiRequest::get("/north/allocation_candidates?resources=VCPU:1");
        client.call(search).await.unwrap();
        assert_eq!(value(&cluster, 1, requests).await, Some(1.0));
        cluster.ctl(&["partitions", "delete", "north"]);
        assert_eq!(value(&cluster, 1, requests).await, None);
        assert_eq!(value(&cluster, 1, searches).await, Some(f64::from(life)));
    }
}

/// An operator sees whether the mirror of a database still follows the changes.
#[tokio::test]
async fn open_streams_of_all_partitions_are_counted() {
    let cluster = Cluster::start(1).await.unwrap();
    let made = cluster.create_partition("north", &[], &["/north"]);
    made.await.unwrap();
    let streams = "placement_event_streams ";
    assert_eq!(value(&cluster, 1, streams).await, Some(0.0));
    let client = cluster.client();
    let mut open = Vec::new();
    for path in ["/placementd/v1/events", "/north/placementd/v1/events"] {
        open.push(client.lines(ApiRequest::get(path)).await.unwrap());
    }
    assert_eq!(value(&cluster, 1, streams).await, Some(2.0));
    drop(open);
    shows(&cluster, 1, streams, 0.0).await;
}

#[tokio::test]
async fn conflicts_searches_and_requests_are_counted() {
    let cluster = Cluster::start_with(3, STEADY_LEADER).await.unwrap();
    let leader = cluster.leader().await.unwrap();
    let client = cluster.client_of(leader);
    create(&client, "host").await;
    let again = ApiRequest::post("/resource_providers").json(&json!({"name": "host"}));
    let again = client.request(again).await.unwrap();
    assert_eq!(again.status, 409);
    let search = ApiRequest::get("/allocation_candidates?resources=VCPU:1");
    client.request(search).await.unwrap();
    for (sample, expected) in [
        (
            "placement_write_refusals_total{code=\"placement.duplicate_name\"} ",
            1.0,
        ),
        ("placement_searches_total{result=\"empty\"} ", 1.0),
        ("placement_searches_total{result=\"found\"} ", 0.0),
        ("placement_partition_providers{partition=\"default\"} ", 1.0),
    ] {
        assert_eq!(
            value(&cluster, leader, sample).await,
            Some(expected),
            "{sample}"
        );
    }
    let requests = "placement_partition_requests_total{partition=\"default\"} ";
    for (sample, least) in [(requests, 3.0), ("process_cpu_seconds_total ", 0.01)] {
        let found = value(&cluster, leader, sample).await.unwrap();
        assert!(found >= least, "{sample}{found}");
    }
}

/// A hold becomes overdue as time passes, without a write.
#[tokio::test]
async fn each_node_counts_holds_and_overdue_holds() {
    let cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let host = with_processors(&client).await;
    let counts = async |holds: f64, overdue: f64| {
        for id in cluster.ids() {
            for (name, expected) in [("holds", holds), ("holds_overdue", overdue)] {
                let sample = format!("placement_{name}{{partition=\"default\"}} ");
                shows(&cluster, id, &sample, expected).await;
            }
        }
    };
    counts(0.0, 0.0).await;
    hold(&client, host, FUTURE_DUE).await;
    counts(1.0, 0.0).await;
    let soon = UNIX_EPOCH.elapsed().unwrap() + Duration::from_secs(2);
    let soon = Timestamp(i64::try_from(soon.as_micros()).unwrap());
    let overdue = hold(&client, host, &soon.rfc3339().unwrap()).await;
    counts(2.0, 1.0).await;
    client.delete_allocations(overdue).await.unwrap();
    counts(1.0, 0.0).await;
}

#[tokio::test]
async fn promtool_accepts_the_metrics() {
    let promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = promtool else {
        return skipped(
            "the check of metrics by promtool",
            "there is no promtool; Debian has it in the package prometheus",
        );
    };
    let cluster = Cluster::start_with(3, PARTITIONED).await.unwrap();
    let leader = busy_leader(&cluster).await;
    let text = scrape(&cluster, leader).await;
    let mut input = promtool.stdin.take().unwrap();
    input.write_all(text.as_bytes()).unwrap();
    drop(input);
    let output = promtool.wait_with_output().unwrap();
    let complaints = [output.stdout, output.stderr].concat();
    let complaints = String::from_utf8_lossy(&complaints);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{complaints}\n{text}"
    );
}
