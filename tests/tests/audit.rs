//! The audit trail: actions of real processes are recorded, even if the process crashes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use parking_lot::Mutex;
use placement_client::{ApiRequest, ApiResponse, Client};
use placement_tests::cluster::{Cluster, STEADY_LEADER};
use placement_tests::power::Power;
use placement_tests::skip::skipped;
use placement_tests::wait::{PATIENCE, until, until_ok};
use rustix::process::Signal;
use serde_json::{Value, json};
use uuid::Uuid;

const CONFIG: &str = "[audit]\nto = \"file\"\n";
/// Number of writes that each node has acknowledged before all nodes are killed.
const WRITES: usize = 20;

/// Directory of a node's records.
fn place(cluster: &Cluster, id: u64) -> PathBuf {
    cluster.directory().join(format!("audit-{id}"))
}

/// Prepares a cluster with directories for its records; starts no node.
fn prepare(nodes: u64, config: &str) -> Cluster {
    let cluster = Cluster::prepare(nodes, config).unwrap();
    for id in cluster.ids() {
        fs::create_dir(place(&cluster, id)).unwrap();
    }
    cluster
}

fn start(cluster: &mut Cluster, id: u64, environment: Vec<(String, String)>) {
    let file = place(cluster, id).join("audit.log").display().to_string();
    let options = cluster.options_mut();
    options.environment = environment;
    (options.environment).push(("PLACEMENTD_AUDIT_FILE".to_owned(), file));
    cluster.start_node(id).unwrap();
}

async fn started(nodes: u64, config: &str) -> Cluster {
    let mut cluster = prepare(nodes, config);
    for id in cluster.ids() {
        start(&mut cluster, id, Vec::new());
    }
    cluster.wait_healthy().await.unwrap();
    cluster
}

