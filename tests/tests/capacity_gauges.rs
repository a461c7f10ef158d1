//! The gauges of inventories and consumers in `/metrics` match the REST API.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;

use placement_client::{ApiRequest, Claim, Client, Inventory};
use placement_tests::cluster::Cluster;
use placement_tests::host::{self, create};
use placement_tests::wait::until_ok;
use serde_json::{Value, json};
use uuid::Uuid;

/// Number of resource classes with separate series; the others are summed.
const SHOWN: usize = 64;

/// Values by name and labels.
type Samples = BTreeMap<String, f64>;

async fn scrape(cluster: &Cluster, path: &str, prefix: &str) -> Samples {
    let client = Client::new([cluster.place(1).admin()]).unwrap();
    let answer = client.call(ApiRequest::get(path)).await.unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let samples = text.lines().filter(|line| line.starts_with(prefix));
    let parsed = samples.map(|line| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    });
    parsed.collect()
}

async fn get(client: &Client, path: &str) -> Value {
    client.fetch(ApiRequest::get(path)).await.unwrap()
}

/// Inventory and usage by provider and class.
async fn inventories(client: &Client) -> BTreeMap<(String, String), (Value, f64)> {
    let mut all = BTreeMap::new();
    let providers = get(client, "/resource_providers").await;
    for provider in providers["resource_providers"].as_array().unwrap() {
        let path = format!("/resource_providers/{}", provider["uuid"].as_str().unwrap());
        let found = get(client, &format!("{path}/inventories")).await;
        let used = get(client, &format!("{path}/usages")).await;
        for (class, inventory) in found["inventories"].as_object().unwrap() {
            let used = used["usages"][class].as_f64().unwrap();
            let name = provider["name"].as_str().unwrap().to_owned();
            all.insert((name, class.clone()), (inventory.clone(), used));
        }
    }
    all
}

/// Expected gauges. `classes` has the custom classes in the order of creation, after the standard
/// ones.
fn sums(of: &BTreeMap<(String, String), (Value, f64)>, classes: &[String]) -> Samples {
    let mut sums = Samples::new();
    let own = |class: &String| classes.iter().position(|one| one == class);
    // Two standard classes are in use.
    let is_shown = |class: &String| own(class).is_none_or(|at| at + 2 < SHOWN);
    for ((_, class), (inventory, used)) in of {
        let shown = if is_shown(class) { class } else { "other" };
        let number = |key: &str| inventory[key].as_f64().unwrap();
        let capacity = (number("total") - number("reserved")) * number("allocation_ratio");
        let free = (capacity.trunc() - used).max(0.0);
        for (name, value) in [
            ("units", number("total")),
            ("reserved", number("reserved")),
            ("capacity", capacity.trunc()),
            ("used", *used),
            ("free", free),
        ] {
            let key = key(name, shown);
            *sums.entry(key).or_insert(0.0) += value;
        }
        let largest = sums.entry(key("largest_free", shown)).or_insert(0.0);
        *largest = largest.max(free.min(number("max_unit")));
    }
    sums
}

fn key(name: &str, class: &str) -> String {
    format!("placement_inventory_{name}{{partition=\"default\",resource_class=\"{class}\"}}")
}

/// Creates hosts with much and with little free capacity, one whose usage exceeds its capacity, and
/// one with more classes than have separate series.
async fn fill(client: &Client) -> Vec<String> {
    for (name, total, ratio, reserved) in [
        ("a", 64, 1.5, 3),
        ("b \"quoted\\", 8, 16.0, 0),
        ("over", 100, 1.0, 0),
    ] {
        let host = create(client, name).await;
        let of = |total| Inventory::with_total(total).ratio(ratio).reserved(reserved);
        let offer = [("VCPU", of(total)), ("MEMORY_MB", of(1_000 * total))];
        client.replace_inventories(host, 0, offer).await.unwrap();
        for _ in 0..3 {
            host::claim(client, host).await.unwrap();
        }
        if name == "over" {
            let generation = client.provider(host).await.unwrap().generation;
            let less = [("VCPU", Inventory::with_total(2)), ("MEMORY_MB", of(1))];
            client
                .replace_inventories(host, generation, less)
                .await
                .unwrap();
        }
    }
    let classes: Vec<String> = (0..70).rev().map(|n| format!("CUSTOM_{n:02}")).collect();
    for class in &classes {
        client.ensure_resource_class(class).await.unwrap();
    }
    let host = create(client, "many").await;
    let offer = classes
        .iter()
        .enumerate()
        .map(|(nth, class)| (class.as_str(), Inventory::with_total(10 + nth as u64)));
    client.replace_inventories(host, 0, offer).await.unwrap();
    let claim = Claim::by("project", "user").and(host, &[("CUSTOM_00", 2)]);
    client
        .put_allocations(Uuid::new_v4(), &claim)
        .await
        .unwrap();
    classes
}

