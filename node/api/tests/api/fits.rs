//! How often named queries fit.

use placement_api::http::{ApiSettings, FitSection, check_fits};
use serde_json::{Value, json};

use crate::cloud::Cloud;

fn section(name: &str, query: &str) -> FitSection {
    FitSection {
        name: name.to_owned(),
        query: query.to_owned(),
    }
}

/// Three hosts with 8 CPUs each, and queries of flavors.
async fn cloud() -> Cloud {
    let cloud = Cloud::with(ApiSettings {
        fits: vec![
            section("small", "resources=VCPU:1"),
            section(
                "large",
                "resources=VCPU:5&required=!COMPUTE_STATUS_DISABLED",
            ),
            section("huge", "resources=VCPU:9"),
            section("gpu", "resources=CUSTOM_GPU:1"),
        ],
        ..ApiSettings::default()
    });
    for number in 1..=3 {
        cloud.provider(number, None).await;
        cloud.stock(number, "VCPU", 8).await;
    }
    cloud
}

fn fit(name: &str, level: &str, count: u64) -> Value {
    json!({"name": name, "level": level, "count": count, "exact": true, "complete": true})
}

#[tokio::test]
async fn named_queries_are_counted() {
    let cloud = cloud().await;
    let found = cloud.read("/placementd/v1/fits").await;
    let mut gpu = fit("gpu", "none", 0);
    gpu["unknown"] = json!("no such resource class CUSTOM_GPU");
    let expected = [
        fit("small", "some", 24),
        fit("large", "few", 3),
        fit("huge", "none", 0),
        gpu,
    ];
    assert_eq!(found["fits"], json!(expected));
    assert!(found["position"]["index"].is_string(), "{found}");
    // The counts are those of one after the other, each query by itself; nothing is claimed.
    cloud.claim(901, 1, "VCPU", 4).await.expect(204);
    let found = cloud.read("/placementd/v1/fits").await;
    assert_eq!(found["fits"][0], fit("small", "some", 20));
    assert_eq!(found["fits"][1], fit("large", "few", 2));
}

#[tokio::test]
async fn without_named_queries_the_list_is_empty() {
    let found = Cloud::new().read("/placementd/v1/fits").await;
    assert_eq!(found["fits"], json!([]));
    Cloud::new()
        .get("/placementd/v1/fits?name=small")
        .expect(400)
        .await;
}

#[test]
fn wrong_named_queries_are_refused() {
    let refused = |sections: &[FitSection]| check_fits(sections).unwrap_err().to_string();
    let right = section("small", "resources=VCPU:1");
    check_fits(std::slice::from_ref(&right)).unwrap();
    for (wrong, words) in [
        (section("", "resources=VCPU:1"), "1 to 255 bytes"),
        (section("a\nb", "resources=VCPU:1"), "control characters"),
        (section("none", ""), "has no query"),
        (section("odd", "resources=VCPU"), "\"odd\""),
        (section("odd", "resources=VCPU:0"), "\"odd\""),
        (section("odd", "resource=VCPU:1"), "resource"),
    ] {
        let error = refused(&[right.clone(), wrong]);
        assert!(error.contains(words), "{words}: {error}");
    }
    let twice = refused(&[right.clone(), right]);
    assert!(twice.contains("is given twice"), "{twice}");
    let many: Vec<_> = (0..101)
        .map(|number| section(&number.to_string(), "resources=VCPU:1"))
        .collect();
    assert!(refused(&many).contains("at most 100"));
}
