use serde_json::json;

use crate::cloud::{Cloud, uuid};

fn of(number: u64) -> String {
    format!("/resource_providers/{}/traits", uuid(number))
}

#[tokio::test]
async fn a_custom_trait_is_made_found_and_deleted() {
    let cloud = Cloud::new();
    let path = "/traits/CUSTOM_FAST";
    let made = cloud.ask("PUT", path).send().await.expect(201);
    assert_eq!(
        made.header("location"),
        Some("http://cloud.example/traits/CUSTOM_FAST")
    );
    assert!(made.header("last-modified").is_some());
    cloud.ask("PUT", path).send().await.expect(204);
    let found = cloud
        .get(path)
        .header("accept", "text/plain")
        .send()
        .await
        .expect(204);
    assert_eq!(found.header("content-type"), None);
    cloud.delete(path).send().await.expect(204);
    let gone = cloud
        .get(path)
        .send()
        .await
        .refused(404, "No such trait(s): CUSTOM_FAST");
    assert_eq!(gone.header("vary"), Some("openstack-api-version"));
    cloud
        .delete("/traits/HW_CPU_X86_AVX2")
        .send()
        .await
        .refused(400, "Cannot delete standard trait");
}

#[tokio::test]
async fn names_that_cannot_be_are_refused() {
    let cloud = Cloud::new();
    for name in ["FAST", "CUSTOM_", "CUSTOM_fast", "CUSTOM_A-B"] {
        let said = "start with the prefix \"CUSTOM_\"";
        cloud
            .ask("PUT", &format!("/traits/{name}"))
            .send()
            .await
            .refused(400, said);
    }
}

#[tokio::test]
async fn lists_are_filtered_by_name_and_use() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    for name in ["CUSTOM_A", "CUSTOM_AB", "CUSTOM_B"] {
        cloud
            .ask("PUT", &format!("/traits/{name}"))
            .send()
            .await
            .expect(201);
    }
    let body = json!({"traits": ["CUSTOM_B"], "resource_provider_generation": 0});
    cloud.put(&of(1), body).send().await.expect(200);
    for (query, expected) in [
        ("name=startswith:CUSTOM_A", json!(["CUSTOM_A", "CUSTOM_AB"])),
        ("name=startswith:custom_a", json!(["CUSTOM_A", "CUSTOM_AB"])),
        ("name=startswith:CUSTOM%25B", json!([])),
        ("name=startswith:CUST_M", json!([])),
        ("name=startswith:CUSTOM_%C3%A9", json!([])),
        (
            "name=in:CUSTOM_B,CUSTOM_A,NOPE",
            json!(["CUSTOM_A", "CUSTOM_B"]),
        ),
        ("associated=TRUE", json!(["CUSTOM_B"])),
        (
            "name=startswith:CUSTOM&associated=false",
            json!(["CUSTOM_A", "CUSTOM_AB"]),
        ),
    ] {
        let list = cloud
            .get(&format!("/traits?{query}"))
            .send()
            .await
            .expect(200)
            .json();
        assert_eq!(list["traits"], expected, "{query}");
    }
    let all = cloud
        .get("/traits?name=foo:X")
        .send()
        .await
        .expect(200)
        .json();
    assert!(all["traits"].as_array().unwrap().len() > 300);
    cloud
        .get("/traits?name=X")
        .send()
        .await
        .refused(400, "Badly formatted name parameter");
    cloud
        .get("/traits?associated=maybe")
        .send()
        .await
        .refused(400, "only accepts");
    cloud
        .get("/traits?cows=1")
        .send()
        .await
        .refused(400, "Invalid query string parameters");
}

#[tokio::test]
async fn a_provider_gets_and_loses_traits() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    let set = |generation: i64, traits: &[&str]| {
        cloud.put(
            &of(1),
            json!({"traits": traits, "resource_provider_generation": generation}),
        )
    };
    let answer = set(0, &["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX2"])
        .send()
        .await
        .expect(200)
        .json();
    assert_eq!(
        answer,
        json!({"traits": ["HW_CPU_X86_AVX2"], "resource_provider_generation": 1})
    );
    set(1, &["HW_CPU_X86_AVX2"]).send().await.expect(200);
    assert_eq!(
        cloud.generation(1).await,
        1,
        "what changes nothing raises nothing"
    );
    set(0, &["nope"])
        .send()
        .await
        .refused(409, "Please update the generation")
        .code("placement.concurrent_update");
    set(1, &["nope", "NOPE"])
        .send()
        .await
        .refused(400, "No such trait");
    cloud
        .delete("/traits/HW_CPU_X86_AVX2")
        .send()
        .await
        .expect(400);
    cloud.delete(&of(1)).send().await.expect(204);
    assert_eq!(cloud.get(&of(1)).send().await.json()["traits"], json!([]));
    let both_wrong = cloud.put(&of(9), json!({"traits": "x"})).send().await;
    both_wrong.refused(400, "JSON does not validate");
    cloud
        .put(
            &of(9),
            json!({"traits": [], "resource_provider_generation": 0}),
        )
        .send()
        .await
        .expect(404);
    cloud.get(&of(9)).send().await.expect(404);
}

#[tokio::test]
async fn a_trait_in_use_stays() {
    let cloud = Cloud::new();
    cloud.provider(1, None).await;
    cloud
        .ask("PUT", "/traits/CUSTOM_A")
        .send()
        .await
        .expect(201);
    let body = json!({"traits": ["CUSTOM_A"], "resource_provider_generation": 0});
    cloud.put(&of(1), body).send().await.expect(200);
    cloud
        .delete("/traits/CUSTOM_A")
        .send()
        .await
        .refused(409, "The trait CUSTOM_A is in use by a resource provider.");
}

#[tokio::test]
async fn traits_came_with_1_6() {
    let cloud = Cloud::new();
    for (method, path) in [
        ("GET", "/traits".to_owned()),
        ("PUT", "/traits/CUSTOM_A".to_owned()),
        ("GET", of(1)),
    ] {
        let old = cloud
            .ask(method, &path)
            .version("1.5")
            .send()
            .await
            .expect(404);
        assert_eq!(old.header("vary"), Some("openstack-api-version"));
    }
}
