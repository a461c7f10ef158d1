//! Holds: leases that end by themselves, also after the loss of a leader, and `placementctl holds`.

use std::process::Command;
use std::time::Duration;

use placement_client::{ApiRequest, Inventory};
use placement_tests::backups::back_up;
use placement_tests::binaries;
use placement_tests::cluster::Cluster;
use placement_tests::host::create;
use placement_tests::wait::until;
use serde_json::{Value, json};
use tokio::time::sleep;

const SERVER: &str = "5e24e200-0000-4000-8000-000000000001";

/// A cluster with a host of eight processors.
async fn cloud() -> Cluster {
    let cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let host = create(&client, "host-1").await;
    let offer = [("VCPU", Inventory::with_total(8))];
    client.replace_inventories(host, 0, offer).await.unwrap();
    cluster
}

/// Claims processors for a new consumer with further options of `placementctl claim`.
fn claim(cluster: &Cluster, consumer: &str, amount: &str, options: &[&str]) -> bool {
    let claim = [
        "claim",
        amount,
        "--project=p",
        "--user=u",
        "--consumer",
        consumer,
    ];
    let claimed = cluster
        .placementctl(&[&claim[..], options].concat())
        .unwrap();
    claimed.status.success()
}

fn holds(cluster: &Cluster) -> Vec<String> {
    let listed: Value =
        serde_json::from_str(&cluster.ctl(&["holds", "list", "-o", "json"])).unwrap();
    let listed = listed.as_array().unwrap().iter();
    let uuids = listed.map(|one| one["uuid"].as_str().unwrap().to_owned());
    uuids.collect()
}

#[tokio::test]
async fn room_is_held_for_a_server() {
    let cluster = cloud().await;
    let [hold, other] = [2, 3].map(|number| format!("5e24e200-0000-4000-8000-{number:012}"));
    let options = ["--hold-for", SERVER, "--lease", "10m"];
    assert!(claim(&cluster, &hold, "VCPU:8", &options));
    let shown = cluster.ctl(&["holds", "list"]);
    assert!(shown.contains(&hold) && shown.contains(SERVER) && shown.contains("lease until"));
    assert!(!claim(&cluster, &other, "VCPU:1", &[]));
    let why = cluster.ctl(&["explain", "VCPU:1"]);
    assert!(why.contains(&format!("held for {SERVER}")), "{why}");
    let renewed = cluster.ctl(&["holds", "renew", &hold, "--due", "2999-12-24T06:00:00Z"]);
    assert!(renewed.contains(&hold), "{renewed}");
    let overdue = cluster.ctl(&["holds", "list", "--overdue", "-o", "name"]);
    assert_eq!(overdue, "");

    let backup = cluster.directory().join("backup");
    assert!(back_up(&cluster, &backup).status.success());
    let mut export = Command::new(binaries::placementd().unwrap());
    let export = export
        .args(["export", "--dialect", "sqlite", "--from"])
        .arg(&backup);
    let warning = String::from_utf8(export.output().unwrap().stderr).unwrap();
    assert!(
        warning.contains("1 are written as ordinary consumers"),
        "{warning}"
    );

    assert!(claim(&cluster, SERVER, "VCPU:8", &[]));
    assert_eq!(holds(&cluster), [""; 0]);
}

/// One lease ends on time although the leader is lost; another is renewed and stays.
#[tokio::test]
async fn lease_ends_after_the_loss_of_a_leader() {
    let mut cluster = cloud().await;
    let [short, long] = [2, 3].map(|number| format!("5e24e200-0000-4000-8000-{number:012}"));
    for hold in [&short, &long] {
        assert!(claim(&cluster, hold, "VCPU:4", &["--lease", "20s"]));
    }
    cluster.ctl(&["holds", "renew", &long, "--lease", "1h"]);
    let leader = cluster.leader().await.unwrap();
    cluster.kill_9(leader);
    until("the end of the short lease", async || {
        holds(&cluster) == [&*long]
    })
    .await;
    cluster.start_node(leader).unwrap();
    cluster.wait_healthy().await.unwrap();
    sleep(Duration::from_secs(2)).await;
    assert_eq!(holds(&cluster), [&*long]);
    let path = format!("/placementd/v1/history?consumer={short}");
    let history: Value = cluster
        .client()
        .fetch(ApiRequest::get(&path))
        .await
        .unwrap();
    let last = &history["history"][0];
    assert_eq!(last["verb"], "ExpireHolds", "{history}");
    assert_eq!(last["request_id"], Value::Null);
}

#[tokio::test]
async fn leases_end_in_each_partition() {
    let cluster = Cluster::start(3).await.unwrap();
    let made = cluster.create_partition("north", &[], &["/north"]);
    made.await.unwrap();
    let client = cluster.client();
    let in_north = async |request: ApiRequest| {
        let answer = client.request(request).await.unwrap();
        assert!(answer.status.is_success(), "{:?}", answer.body);
        answer.json::<Value>().unwrap_or_default()
    };
    let [host, hold] = [7, 8].map(|number| format!("5e24e200-0000-4000-8000-{number:012}"));
    let new = json!({"name": "host-1", "uuid": host});
    in_north(ApiRequest::post("/north/resource_providers").json(&new)).await;
    let offer = json!({"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}});
    let inventories = format!("/north/resource_providers/{host}/inventories");
    in_north(ApiRequest::put(&inventories).json(&offer)).await;
    let claim = json!({
        "consumers": {(&*hold): {"project_id": "p", "user_id": "u", "consumer_generation": null}},
        "choices": [{(&*hold): {"allocations": {(&*host): {"resources": {"VCPU": 8}}}}}],
        "hold": {"lease_s": 2},
    });
    in_north(ApiRequest::post("/north/placementd/v1/claims").json(&claim)).await;
    let path = "/north/placementd/v1/consumers?held=true";
    let held = async || in_north(ApiRequest::get(path)).await["consumers"].clone();
    assert_eq!(held().await.as_array().unwrap().len(), 1);
    until("the end of the lease", async || held().await == json!([])).await;
}
