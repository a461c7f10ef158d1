//! One caller may ask so much of a node, and others do not notice when it asks more.

use std::time::Duration;

use futures::future::join_all;
use placement_client::{ApiRequest, NewProvider};
use placement_tests::cluster::Cluster;

/// What `/metrics` counts as refused for this reason.
async fn refused(cluster: &Cluster, limit: &str) -> u64 {
    let text = cluster.metrics(1).await;
    let series = format!("placement_http_callers_refused_total{{limit=\"{limit}\"}} ");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(&series));
    lines.next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_user_above_its_limit_is_slowed_and_another_is_not() {
    let config = "[callers]\nuser_per_s = 20\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    let (hurried, calm) = (
        cluster.client_of(1),
        cluster.client_of(1).with_token("calm"),
    );
    let asked = (0..60).map(|_| hurried.request_once(ApiRequest::get("/traits")));
    let answers = join_all(asked).await;
    let mut told = 0;
    for answer in answers {
        let answer = answer.unwrap();
        match answer.status.as_u16() {
            200 => {}
            429 => {
                assert_eq!(answer.header("retry-after"), Some("1"));
                told += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!(told > 0, "60 within a second, of which 20 are let in");
    assert_eq!(refused(&cluster, "user_per_s").await, told);
    assert_eq!(refused(&cluster, "address_per_s").await, 0);
    // Somebody else, from the same address. Without a role, but heard.
    let answer = calm.request_once(ApiRequest::get("/traits")).await.unwrap();
    assert_eq!(answer.status.as_u16(), 403);

    // A client that knows what 429 says waits, and loses nothing.
    let patient = hurried.with_patience(Duration::from_secs(30));
    let made = (0..60).map(|host| {
        let patient = patient.clone();
        async move {
            let provider = NewProvider::named(&format!("host {host}"));
            patient.create_provider(&provider).await.unwrap();
        }
    });
    join_all(made).await;
    assert!(refused(&cluster, "user_per_s").await > told);
}
