//! The history of changes, latest first.

use placement_api::http::ApiSettings;
use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

/// A host, and a consumer whose allocation on it is created, increased and deleted.
pub(crate) async fn host() -> Cloud {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 8).await;
    cloud.claim(900, 1, "VCPU", 3).await.expect(204);
    let path = format!("/allocations/{}", uuid(900));
    let more = json!({
        "allocations": {uuid(1): {"resources": {"VCPU": 4}}},
        "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": "INSTANCE",
    });
    cloud.put(&path, more).expect(204).await;
    cloud.delete(&path).expect(204).await;
    cloud
}

async fn history(cloud: &Cloud, query: &str) -> Value {
    cloud.read(&format!("/placementd/v1/history?{query}")).await
}

fn verbs(history: &Value) -> Vec<&str> {
    let entries = history["history"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["verb"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn entry_shows_each_value_before_and_after() {
    let cloud = host().await;
    let all = history(&cloud, "").await;
    assert_eq!(
        verbs(&all),
        [
            "DeleteAllocations",
            "ReplaceAllocations",
            "ReplaceAllocations",
            "CreateInventory",
            "CreateProvider",
            "SyncStandards"
        ]
    );
    let more = &all["history"][1];
    assert_eq!(more["index"], "1.5");
    assert_eq!(all["history"][5]["request_id"], Value::Null);
    let owner = |generation: u64| {
        json!({
            "consumer_generation": generation, "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE",
        })
    };
    let provider = |generation: u64| {
        json!({
            "uuid": uuid(1), "name": "provider 1", "generation": generation, "parent_provider_uuid": null,
        })
    };
    let changes = more["changes"].as_array().unwrap();
    let of = |kind: &str| {
        let mut found = changes.iter().filter(|one| one["kind"] == kind);
        let one = found.next().unwrap().clone();
        assert_eq!(found.count(), 0, "one of {kind}");
        one
    };
    assert_eq!(changes.len(), 3);
    assert_eq!(
        of("consumer"),
        json!({"kind": "consumer", "key": {"consumer": uuid(900)}, "before": owner(1), "after": owner(2)})
    );
    assert_eq!(
        of("allocation"),
        json!({
            "kind": "allocation", "key": {"consumer": uuid(900), "resource_provider": uuid(1)},
            "before": {"resources": {"VCPU": 3}}, "after": {"resources": {"VCPU": 4}},
        })
    );
    assert_eq!(
        of("provider"),
        json!({
            "kind": "provider", "key": {"uuid": uuid(1)}, "before": provider(2), "after": provider(3),
        })
    );
    let stock = &history(&cloud, "kind=inventory").await["history"][0]["changes"];
    let shown = r#"[{"kind":"inventory","key":{"resource_provider":"00000000-0000-4000-8000-000000000001","resource_class":"VCPU"},"before":null,"after":{"total":8,"reserved":0,"min_unit":1,"max_unit":2147483647,"step_size":1,"allocation_ratio":1.0}}]"#;
    assert_eq!(*stock, serde_json::from_str::<Value>(shown).unwrap());
    let gone = &all["history"][0]["changes"];
    let gone = gone
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["kind"] == "allocation");
    assert_eq!(gone.unwrap()["after"], Value::Null);
}

/// A service sends the id of its own request, and clients may send any text.
#[tokio::test]
async fn entry_has_callers_request_id_or_its_own() {
    let cloud = host().await;
    let nova = format!("req-{}", uuid(77));
    let braces = format!("{nova}}}");
    let compact = format!("req-{}", uuid(77).replace('-', ""));
    let other = [
        "",
        "req-",
        "req-soon",
        &nova[4..],
        "req-0",
        &braces,
        &compact,
    ];
    let upper = nova.replace("req-", "").to_uppercase();
    let callers = [nova.clone(), format!("req-{upper}")];
    let own = other.map(|given| (given.to_owned(), None));
    let callers = callers.map(|given| (given, Some(nova.clone())));
    let mut expected = Vec::new();
    for (number, (given, caller)) in own.into_iter().chain(callers).enumerate() {
        let asked = cloud
            .ask("PUT", &format!("/traits/CUSTOM_{number}"))
            .header("x-openstack-request-id", &given);
        let answer = asked.expect(201).await;
        let answered = answer.header("x-openstack-request-id").unwrap();
        expected.push(caller.unwrap_or_else(|| answered.to_owned()));
    }
    let events = "/placementd/v1/events?after=1.6&follow=false";
    let mut events = cloud.get(events).lines().await.until("progress").await;
    events.pop();
    let ids = |entries: &[Value]| -> Vec<_> {
        let ids = entries.iter().map(|entry| entry["request_id"].as_str());
        ids.map(|id| id.unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&events), expected);
    let last = history(&cloud, &format!("limit={}", expected.len())).await;
    expected.reverse();
    assert_eq!(ids(last["history"].as_array().unwrap()), expected);
}

/// A live migration changes the allocations of the instance and of the migration with one id.
#[tokio::test]
async fn changes_of_a_request_are_found_by_its_id() {
    let cloud = host().await;
    let [migration, other] = [77, 78].map(|number| format!("req-{}", uuid(number)));
    for (name, id) in [("A", &migration), ("B", &other), ("C", &migration)] {
        let put = cloud.ask("PUT", &format!("/traits/CUSTOM_{name}"));
        put.header("x-openstack-request-id", id).expect(201).await;
    }
    let found = |query: String| {
        let cloud = &cloud;
        async move {
            let found = history(cloud, &query).await;
            let entries = found["history"].as_array().unwrap().iter();
            let traits = entries.map(|entry| entry["changes"][0]["key"]["trait"].clone());
            traits.collect::<Vec<_>>()
        }
    };
    let both = [json!("CUSTOM_C"), json!("CUSTOM_A")];
    assert_eq!(found(format!("request_id={migration}")).await, both);
    let upper = format!("req-{}", uuid(77).to_uppercase());
    assert_eq!(found(format!("request_id={upper}")).await, both);
    assert_eq!(
        found(format!("request_id={migration}&limit=1")).await,
        both[..1]
    );
    for none in [
        format!("request_id=req-{}", uuid(79)),
        format!("request_id={migration}&kind=consumer"),
    ] {
        assert!(found(none).await.is_empty());
    }
}

#[tokio::test]
async fn sets_and_names_have_values_of_their_own() {
    let cloud = host().await;
    cloud.ask("PUT", "/traits/CUSTOM_A").expect(201).await;
    let last = history(&cloud, "limit=1").await;
    assert_eq!(
        last["history"][0]["changes"],
        json!([{"kind": "trait", "key": {"trait": "CUSTOM_A"}, "before": null, "after": {"name": "CUSTOM_A"}}])
    );
    let path = format!("/resource_providers/{}/traits", uuid(1));
    for (traits, before, after) in [
        (
            json!(["CUSTOM_A"]),
            Value::Null,
            json!({"traits": ["CUSTOM_A"]}),
        ),
        (json!([]), json!({"traits": ["CUSTOM_A"]}), Value::Null),
    ] {
        let generation = cloud.generation(1).await;
        let body = json!({"resource_provider_generation": generation, "traits": traits});
        cloud.put(&path, body).expect(200).await;
        let last = history(&cloud, "limit=1&kind=trait").await;
        assert_eq!(
            last["history"][0]["changes"],
            json!([{"kind": "trait", "key": {"resource_provider": uuid(1)}, "before": before, "after": after}])
        );
    }
    let generation = cloud.generation(1).await;
    let body = json!({"resource_provider_generation": generation, "aggregates": [uuid(77)]});
    let path = format!("/resource_providers/{}/aggregates", uuid(1));
    cloud.put(&path, body).expect(200).await;
    let last = history(&cloud, "limit=1&kind=aggregate").await;
    let after = &last["history"][0]["changes"][0]["after"];
    assert_eq!(*after, json!({"aggregates": [uuid(77)]}));
    let body = json!({"name": "CUSTOM_OLD"});
    cloud.post("/resource_classes", body).expect(201).await;
    let renamed = cloud.put(
        "/resource_classes/CUSTOM_OLD",
        json!({"name": "CUSTOM_NEW"}),
    );
    renamed.version("1.2").expect(200).await;
    let renamed = json!([{
        "kind": "class", "key": {"resource_class": "CUSTOM_NEW"},
        "before": {"name": "CUSTOM_OLD"}, "after": {"name": "CUSTOM_NEW"},
    }]);
    for name in ["CUSTOM_OLD", "CUSTOM_NEW"] {
        let found = history(&cloud, &format!("class={name}&limit=1")).await;
        assert_eq!(found["history"][0]["changes"], renamed, "{name}");
    }
}

#[tokio::test]
async fn filters_are_combined() {
    let cloud = host().await;
    cloud.provider(2, None).await;
    let other = uuid(2);
    for (query, count) in [
        (format!("consumer={}", uuid(900)), 3),
        (format!("consumer={}&kind=consumer", uuid(900)), 3),
        (format!("consumer={}&kind=provider", uuid(900)), 0),
        (format!("consumer={}", uuid(901)), 0),
        ("project=p".to_owned(), 3),
        ("project=q".to_owned(), 0),
        ("class=VCPU".to_owned(), 5),
        ("class=VCPU&kind=allocation,inventory".to_owned(), 4),
        (format!("class=VCPU&provider={}", uuid(1)), 4),
        (format!("provider={other}"), 1),
        (format!("provider={other}&project=p"), 0),
    ] {
        let found = history(&cloud, &query).await;
        assert_eq!(verbs(&found).len(), count, "{query}: {found}");
    }
    for (query, says) in [
        ("kind=cow", "cow"),
        ("provider=cow", "provider"),
        ("limit=0", "limit"),
        ("limit=1001", "1000"),
        ("before=cow", "before"),
        ("cows=1", "cows"),
        ("class=a", "class"),
        ("request_id=req-1", "such as req-"),
    ] {
        let path = format!("/placementd/v1/history?{query}");
        cloud.get(&path).refused(400, says).await;
    }
    cloud
        .get("/placementd/v1/history?before=7.1")
        .expect(412)
        .await;
}

#[tokio::test]
async fn pages_have_each_entry_once() {
    let cloud = host().await;
    let whole = history(&cloud, "").await;
    assert_eq!(whole["next"], Value::Null);
    assert_eq!(whole["oldest"], "1.0");
    assert_eq!(whole["oldest_at"], Value::Null);
    let mut pages = Vec::new();
    let mut query = "limit=2".to_owned();
    loop {
        let page = history(&cloud, &query).await;
        pages.extend(page["history"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query = format!("limit=2&before={next}");
    }
    assert_eq!(pages, *whole["history"].as_array().unwrap());
    cloud.memory.keep_after(3);
    let kept = history(&cloud, "").await;
    assert_eq!(verbs(&kept).len(), 3);
    assert_eq!(
        (&kept["oldest"], &kept["next"]),
        (&json!("1.3"), &Value::Null)
    );
    // The entry 1.3, in the whole history before it was dropped.
    assert_eq!(kept["oldest_at"], whole["history"][3]["at"]);
}

/// The answer has a bounded size however long its entries are.
#[tokio::test]
async fn page_of_long_entries_ends_before_its_limit() {
    let mut settings = ApiSettings::default();
    settings.limits.aggregates = 3_000;
    let cloud = Cloud::with(settings);
    cloud.provider(1, None).await;
    let path = format!("/resource_providers/{}/aggregates", uuid(1));
    for round in 1..=8 {
        let aggregates: Vec<_> = (0..3_000)
            .map(|number| uuid(round * 10_000 + number))
            .collect();
        let generation = cloud.generation(1).await;
        let body = json!({"resource_provider_generation": generation, "aggregates": aggregates});
        cloud.put(&path, body).expect(200).await;
    }
    let mut pages = Vec::new();
    let mut query = "kind=aggregate".to_owned();
    loop {
        let page = history(&cloud, &query).await;
        pages.push(verbs(&page).len());
        let Some(next) = page["next"].as_str() else {
            break;
        };
        query = format!("kind=aggregate&before={next}");
    }
    // An entry has the aggregates before and after it, 117 kB each. Nothing precedes the first.
    assert_eq!(pages, [3, 3, 2]);
}

/// Otherwise the entries that expire in the meantime would be missing without a trace.
#[tokio::test]
async fn oldest_place_is_right_after_entries_expired_during_the_read() {
    let cloud = host().await;
    cloud.memory.keep_after_next_page(3);
    let page = history(&cloud, "").await;
    assert_eq!(verbs(&page).len(), 3);
    assert_eq!(
        (&page["oldest"], &page["next"]),
        (&json!("1.3"), &Value::Null)
    );
}
