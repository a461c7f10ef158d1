//! The limits of one caller do not affect other callers.

use std::cell::Cell;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::join;
use placement_client::{ApiRequest, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;

/// Number of requests that a user with a limit of one sends at the same time.
const FLOOD: usize = 60;
/// Maximum time for an answer to another user. It is long, since the machine may be busy.
const PROMPT: Duration = Duration::from_secs(2);

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
    let is_flooded = Cell::new(true);
    // Each write waits for the disk, so the writes are in flight at the same time.
    let flood = async {
        let mut slowed = 0;
        for round in 0.. {
            if !is_flooded.get() {
                break;
            }
            let asked = (0..FLOOD).map(|name| {
                let write = ApiRequest::put(&format!("/traits/CUSTOM_{round}_{name}"));
                hurried.request_once(write)
            });
            for answer in join_all(asked).await {
                match answer.unwrap().status.as_u16() {
                    201 => {}
                    429 => slowed += 1,
                    status => panic!("{status}"),
                }
            }
        }
        slowed
    };
    // Another user at the same address is neither limited nor delayed.
    let served = async {
        for number in 0..20 {
            let name = format!("/traits/CUSTOM_OF_OTHER_{number}");
            for (request, status) in [(ApiRequest::put(&name), 201), (ApiRequest::get(&name), 204)]
            {
                let begun = Instant::now();
                let request = request.header("x-roles", "admin");
                let answer = other.request_once(request).await.unwrap();
                assert_eq!(answer.status.as_u16(), status, "{name}");
                assert!(begun.elapsed() < PROMPT, "{:?}", begun.elapsed());
            }
        }
        is_flooded.set(false);
    };
    let (slowed, ()) = join!(flood, served);
    assert!(slowed > 0, "{FLOOD} requests at once with a limit of one");
    assert_eq!(refused(&cluster, "user_in_flight").await, slowed);
    assert_eq!(refused(&cluster, "address_in_flight").await, 0);

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
