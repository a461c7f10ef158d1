//! Explanations of missing candidates: on request, and for earlier searches.

use std::time::Duration;

use placement_base::backend::ReadBackend;
use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

const AGGREGATE: &str = "00000000-0000-4000-8000-0000000000a1";

/// Four hosts with 8 CPUs each, in an aggregate and with a trait; the last is full.
async fn hosts() -> Cloud {
    let cloud = Cloud::new();
    cloud.ask("PUT", "/traits/CUSTOM_FAST").expect(201).await;
    cloud.ask("PUT", "/traits/CUSTOM_GPU").expect(201).await;
    for number in 1..=4 {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
        let path = format!("/resource_providers/{}/traits", uuid(number));
        let traits = json!({"resource_provider_generation": 1, "traits": ["CUSTOM_FAST"]});
        cloud.put(&path, traits).expect(200).await;
        let path = format!("/resource_providers/{}/aggregates", uuid(number));
        let aggregates = json!({"resource_provider_generation": 2, "aggregates": [AGGREGATE]});
        cloud.put(&path, aggregates).expect(200).await;
    }
    let claimed = cloud.claim(900, 4, "VCPU", 8).await;
    claimed.expect(204);
    cloud
}

async fn explain(cloud: &Cloud, query: &str) -> Value {
    cloud.read(&format!("/placementd/v1/explain?{query}")).await
}

#[tokio::test]
async fn funnel_shows_where_each_tree_is_excluded() {
    let cloud = hosts().await;
    let found = explain(&cloud, "resources=VCPU:4&required=CUSTOM_FAST").await;
    assert_eq!(found["verdict"], "some");
    assert_eq!(found["trees"], 4);
    assert_eq!(found["with_candidates"], 3);
    let atoms: Vec<_> = (found["funnel"].as_array().unwrap().iter())
        .map(|stage| json!([stage["atom"], stage["left"], stage["gone"]]))
        .collect();
    let expected = [
        json!(["inventory", 4, 0]),
        json!(["required", 4, 0]),
        json!(["unit", 4, 0]),
        json!(["room", 3, 1]),
        json!(["together", 3, 0]),
    ];
    assert_eq!(atoms, expected);
    let room = &found["funnel"][3];
    assert_eq!(room["class"], "VCPU");
    assert_eq!(room["asked"], 4);
    assert_eq!(room["most_free"], 0);
    assert_eq!(
        room["examples"],
        json!([{"uuid": uuid(4), "name": "provider 4"}])
    );
}

#[tokio::test]
async fn each_relaxation_is_a_query_with_candidates() {
    let cloud = hosts().await;
    let query = format!("resources=VCPU:9&required=CUSTOM_FAST&member_of={AGGREGATE}");
    let found = explain(&cloud, &query).await;
    assert_eq!(found["verdict"], "none");
    let relaxation = &found["relaxations"][0];
    assert_eq!(relaxation["less"][0]["atom"], "room");
    assert_eq!(relaxation["less"][0]["enough"], 8);
    assert_eq!(relaxation["trees"], 3);
    let path = format!(
        "/allocation_candidates?{}",
        relaxation["query"].as_str().unwrap()
    );
    let answer = cloud.read(&path).await;
    assert_eq!(answer["allocation_requests"].as_array().unwrap().len(), 3);
    // All hosts lack the same class; the full host lacks most of it.
    let near = &found["nearest"];
    assert_eq!(near[3]["root"]["name"], "provider 4");
    assert_eq!(near[3]["lacks"][0]["free"], 0);
    assert_eq!(near[3]["lacks"][0]["capacity"], 8);
    assert_eq!(near[3]["holders"][0]["consumer"], uuid(900));
    assert_eq!(near[3]["holders"][0]["amount"], 8);
}

