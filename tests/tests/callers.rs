//! The limits of one caller do not affect other callers.

use futures::future::join_all;
use placement_client::{ApiRequest, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;

/// Number of requests refused by this limit, from `/metrics`.
async fn refused(cluster: &Cluster, limit: &str) -> u64 {
    let text = cluster.metrics(1).await;
    let series = format!("placement_http_callers_refused_total{{limit=\"{limit}\"}} ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&series));
    lines.next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn user_limit_does_not_affect_other_users() {
    let config = "[callers]\nuser_in_flight = 1\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    let (hurried, other) = (
        cluster.client_of(1),
        cluster.client_of(1).with_token("other"),
    );
    // Each write waits for the disk, so the writes are in flight at the same time.
    let asked = (0..60).map(|name| {
        let write = ApiRequest::put(&format!("/traits/CUSTOM_{name}"));
        hurried.request_once(write)
    });
    let answers = join_all(asked).await;
    let mut slowed = 0;
    for answer in answers {
        let answer = answer.unwrap();
        match answer.status.as_u16() {
            201 => {}
            429 => slowed += 1,
            status => panic!("{status}"),
        }
    }
    assert!(slowed > 0, "60 requests at once with a limit of one");
    assert_eq!(refused(&cluster, "user_in_flight").await, slowed);
    assert_eq!(refused(&cluster, "address_in_flight").await, 0);
    // Another user at the same address is not limited. The answer is 403 because this user has no
    // role.
    let answer = other
        .request_once(ApiRequest::get("/traits"))
        .await
        .unwrap();
    assert_eq!(answer.status.as_u16(), 403);

    // A client that understands 429 waits, and all of its requests succeed.
    let patient = hurried.with_patience(PATIENCE);
    let made = (0..10).map(|host| {
        let patient = patient.clone();
        async move {
            let provider = NewProvider::named(&format!("host {host}"));
            patient.create_provider(&provider).await.unwrap();
        }
    });
    join_all(made).await;
    assert!(refused(&cluster, "user_in_flight").await > slowed);
}
