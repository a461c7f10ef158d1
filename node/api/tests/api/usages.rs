use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

async fn quotas() -> Cloud {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 100).await;
    cloud.stock(1, "DISK_GB", 100).await;
    for (consumer, user, amounts, kind) in [
        (50, "u", json!({"VCPU": 1, "DISK_GB": 5}), "INSTANCE"),
        (51, "u", json!({"VCPU": 2}), "INSTANCE"),
        (52, "v", json!({"VCPU": 4}), "MIGRATION"),
    ] {
        let body = json!({
            "allocations": {uuid(1): {"resources": amounts}}, "project_id": "p", "user_id": user,
            "consumer_generation": null, "consumer_type": kind,
        });
        cloud
            .put(&format!("/allocations/{}", uuid(consumer)), body)
            .expect(204)
            .await;
    }
    let old = json!({"allocations": {uuid(1): {"resources": {"VCPU": 8}}}, "project_id": "p", "user_id": "v"});
    cloud
        .put(&format!("/allocations/{}", uuid(53)), old)
        .version("1.12")
        .expect(204)
        .await;
    cloud
}

async fn usages(cloud: &Cloud, query: &str, version: &str) -> Value {
    let answer = cloud
        .get(&format!("/usages?{query}"))
        .version(version)
        .send()
        .await;
    answer.expect(200).json()["usages"].clone()
}

#[tokio::test]
async fn a_project_is_counted_whole_and_by_type() {
    let cloud = quotas().await;
    let instances = json!({"consumer_count": 2, "VCPU": 3, "DISK_GB": 5});
    let migrations = json!({"consumer_count": 1, "VCPU": 4});
    let unknown = json!({"consumer_count": 1, "VCPU": 8});
    let by_type = json!({"INSTANCE": instances, "MIGRATION": migrations, "unknown": unknown});
    let all = json!({"all": {"consumer_count": 4, "VCPU": 15, "DISK_GB": 5}});
    for (query, version, expected) in [
        ("project_id=p", "1.9", json!({"VCPU": 15, "DISK_GB": 5})),
        (
            "project_id=p&user_id=u",
            "1.37",
            json!({"VCPU": 3, "DISK_GB": 5}),
        ),
        ("project_id=p", "1.38", by_type),
        (
            "project_id=p&consumer_type=INSTANCE",
            "1.38",
            json!({"INSTANCE": instances}),
        ),
        (
            "project_id=p&consumer_type=unknown",
            "1.38",
            json!({"unknown": unknown}),
        ),
        ("project_id=p&consumer_type=all", "1.38", all),
        ("project_id=q&consumer_type=all", "1.38", json!({})),
        ("project_id=p&consumer_type=allx", "1.38", json!({})),
    ] {
        let found = usages(&cloud, query, version).await;
        assert_eq!(found, expected, "{query} at {version}");
    }
}
