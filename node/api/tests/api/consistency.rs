//! Consistency of reads, positions of answers, and answers without a leader.

use placement_base::backend::Unavailable;
use serde_json::json;

use crate::cloud::Cloud;

#[tokio::test]
async fn every_answer_says_where_it_stands() {
    let cloud = Cloud::new();
    let read = cloud.get("/resource_providers").expect(200).await;
    let index = read.header("placement-index").unwrap().to_owned();
    assert_eq!(index, "1.1");
    assert_eq!(read.header("placement-node"), Some("1"));
    assert_eq!(read.header("placement-known-leader"), Some("1"));
    // The state was current when it was read, and has aged until the answer was written.
    let staleness: f64 = (read.header("placement-staleness").unwrap().parse()).unwrap();
    assert!((0.0..1.0).contains(&staleness), "{staleness}");
    assert_eq!(
        read.header("placement-effective-consistency"),
        Some("linearizable")
    );
    let write = cloud
        .post("/resource_providers", json!({"name": "a"}))
        .expect(200)
        .await;
    assert_eq!(write.header("placement-index"), Some("1.2"));
    let error = cloud.get("/nowhere").token(None).expect(401).await;
    assert_eq!(error.header("placement-index"), Some("1.2"));
    assert_eq!(
        error.header("placement-effective-consistency"),
        Some("none")
    );
}

#[tokio::test]
async fn a_client_chooses_what_a_read_promises() {
    let cloud = Cloud::new();
    let read = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .fold(cloud.get("/traits"), |ask, (name, value)| {
                ask.header(name, value)
            })
    };
    for (pairs, effective) in [
        (vec![("placement-consistency", "local")], "local"),
        (
            vec![("placement-consistency", "bounded;max=0.5")],
            "bounded;max=0.5",
        ),
        (
            vec![
                ("placement-consistency", "session"),
                ("placement-min-index", "1.1"),
            ],
            "session",
        ),
        (vec![("placement-min-index", "1.1")], "session"),
    ] {
        let answer = read(&pairs).expect(200).await;
        assert_eq!(
            answer.header("placement-effective-consistency"),
            Some(effective)
        );
    }
    read(&[("placement-consistency", "psychic")])
        .refused(400, "psychic")
        .await
        .code("placement.consistency.bad_value");
    read(&[("placement-min-index", "7.1")])
        .expect(412)
        .await
        .code("placement.consistency.foreign_index");
    read(&[("placement-min-index", "1.99")]).expect(503).await;
}

#[tokio::test]
async fn without_a_leader_the_answer_says_whether_anything_was_committed() {
    let cloud = Cloud::new();
    let body = json!({"name": "a"});
    let down = Unavailable::nothing_committed("no leader within 5 s");
    cloud.memory.set_down(Some(down));
    let nothing = cloud
        .post("/resource_providers", body.clone())
        .version("1.0")
        .send()
        .await;
    let nothing = nothing
        .refused(503, "nothing was committed")
        .code("placement.unavailable.nothing_committed");
    assert_eq!(nothing.header("retry-after"), None);
    assert!(nothing.header("placement-index").is_some());
    cloud.get("/traits").expect(503).await;
    let down = Unavailable::outcome_unknown("the connection to the leader broke");
    cloud.memory.set_down(Some(down));
    let unknown = cloud.post("/resource_providers", body).send().await;
    let unknown = unknown
        .refused(503, "the outcome of the write is unknown")
        .code("placement.unavailable.outcome_unknown");
    assert_eq!(unknown.header("retry-after"), None);
}
