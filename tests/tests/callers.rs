//! One caller may ask so much of a node, and others do not notice when it asks more.

use futures::future::join_all;
use placement_client::{ApiRequest, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;

/// What `/metrics` counts as refused for this reason.
async fn refused(cluster: &Cluster, limit: &str) -> u64 {
    let text = cluster.metrics(1).await;
    let series = format!("placement_http_callers_refused_total{{limit=\"{limit}\"}} ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&series));
    lines.next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_user_above_its_limit_is_slowed_and_another_is_not() {
    // So few that no machine is too slow to ask more often.
    let config = "[callers]\nuser_per_s = 2\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    let (hurried, other) = (
        cluster.client_of(1),
        cluster.client_of(1).with_token("other"),
    );
    let asked = (0..60).map(|_| hurried.request_once(ApiRequest::get("/traits")));
    let answers = join_all(asked).await;
    let mut slowed = 0;
    for answer in answers {
        let answer = answer.unwrap();
        match answer.status.as_u16() {
            200 => {}
            429 => slowed += 1,
            status => panic!("{status}"),
        }
    }
    assert!(slowed > 0, "60 requests, of which two a second are let in");
    assert_eq!(refused(&cluster, "user_per_s").await, slowed);
    assert_eq!(refused(&cluster, "address_per_s").await, 0);
    // Another user, from the same address, is not slowed; it has no role.
    let answer = other
        .request_once(ApiRequest::get("/traits"))
        .await
        .unwrap();
    assert_eq!(answer.status.as_u16(), 403);

    // A client that understands 429 waits, and loses nothing.
    let patient = hurried.with_patience(PATIENCE);
    let made = (0..10).map(|host| {
        let patient = patient.clone();
        async move {
            let provider = NewProvider::named(&format!("host {host}"));
            patient.create_provider(&provider).await.unwrap();
        }
    });
    join_all(made).await;
    assert!(refused(&cluster, "user_per_s").await > slowed);
}
