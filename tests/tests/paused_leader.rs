//! A leader is stopped for longer than it may lead unheard, and wakes up with requests in its hands.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use placement_client::{ApiRequest, NewProvider};
use placement_tests::cluster::Cluster;
use rustix::process::Signal;
use serde_json::Value;
use uuid::Uuid;

const AT_ONCE: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_slept_reads_nothing_stale_and_accepts_nothing_that_is_not_in_the_log() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let first = NewProvider::named("before").uuid(Uuid::new_v4());
    cluster.client().create_provider(&first).await.unwrap();
    let sleeper = cluster.leader().await.unwrap();
    let awake = cluster.ids().into_iter().find(|id| *id != sleeper).unwrap();
    cluster.process(sleeper).signal(Signal::STOP);

    // Acknowledged by the others, who elect a leader first.
    let client = cluster
        .client_of(awake)
        .with_patience(Duration::from_secs(60));
    let second = NewProvider::named("meanwhile").uuid(Uuid::new_v4());
    client.create_provider(&second).await.unwrap();

    // The system takes these for it; it finds them when it wakes up, before it has heard of a new leader.
    let door = cluster
        .client_of(sleeper)
        .with_attempt_timeout(Duration::from_secs(30));
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for _ in 0..AT_ONCE {
        let (reader, writer) = (door.clone(), door.clone());
        reads.push(tokio::spawn(async move {
            reader
                .request_once(ApiRequest::get("/resource_providers"))
                .await
        }));
        let name = Uuid::new_v4().to_string();
        writes.push((
            name.clone(),
            tokio::spawn(async move {
                let body = serde_json::json!({ "name": name });
                let write = ApiRequest::post("/resource_providers").json(&body);
                writer.request_once(write).await
            }),
        ));
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    cluster.process(sleeper).signal(Signal::CONT);

    let mut fresh = 0;
    for read in reads {
        let answer = read.await.unwrap().unwrap();
        if answer.status.is_success() {
            let found: Value = answer.json().unwrap();
            let names = found.to_string();
            assert!(names.contains("meanwhile"), "a stale read: {names}");
            fresh += 1;
        } else {
            assert_eq!(answer.status.as_u16(), 503, "{answer:?}");
        }
    }
    let mut accepted = Vec::new();
    for (name, write) in writes {
        let answer = write.await.unwrap().unwrap();
        match answer.status.as_u16() {
            200 | 201 => accepted.push(name),
            status => assert_eq!(status, 503, "{answer:?}"),
        }
    }
    cluster.wait_healthy().await.unwrap();
    cluster.assert_equal_states().await;
    for name in &accepted {
        assert!(cluster.has_provider(name).await, "{name} was accepted");
    }
    assert!(
        fresh + accepted.len() > 0,
        "it found a leader in time, and answered nothing"
    );
}
