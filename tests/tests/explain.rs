//! "No valid host was found": `placementctl explain req-…` names each of twelve causes first, even
//! after the cause is gone, and names Nova's filters if Placement returned candidates.

use http::StatusCode;
use placement_client::{ApiRequest, Claim, Client, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::host;
use placement_tests::wait::until_ok;
use serde_json::{Value, json};
use uuid::Uuid;

const HOSTS: u128 = 3;
const AGGREGATE: &str = "00000000-0000-4000-8000-0000000000a1";
const SEARCHED: &str = "resources=VCPU:4";

fn host(number: u128) -> Uuid {
    Uuid::from_u128(0x1057_0000_0000_4000_8000_0000_0000_0000 + number)
}

/// UUID of a device below a NUMA node of a host.
fn device(number: u128, of: u128) -> Uuid {
    Uuid::from_u128(0xde5_0000_0000_4000_8000_0000_0000_0000 + number * 16 + of)
}

/// Nova's requests, each with its own request id.
struct Nova {
    cluster: Cluster,
    asked: Vec<(String, &'static [&'static str])>,
}

impl Nova {
    fn api(&self) -> Client {
        self.cluster.client()
    }

    async fn write(&self, request: ApiRequest) {
        let answer = self.api().call(request).await.unwrap();
        assert!(answer.status.is_success(), "{answer:?}");
    }

    /// Sets the inventory of each host, for as long as a cause lasts.
    async fn inventory(&self, inventory: Inventory) {
        for number in 0..HOSTS {
            let generation = self.api().provider(host(number)).await.unwrap().generation;
            let offer = [("VCPU", inventory.clone())];
            let api = self.api();
            let replaced = api.replace_inventories(host(number), generation, offer);
            replaced.await.unwrap();
        }
    }

    async fn traits(&self, traits: &[&str]) {
        for number in 0..HOSTS {
            let generation = self.api().provider(host(number)).await.unwrap().generation;
            let path = format!("/resource_providers/{}/traits", host(number));
            let body = json!({"resource_provider_generation": generation, "traits": traits});
            self.write(ApiRequest::put(&path).json(&body)).await;
        }
    }

    /// Searches at the next node. The first line of the later explanation must have these words.
    async fn search(&mut self, query: &str, says: &'static [&'static str]) {
        let id = format!("req-{}", Uuid::new_v4());
        let node = self.asked.len() as u64 % 3 + 1;
        let path = format!("/allocation_candidates?{query}");
        let asked = ApiRequest::get(&path).header("x-openstack-request-id", &id);
        let answer = self.cluster.client_of(node).request(asked).await.unwrap();
        let found = match answer.status {
            StatusCode::OK => answer.json::<Value>().unwrap()["allocation_requests"].clone(),
            // A name does not exist.
            _ => json!([]),
        };
        let is_innocent = says[0].starts_with("Placement returned candidates");
        assert_eq!(found == json!([]), !is_innocent, "{query}: {answer:?}");
        if !is_innocent {
            self.until_explained(node, &id).await;
        }
        self.asked.push((id, says));
    }

    /// Waits for the explanation: empty answers are explained one at a time.
    async fn until_explained(&self, node: u64, id: &str) {
        let api = self.cluster.admin_of(node).placement("default");
        let path = format!("/placementd/v1/searches?request_id={id}");
        until_ok("an explanation", async || {
            let kept: Value = api.fetch(ApiRequest::get(&path)).await.unwrap();
            let is_explained = kept["searches"][0]["explanation"].is_object();
            is_explained.then_some(()).ok_or(kept)
        })
        .await;
    }
}

async fn cloud() -> Nova {
    let nova = Nova {
        cluster: Cluster::start(3).await.unwrap(),
        asked: Vec::new(),
    };
    for name in ["CUSTOM_FAST", "CUSTOM_GPU"] {
        nova.api().ensure_trait(name).await.unwrap();
    }
    for number in 0..HOSTS {
        let new = NewProvider::named(&format!("cmp-{number}")).uuid(host(number));
        nova.api().create_provider(&new).await.unwrap();
        for of in 0..2 {
            let name = format!("cmp-{number}-numa{of}");
            let numa = NewProvider::named(&name).child_of(host(number));
            let numa = nova.api().create_provider(&numa).await.unwrap();
            let name = format!("{name}-device");
            let below = NewProvider::named(&name)
                .uuid(device(number, of))
                .child_of(numa.uuid);
            nova.api().create_provider(&below).await.unwrap();
            let one = [("PCPU", Inventory::with_total(1))];
            let api = nova.api();
            let stocked = api.replace_inventories(device(number, of), 0, one);
            stocked.await.unwrap();
            let path = format!("/resource_providers/{}/traits", numa.uuid);
            let body = json!({"resource_provider_generation": 0, "traits": ["HW_NUMA_ROOT"]});
            nova.write(ApiRequest::put(&path).json(&body)).await;
        }
    }
    nova.inventory(Inventory::with_total(8)).await;
    nova.traits(&["CUSTOM_FAST"]).await;
    nova
}

