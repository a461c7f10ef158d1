//! Standard error is a pipe that is not read: the node keeps answering and counts the dropped
//! lines.

use std::fs;
use std::io::{BufRead, BufReader};

use http::StatusCode;
use placement_client::{ApiRequest, Client};
use placement_tests::cluster::STOP_LIMIT;
use placement_tests::is_ready;
use placement_tests::layout::{NodePlace, initial_members};
use placement_tests::node_process::{NodeProcess, StartOptions};
use placement_tests::ports::Ports;
use placement_tests::wait::{PATIENCE, until};
use rustix::process::Signal;

async fn get(address: String, path: &str) -> (StatusCode, String) {
    let client = Client::new([address])
        .unwrap()
        .with_attempt_timeout(PATIENCE);
    let answer = client.request_once(ApiRequest::get(path)).await.unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    (answer.status, text)
}

/// Number of log lines that the node has dropped, by its metrics.
async fn dropped(place: &NodePlace) -> u64 {
    let (_, metrics) = get(place.admin(), "/metrics").await;
    let value = metrics
        .lines()
        .find_map(|line| line.strip_prefix("placement_log_lines_dropped_total "))
        .unwrap_or_else(|| panic!("no such metric in {metrics}"));
    value.parse().unwrap()
}

#[tokio::test]
async fn unread_log_delays_no_request() {
    let directory = tempfile::tempdir().unwrap();
    let ports = Ports::claim(1);
    let place = NodePlace::new(directory.path(), ports.first(), 1);
    let config = directory.path().join("placementd.toml");
    // Everything is logged, to fill the queue.
    fs::write(&config, "[log]\nlevel = \"trace\"\n").unwrap();
    let options = StartOptions {
        initial_members: initial_members(std::slice::from_ref(&place)),
        config: Some(config.clone()),
        ..StartOptions::default()
    };
    let (mut node, unread) = NodeProcess::start_piped(&place, &options).unwrap();
    until("readiness", async || is_ready(&place).await).await;
    until("a full queue", async || {
        get(place.api(), "/resource_providers").await;
        dropped(&place).await > 0
    })
    .await;
    for _ in 0..20 {
        let (status, text) = get(place.api(), "/resource_providers").await;
        assert_eq!(status, StatusCode::OK, "{text}");
    }
    assert!(is_ready(&place).await);

    // Once the log is read again, it mentions the gap.
    fs::write(&config, "").unwrap();
    node.signal(Signal::HUP);
    let (found, gap) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut lines = BufReader::new(unread).lines();
        let gap = lines.find(|line| {
            line.as_ref()
                .is_ok_and(|line| line.contains("lines of this log were dropped"))
        });
        let _ = found.send(gap.is_some());
        lines.map_while(Result::ok).last()
    });
    assert!(gap.recv_timeout(PATIENCE).unwrap(), "the log shows no gap");

    node.signal(Signal::TERM);
    assert!(node.wait(STOP_LIMIT).unwrap().success());
    let last = reading.join().unwrap().unwrap();
    assert!(last.contains("stopped"), "the end is not flushed: {last}");
}

#[tokio::test]
async fn node_with_an_unread_log_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let ports = Ports::claim(1);
    let place = NodePlace::new(directory.path(), ports.first(), 1);
    let options = StartOptions {
        initial_members: initial_members(std::slice::from_ref(&place)),
        flags: vec!["--log-level".to_owned(), "trace".to_owned()],
        ..StartOptions::default()
    };
    let (mut node, _unread) = NodeProcess::start_piped(&place, &options).unwrap();
    until("a full queue", async || {
        is_ready(&place).await && dropped(&place).await > 0
    })
    .await;
    node.signal(Signal::TERM);
    assert!(node.wait(STOP_LIMIT).unwrap().success());
}