/// If all hosts at the requested location are full, they are the cause rather than the location.
#[tokio::test]
async fn full_hosts_are_the_cause_rather_than_their_location() {
    let cloud = hosts().await;
    for number in [5, 6] {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    for number in [1, 2, 3] {
        let claimed = cloud.claim(900 + number, number, "VCPU", 8).await;
        claimed.expect(204);
    }
    let root = "COMPUTE_NODE";
    for number in [1, 2, 3, 4] {
        let path = format!("/resource_providers/{}/traits", uuid(number));
        let generation = cloud
            .read(&format!("/resource_providers/{}", uuid(number)))
            .await;
        let traits = json!({"resource_provider_generation": generation["generation"], "traits": ["CUSTOM_FAST", root]});
        cloud.put(&path, traits).expect(200).await;
    }
    for place in [
        format!("in_tree={}", uuid(4)),
        format!("member_of={AGGREGATE}"),
        "required=CUSTOM_FAST".to_owned(),
        format!("root_required={root}"),
    ] {
        let found = explain(&cloud, &format!("resources=VCPU:4&{place}")).await;
        assert_eq!(found["reason"], "room", "{place}: {found}");
        let cause = usize::try_from(found["cause"].as_u64().unwrap()).unwrap();
        assert_eq!(found["funnel"][cause]["class"], "VCPU", "{place}: {found}");
        assert_eq!(found["funnel"][cause]["most_free"], 0, "{place}: {found}");
        // Hosts elsewhere are only an alternative.
        assert_eq!(found["relaxations"][0]["trees"], 2, "{place}: {found}");
        for near in found["nearest"].as_array().unwrap().iter().take(1) {
            assert_eq!(near["lacks"][0]["free"], 0, "{place}: {near}");
            assert_eq!(near["lacks"][0]["capacity"], 8, "{place}: {near}");
            assert_eq!(near["holders"][0]["amount"], 8, "{place}: {near}");
        }
    }
    let found = explain(&cloud, &format!("resources=VCPU:4&in_tree={}", uuid(4))).await;
    assert_eq!(found["nearest"][0]["root"]["name"], "provider 4");
    assert_eq!(found["nearest"][0]["holders"][0]["consumer"], uuid(900));
}

/// More than a thousand consumers of memory alone come first in the order of UUIDs.
#[tokio::test]
async fn consumers_of_the_missing_resources_are_counted_once_and_all() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.stock(1, "MEMORY_MB", 2_000).await;
    cloud.stock(1, "VCPU", 12).await;
    for number in 1_000..2_100 {
        cloud.claim(number, 1, "MEMORY_MB", 1).await.expect(204);
    }
    for number in 3_000..3_005 {
        let both = json!({uuid(1): {"resources": {"VCPU": 2, "MEMORY_MB": 100}}});
        let claim = json!({
            "allocations": both, "project_id": "p", "user_id": "u", "consumer_generation": null,
            "consumer_type": "INSTANCE",
        });
        let path = format!("/allocations/{}", uuid(number));
        cloud.put(&path, claim).expect(204).await;
    }
    let found = explain(&cloud, "resources=VCPU:4").await;
    let near = &found["nearest"][0];
    assert_eq!(near["holders"].as_array().unwrap().len(), 3);
    assert_eq!(near["holders"][0]["consumer"], uuid(3_000));
    assert_eq!(near["holders_more"], 2);
    // Three consumers per class, which are the same.
    let found = explain(&cloud, "resources=VCPU:4,MEMORY_MB:1000").await;
    let near = &found["nearest"][0];
    assert_eq!(near["holders"].as_array().unwrap().len(), 6);
    assert_eq!(near["holders_more"], 1_102);
}