#[tokio::test]
async fn each_of_twelve_causes_of_no_valid_host_is_named_first() {
    let mut nova = cloud().await;
    // 1. The hosts are disabled.
    nova.traits(&["CUSTOM_FAST", "COMPUTE_STATUS_DISABLED"])
        .await;
    let enabled = format!("{SEARCHED}&required=!COMPUTE_STATUS_DISABLED");
    nova.search(&enabled, &["COMPUTE_STATUS_DISABLED allowed: 3 trees"])
        .await;
    nova.traits(&["CUSTOM_FAST"]).await;
    // 2. The aggregate is missing.
    let within = format!("{SEARCHED}&member_of={AGGREGATE}");
    nova.search(&within, &["no provider has the aggregate 00000000"])
        .await;
    // 3. A name is misspelt.
    let misspelt = format!("{SEARCHED}&required=CUSTOM_FSAT");
    nova.search(&misspelt, &["no trait CUSTOM_FSAT; similar: CUSTOM_FAST"])
        .await;
    // 4. and 5. The allocation ratio, and the reserved amount.
    let room: &[_] = &["with VCPU:2 in place of 4: 3 trees"];
    nova.inventory(Inventory::with_total(8).ratio(0.25)).await;
    nova.search(SEARCHED, room).await;
    nova.inventory(Inventory::with_total(8).reserved(6)).await;
    nova.search(SEARCHED, room).await;
    // 6. and 7. The largest unit, and the step size.
    let largest = Inventory {
        max_unit: 3,
        ..Inventory::with_total(8)
    };
    nova.inventory(largest).await;
    let units: &[_] = &["with VCPU:3 in place of 4 (max_unit is 3): 3 trees"];
    nova.search(SEARCHED, units).await;
    let steps = Inventory {
        step_size: 3,
        ..Inventory::with_total(8)
    };
    nova.inventory(steps).await;
    let steps: &[_] = &["with VCPU:3 in place of 4 (step_size is 3): 3 trees"];
    nova.search(SEARCHED, steps).await;
    nova.inventory(Inventory::with_total(8)).await;
    // 8. Each host has a leaked consumer.
    let leaked: Vec<_> = (0..HOSTS).map(|_| Uuid::new_v4()).collect();
    for (number, consumer) in (0..).zip(&leaked) {
        let claim = Claim::by("p", "u").and(host(number), &[("VCPU", 6)]);
        nova.api().put_allocations(*consumer, &claim).await.unwrap();
    }
    nova.search(SEARCHED, &["with VCPU:2 in place of 4: 3 trees"])
        .await;
    for consumer in &leaked {
        nova.api().delete_allocations(*consumer).await.unwrap();
    }
    // 9. No NUMA node has two devices.
    let near = "resources1=PCPU:1&resources2=PCPU:1&required_numa=HW_NUMA_ROOT&group_policy=isolate\
                &same_subtree=1,2,_numa";
    nova.search(near, &["without same_subtree=1,2,_numa: 3 trees"])
        .await;
    // 10. The request groups must use different providers.
    let apart = "resources1=VCPU:2&resources2=VCPU:2&group_policy=isolate";
    nova.search(apart, &["without group_policy=isolate: 3 trees"])
        .await;
    // 11. The requested host does not exist.
    let elsewhere = format!("{SEARCHED}&in_tree={}", Uuid::new_v4());
    nova.search(&elsewhere, &["no candidates: there is no provider"])
        .await;
    // 12. Instances of a dead host were evacuated and still have their old allocations.
    let moved: Vec<_> = (0..HOSTS).map(|_| Uuid::new_v4()).collect();
    for (number, consumer) in (0..).zip(&moved) {
        let claim = Claim::by("p", "u")
            .and(host(number), &[("VCPU", 7)])
            .and(device((number + 1) % HOSTS, 0), &[("PCPU", 1)]);
        nova.api().put_allocations(*consumer, &claim).await.unwrap();
    }
    nova.search(SEARCHED, &["with VCPU:1 in place of 4: 3 trees"])
        .await;
    for consumer in &moved {
        nova.api().delete_allocations(*consumer).await.unwrap();
    }
    // 13. Placement has returned candidates.
    nova.search(
        SEARCHED,
        &[
            "Placement returned candidates for 1 of 1 searches",
            "Nova's filters",
        ],
    )
    .await;

    for (id, says) in &nova.asked {
        let text = nova.cluster.ctl(&["explain", id]);
        let first = text.lines().next().unwrap_or_default();
        for words in *says {
            assert!(first.contains(words), "{words:?} is not first in: {text}");
        }
    }
    // The consumers that used the resources are named although they are deleted.
    for (of, consumers) in [(7, &leaked), (11, &moved)] {
        let text = nova.cluster.ctl(&["explain", &nova.asked[of].0]);
        assert!(text.contains(&consumers[0].to_string()), "{text}");
    }
    let counted = nova.cluster.metrics(1).await + &nova.cluster.metrics(2).await;
    let room = "placement_searches_empty_total{reason=\"room\"}";
    assert!(counted.contains(room), "{room} is not in {counted}");
}

