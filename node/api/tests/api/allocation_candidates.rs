use std::sync::Arc;

use placement_api::http::{ApiSettings, CandidateSettings};
use serde_json::{Value, json};

use crate::cloud::{Cloud, Counting, uuid};

/// Three hosts with 8 CPUs each; the third has two children with one GPU each.
async fn hosts(settings: CandidateSettings) -> Cloud {
    let cloud = Cloud::with(ApiSettings {
        candidates: settings,
        ..ApiSettings::default()
    });
    furnish(&cloud).await;
    cloud
}

async fn furnish(cloud: &Cloud) {
    for number in [1, 2, 3] {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    for number in [31, 32] {
        cloud.provider(number, Some(3)).await;
        cloud.stock(number, "VGPU", 1).await;
        let traits = json!({"resource_provider_generation": 1, "traits": ["HW_NUMA_ROOT"]});
        let path = format!("/resource_providers/{}/traits", uuid(number));
        cloud.put(&path, traits).expect(200).await;
    }
}

async fn ask(cloud: &Cloud, query: &str, version: &str) -> Value {
    let answer = cloud
        .get(&format!("/allocation_candidates?{query}"))
        .version(version)
        .send()
        .await;
    answer.expect(200).json()
}

fn count(answer: &Value) -> usize {
    answer["allocation_requests"].as_array().unwrap().len()
}

#[tokio::test]
async fn each_host_with_room_is_a_candidate() {
    let cloud = hosts(CandidateSettings::default()).await;
    let answer = ask(&cloud, "resources=VCPU:2", "1.39").await;
    assert_eq!(count(&answer), 3);
    assert_eq!(
        answer["allocation_requests"][0],
        json!({"allocations": {uuid(1): {"resources": {"VCPU": 2}}}, "mappings": {"": [uuid(1)]}})
    );
    assert_eq!(
        answer["provider_summaries"][uuid(1)],
        json!({
            "resources": {"VCPU": {"capacity": 8, "used": 0}}, "traits": [],
            "parent_provider_uuid": null, "root_provider_uuid": uuid(1),
        })
    );
    assert!(
        answer["provider_summaries"].get(uuid(31)).is_some(),
        "whole trees are summarized"
    );
    assert_eq!(
        count(&ask(&cloud, "resources=VCPU:2&limit=2", "1.39").await),
        2
    );
    assert_eq!(count(&ask(&cloud, "resources=VCPU:99", "1.39").await), 0);
    assert_eq!(
        count(&ask(&cloud, "resources=VCPU:2,VGPU:1", "1.39").await),
        2
    );
}

#[tokio::test]
async fn configuration_bounds_and_orders_the_search() {
    let bounded = hosts(CandidateSettings {
        max: 2,
        ..CandidateSettings::default()
    })
    .await;
    assert_eq!(count(&ask(&bounded, "resources=VCPU:2", "1.39").await), 2);
    let random = hosts(CandidateSettings {
        randomize: true,
        ..CandidateSettings::default()
    })
    .await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..60 {
        let answer = ask(&random, "resources=VCPU:2&limit=1", "1.39").await;
        assert_eq!(count(&answer), 1);
        seen.insert(answer["allocation_requests"][0]["mappings"].to_string());
    }
    assert_eq!(seen.len(), 3, "every host is seen");
    let none = ask(&random, "resources=VCPU:2000000", "1.39").await;
    assert_eq!(count(&none), 0);
    let searched = [("found", 60), ("empty", 1), ("ended", 0)];
    assert_eq!(random.searched(), searched);
    let tiny = hosts(CandidateSettings {
        memory_max_bytes: 100,
        ..CandidateSettings::default()
    })
    .await;
    tiny.get("/allocation_candidates?resources=VCPU:2")
        .refused(400, "bytes of memory")
        .await
        .code("placement.candidates.search_ended");
    assert_eq!(tiny.searched(), [("found", 0), ("empty", 0), ("ended", 1)]);
}

#[tokio::test]
async fn memory_of_search_is_limited() {
    let ask = async |settings: CandidateSettings, path: &str| {
        let cloud = hosts(settings).await;
        cloud.get(path).send().await
    };
    let within = |memory_max_bytes| CandidateSettings {
        memory_max_bytes,
        ..CandidateSettings::default()
    };
    // The request alone takes some 200 bytes, with its summary some 400.
    let one = "/allocation_candidates?resources=VCPU:2&limit=1";
    ask(within(300), one)
        .await
        .refused(400, "bytes of memory")
        .code("placement.candidates.search_ended");
    ask(within(2_000), one).await.expect(200);
    // With `randomize` candidates are kept before they are written: as many as the limit, or all
    // 1,024.
    let randomized = |memory_max_bytes| CandidateSettings {
        randomize: true,
        ..within(memory_max_bytes)
    };
    let many = two_ways_for_each_of(10);
    ask(randomized(300_000), &many)
        .await
        .refused(400, "bytes of memory");
    ask(randomized(3_000_000), &many).await.expect(200);
    let one = format!("{many}&limit=1");
    ask(randomized(100_000), &one).await.expect(200);
}

/// A query with `groups` groups, each of which fits on two providers: 2 to the power of `groups`
/// candidates.
fn two_ways_for_each_of(groups: usize) -> String {
    let each: Vec<String> = (1..=groups)
        .map(|group| format!("required_{group}=!HW_CPU_X86_VMX,HW_NUMA_ROOT"))
        .collect();
    let suffixes: Vec<String> = (1..=groups).map(|group| format!(",_{group}")).collect();
    format!(
        "/allocation_candidates?resources_R=VCPU:1&group_policy=none&same_subtree=_R{}&{}",
        suffixes.concat(),
        each.join("&")
    )
}

#[tokio::test]
async fn long_search_is_offloaded() {
    let counting = Arc::new(Counting::default());
    let cloud = Cloud::offloading_to(counting.clone(), ApiSettings::default());
    furnish(&cloud).await;
    let many = two_ways_for_each_of(10);
    for (query, found, elsewhere) in [
        ("/allocation_candidates?resources=VCPU:2".to_owned(), 3, 0),
        ("/allocation_candidates?resources=VCPU:99".to_owned(), 0, 0),
        (format!("{many}&limit=2"), 2, 0),
        // More than 64 KiB of answer, and more than 1,000 steps.
        (format!("{many}&limit=200"), 200, 1),
        (many, 1_024, 2),
    ] {
        let answer = cloud.get(&query).expect(200).await;
        assert_eq!(answer.announced, Some(answer.body.len() as u64));
        assert_eq!(count(&answer.json()), found, "{query}");
        assert_eq!(counting.count(), elsewhere, "{query}");
    }
}

#[tokio::test]
async fn search_beyond_its_deadline_is_refused_without_retry() {
    let cloud = hosts(CandidateSettings {
        deadline: std::time::Duration::from_millis(100),
        ..CandidateSettings::default()
    })
    .await;
    let answer = cloud
        .get(&two_ways_for_each_of(40))
        .send()
        .await
        .refused(400, "deadline")
        .code("placement.candidates.search_ended");
    assert_eq!(answer.header("retry-after"), None);
}

#[tokio::test]
async fn unknown_names_after_an_unsatisfiable_group_are_ignored() {
    let cloud = hosts(CandidateSettings::default()).await;
    let base = "/allocation_candidates?group_policy=none";
    let empty = cloud
        .get(&format!("{base}&resources1=VCPU:9999&resources2=NOPE:1"))
        .expect(200)
        .await;
    assert_eq!(count(&empty.json()), 0);
    cloud
        .get(&format!("{base}&resources2=nope:1&resources1=VCPU:9999"))
        .refused(400, "nope")
        .await;
}

#[tokio::test]
async fn first_group_policy_counts_and_last_is_checked() {
    let cloud = hosts(CandidateSettings::default()).await;
    let base = "resources1=VCPU:1&resources2=VCPU:1";
    let answer = ask(
        &cloud,
        &format!("{base}&group_policy=isolate&group_policy=none"),
        "1.39",
    )
    .await;
    assert_eq!(count(&answer), 0, "no host has two providers of CPUs");
    let answer = ask(
        &cloud,
        &format!("{base}&group_policy=bogus&group_policy=none"),
        "1.39",
    )
    .await;
    assert_eq!(count(&answer), 3);
}

#[tokio::test]
async fn a_capacity_beyond_64_bits_is_shown_whole() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let path = format!("/resource_providers/{}/inventories", uuid(1));
    let record = json!({
        "resource_class": "VCPU", "total": 2_147_483_647, "allocation_ratio": 3.40282e38,
    });
    cloud.post(&path, record).expect(201).await;
    let found = cloud
        .get("/allocation_candidates?resources=VCPU:2147483647")
        .expect(200)
        .await
        .text();
    let shown = "\"capacity\":730750030368454069204497451323897263056217964544,";
    assert!(found.contains(shown), "{found}");
}

/// As in the reference: with a limit, the summaries cover all providers of the trees in the answer
/// that any candidate would use.
#[tokio::test]
async fn before_1_29_a_limit_does_not_shorten_the_summaries_of_its_trees() {
    for (randomize, queries) in [(false, 1), (true, 20)] {
        let cloud = hosts(CandidateSettings {
            randomize,
            ..CandidateSettings::default()
        })
        .await;
        for _ in 0..queries {
            let answer = ask(&cloud, "resources=VGPU:1&limit=1", "1.28").await;
            assert_eq!(count(&answer), 1);
            let summaries = answer["provider_summaries"].as_object().unwrap();
            let mut shown: Vec<&String> = summaries.keys().collect();
            shown.sort();
            assert_eq!(shown, [&uuid(31), &uuid(32)]);
        }
    }
}