/// The trait is on a device, while the processors are on the host.
#[tokio::test]
async fn trait_on_another_provider_is_reported() {
    let cloud = hosts().await;
    cloud.provider(11, Some(1)).await;
    cloud.stock(11, "PCPU", 8).await;
    let path = format!("/resource_providers/{}/traits", uuid(11));
    let traits = json!({"resource_provider_generation": 1, "traits": ["CUSTOM_GPU"]});
    cloud.put(&path, traits).expect(200).await;
    let found = explain(&cloud, "resources=VCPU:1&required=CUSTOM_GPU").await;
    assert_eq!(found["reason"], "required");
    let cause = usize::try_from(found["cause"].as_u64().unwrap()).unwrap();
    let elsewhere = &found["funnel"][cause]["elsewhere"];
    assert_eq!(elsewhere["root"]["name"], "provider 1");
    assert_eq!(elsewhere["provider"]["name"], "provider 11");
    let lack = &found["nearest"][0]["lacks"][0];
    assert_eq!(lack["atom"], "required", "{found}");
}

/// Hosts without the class are not near, although they lack only one thing.
#[tokio::test]
async fn the_trees_that_come_furthest_are_nearest() {
    let cloud = Cloud::new();
    for number in 1..=6 {
        cloud.provider(number, None).await;
        cloud.stock(number, "MEMORY_MB", 64).await;
    }
    for number in [7, 8] {
        cloud.provider(number, None).await;
        cloud.stock(number, "MEMORY_MB", 64).await;
    }
    for (number, total) in [(7, 12), (8, 16)] {
        let path = format!("/resource_providers/{}/inventories", uuid(number));
        let inventory = json!({"resource_class": "PCPU", "total": total, "max_unit": total});
        cloud.post(&path, inventory).expect(201).await;
    }
    let found = explain(&cloud, "resources=PCPU:20,MEMORY_MB:8").await;
    assert_eq!(found["reason"], "unit");
    let names: Vec<_> = (found["nearest"].as_array().unwrap().iter())
        .map(|near| near["root"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["provider 8", "provider 7"], "{found}");
    assert_eq!(
        found["nearest"][0]["lacks"][0]["bound"],
        json!({"max_unit": 16})
    );
    let classes: Vec<_> = (found["funnel"].as_array().unwrap().iter())
        .filter(|stage| stage["atom"] == "unit")
        .map(|stage| stage["class"].clone())
        .collect();
    assert_eq!(classes, ["PCPU", "MEMORY_MB"], "in the order of the query");
}

/// The request has five devices; hosts have four, one per provider.
#[tokio::test]
async fn groups_that_ask_more_than_one_host_has_are_named() {
    let cloud = Cloud::new();
    for host in [1, 2] {
        cloud.provider(host, None).await;
        for device in 1..=4 {
            let number = host * 10 + device;
            cloud.provider(number, Some(host)).await;
            cloud.stock(number, "PGPU", 1).await;
        }
    }
    let groups: Vec<_> = (1..=5)
        .map(|group| format!("resources{group}=PGPU:1"))
        .collect();
    let query = format!("{}&group_policy=isolate", groups.join("&"));
    let found = explain(&cloud, &query).await;
    assert_eq!(found["reason"], "together");
    let cause = usize::try_from(found["cause"].as_u64().unwrap()).unwrap();
    let short =
        json!({"class": "PGPU", "asked": 5, "most": 4, "groups": ["1", "2", "3", "4", "5"]});
    assert_eq!(found["funnel"][cause]["short"], short);
    assert_eq!(found["nearest"][0]["lacks"][0]["short"], short);
}

#[tokio::test]
async fn a_tree_lacks_what_its_best_provider_lacks() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.stock(1, "DISK_GB", 1).await;
    cloud.provider(11, Some(1)).await;
    cloud.stock(11, "VCPU", 8).await;
    let found = explain(&cloud, "resources=VCPU:9").await;
    let lacks = &found["nearest"][0]["lacks"];
    assert_eq!(
        lacks[0]["atom"], "room",
        "the root has no inventory at all: {lacks}"
    );
    assert_eq!(lacks[0]["free"], 8);
}