#[tokio::test]
async fn full_host_requested_by_name_counts_as_lack_of_room() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let full = host::create(&client, "full").await;
    let offer = [("VCPU", Inventory::with_total(1))];
    client.replace_inventories(full, 0, offer).await.unwrap();
    host::claim(&client, full).await.unwrap();
    host::with_processors(&client).await;
    let query = format!("/allocation_candidates?resources=VCPU:1&in_tree={full}");
    let found: Value = client.fetch(ApiRequest::get(&query)).await.unwrap();
    assert_eq!(found["allocation_requests"], json!([]));
    cluster
        .until_logged(&[1], "no candidates reason=\"room\"")
        .await;
    until_ok("a counted search", async || {
        let metrics = cluster.metrics(1).await;
        let counted = metrics.lines();
        let counted = counted.filter(|line| line.starts_with("placement_searches_empty_total{"));
        let counted: Vec<_> = counted.filter(|line| !line.ends_with(" 0")).collect();
        let expected = ["placement_searches_empty_total{reason=\"room\"} 1"];
        (counted == expected).then_some(()).ok_or(metrics)
    })
    .await;
}

/// If a caller of Nova sends a request id, Nova sends that id to Placement rather than its own.
#[tokio::test]
async fn explain_of_an_unknown_id_suggests_the_id_of_the_caller() {
    let cluster = Cluster::start(1).await.unwrap();
    let [callers, novas] = [(); 2].map(|()| format!("req-{}", Uuid::new_v4()));
    let search = ApiRequest::get("/allocation_candidates?resources=VCPU:1")
        .header("x-openstack-request-id", &callers);
    cluster.client().call(search).await.unwrap();
    let text = cluster.ctl(&["explain", &callers]);
    assert!(text.starts_with("no candidates"), "{text}");
    let output = cluster.placementctl(&["explain", &novas]).unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    for words in [
        format!("no node has recorded a search of {novas}"),
        "carried the request id of its caller".to_owned(),
        "use the caller's id, the first of the two in Nova's log".to_owned(),
    ] {
        assert!(error.contains(&words), "{words:?} is not in {error}");
    }
}

#[tokio::test]
async fn a_misspelt_name_is_refused_with_similar_names() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    client.ensure_trait("CUSTOM_FAST").await.unwrap();
    for (arguments, says) in [
        (
            &["candidates", "resources=VPCU:4"][..],
            "there is no resource class VPCU; similar: VCPU\n",
        ),
        (
            &["providers", "list", "--class", "DISK:4"],
            "there is no resource class DISK; similar: DISK_GB\n",
        ),
        (
            &["providers", "list", "--trait", "!CUSTOM_FSAT"],
            "there is no trait CUSTOM_FSAT; similar: CUSTOM_FAST\n",
        ),
    ] {
        let output = cluster.placementctl(arguments).unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.ends_with(says), "{says:?} does not end {error:?}");
    }
}

#[tokio::test]
async fn content_is_shown_without_a_quorum() {
    let mut nova = cloud().await;
    nova.cluster.kill_9(2);
    nova.cluster.kill_9(3);
    let no_quorum = "no quorum";
    for arguments in [
        &["providers", "tree", "cmp-0"][..],
        &["consumers", "list"],
        &["explain", "resources=VCPU:99"],
        &["capacity"],
    ] {
        let local = [arguments, &["--local"]].concat();
        nova.cluster.until_shown(&local, 0, &[no_quorum]).await;
        let linearizable = [arguments, &["--timeout", "3"]].concat();
        nova.cluster.until_shown(&linearizable, 2, &[]).await;
    }
}

#[tokio::test]
async fn what_if_predicts_the_number_of_claims() {
    let nova = cloud().await;
    let body = json!({"ask": [{"fit": {"query": "resources=VCPU:3", "at_most": 1000}}]});
    let api = nova.cluster.admin_of(1).placement("default");
    let ask = ApiRequest::post("/placementd/v1/what-if").json(&body);
    let found: Value = api.fetch(ask).await.unwrap();
    let fit = &found["answers"][0]["fit"];
    assert_eq!(
        *fit,
        json!({"count": 6, "exact": false, "complete": true}),
        "trees have children"
    );
    for claimed in 0.. {
        let query = placement_client::CandidateQuery::resources(&[("VCPU", 3)]).limit(1);
        let found = nova.api().allocation_candidates(&query).await.unwrap();
        let Some(candidate) = found.allocation_requests.first() else {
            assert_eq!(claimed, 6);
            break;
        };
        let claim = candidate.claim("p", "u");
        nova.api()
            .put_allocations(Uuid::new_v4(), &claim)
            .await
            .unwrap();
    }
}