#[tokio::test]
async fn inventory_gauges_equal_sums_over_the_api() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let classes = fill(&client).await;
    let untyped = ApiRequest::put(&format!("/allocations/{}", Uuid::new_v4()));
    let provider = create(&client, "old").await;
    let offer = [("VCPU", Inventory::with_total(4))];
    client
        .replace_inventories(provider, 0, offer)
        .await
        .unwrap();
    let untyped = untyped.json(&json!({
        "allocations": {provider.to_string(): {"resources": {"VCPU": 1}}},
        "project_id": "project", "user_id": "user", "consumer_generation": null,
    }));
    let untyped = client.call(untyped.header("openstack-api-version", "placement 1.28"));
    assert!(untyped.await.unwrap().status.is_success());

    let all = inventories(&client).await;
    let expected = sums(&all, &classes);
    assert_eq!(expected.len(), 6 * (SHOWN + 1));
    // The gauges are recomputed once they are a few seconds old.
    until_ok("the sums", async || {
        let found = scrape(&cluster, "/metrics", "placement_inventory_").await;
        (found == expected).then_some(()).ok_or(found)
    })
    .await;
    let consumers = scrape(&cluster, "/metrics", "placement_consumers").await;
    let of = |kind: &str| {
        consumers[&format!("placement_consumers{{partition=\"default\",type=\"{kind}\"}}")]
    };
    assert_eq!(
        (consumers.len(), of("INSTANCE"), of("unknown")),
        (2, 10.0, 1.0)
    );

    let mut expected = Samples::new();
    for ((host, class), (inventory, used)) in &all {
        let host = host.replace('\\', r"\\").replace('"', r#"\""#);
        let labels = format!("{{hostname=\"{host}\",resourcetype=\"{class}\"}}");
        for name in ["total", "reserved", "allocation_ratio"] {
            let value = inventory[name].as_f64().unwrap();
            expected.insert(
                format!("openstack_placement_resource_{name}{labels}"),
                value,
            );
        }
        expected.insert(format!("openstack_placement_resource_usage{labels}"), *used);
    }
    let shown = scrape(&cluster, "/metrics/providers", "openstack_").await;
    assert_eq!(shown, expected);
    for (path, status) in [
        ("/metrics/providers?partition=default", 200),
        ("/metrics/providers?partition=nowhere", 404),
        ("/metrics/providers?host=a", 400),
    ] {
        let admin = Client::new([cluster.place(1).admin()]).unwrap();
        let answer = admin.request_once(ApiRequest::get(path)).await.unwrap();
        assert_eq!(answer.status, status, "{path}");
    }
}

#[tokio::test]
async fn named_queries_and_hosts_that_could_not_be_lost_are_counted() {
    let config = "[[fits]]\nname = \"m1.large\"\nquery = \"resources=VCPU:4\"\n";
    let cluster = Cluster::start_with(1, config).await.unwrap();
    let client = cluster.client();
    let mut hosts = Vec::new();
    for name in ["small", "large"] {
        let host = create(&client, name).await;
        let units = if name == "small" { 4 } else { 8 };
        let offer = [("VCPU", Inventory::with_total(units))];
        client.replace_inventories(host, 0, offer).await.unwrap();
        hosts.push(host);
    }
    let claim = Claim::by("project", "user").and(hosts[1], &[("VCPU", 5)]);
    let server = Uuid::new_v4();
    client.put_allocations(server, &claim).await.unwrap();
    let fits = "placement_fits{partition=\"default\",name=\"m1.large\"}";
    let trees =
        |outcome| format!("placement_refuge_trees{{partition=\"default\",outcome=\"{outcome}\"}}");
    until_ok("the numbers", async || {
        let found = scrape(&cluster, "/metrics", "placement_").await;
        let found = [
            fits.to_owned(),
            trees("empties"),
            trees("stuck"),
            trees("undecided"),
        ]
        .map(|name| found.get(&name).copied());
        let expected = [1.0, 1.0, 1.0, 0.0].map(Some);
        (found == expected).then_some(()).ok_or(found)
    })
    .await;
    let shown = scrape(&cluster, "/metrics/providers", "openstack_free").await;
    let name = "openstack_free_capacity_by_flavor_total{flavor_name=\"m1.large\"}";
    assert_eq!(shown, [(name.to_owned(), 1.0)].into());
}

#[tokio::test]
async fn slow_reader_of_provider_metrics_blocks_others_for_a_limited_time() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let classes: Vec<String> = (0..30).map(|n| format!("CUSTOM_{n:0>240}")).collect();
    for class in &classes {
        client.ensure_resource_class(class).await.unwrap();
    }
    for number in 0..30 {
        let host = create(&client, &format!("{number:0>200}")).await;
        let offer = classes
            .iter()
            .map(|class| (class.as_str(), Inventory::with_total(1)));
        client.replace_inventories(host, 0, offer).await.unwrap();
    }
    let path = "/metrics/providers";
    let admin = Client::new([cluster.place(1).admin()]).unwrap();
    let ask = || admin.request_once(ApiRequest::get(path));
    // The body exceeds the buffers of a socket, so an unread answer blocks.
    assert!(ask().await.unwrap().body.len() > 1_500_000);

    let mut slow = UnixStream::connect(cluster.data_dir(1).join("admin.sock")).unwrap();
    slow.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
        .unwrap();
    let refused = until_ok("a refusal", async || {
        let answer = ask().await.unwrap();
        (answer.status == 503)
            .then_some(answer)
            .ok_or("it is not read yet")
    })
    .await;
    assert_eq!(refused.headers["retry-after"], "30");
    let text = String::from_utf8_lossy(&refused.body);
    assert!(text.contains("one client at a time"), "{text}");
    drop(slow);
    until_ok("an answer", async || {
        let answer = ask().await.unwrap();
        (answer.status == 200).then_some(()).ok_or(answer.status)
    })
    .await;
}
