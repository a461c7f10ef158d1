//! Clients that hold connections and do nothing with them: health checks are answered all the same, other requests
//! are refused as the node is busy, and once those clients are gone all is as before.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use placement_client::ApiRequest;
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::wait::{PATIENCE, until};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

/// A connection that has sent this and waits.
fn connected(address: &str, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    stream
}

/// The whole answer to a request after which the connection ends.
fn answer(address: &str, path: &str) -> String {
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nX-Auth-Token: admin\r\nConnection: close\r\n\r\n"
    );
    let mut text = String::new();
    connected(address, &head).read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn health_is_answered_while_silent_clients_hold_all_connections() {
    let cluster = Cluster::start_with(
        1,
        "[api]\nmax_connections = 20\ntrust_proxy_headers = true\n",
    )
    .await
    .unwrap();
    let place = cluster.place(1);
    let (api, admin) = (place.api(), place.admin());
    // More than are served, and more than are turned away at once. The admin's listener has its own.
    let mut silent: Vec<_> = (0..120)
        .map(|_| connected(&api, "GET / HTTP/1.1\r\n"))
        .collect();
    silent.extend((0..400).map(|_| connected(&admin, "GET / HTTP/1.1\r\n")));
    // First, as a head that does not come is given up after a while.
    assert!(answer(&admin, "/v1/status").starts_with("HTTP/1.1 503"));
    for (address, path) in [
        (&api, "/livez"),
        (&api, "/readyz"),
        (&admin, "/livez"),
        (&admin, "/readyz"),
        (&admin, "/metrics"),
    ] {
        let answer = answer(address, path);
        assert!(
            answer.starts_with("HTTP/1.1 200"),
            "{address}{path}: {answer}"
        );
    }
    let refused = answer(&api, "/resource_providers");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("placement.unavailable.busy"), "{refused}");
    assert!(
        refused.to_lowercase().contains("\r\nretry-after: 1\r\n"),
        "{refused}"
    );

    drop(silent);
    until("places of the clients that are gone", async || {
        answer(&api, "/resource_providers").starts_with("HTTP/1.1 200")
    })
    .await;
}

#[tokio::test]
async fn one_address_does_not_get_all_connections() {
    let config = "[api]\nmax_connections = 40\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    let api = cluster.place(1).api();
    let _silent: Vec<_> = (0..10)
        .map(|_| connected(&api, "GET / HTTP/1.1\r\n"))
        .collect();
    assert!(answer(&api, "/resource_providers").starts_with("HTTP/1.1 503"));
    assert!(answer(&api, "/livez").starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_is_refused_early_can_read_the_reason() {
    let cluster = Cluster::start(1).await.unwrap();
    let api = cluster.place(1).api();
    let length = 900_000;
    let head = format!(
        "POST /resource_providers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let mut stream = connected(&api, &head);
    // The body is not read, but it must not break the connection under the answer.
    for _ in 0..9 {
        stream.write_all(&vec![b' '; length / 9]).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
    assert!(
        text.to_lowercase().contains("\r\nconnection: close\r\n"),
        "{text}"
    );
}

/// The soft limit of open files, and how many are open.
fn descriptors(pid: u32) -> (u64, usize) {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let soft = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    (
        soft,
        fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count(),
    )
}

#[tokio::test]
async fn a_node_raises_its_limit_of_descriptors_and_outlives_their_exhaustion() {
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(1 << 20);
    let mut cluster = Cluster::prepare(1, "").unwrap();
    // The limit of the node alone: other tests run in this process.
    let limited = cluster.directory().join("limited");
    let placementd = binaries::placementd().unwrap();
    let script = format!("#!/bin/sh\nulimit -S -n 1000\nexec {placementd:?} \"$@\"\n");
    fs::write(&limited, script).unwrap();
    fs::set_permissions(&limited, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.options_mut().binary = Some(limited);
    cluster.start_node(1).unwrap();
    cluster.wait_healthy().await.unwrap();
    let pid = cluster.process(1).pid();
    let (soft, open) = descriptors(pid);
    assert_eq!(soft, hard, "the soft limit is raised");

    // Now no more than a few are left.
    let process = Pid::from_raw(pid.cast_signed());
    let scarce = Rlimit {
        current: Some(open as u64 + 8),
        maximum: limit.maximum,
    };
    prlimit(process, Resource::Nofile, scarce).unwrap();
    let api = cluster.place(1).api();
    let silent: Vec<_> = (0..60)
        .map(|_| connected(&api, "GET / HTTP/1.1\r\n"))
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(cluster.runs(1));
    drop(silent);
    // Still scarce: new clients get the descriptors of those that are gone.
    let client = cluster.client_of(1);
    client.ensure_trait("CUSTOM_STILL_HERE").await.unwrap();
    let listed = client
        .call(ApiRequest::get("/traits?name=in:CUSTOM_STILL_HERE"))
        .await;
    listed.unwrap();
}
