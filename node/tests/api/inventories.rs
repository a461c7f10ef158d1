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
async fn one_inventory_is_made_read_changed_and_deleted() {
    let cloud = one_provider().await;
    let made = cloud
        .post(
            &path(1),
            json!({"resource_class": "VCPU", "total": 8, "resource_provider_generation": 77}),
        )
        .send()
        .await
        .expect(201);
    let location = format!("http://cloud.example{}/VCPU", path(1));
    assert_eq!(made.header("location"), Some(location.as_str()));
    let plain = json!({
        "total": 8, "reserved": 0, "min_unit": 1, "max_unit": 2147483647, "step_size": 1,
        "allocation_ratio": 1.0, "resource_provider_generation": 1,
    });
    assert_eq!(made.json(), plain);
    let one = format!("{}/VCPU", path(1));
    assert_eq!(cloud.get(&one).send().await.expect(200).json(), plain);
    let changed = json!({"total": 16, "allocation_ratio": 2, "resource_provider_generation": 1});
    let answer = cloud
        .put(&one, changed.clone())
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&answer["total"], &answer["allocation_ratio"]),
        (&json!(16), &json!(2))
    );
    assert_eq!(
        cloud.get(&one).send().await.json()["allocation_ratio"],
        json!(2.0)
    );
    cloud
        .put(&one, changed)
        .send()
        .await
        .refused(409, "resource provider generation conflict")
        .code("placement.concurrent_update");
    cloud.delete(&one).send().await.expect(204);
    cloud
        .delete(&one)
        .send()
        .await
        .refused(404, "No inventory of class VCPU found for delete");
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
    .send()
    .await
    .expect(200);
    assert!(answer.header("last-modified").is_some());
    assert!(
        answer.text().contains("\"total\":5.0"),
        "numbers are echoed as they were given"
    );
    assert_eq!(answer.json()["resource_provider_generation"], 1);
    let read = cloud.get(&path(1)).send().await.expect(200);
    assert_eq!(read.json()["inventories"]["VCPU"]["total"], json!(5));
    let empty = set(1, json!({})).send().await.expect(200);
    assert_eq!(
        (empty.header("last-modified"), empty.header("cache-control")),
        (None, Some("no-cache"))
    );
    let read = cloud.get(&path(1)).send().await.expect(200);
    assert_eq!(
        (read.header("last-modified"), read.header("cache-control")),
        (None, Some("no-cache"))
    );
    set(1, json!({}))
        .send()
        .await
        .refused(409, "resource provider generation conflict");
}

#[tokio::test]
async fn what_is_in_use_stays() {
    let cloud = one_provider().await;
    cloud.stock(1, "DISK_GB", 100).await;
    cloud.stock(1, "VCPU", 8).await;
    cloud.claim(50, 1, "VCPU", 1).await.expect(204);
    cloud.claim(51, 1, "DISK_GB", 1).await.expect(204);
    let in_use = format!(
        "Inventory for 'VCPU, DISK_GB' on resource provider '{}' in use",
        uuid(1)
    );
    cloud
        .delete(&path(1))
        .send()
        .await
        .refused(409, &in_use)
        .code("placement.inventory.inuse");
    let empty = json!({"resource_provider_generation": 4, "inventories": {}});
    cloud
        .put(&path(1), empty)
        .send()
        .await
        .refused(409, &in_use)
        .code("placement.inventory.inuse");
    let one = cloud.delete(&format!("{}/VCPU", path(1))).send().await;
    one.refused(409, "Unable to delete inventory of class VCPU")
        .code("placement.concurrent_update");
}

#[tokio::test]
async fn reserving_everything_is_allowed_from_1_26() {
    let cloud = one_provider().await;
    let body = json!({"resource_class": "VCPU", "total": 8, "reserved": 8});
    cloud
        .post(&path(1), body.clone())
        .version("1.25")
        .send()
        .await
        .refused(400, "greater than or equal to total");
    cloud
        .post(&path(1), body)
        .version("1.26")
        .send()
        .await
        .expect(201);
    let more = json!({"resource_class": "DISK_GB", "total": 8, "reserved": 9});
    cloud
        .post(&path(1), more)
        .send()
        .await
        .refused(400, "greater than total");
}