#[tokio::test]
async fn unknown_and_unused_names_come_first() {
    let cloud = hosts().await;
    let found = explain(&cloud, "resources=VCPU:1&required=CUSTOM_GUP").await;
    assert_eq!(
        found["unknown"],
        json!([{"trait": "CUSTOM_GUP", "nearest": ["CUSTOM_GPU"]}])
    );
    let found = explain(&cloud, "resources=VCPU:1&required=CUSTOM_GPU").await;
    assert_eq!(found["unused"], json!([{"trait": "CUSTOM_GPU"}]));
    let nowhere = "00000000-0000-4000-8000-0000000000ff";
    let found = explain(&cloud, &format!("resources=VCPU:1&member_of={nowhere}")).await;
    assert_eq!(found["unused"], json!([{"aggregate": nowhere}]));
    assert_eq!(found["relaxations"][0]["less"][0]["atom"], "member_of");
    // With another aggregate in the set, the request is satisfiable.
    let either = format!("resources=VCPU:9&member_of=in:{nowhere},{AGGREGATE}");
    let found = explain(&cloud, &either).await;
    assert_eq!(found.get("unused"), None);
}

#[tokio::test]
async fn invalid_requests_are_not_explained() {
    let cloud = hosts().await;
    for (query, says) in [
        ("resources=VCPU:0", "amount >= 1"),
        ("cows=1", "cows"),
        ("", "resources"),
    ] {
        let path = format!("/placementd/v1/explain?{query}");
        cloud.get(&path).refused(400, says).await;
    }
    let traits: Vec<_> = (0..200).map(|number| format!("CUSTOM_{number}")).collect();
    let path = format!(
        "/placementd/v1/explain?resources=VCPU:1&required={}",
        traits.join(",")
    );
    cloud
        .get(&path)
        .refused(400, "204 conditions; at most 128")
        .await;
}

