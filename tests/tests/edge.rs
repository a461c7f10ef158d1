//! A site that is cut off serves reads, reports their age and refuses writes. A client that keeps
//! cookies reads its own writes at any node.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, ApiResponse, Client, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::link::Way;
use placement_tests::wait::until_ok;
use placement_tests::{osc, python};
use uuid::Uuid;

/// How long a request waits for a leader.
const WAIT: Duration = Duration::from_millis(3_000);
const CONFIG: &str = "[cluster]\nwait_ms = 3000\n[log]\nlevel = \"warn,placement::access=off\"\n";
const BITS_PER_S: u32 = 200_000_000;
/// Node id of the learner at the edge.
const EDGE: u64 = 4;

/// Starts three voters, and a learner with this read profile; all have the settings `reads`.
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
    let cluster = with_edge("edge", "").await;
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
    assert!(
        readyz.contains("cut off, and writes are refused"),
        "{readyz}"
    );

    // A write waits as long as configured and is refused with a reason.
    let write = ApiRequest::put("/traits/CUSTOM_EDGE");
    let refused = edge.request_once(write).await.unwrap();
    assert_eq!(refused.status, 503);
    let reason = String::from_utf8_lossy(&refused.body).into_owned();
    assert!(reason.contains("nothing was committed"), "{reason}");

    // Connected again, it has the write that followed the cut.
    cluster.mend();
    until(&edge, &missing, |answer| answer.status == 200).await;
    until(&edge, &path, is_bounded).await;
    let refused = hub.request(ApiRequest::get("/traits/CUSTOM_EDGE")).await;
    assert_eq!(refused.unwrap().status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regional_reads_are_bounded_in_advisory_mode() {
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

/// A client that writes at one node and reads at another, in the same session and in a new one.
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
    let answers = python::run(python.args(["-c", CLIENT, hub, edge])).unwrap();
    answers.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_with_cookies_reads_its_own_writes() {
    let keystoneauth = osc::programs(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let cluster = with_edge("edge", "[reads]\nsession_cookie = true\n").await;
    let url = |id| format!("http://{}", cluster.place(id).api());
    let (hub, edge) = (url(1), url(EDGE));

    // The edge is cut off and lacks the write: only a client without the session gets a 404.
    cluster.cut(around_the_edge());
    until(
        &cluster.client_of(EDGE),
        "/traits/HW_CPU_X86_VMX",
        |answer| kept(answer) == "local",
    )
    .await;
    until_ok("a client that is not shown an older state", async || {
        let answers = ask(&keystoneauth, &hub, &edge);
        let is_lost = |lost| answers.starts_with(lost);
        assert!(
            !["201 404", "204 404"].into_iter().any(is_lost),
            "{answers}"
        );
        // The second attempt finds the trait created by the first.
        let expected = ["201 503 404", "204 503 404"].contains(&answers.as_str());
        if expected { Ok(()) } else { Err(answers) }
    })
    .await;
    cluster.mend();
    until(&cluster.client_of(EDGE), "/traits/CUSTOM_SEEN", |answer| {
        answer.status == 204
    })
    .await;
    until_ok("a client that reads its write", async || {
        let answers = ask(&keystoneauth, &hub, &edge);
        // A temporary refusal is correct, too; a 404 is not.
        assert!(!answers.contains("404"), "{answers}");
        if answers == "204 204 204" {
            Ok(())
        } else {
            Err(answers)
        }
    })
    .await;
}
