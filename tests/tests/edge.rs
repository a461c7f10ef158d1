//! A site that is cut off serves reads, reports their age and refuses writes.

use std::time::{Duration, Instant};

use placement_client::{ApiRequest, ApiResponse, Client, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::link::Direction;
use placement_tests::wait::until_ok;
use uuid::Uuid;

/// How long a request waits for a leader.
const WAIT: Duration = Duration::from_millis(3_000);
const CONFIG: &str = "[cluster]\nwait_ms = 3000\n[log]\nlevel = \"warn,placement::access=off\"\n";
const BITS_PER_S: u32 = 200_000_000;
/// Node id of the learner at the edge.
const EDGE: u64 = 4;

/// Starts three voters, and a learner with this read profile.
async fn with_edge(profile: &str) -> Cluster {
    let mut cluster = Cluster::start_linked(3, CONFIG, BITS_PER_S).await.unwrap();
    assert_eq!(cluster.add_place().id, EDGE);
    let variable = ("PLACEMENTD_READS_DEFAULT".to_owned(), profile.to_owned());
    cluster.options_mut().environment = vec![variable];
    cluster.admit(EDGE).await.unwrap();
    cluster.start_node(EDGE).unwrap();
    cluster.wait_ready(EDGE).await.unwrap();
    cluster
}

/// Both directions between the edge and the voters.
fn around_the_edge() -> impl Iterator<Item = Direction> {
    (1..EDGE).flat_map(|voter| [(voter, EDGE), (EDGE, voter)])
}

async fn get(client: &Client, path: &str) -> ApiResponse {
    client.request_once(ApiRequest::get(path)).await.unwrap()
}

/// Retries until a request is answered at once. A request that waits for the cluster is slow every
/// time; on a busy machine a request is slow only occasionally.
async fn answered_at_once(client: &Client, path: &str) {
    until_ok(path, async || {
        let asked = Instant::now();
        let answer = get(client, path).await;
        assert_eq!(answer.status, 200, "{path}");
        let took = asked.elapsed();
        if took < WAIT / 4 { Ok(()) } else { Err(took) }
    })
    .await;
}

fn kept(answer: &ApiResponse) -> &str {
    answer.header("placement-effective-consistency").unwrap()
}

/// Retries until the answer fits.
async fn until(client: &Client, path: &str, fits: impl Fn(&ApiResponse) -> bool) -> ApiResponse {
    until_ok(path, async || {
        let answer = get(client, path).await;
        if fits(&answer) {
            Ok(answer)
        } else {
            Err(answer)
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn isolated_site_serves_reads_and_reports_their_age() {
    let cluster = with_edge("edge").await;
    let (edge, hub) = (cluster.client_of(EDGE), cluster.client());
    let first = NewProvider::named("before").uuid(Uuid::new_v4());
    hub.create_provider(&first).await.unwrap();
    let path = format!("/resource_providers/{}", first.uuid.unwrap());
    let is_bounded = |answer: &ApiResponse| kept(answer) == "bounded;max=2";
    until(&edge, &path, |answer| {
        answer.status == 200 && is_bounded(answer)
    })
    .await;

    cluster.cut(around_the_edge());
    let cut = Instant::now();
    let second = NewProvider::named("second").uuid(Uuid::new_v4());
    hub.create_provider(&second).await.unwrap();
    let answer = until(&edge, &path, |answer| kept(answer) == "local").await;
    assert_eq!(answer.status, 200);
    // The edge lacks the write after the cut and reports the age of its state. The cut prevents
    // updates, so the state was at least this old when the request was sent.
    let missing = format!("/resource_providers/{}", second.uuid.unwrap());
    let age_min = cut.elapsed();
    let answer = get(&edge, &missing).await;
    assert_eq!((answer.status.as_u16(), kept(&answer)), (404, "local"));
    assert!(answer.position().staleness.unwrap() >= age_min);
    // A balancer keeps sending it requests, and none of them waits.
    for path in ["/", "/readyz", &path] {
        answered_at_once(&edge, path).await;
    }
    let readyz = get(&edge, "/readyz").await;
    let readyz = String::from_utf8_lossy(&readyz.body).into_owned();
    assert!(readyz.contains("cut off from the leader ("), "{readyz}");

    // A write waits as long as configured and is refused with a reason.
    let write = ApiRequest::put("/traits/CUSTOM_EDGE");
    let refused = edge.request_once(write).await.unwrap();
    assert_eq!(refused.status, 503);
    let reason = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(reason.contains("nothing was committed"), "{reason}");

    // Connected again, it has the write that followed the cut.
    cluster.heal();
    until(&edge, &missing, |answer| answer.status == 200).await;
    until(&edge, &path, is_bounded).await;
    let refused = hub.request(ApiRequest::get("/traits/CUSTOM_EDGE")).await;
    assert_eq!(refused.unwrap().status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regional_reads_are_bounded_in_advisory_mode() {
    let cluster = with_edge("regional").await;
    let edge = cluster.client_of(EDGE);
    for (path, expected) in [
        (
            "/allocation_candidates?resources=VCPU:1",
            "bounded;max=0.25",
        ),
        ("/traits", "bounded;max=0.25"),
        ("/resource_classes/VCPU", "bounded;max=0.25"),
        ("/resource_providers", "linearizable"),
        ("/usages?project_id=p", "linearizable"),
    ] {
        let answer = edge.request(ApiRequest::get(path)).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), kept(&answer)),
            (200, expected),
            "{path}"
        );
    }
    // A client that requests a consistency level gets it.
    let asked = ApiRequest::get("/traits").consistency(placement_client::Consistency::Linearizable);
    assert_eq!(kept(&edge.request(asked).await.unwrap()), "linearizable");

    // Cut off, it reports itself unready to balancers.
    cluster.cut(around_the_edge());
    until(&edge, "/", |answer| answer.status == 503).await;
}
