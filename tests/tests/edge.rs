//! A site that is cut off goes on reading, says how old its answers are, and refuses writes; and a client that
//! keeps cookies reads what it has written, whichever node it asks.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, ApiResponse, Client, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::link::Way;
use placement_tests::wait::until_ok;
use placement_tests::{osc, python};
use uuid::Uuid;

const CONFIG: &str = "[cluster]\nwait_ms = 3000\n[log]\nlevel = \"warn,placement::access=off\"\n";
const BITS_PER_S: u32 = 200_000_000;
/// The learner.
const EDGE: u64 = 4;

/// Three voters, and a learner whose reads are those of this profile; all with these settings of reads.
async fn with_edge(profile: &str, reads: &str) -> Cluster {
    let config = format!("{CONFIG}{reads}");
    let mut cluster = Cluster::start_linked(3, &config, BITS_PER_S).await.unwrap();
    assert_eq!(cluster.add_place().id, EDGE);
    let variable = ("PLACEMENTD_READS_DEFAULT".to_owned(), profile.to_owned());
    cluster.options_mut().environment = vec![variable];
    cluster.admit(EDGE).await.unwrap();
    cluster.start_node(EDGE).unwrap();
    cluster.wait_ready(EDGE).await.unwrap();
    cluster
}

/// Both directions between the edge and the voters.
fn around_the_edge() -> impl Iterator<Item = Way> {
    (1..EDGE).flat_map(|voter| [(voter, EDGE), (EDGE, voter)])
}

async fn get(client: &Client, path: &str) -> ApiResponse {
    client.request_once(ApiRequest::get(path)).await.unwrap()
}

fn kept(answer: &ApiResponse) -> &str {
    answer.header("placement-effective-consistency").unwrap()
}

/// Asks until the answer fits.
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
async fn a_site_that_is_cut_off_reads_on_and_says_how_old_it_is() {
    let cluster = with_edge("edge", "").await;
    let (edge, hub) = (cluster.client_of(EDGE), cluster.client());
    let first = NewProvider::named("before").uuid(Uuid::new_v4());
    hub.create_provider(&first).await.unwrap();
    let path = format!("/resource_providers/{}", first.uuid.unwrap());
    let answer = until(&edge, &path, |answer| answer.status == 200).await;
    assert_eq!(kept(&answer), "bounded;max=2");

    cluster.cut(around_the_edge());
    let second = NewProvider::named("meanwhile").uuid(Uuid::new_v4());
    hub.create_provider(&second).await.unwrap();
    let made = Instant::now();
    let answer = until(&edge, &path, |answer| kept(answer) == "local").await;
    assert_eq!(answer.status, 200);
    // What was written in the meantime it does not have, and says so: its state is older than that.
    let missing = format!("/resource_providers/{}", second.uuid.unwrap());
    let answer = get(&edge, &missing).await;
    assert_eq!((answer.status.as_u16(), kept(&answer)), (404, "local"));
    assert!(answer.position().staleness.unwrap() >= made.elapsed() - Duration::from_millis(100));
    // A balancer goes on sending it requests, and none of them waits.
    let begun = Instant::now();
    for path in ["/", "/readyz", &path] {
        assert_eq!(get(&edge, path).await.status, 200, "{path}");
    }
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    let said = get(&edge, "/readyz").await;
    let said = String::from_utf8_lossy(&said.body).into_owned();
    assert!(said.contains("cut off, and writes are refused"), "{said}");

    // A write waits as long as it may, and is refused with a reason.
    let write = ApiRequest::put("/traits/CUSTOM_EDGE");
    let refused = edge.request_once(write).await.unwrap();
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    let said = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(said.contains("nothing was committed"), "{said}");

    // Heard again, it has what was written in the meantime.
    cluster.mend();
    until(&edge, &missing, |answer| answer.status == 200).await;
    let answer = until(&edge, &path, |answer| kept(answer) != "local").await;
    assert_eq!(kept(&answer), "bounded;max=2");
    assert_eq!(get(&hub, "/traits/CUSTOM_EDGE").await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regional_reads_are_bounded_where_they_only_advise() {
    let cluster = with_edge("regional", "").await;
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
        let answer = get(&edge, path).await;
        assert_eq!(
            (answer.status.as_u16(), kept(&answer)),
            (200, expected),
            "{path}"
        );
    }
    // Who asks for a promise gets it.
    let asked = ApiRequest::get("/traits").consistency(placement_client::Consistency::Linearizable);
    assert_eq!(
        kept(&edge.request_once(asked).await.unwrap()),
        "linearizable"
    );

    // Cut off, it is no place to send requests to.
    cluster.cut(around_the_edge());
    until(&edge, "/", |answer| answer.status == 503).await;
}

/// A client that writes at one node and reads at another, with one session and with a fresh one.
const CLIENT: &str = r#"
import sys
from keystoneauth1 import adapter, session, token_endpoint
hub, edge = sys.argv[1:]

def at(sess, url):
    auth = token_endpoint.Token(url, "admin")
    return adapter.Adapter(session=sess, auth=auth, default_microversion="1.39", service_type="placement",
                           endpoint_override=url)

sess = session.Session()
made = at(sess, hub).put("/traits/CUSTOM_SEEN", raise_exc=False).status_code
mine = at(sess, edge).get("/traits/CUSTOM_SEEN", raise_exc=False, status_code_retries=0).status_code
other = at(session.Session(), edge).get("/traits/CUSTOM_SEEN", raise_exc=False).status_code
print(made, mine, other)
"#;

fn ask(keystoneauth: &Path, hub: &str, edge: &str) -> String {
    let mut python = Command::new(keystoneauth.join("python"));
    let said = python::run(python.args(["-c", CLIENT, hub, edge])).unwrap();
    said.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_keeps_cookies_reads_what_it_has_written() {
    let keystoneauth = osc::programs(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let cluster = with_edge("edge", "[reads]\nsession_cookie = true\n").await;
    let url = |id| format!("http://{}", cluster.place(id).api());
    let (hub, edge) = (url(1), url(EDGE));

    // Cut off, the edge does not have it: it tells whom it has promised nothing, and no one else.
    cluster.cut(around_the_edge());
    until(
        &cluster.client_of(EDGE),
        "/traits/HW_CPU_X86_VMX",
        |answer| kept(answer) == "local",
    )
    .await;
    assert_eq!(ask(&keystoneauth, &hub, &edge), "201 503 404");
    cluster.mend();
    until(&cluster.client_of(EDGE), "/traits/CUSTOM_SEEN", |answer| {
        answer.status == 204
    })
    .await;
    assert_eq!(ask(&keystoneauth, &hub, &edge), "204 204 204");
}