/// Parses the records of a file, one per line.
fn records_in(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn records(cluster: &Cluster, id: u64) -> Vec<Value> {
    records_in(&place(cluster, id).join("audit.log"))
}

/// The only record with these fields.
fn one_like(records: &[Value], expected: &Value) -> Value {
    let fits = |record: &&Value| {
        let mut fields = expected.as_object().unwrap().iter();
        fields.all(|(field, value)| record.get(field) == Some(value))
    };
    let found: Vec<_> = records.iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{expected} in {records:#?}");
    found[0].clone()
}

async fn ask(client: &Client, request: ApiRequest) -> ApiResponse {
    client.request_once(request).await.unwrap()
}

fn new_provider(uuid: Uuid) -> ApiRequest {
    let body = json!({ "name": uuid, "uuid": uuid });
    ApiRequest::post("/resource_providers").json(&body)
}

/// For each node, the providers whose creation it has acknowledged.
type Acknowledged = Mutex<BTreeMap<u64, BTreeSet<Uuid>>>;

/// Creates providers through one node until `stop` is set.
async fn write(client: Client, id: u64, stop: Arc<AtomicBool>, acknowledged: Arc<Acknowledged>) {
    while !stop.load(Ordering::Relaxed) {
        let uuid = Uuid::new_v4();
        let answer = client.request_once(new_provider(uuid)).await;
        if answer.is_ok_and(|answer| answer.status.is_success()) {
            acknowledged.lock().entry(id).or_default().insert(uuid);
        }
    }
}

/// Kills all processes while writers use all nodes. Returns the writes that each node has
/// acknowledged.
async fn end_amid_writes(cluster: &mut Cluster) -> BTreeMap<u64, BTreeSet<Uuid>> {
    let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<Acknowledged>::default());
    let writers: Vec<_> = (cluster.ids().into_iter())
        .flat_map(|id| [id, id])
        .map(|id| {
            write(
                cluster.client_of(id),
                id,
                stop.clone(),
                acknowledged.clone(),
            )
        })
        .map(tokio::spawn)
        .collect();
    let nodes = cluster.ids().len();
    until("writes through each node", async || {
        let acknowledged = acknowledged.lock();
        let busy = acknowledged
            .values()
            .filter(|of_node| of_node.len() >= WRITES);
        busy.count() == nodes
    })
    .await;
    for id in cluster.ids() {
        cluster.kill_9(id);
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    let acknowledged = acknowledged.lock();
    acknowledged.clone()
}

/// Number of acknowledged writes without a record that gives their position in the log.
fn missing(cluster: &Cluster, id: u64, acknowledged: &BTreeSet<Uuid>) -> usize {
    let text = fs::read_to_string(place(cluster, id).join("audit.log")).unwrap_or_default();
    // After a power loss the last record may be cut short; its write was not acknowledged.
    let whole = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let committed =
        whole.filter(|record| record["outcome"] == "committed" && record["index"].is_u64());
    let recorded: BTreeSet<Uuid> = committed
        .filter_map(|record| record["resources"][0].as_str()?.parse().ok())
        .collect();
    acknowledged.difference(&recorded).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_acknowledged_write_is_recorded_after_kill_9() {
    let mut cluster = started(3, CONFIG).await;
    for (id, acknowledged) in end_amid_writes(&mut cluster).await {
        assert_eq!(missing(&cluster, id, &acknowledged), 0, "node {id}");
    }
    for id in cluster.ids() {
        start(&mut cluster, id, Vec::new());
    }
    cluster.wait_healthy().await.unwrap();
    // The node appends to the same file, one record per line.
    let before = records(&cluster, 1).len();
    let answer = ask(&cluster.client_of(1), new_provider(Uuid::new_v4())).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(records(&cluster, 1).len(), before + 1);
}

/// Simulates a power loss of one node during writes. Returns the number of acknowledged writes
/// without a record. Paths that contain `unsynced` are never synced.
async fn lose_power(unsynced: Option<&str>) -> Option<usize> {
    let mut cluster = prepare(1, CONFIG);
    let power = Power::new(cluster.directory())?;
    let environment = power.environment(1, unsynced).unwrap();
    start(&mut cluster, 1, environment);
    cluster.wait_healthy().await.unwrap();
    let acknowledged = end_amid_writes(&mut cluster).await;
    let lost = power.cut(1, &place(&cluster, 1)).unwrap();
    eprintln!("{unsynced:?}: {lost:?}");
    Some(missing(&cluster, 1, &acknowledged[&1]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_acknowledged_write_is_recorded_after_power_loss() {
    let Some(missing) = lose_power(None).await else {
        skipped("a loss of power on a real disk", "there is no C compiler");
        return;
    };
    assert_eq!(missing, 0);
    // Without either of the two syncs a record is lost, so the test would detect a missing sync.
    for unsynced in ["/audit.log$", "/audit-1/$"] {
        assert!(lose_power(Some(unsynced)).await.unwrap() > 0, "{unsynced}");
    }
}

#[tokio::test]
async fn refused_and_unauthenticated_requests_are_recorded() {
    let config = format!("{CONFIG}[api]\ntrust_proxy_headers = true\n");
    let cluster = started(1, &config).await;
    let admin = cluster.client_of(1);
    let uuid = Uuid::new_v4();
    let theirs = format!("req-{}", Uuid::new_v4());
    let request = new_provider(uuid)
        .header("x-openstack-request-id", &theirs)
        .header("x-forwarded-for", "198.51.100.7");
    let made = ask(&admin, request).await;
    assert_eq!(made.status, StatusCode::OK);
    // A conflicting name, a user without a role, an unauthenticated writer, and reads, which leave
    // no record.
    let again = ask(&admin, new_provider(uuid)).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let reader = cluster.client_of(1).with_token("rita:blue");
    let forbidden = ask(&reader, ApiRequest::get("/resource_providers?name=x")).await;
    assert_eq!(forbidden.status, StatusCode::FORBIDDEN);
    let unauthenticated = cluster.client_of(1).with_token("");
    let unknown = ApiRequest::delete(&format!("/resource_providers/{uuid}"));
    let unknown = ask(&unauthenticated, unknown).await;
    let is_refused =
        unknown.status == StatusCode::UNAUTHORIZED || unknown.status == StatusCode::FORBIDDEN;
    assert!(is_refused, "{unknown:?}");
    let read = ask(&admin, ApiRequest::get("/resource_providers")).await;
    assert_eq!(read.status, StatusCode::OK);
    let absent = ask(&admin, ApiRequest::get("/resource_providers/unknown")).await;
    assert_eq!(absent.status, StatusCode::NOT_FOUND);
    let consumer = Uuid::new_v4();
    let body = json!({ consumer.to_string(): {
        "allocations": { uuid.to_string(): { "resources": { "VCPU": 1 } } },
        "project_id": "blue", "user_id": "rita", "consumer_generation": null, "consumer_type": "INSTANCE",
    }});
    let claim = ask(&admin, ApiRequest::post("/allocations").json(&body)).await;
    assert_eq!(
        claim.status,
        StatusCode::CONFLICT,
        "no inventory: {claim:?}"
    );
    let flushed = ask(&admin, new_provider(Uuid::new_v4())).await;
    assert_eq!(flushed.status, StatusCode::OK);

    let records = records(&cluster, 1);
    assert_eq!(records.len(), 6, "{records:#?}");
    let id_of = |answer: &ApiResponse| {
        answer.headers["x-openstack-request-id"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let record = one_like(&records, &json!({ "request_id": id_of(&made) }));
    for (field, expected) in [
        ("kind", json!("audit")),
        ("node", json!(1)),
        ("listener", json!("api")),
        ("global_request_id", json!(theirs)),
        ("user", json!("admin")),
        ("project", json!("admin")),
        ("roles", json!(["admin"])),
        ("client", json!("198.51.100.7")),
        ("peer", json!("127.0.0.1")),
        ("method", json!("POST")),
        ("uri", json!("/resource_providers")),
        ("route", json!("/resource_providers")),
        ("operation", json!("placement:resource_providers:create")),
        ("microversion", json!("1.39")),
        ("resources", json!([uuid])),
        ("outcome", json!("committed")),
        ("status", json!(200)),
    ] {
        assert_eq!(record[field], expected, "{field} of {record}");
    }
    // The position is the same in the answer and in the log.
    let position = made.headers["placement-index"].to_str().unwrap();
    let recorded = format!("{}.{}", record["epoch"], record["index"]);
    assert_eq!(position, recorded);
    let status = cluster.admin_of(1).status().await.unwrap();
    assert_eq!(status.term, record["term"].as_u64().unwrap());
    assert!(record["time"].as_str().unwrap().ends_with('Z') && record["ms"].is_f64());

    let refused = one_like(&records, &json!({ "request_id": id_of(&again) }));
    assert_eq!(
        (&refused["outcome"], &refused["status"]),
        (&json!("refused"), &json!(409))
    );
    assert_eq!(refused["code"], "placement.duplicate_name");
    assert!(refused["index"].is_u64(), "the model refused it: {refused}");
    let forbidden = one_like(&records, &json!({ "status": 403, "method": "GET" }));
    assert_eq!(forbidden["user"], "rita");
    assert_eq!(forbidden["uri"], "/resource_providers?name=x");
    assert_eq!(forbidden["operation"], "placement:resource_providers:list");
    let unknown = one_like(&records, &json!({ "method": "DELETE" }));
    assert_eq!(
        (&unknown["outcome"], &unknown["resources"]),
        (&json!("refused"), &json!([uuid]))
    );
    let claim = one_like(&records, &json!({ "uri": "/allocations" }));
    assert_eq!(claim["resources"], json!([consumer]));
}

#[tokio::test]
async fn operators_actions_are_recorded() {
    let cluster = started(3, &format!("{CONFIG}{STEADY_LEADER}")).await;
    let admin = cluster.admin_of(1);
    admin.drain().await.unwrap();
    admin.undrain().await.unwrap();
    let refused = admin.remove_member(77, false).await;
    assert!(refused.is_err());
    let to = cluster.followers().await.unwrap()[0];
    let handed_over = async || cluster.admin_of(2).transfer_leader(Some(to)).await;
    until_ok("a leader", handed_over).await;
    let file = cluster.directory().join("taken").display().to_string();
    cluster.ctl(&["backup", &file]);
    for handed_out in ["log", "settings"] {
        admin.look(handed_out, 1 << 20).await.unwrap();
    }

    let of_first = records(&cluster, 1);
    for (method, route, outcome) in [
        ("GET", "/v1/log", "committed"),
        ("GET", "/v1/settings", "committed"),
        ("POST", "/v1/drain", "committed"),
        ("DELETE", "/v1/drain", "committed"),
        ("DELETE", "/v1/members/{id}", "refused"),
    ] {
        let expected =
            json!({ "listener": "admin", "method": method, "route": route, "outcome": outcome });
        let record = one_like(&of_first, &expected);
        assert_eq!(record["client"], "127.0.0.1");
        assert!(record["request_id"].as_str().unwrap().starts_with("req-"));
    }
    let moved = json!({ "uri": "/v1/leader", "outcome": "committed" });
    let moved = one_like(&records(&cluster, 2), &moved);
    assert_eq!(moved["detail"], format!("transfer leadership to node {to}"));
    // The record is written only after the client has received the whole backup.
    until_ok("the record of the backup", async || {
        let of_all: Vec<_> = (cluster.ids().into_iter())
            .flat_map(|id| records(&cluster, id))
            .collect();
        let is_its =
            |record: &&Value| record["uri"] == "/v1/backup" && record["outcome"] == "committed";
        match of_all.iter().filter(is_its).count() {
            1 => Ok(()),
            _ => Err(of_all),
        }
    })
    .await;
}

#[tokio::test]
async fn full_disk_refuses_writes_and_serves_reads() {
    let mut cluster = prepare(1, CONFIG);
    let file = place(&cluster, 1).join("audit.log");
    symlink("/dev/full", &file).unwrap();
    start(&mut cluster, 1, Vec::new());
    cluster.wait_healthy().await.unwrap();
    let client = cluster.client_of(1);
    let code = |answer: &ApiResponse| {
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        body["errors"][0]["code"].clone()
    };
    // The first write hits the full disk: it is in the log, but not acknowledged.
    let first = Uuid::new_v4();
    let answer = ask(&client, new_provider(first)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(code(&answer), "placement.unavailable.outcome_unknown");
    // Later writes are refused before they begin.
    let second = Uuid::new_v4();
    let answer = ask(&client, new_provider(second)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(code(&answer), "placement.unavailable.nothing_committed");
    let read = |uuid: Uuid| ApiRequest::get(&format!("/resource_providers/{uuid}"));
    assert_eq!(ask(&client, read(first)).await.status, StatusCode::OK);
    assert_eq!(
        ask(&client, read(second)).await.status,
        StatusCode::NOT_FOUND
    );
    let ready = ask(&client, ApiRequest::get("/readyz")).await;
    assert_eq!(ready.status, StatusCode::OK, "balancers still send reads");
    cluster
        .until_logged(&[1], "audit records cannot be written")
        .await;
    until_ok("placement_audit_failed", async || {
        let metrics = cluster.metrics(1).await;
        let is_failed = metrics.contains("placement_audit_failed 1");
        is_failed.then_some(()).ok_or(metrics)
    })
    .await;

    // The disk has space again.
    fs::remove_file(&file).unwrap();
    cluster.process(1).signal(Signal::HUP);
    cluster
        .until_logged(&[1], "audit records can be written again")
        .await;
    let third = Uuid::new_v4();
    assert_eq!(
        ask(&client, new_provider(third)).await.status,
        StatusCode::OK
    );
    let records = records(&cluster, 1);
    for (uuid, outcome) in [(first, "committed"), (third, "committed")] {
        let record = one_like(&records, &json!({ "resources": [uuid] }));
        assert_eq!(record["outcome"], outcome);
    }
    one_like(&records, &json!({ "outcome": "refused", "status": 503 }));
}

#[tokio::test]
async fn best_effort_writes_continue_while_the_disk_is_full() {
    let config = format!("{CONFIG}mode = \"best-effort\"\n");
    let mut cluster = prepare(1, &config);
    symlink("/dev/full", place(&cluster, 1).join("audit.log")).unwrap();
    start(&mut cluster, 1, Vec::new());
    cluster.wait_healthy().await.unwrap();
    for _ in 0..3 {
        let answer = ask(&cluster.client_of(1), new_provider(Uuid::new_v4())).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    cluster
        .until_logged(&[1], "audit records cannot be written")
        .await;
}

#[tokio::test]
async fn sighup_reopens_a_renamed_file_with_mode_0600() {
    let mut cluster = started(1, CONFIG).await;
    let client = cluster.client_of(1);
    let write = || ask(&client, new_provider(Uuid::new_v4()));
    write().await;
    let file = place(&cluster, 1).join("audit.log");
    let away = place(&cluster, 1).join("audit.log-20260101");
    fs::rename(&file, &away).unwrap();
    write().await;
    // SIGHUP reopens the file even if the configuration is invalid.
    fs::write(cluster.directory().join("placementd.toml"), "[audi").unwrap();
    cluster.process(1).signal(Signal::HUP);
    cluster.until_logged(&[1], "reopened the audit file").await;
    write().await;
    assert_eq!((records_in(&away).len(), records_in(&file).len()), (2, 1));
    for file in [&file, &away] {
        let mode = fs::metadata(file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn unwritable_audit_file_is_refused_at_start() {
    let mut cluster = Cluster::prepare(1, CONFIG).unwrap();
    // The directory of the file does not exist.
    start(&mut cluster, 1, Vec::new());
    let ended = cluster.process(1).wait(PATIENCE).unwrap();
    assert!(!ended.success());
    let log = cluster.log(1, 10);
    assert!(
        log.contains("audit.file") && log.contains("cannot write to"),
        "{log}"
    );
}