/// Waits until the searches of this request have an explanation.
pub(crate) async fn explained(cloud: &Cloud, request_id: &str) -> Value {
    let path = format!("/placementd/v1/searches?request_id={request_id}");
    for _ in 0..500 {
        let found = cloud.read(&path).await;
        if found["searches"][0].get("explanation").is_some() {
            return found["searches"][0].clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the search of {request_id} is not explained");
}

#[tokio::test]
async fn empty_answer_is_explained_on_its_original_state() {
    let cloud = hosts().await;
    let caller = format!("req-{}", uuid(77));
    let search = "/allocation_candidates?resources=VCPU:9";
    let asked = cloud.get(search).header("x-openstack-request-id", &caller);
    let answer = asked.expect(200).await;
    assert_eq!(answer.json()["allocation_requests"], json!([]));
    // Capacity is added before the explanation is read.
    cloud.provider(5, None).await;
    cloud.stock(5, "VCPU", 100).await;

    let kept = explained(&cloud, &caller).await;
    assert_eq!(kept["global_request_id"], json!(caller));
    assert_eq!(kept["query"], "resources=VCPU:9");
    assert_eq!(kept["reason"], kept["explanation"]["reason"]);
    assert_eq!(kept["candidates"], 0);
    assert_eq!(kept["explanation"]["trees"], 4);
    assert_eq!(
        kept["explanation"]["relaxations"][0]["less"][0]["enough"],
        8
    );

    cloud.get(search).expect(200).await;
    let all = cloud.read("/placementd/v1/searches").await;
    assert_eq!(all["searches"][0]["candidates"], 1, "the last comes first");
    let empty = cloud
        .read("/placementd/v1/searches?empty=true&since=3600")
        .await;
    assert_eq!(empty["searches"].as_array().unwrap().len(), 1);
    assert_eq!(empty["left_out"], 0);
    let newest = cloud.read("/placementd/v1/searches?limit=1").await;
    assert_eq!(newest["left_out"], 1);
    let project = kept["project_id"].as_str().unwrap();
    for (project, count) in [(project, 2), ("another", 0)] {
        let path = format!("/placementd/v1/searches?project={project}");
        let found = cloud.read(&path).await;
        assert_eq!(
            found["searches"].as_array().unwrap().len(),
            count,
            "{found}"
        );
    }
    // An answer cut by its limit is marked as such.
    assert_eq!(all["searches"][0]["limited"], false);
    cloud
        .get("/allocation_candidates?resources=VCPU:1&limit=1")
        .expect(200)
        .await;
    let cut = cloud.read("/placementd/v1/searches?limit=1").await;
    assert_eq!(cut["searches"][0]["candidates"], 1);
    assert_eq!(cut["searches"][0]["limited"], true);
    for wrong in ["since=soon", "empty=1", "cows=1"] {
        let path = format!("/placementd/v1/searches?{wrong}");
        let name = wrong.split('=').next().unwrap();
        cloud.get(&path).refused(400, name).await;
    }
}

async fn what_if(cloud: &Cloud, body: Value) -> Value {
    let answer = cloud.post("/placementd/v1/what-if", body).expect(200).await;
    answer.json()
}

#[tokio::test]
async fn what_if_answers_writes_as_the_cluster_does_and_changes_nothing() {
    let cloud = hosts().await;
    let before = cloud.memory.position().index;
    let path = format!("/resource_providers/{}/inventories/VCPU", uuid(1));
    let larger = json!({"resource_provider_generation": 3, "total": 16});
    let wrong = json!({"resource_provider_generation": 0, "total": 16});
    let body = json!({
        "changes": [
            {"method": "PUT", "path": path, "body": wrong},
            {"method": "PUT", "path": path, "body": larger},
            {"method": "DELETE", "path": format!("/allocations/{}", uuid(900))},
        ],
        "ask": [
            {"fit": {"query": "resources=VCPU:4", "at_most": 100}},
            {"fit": {"query": "resources=VCPU:4", "at_most": 2}},
            {"explain": {"query": "resources=VCPU:17"}},
            {"capacity": {}},
        ],
    });
    let found = what_if(&cloud, body).await;
    assert_eq!(
        found["answers"][0]["fit"],
        json!({"count": 10, "exact": true, "complete": true})
    );
    assert_eq!(
        found["answers"][1]["fit"],
        json!({"count": 2, "exact": false, "complete": false})
    );
    assert_eq!(
        found["answers"][2]["explain"]["relaxations"][0]["less"][0]["enough"],
        16
    );
    assert_eq!(found["answers"][3]["capacity"]["capacity"][0]["free"], 40);
    assert_eq!(cloud.memory.position().index, before, "nothing was written");

    let refused = cloud.put(&path, wrong).send().await;
    let written = cloud.put(&path, larger).send().await;
    for (index, answer) in [refused, written].into_iter().enumerate() {
        let answered = &found["changes"][index];
        assert_eq!(answered["status"], answer.status.as_u16());
        if answer.status == 200 {
            assert_eq!(answered["body"], answer.json());
        }
    }
    assert_eq!(found["changes"][2], json!({"status": 204, "body": null}));
}

#[tokio::test]
async fn a_query_fits_as_often_as_it_can_be_claimed_now() {
    let cloud = hosts().await;
    let path = "/placementd/v1/what-if?resources=VCPU:4";
    let before = cloud.memory.position().index;
    assert_eq!(
        cloud.read(path).await,
        json!({"count": 6, "exact": true, "complete": true})
    );
    assert_eq!(cloud.memory.position().index, before, "nothing was written");
    let none = cloud.read(&format!("{path}&required=CUSTOM_GPU")).await;
    assert_eq!(none["count"], 0);
    for (wrong, says) in [
        ("", "resources"),
        ("resources=VCPU:1&cows=1", "cows"),
        ("resources=CUSTOM_NO:1", "No such resource class CUSTOM_NO"),
    ] {
        let path = format!("/placementd/v1/what-if?{wrong}");
        cloud.get(&path).refused(400, says).await;
    }
}

#[tokio::test]
async fn what_if_names_the_fewest_consumers_whose_end_makes_room() {
    let cloud = Cloud::new();
    for number in 1..=2 {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    for (consumer, host, units) in [(901, 1, 4), (902, 1, 3), (903, 2, 6), (904, 2, 2)] {
        cloud.claim(consumer, host, "VCPU", units).await.expect(204);
    }
    let ask = async |units: u64, types: &[&str], projects: &[&str]| {
        let query = format!("resources=VCPU:{units}");
        let asked = json!({"query": query, "types": types, "projects": projects});
        let found = what_if(&cloud, json!({"ask": [{"preempt": asked}]})).await;
        found["answers"][0]["preempt"].clone()
    };
    let uuids = |found: &Value| {
        let all = found["consumers"].as_array().unwrap().iter();
        let all: Vec<_> = all
            .map(|one| one["uuid"].as_str().unwrap().to_owned())
            .collect();
        all
    };
    // The first host has one unit left, so the smaller of its consumers is enough for 4.
    let found = ask(4, &["INSTANCE"], &[]).await;
    assert_eq!(found["provider"]["uuid"], uuid(1));
    assert_eq!(uuids(&found), [uuid(902)]);
    assert_eq!(
        (&found["exact"], &found["complete"]),
        (&json!(true), &json!(true))
    );
    let found = ask(8, &["INSTANCE"], &["p"]).await;
    assert_eq!((uuids(&found).len(), &found["exact"]), (2, &json!(true)));
    let room = ask(1, &["INSTANCE"], &[]).await;
    assert_eq!((&room["possible"], uuids(&room).len()), (&json!(true), 0));
    assert_eq!(room["provider"], Value::Null);
    for (units, types, projects) in [
        (9, "INSTANCE", &[][..]),
        (4, "MIGRATION", &[]),
        (4, "INSTANCE", &["other"]),
    ] {
        let found = ask(units, &[types], projects).await;
        assert_eq!(found["possible"], false, "{found}");
    }
    let held = cloud.read(&format!("/allocations/{}", uuid(902))).await;
    assert_eq!(held["allocations"][uuid(1)]["resources"]["VCPU"], 3);
}

#[tokio::test]
async fn what_if_takes_only_writes_of_the_api() {
    let cloud = hosts().await;
    let long = json!({"changes": [{"method": "PUT", "path": "/traits/CUSTOM_X", "body": "x".repeat(1 << 20)}]});
    cloud.post("/placementd/v1/what-if", long).expect(413).await;
    let change = |method, path| json!({"changes": [{"method": method, "path": path}]});
    let fit =
        |at_most| json!({"ask": [{"fit": {"query": "resources=VCPU:1", "at_most": at_most}}]});
    let preempt =
        |types: Value| json!({"ask": [{"preempt": {"query": "resources=VCPU:1", "types": types}}]});
    let many = vec![json!({"method": "DELETE", "path": "/traits/CUSTOM_NONE"}); 1_001];
    for (body, says) in [
        (change("GET", "/traits"), "not a write"),
        (change("POST", "/placementd/v1/what-if"), "not a write"),
        (change("POST", "/%70lacementd/v1/what-if"), "not a write"),
        (change("PUT", "traits/CUSTOM_X"), "not a write"),
        (
            json!({"ask": [{"explain": {"query": format!("resources=VCPU:1&required={}", "A,".repeat(20_000))}}]}),
            "bytes in a query",
        ),
        (
            json!({"ask": vec![json!({"capacity": {}}); 5]}),
            "4 questions",
        ),
        (json!({"changes": many}), "1000 changes"),
        (fit(10_001), "10000 claims"),
        (json!({"asks": []}), "asks"),
        (json!({"ask": [{"cows": {}}]}), "cows"),
        (preempt(json!([])), "needs types"),
        (preempt(json!(["instance"])), "name of a consumer type"),
        (preempt(json!(vec!["A"; 101])), "100 types"),
        (json!({"ask": [{"explain": {"query": "cows=1"}}]}), "cows"),
    ] {
        let answer = cloud.post("/placementd/v1/what-if", body).send().await;
        answer.refused(400, says);
    }
}