#[tokio::test]
async fn the_provider_is_looked_for_before_the_body_is_read() {
    let cloud = one_provider().await;
    let wrong = json!({"total": 0});
    cloud
        .put(&path(9), wrong.clone())
        .send()
        .await
        .refused(404, "No resource provider with uuid");
    cloud.post(&path(9), wrong.clone()).send().await.expect(404);
    cloud
        .put(&format!("{}/VCPU", path(9)), wrong.clone())
        .send()
        .await
        .expect(404);
    cloud
        .put(&format!("{}/VCPU", path(1)), wrong)
        .send()
        .await
        .refused(400, "'resource_provider_generation' is a required");
    cloud.get(&path(9)).send().await.expect(404);
    cloud.delete(&path(9)).send().await.expect(404);
}

#[tokio::test]
async fn bodies_say_where_they_are_wrong() {
    let cloud = one_provider().await;
    let one = format!("{}/VCPU", path(1));
    for (key, value, said) in [
        (
            "total",
            json!(0),
            "Failed validating 'minimum' in schema['properties']['total']",
        ),
        (
            "total",
            json!(2147483648_u64),
            "2147483648 is greater than the maximum of 2147483647",
        ),
        ("total", json!(true), "true is not of type 'integer'"),
        ("total", json!(1.5), "1.5 is not of type 'integer'"),
        ("reserved", json!(-1), "-1 is less than the minimum of 0"),
        (
            "allocation_ratio",
            json!(1e39),
            "Failed validating 'maximum'",
        ),
        (
            "allocation_ratio",
            json!("x"),
            "'x' is not of type 'number'",
        ),
        ("allocation_ratio", json!(-1.0), "not negative"),
        ("cows", json!(1), "'cows' was unexpected"),
    ] {
        let mut body = json!({"total": 1, "resource_provider_generation": 0});
        body[key] = value;
        cloud.put(&one, body).send().await.refused(400, said);
    }
    let set =
        |inventories: Value| json!({"resource_provider_generation": 0, "inventories": inventories});
    cloud
        .put(&path(1), set(json!({"COWS": {"total": 1}})))
        .send()
        .await
        .refused(400, "Unknown resource class in inventory");
    cloud
        .put(&path(1), set(json!({"cows": 5})))
        .send()
        .await
        .refused(400, "No such resource class cows");
    cloud
        .put(&path(1), set(json!({"VCPU": {"total": 0}})))
        .send()
        .await
        .refused(400, "at /inventories/VCPU/total.");
    let stale = json!({"resource_provider_generation": 3, "inventories": {"cows": 5}});
    cloud.put(&path(1), stale).send().await.expect(409);
    cloud
        .put(&one, json!({"total": 1, "resource_provider_generation": 0}))
        .send()
        .await
        .refused(400, "No inventory record with resource class");
    cloud
        .get(&format!("{}/COWS", path(1)))
        .send()
        .await
        .refused(404, &format!("No inventory of class COWS for {}", uuid(1)));
}

#[tokio::test]
async fn deleting_all_inventories_came_with_1_5() {
    let cloud = one_provider().await;
    let old = cloud
        .delete(&path(1))
        .version("1.4")
        .send()
        .await
        .expect(405);
    assert_eq!(old.header("allow"), None);
    cloud
        .delete(&path(1))
        .version("1.5")
        .send()
        .await
        .expect(204);
    assert_eq!(
        cloud.generation(1).await,
        1,
        "deleting nothing is a write, too"
    );
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
        let ask = cloud.ask("PUT", &path).raw(body.as_bytes());
        let ask = ask.header("content-type", "application/json");
        let written = ask.send().await.expect(200).json();
        let written = &written["inventories"]["VCPU"];
        assert_eq!(written["total"], json!(5.0));
        assert_eq!(written["allocation_ratio"], echoed, "{given}");
        let kept = cloud.get(&path).send().await.expect(200).json();
        let kept = &kept["inventories"]["VCPU"];
        assert_eq!(kept["allocation_ratio"], read, "{given}");
    }
}
