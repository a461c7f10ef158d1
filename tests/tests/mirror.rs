//! A small client keeps a mirror of a cluster from its events while nodes are killed. The mirror
//! must equal the answers of the API.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use placement_client::{ApiRequest, Claim, Client, Error, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::python;
use serde_json::{Value, json};
use uuid::Uuid;

/// Environment variable with the duration of the kills in seconds; 20 by default.
const SECONDS: &str = "PLACEMENT_MIRROR_SECONDS";
const WRITERS: usize = 4;

fn any_class() -> String {
    format!("CUSTOM_{:X}", Uuid::new_v4().as_u128())
}

/// Renames a class, and with it all its inventories and allocations. Later microversions do not
/// allow it.
async fn rename(api: &Client, old: &str, new: &str) -> Result<(), Error> {
    let renamed = ApiRequest::put(&format!("/resource_classes/{old}"))
        .microversion("1.2")
        .json(&json!({ "name": new }));
    api.call(renamed).await.map(drop)
}

/// Creates, changes and deletes one host with every kind of content. When a node stops, a write may
/// fail and still be applied.
async fn churn(api: &Client, class: &str, round: usize) -> Result<(), Error> {
    api.ensure_resource_class(class).await?;
    let new = NewProvider::named(&format!("host {}", Uuid::new_v4()));
    let host = api.create_provider(&new).await?.uuid;
    let at = |what: &str| format!("/resource_providers/{host}/{what}");
    let offer = ["VCPU", "DISK_GB", class].map(|class| (class, Inventory::with_total(500)));
    api.replace_inventories(host, 0, offer).await?;
    let traits =
        json!({"resource_provider_generation": 1, "traits": ["HW_CPU_X86_AVX2", "HW_CPU_X86_VMX"]});
    api.call(ApiRequest::put(&at("traits")).json(&traits))
        .await?;
    let aggregates = json!({"resource_provider_generation": 2, "aggregates": [Uuid::new_v4()]});
    api.call(ApiRequest::put(&at("aggregates")).json(&aggregates))
        .await?;
    for number in 0..4 {
        let consumer = Uuid::new_v4();
        let claim = Claim::by("project", "user").and(host, &[("VCPU", 2), (class, 10)]);
        api.put_allocations(consumer, &claim).await?;
        if (round + number).is_multiple_of(2) {
            api.call(ApiRequest::delete(&format!("/allocations/{consumer}")))
                .await?;
        }
    }
    if round.is_multiple_of(3) {
        let empty = NewProvider::named(&format!("short-lived {}", Uuid::new_v4())).child_of(host);
        let uuid = api.create_provider(&empty).await?.uuid;
        api.call(ApiRequest::delete(&format!("/resource_providers/{uuid}")))
            .await?;
    }
    Ok(())
}

/// Writes until `is_over` is set. Returns the number of hosts created.
async fn write(api: Client, is_over: Arc<AtomicBool>) -> usize {
    let mut made = 0;
    let mut class = any_class();
    for round in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        made += usize::from(churn(&api, &class, round).await.is_ok());
        // The mirror client searches its whole content for a renamed class.
        if round % 64 == 1 {
            let new = any_class();
            // Uses the new name from now on, whether or not the rename succeeded.
            let _ = rename(&api, &class, &new).await;
            class = new;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    made
}

/// Stops one node after the other for a moment; every second one cleanly.
async fn kill_in_turn(cluster: &mut Cluster, span: Duration) {
    let begun = Instant::now();
    for (turn, id) in [1, 2, 3].into_iter().cycle().enumerate() {
        if begun.elapsed() > span {
            break;
        }
        match turn % 2 {
            0 => cluster.kill_9(id),
            _ => cluster.stop_node(id).await.unwrap(),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        cluster.start_node(id).unwrap();
        cluster.wait_ready(id).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mirror_of_events_equals_the_api() {
    let seconds = std::env::var(SECONDS)
        .ok()
        .map(|text| text.parse().unwrap());
    let span = Duration::from_secs(seconds.unwrap_or(20));
    let mut cluster = Cluster::start_with(3, "[api]\ndrain_notice_ms = 0\n")
        .await
        .unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mirror/mirror.py");
    let mut mirror: Command = python::interpreter();
    mirror
        .arg(script)
        .env("no_proxy", "*")
        .args(cluster.ids().iter().map(|&id| cluster.place(id).api()));
    let mut mirror = mirror
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut goal: ChildStdin = mirror.stdin.take().unwrap();

    let is_over = Arc::new(AtomicBool::new(false));
    // Waits longer than a node retries, so that no write is applied after the last writer has
    // returned.
    let api = cluster.client();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| tokio::spawn(write(api.clone(), is_over.clone())))
        .collect();
    kill_in_turn(&mut cluster, span).await;
    is_over.store(true, Ordering::Relaxed);
    let mut made = 0;
    for writer in writers {
        made += writer.await.unwrap();
    }

    let read = api
        .call(ApiRequest::get("/resource_classes"))
        .await
        .unwrap();
    let token = read.position().index.unwrap();
    writeln!(goal, "{}", token.as_str()).unwrap();
    let ended = tokio::task::spawn_blocking(|| mirror.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert!(ended.status.success(), "the mirror differs, see above");
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    eprintln!("{made} hosts were made; the mirror: {report}");
    let at_least = |name: &str, least: usize| {
        let count = report[name].as_u64().unwrap();
        assert!(count >= least as u64, "{name}: {report}");
    };
    assert!(made > 0);
    at_least("providers", made);
    at_least("allocations", made);
    // The mirror continued after the loss of a node and did not start again each time.
    at_least("streams", 2);
    at_least("changes", 10 * made);
    at_least("renamed", 1);
}
