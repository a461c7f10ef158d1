//! HTTP requests and Raft run on different threads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;

/// Processor time of the threads with this name, in nanoseconds; `None` without such threads.
fn taken(pid: u32, name: &str) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let times = threads.filter_map(|thread| {
        let thread = thread.unwrap().path();
        // A thread may end in the meantime.
        let comm = fs::read_to_string(thread.join("comm")).ok()?;
        let times = fs::read_to_string(thread.join("schedstat")).ok()?;
        let time: u64 = times.split(' ').next()?.parse().ok()?;
        (comm.trim() == name).then_some(time)
    });
    times.fold(None, |sum, time| Some(sum.unwrap_or(0) + time))
}

#[tokio::test]
async fn requests_are_served_on_their_own_threads() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let pid = cluster.process(1).pid();
    let before = taken(pid, "placement-http").expect("threads that serve requests");
    let raft = taken(pid, "placement-node").expect("threads of Raft");
    let client = cluster.client_of(1);
    for _ in 0..300 {
        let read = ApiRequest::get("/resource_classes").header("placement-consistency", "local");
        assert_eq!(client.request(read).await.unwrap().status.as_u16(), 200);
    }
    let requests = taken(pid, "placement-http").unwrap() - before;
    let raft = taken(pid, "placement-node").unwrap() - raft;
    assert!(
        requests > 2 * raft,
        "{requests} ns for requests, {raft} ns for Raft"
    );
}
