//! Whatever a client sends, the answer is never a 5xx.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cloud::{Cloud, uuid};

fn path() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        Just("resource_providers".to_owned()),
        Just("resource_classes".to_owned()),
        Just("traits".to_owned()),
        Just("inventories".to_owned()),
        Just("allocations".to_owned()),
        Just("aggregates".to_owned()),
        Just("usages".to_owned()),
        Just("reshaper".to_owned()),
        Just("allocation_candidates".to_owned()),
        Just(uuid(1)),
        Just("VCPU".to_owned()),
        Just("CUSTOM_X".to_owned()),
        "[a-zA-Z0-9_%]{0,6}",
    ];
    proptest::collection::vec(segment, 0..4).prop_map(|parts| {
        let path = format!("/{}", parts.join("/"));
        // A lone percent sign is no URI at all.
        path.replace('%', "%25")
    })
}

fn body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        (0_i64..10).prop_map(Value::from),
        "[A-Za-z0-9_ é\\n]{0,12}".prop_map(Value::from),
        Just(json!(uuid(1))),
    ];
    let key = prop_oneof![
        Just("name".to_owned()),
        Just("uuid".to_owned()),
        Just("parent_provider_uuid".to_owned()),
        Just("resource_provider_generation".to_owned()),
        Just("inventories".to_owned()),
        Just("allocations".to_owned()),
        Just("resources".to_owned()),
        Just("traits".to_owned()),
        Just("aggregates".to_owned()),
        Just("total".to_owned()),
        Just("allocation_ratio".to_owned()),
        Just("project_id".to_owned()),
        Just("user_id".to_owned()),
        Just("consumer_generation".to_owned()),
        Just("consumer_type".to_owned()),
        Just("mappings".to_owned()),
        Just("VCPU".to_owned()),
        Just(uuid(1)),
        "[A-Za-z_]{0,5}",
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(key.clone(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_request_is_answered_with_a_server_error(
        method in "(GET|PUT|POST|DELETE|PATCH|HEAD)",
        path in path(),
        query in "([a-z_]{1,12}[0-9]?=[A-Z0-9:,!_in]{0,10}&){0,3}",
        version in "(1\\.[0-9]{1,2}|latest)",
        accept in "(application/json|\\*/\\*|text/html|[a-z/*;=,.0-9]{0,12})",
        body in body(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let cloud = Cloud::new();
            cloud.provider(1, None).await;
            cloud.stock(1, "VCPU", 8).await;
            let ask = cloud
                .ask(&method, &format!("{path}?{query}"))
                .version(&version)
                .header("accept", &accept)
                .header("x-roles", "admin,service")
                .body(body);
            let answer = ask.send().await;
            assert!(answer.status.as_u16() < 500, "{} {}", answer.status, answer.text());
        });
    }
}
