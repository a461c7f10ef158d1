use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

fn path(number: u64) -> String {
    format!("/resource_providers/{}/inventories", uuid(number))
}

async fn one_provider() -> Cloud {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud
}

#[tokio::test]
async fn inventory_is_created_read_changed_and_deleted() {
    let cloud = one_provider().await;
    let made = cloud
        .post(
            &path(1),
            json!({"resource_class": "VCPU", "total": 8, "resource_provider_generation": 77}),
        )
        .expect(201)
        .await;
    let location = format!("http://cloud.example{}/VCPU", path(1));
    assert_eq!(made.header("location"), Some(location.as_str()));
    let plain = json!({
        "total": 8, "reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1,
        "allocation_ratio": 1.0, "resource_provider_generation": 1,
    });
    assert_eq!(made.json(), plain);
    let one = format!("{}/VCPU", path(1));
    assert_eq!(cloud.read(&one).await, plain);
    let changed = json!({"total": 16, "allocation_ratio": 2, "resource_provider_generation": 1});
    let answer = cloud.put(&one, changed.clone()).expect(200).await.json();
    assert_eq!(
        (&answer["total"], &answer["allocation_ratio"]),
        (&json!(16), &json!(2))
    );
    assert_eq!(cloud.read(&one).await["allocation_ratio"], json!(2.0));
    cloud
        .put(&one, changed)
        .refused(409, "resource provider generation conflict")
        .await
        .code("placement.concurrent_update");
    let negative = json!({"total": 1, "allocation_ratio": -1.0, "resource_provider_generation": 2});
    let negative = cloud.put(&one, negative).send().await;
    negative.refused(400, "not negative");
    cloud.delete(&one).expect(204).await;
    cloud
        .delete(&one)
        .refused(404, "No inventory of class VCPU found for delete")
        .await;
    assert_eq!(cloud.generation(1).await, 3);
}

#[tokio::test]
async fn the_whole_set_is_replaced() {
    let cloud = one_provider().await;
    let set = |generation: i64, inventories: Value| {
        cloud.put(
            &path(1),
            json!({"resource_provider_generation": generation, "inventories": inventories}),
        )
    };
    let answer = set(
        0,
        json!({"VCPU": {"total": 5.0}, "DISK_GB": {"total": 100}}),
    )
    .expect(200)
    .await;
    assert!(answer.header("last-modified").is_some());
    assert!(
        answer.text().contains("\"total\":5.0"),
        "numbers are echoed as they were given"
    );
    assert_eq!(answer.json()["resource_provider_generation"], 1);
    let read = cloud.read(&path(1)).await;
    assert_eq!(read["inventories"]["VCPU"]["total"], json!(5));
    let empty = set(1, json!({})).expect(200).await;
    assert_eq!(
        (empty.header("last-modified"), empty.header("cache-control")),
        (None, Some("no-cache"))
    );
    let read = cloud.get(&path(1)).expect(200).await;
    assert_eq!(
        (read.header("last-modified"), read.header("cache-control")),
        (None, Some("no-cache"))
    );
    set(1, json!({}))
        .refused(409, "resource provider generation conflict")
        .await;
}

#[tokio::test]
async fn the_provider_is_looked_for_before_the_body_is_read() {
    let cloud = one_provider().await;
    let wrong = json!({"total": 0});
    cloud
        .put(&path(9), wrong.clone())
        .refused(404, "No resource provider with uuid")
        .await;
    cloud.post(&path(9), wrong.clone()).expect(404).await;
    cloud
        .put(&format!("{}/VCPU", path(9)), wrong.clone())
        .expect(404)
        .await;
    cloud
        .put(&format!("{}/VCPU", path(1)), wrong)
        .refused(400, "'resource_provider_generation' is a required")
        .await;
    cloud.get(&path(9)).expect(404).await;
    cloud.delete(&path(9)).expect(404).await;
}

#[tokio::test]
async fn ratios_keep_their_value() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let path = format!("/resource_providers/{}/inventories", uuid(1));
    for (generation, (given, echoed, read)) in [
        ("1", json!(1), json!(1.0)),
        ("2.5", json!(2.5), json!(2.5)),
        (
            "0.30000000000000004",
            json!(0.30000000000000004),
            json!(0.30000000000000004),
        ),
        ("3.40282e+38", json!(3.40282e38), json!(3.40282e38)),
        ("10000000000000000000", json!(1e19), json!(1e19)),
        (
            "123456789012345680.0",
            json!(1.2345678901234568e17),
            json!(1.2345678901234568e17),
        ),
        ("1E2", json!(100.0), json!(100.0)),
        ("5e-324", json!(5e-324), json!(5e-324)),
        ("-0", json!(-0.0), json!(0.0)),
    ]
    .into_iter()
    .enumerate()
    {
        let body = format!(
            "{{\"resource_provider_generation\":{generation},\
             \"inventories\":{{\"VCPU\":{{\"total\":5.0,\"allocation_ratio\":{given}}}}}}}"
        );
        let ask = cloud
            .ask("PUT", &path)
            .raw(body.as_bytes())
            .header("content-type", "application/json");
        let written = ask.expect(200).await.json();
        let written = &written["inventories"]["VCPU"];
        assert_eq!(written["total"], json!(5.0));
        assert_eq!(written["allocation_ratio"], echoed, "{given}");
        let kept = cloud.read(&path).await;
        let kept = &kept["inventories"]["VCPU"];
        assert_eq!(kept["allocation_ratio"], read, "{given}");
    }
}
