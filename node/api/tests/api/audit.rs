//! Audit records: for every outcome of a request, and that clients cannot forge them.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use placement_api::http::ApiSettings;
use placement_audit::{Audit, AuditSection, Target};
use placement_base::backend::Unavailable;
use placement_base::world::RealWorld;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cloud::{Ask, Cloud, uuid};

struct Story {
    cloud: Cloud,
    audit: Audit,
    directory: TempDir,
}

impl Story {
    fn begin() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let section = AuditSection {
            to: Target::File,
            file: directory.path().join("audit.log"),
            ..AuditSection::default()
        };
        let world = Arc::new(RealWorld::default());
        let audit = Audit::open(&section, 1, world.clone()).unwrap();
        Self {
            cloud: Cloud::audited(audit.clone(), world, ApiSettings::default()),
            audit,
            directory,
        }
    }

    async fn text(&self) -> String {
        self.audit.finish().await;
        fs::read_to_string(self.directory.path().join("audit.log")).unwrap()
    }

    async fn records(&self) -> Vec<Value> {
        let text = self.text().await;
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    async fn last(&self) -> Value {
        self.records().await.pop().unwrap()
    }
}

async fn walk_away(ask: Ask) {
    let patience = Duration::from_millis(50);
    assert!(tokio::time::timeout(patience, ask.send()).await.is_err());
}

#[tokio::test]
async fn reads_that_are_answered_leave_no_record() {
    let story = Story::begin();
    story.cloud.get("/traits").expect(200).await;
    story.cloud.get("/resource_providers/x").expect(404).await;
    story.cloud.ask("OPTIONS", "/traits").send().await;
    assert_eq!(story.records().await, [json!(null); 0]);
}

/// The answer shows names, projects and users of the whole cloud.
#[tokio::test]
async fn snapshot_of_everything_is_recorded() {
    let story = Story::begin();
    story.cloud.provider(1, None).await;
    let events = "/placementd/v1/events?follow=false";
    let after = story.cloud.get(events).expect(200).await;
    let record = story.last().await;
    assert_eq!(
        (&record["operation"], &record["outcome"], &record["user"]),
        (
            &json!("placementd:events"),
            &json!("unchanged"),
            &json!("admin")
        )
    );
    let read = story.cloud.get(events).token(None).operator(Some("alice"));
    read.expect(200).await;
    let record = story.last().await;
    assert_eq!(record["user"], "operator:alice");
    let count = story.records().await.len();
    // An answer with only the changes since then is not recorded.
    let token = after.header("placement-index").unwrap().to_owned();
    let since = format!("{events}&after={token}");
    story.cloud.get(&since).expect(200).await;
    assert_eq!(story.records().await.len(), count);
}

/// The changes since the floor have the whole content if the node has been running since the
/// cluster was created.
#[tokio::test]
async fn stream_of_all_changes_is_recorded() {
    let story = Story::begin();
    for number in 1..=8 {
        story.cloud.provider(number, None).await;
    }
    let history = story.cloud.read("/placementd/v1/history").await;
    let oldest = history["oldest"].as_str().unwrap();
    let written: Vec<_> = (history["history"].as_array().unwrap().iter())
        .map(|entry| entry["index"].as_str().unwrap())
        .collect();
    for (after, is_recorded) in [
        (oldest, true),
        // The first entries may be of another partition.
        (written[7], true),
        (written[5], true),
        (written[2], false),
        (written[0], false),
    ] {
        let count = story.records().await.len();
        let events = "/placementd/v1/events?follow=false";
        let by_query = story.cloud.get(&format!("{events}&after={after}"));
        let by_header = story.cloud.get(events).header("last-event-id", after);
        for ask in [by_query, by_header] {
            ask.expect(200).await;
        }
        let records = story.records().await;
        let expected = count + if is_recorded { 2 } else { 0 };
        assert_eq!(records.len(), expected, "after {after}");
        if is_recorded {
            assert_eq!(records[count]["operation"], "placementd:events");
        }
    }
}

#[tokio::test]
async fn record_names_the_operator_despite_headers() {
    let story = Story::begin();
    let name = "n".repeat(80);
    for (shown, recorded) in [
        (None, "operator"),
        (Some("admin-alice"), "operator:admin-alice"),
        (Some(&*name), &format!("operator:{}", &name[..55])),
    ] {
        let ask = story
            .cloud
            .put("/traits/CUSTOM_A", json!({}))
            .operator(shown)
            .token(Some("mallory"))
            .header("x-roles", "none")
            .header("x-user-id", "mallory");
        assert!(ask.send().await.status.is_success());
        let last = story.last().await;
        assert_eq!(
            (&last["user"], &last["listener"]),
            (&json!(recorded), &json!("admin"))
        );
        let roles = json!(["admin", "service", "placement_reader"]);
        assert_eq!(last["roles"], roles);
    }
}

#[tokio::test]
async fn each_outcome_of_a_write_is_recorded() {
    let story = Story::begin();
    let cloud = &story.cloud;
    cloud.provider(1, None).await;
    assert_eq!(story.last().await["outcome"], "committed");
    cloud
        .post("/resource_providers", json!({ "title": 1 }))
        .expect(400)
        .await;
    let refused = story.last().await;
    assert_eq!(
        (&refused["outcome"], &refused["status"]),
        (&json!("refused"), &json!(400))
    );
    assert!(
        refused.get("index").is_none(),
        "it never reached the log: {refused}"
    );
    cloud
        .delete(&format!("/resource_providers/{}", uuid(7)))
        .expect(404)
        .await;
    let refused = story.last().await;
    assert_eq!(refused["outcome"], "refused");
    assert!(refused["index"].is_u64(), "the model decided it: {refused}");

    let reason = "no leader is known";
    let path = format!("/resource_providers/{}", uuid(1));
    for (down, outcome) in [
        (Unavailable::nothing_committed(reason), "refused"),
        (Unavailable::outcome_unknown(reason), "unknown"),
    ] {
        cloud.memory.set_down(Some(down));
        cloud.delete(&path).expect(503).await;
        let record = story.last().await;
        assert_eq!(
            (&record["outcome"], &record["status"]),
            (&json!(outcome), &json!(503))
        );
        assert!(
            record["code"]
                .as_str()
                .unwrap()
                .starts_with("placement.unavailable.")
        );
    }
}

#[tokio::test]
async fn a_write_whose_client_disconnects_is_recorded() {
    let story = Story::begin();
    story.cloud.memory.hang();
    walk_away(
        story
            .cloud
            .delete(&format!("/resource_providers/{}", uuid(1))),
    )
    .await;
    let record = story.last().await;
    assert_eq!(
        record["outcome"], "unknown",
        "it was sent to the leader: {record}"
    );
    assert!(record.get("status").is_none());
    assert_eq!(
        (&record["user"], &record["resources"]),
        (&json!("admin"), &json!([uuid(1)]))
    );
    // This write reads the state before it parses its body.
    let body = json!({ "resource_class": "VCPU", "total": "many" });
    walk_away(story.cloud.post(
        &format!("/resource_providers/{}/inventories", uuid(1)),
        body,
    ))
    .await;
    assert_eq!(story.last().await["outcome"], "abandoned");
    walk_away(story.cloud.get("/resource_providers")).await;
    assert_eq!(story.records().await.len(), 2, "reads are not recorded");
}

#[tokio::test]
async fn records_of_reshape_and_claim_name_providers_and_consumers() {
    let story = Story::begin();
    let cloud = &story.cloud;
    cloud.provider(1, None).await;
    cloud.stock(1, "VCPU", 8).await;
    cloud.claim(2, 1, "VCPU", 1).await.expect(204);
    let claim = story.last().await;
    assert_eq!(claim["resources"], json!([uuid(2)]), "once: {claim}");
    assert_eq!(claim["operation"], "placement:allocations:update");
    let generation = cloud.generation(1).await;
    let body = json!({
        "inventories": { uuid(1): {
            "resource_provider_generation": generation, "inventories": { "VCPU": { "total": 9 } },
        }},
        "allocations": { uuid(2): {
            "allocations": { uuid(1): { "resources": { "VCPU": 2 } } },
            "project_id": "p", "user_id": "u", "consumer_generation": 1, "consumer_type": "INSTANCE",
        }},
    });
    let reshaped = cloud.post("/reshaper", body).token(Some("nova"));
    reshaped.header("x-roles", "service").expect(204).await;
    let record = story.last().await;
    assert_eq!(record["resources"], json!([uuid(1), uuid(2)]));
    assert_eq!(record["roles"], json!(["service"]));
}

#[tokio::test]
async fn records_are_bounded_and_without_secrets() {
    let story = Story::begin();
    // A Keystone token that a client sends by mistake to a node with `noauth2`.
    let token: &'static str = Box::leak("gAAAAABm".repeat(24).into_boxed_str());
    let ask = story
        .cloud
        .post("/traits", json!({ "password": "in-the-body" }))
        .token(Some(token))
        .header("x-service-token", token)
        .header("x-roles", &"r,".repeat(9_000))
        .header("cookie", "in-a-cookie");
    ask.send().await;
    let path = format!("/traits/{}", "x".repeat(30_000));
    story
        .cloud
        .put(&path, json!({}))
        .token(Some("\"}{"))
        .send()
        .await;
    let text = story.text().await;
    assert_eq!(text.lines().count(), 2, "{text}");
    for secret in ["gAAAAABm", "in-the-body", "in-a-cookie"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(text.lines().all(|line| line.len() < 8 * 1024), "{text}");
}

/// Claims are the only one of this service's own routes that is recorded as a write.
#[tokio::test]
async fn claim_is_recorded_with_its_consumers() {
    let story = Story::begin();
    story.cloud.provider(1, None).await;
    story.cloud.stock(1, "VCPU", 8).await;
    let body = json!({
        "consumers": {uuid(50): {"project_id": "p", "user_id": "u", "consumer_generation": null}},
        "choices": [{uuid(50): {"allocations": {uuid(1): {"resources": {"VCPU": 8}}}}}],
    });
    let claim = |body: &Value| story.cloud.post("/placementd/v1/claims", body.clone());
    claim(&body).expect(200).await;
    claim(&body).expect(200).await;
    let mut other = body.clone();
    other["consumers"] = json!({uuid(51): body["consumers"][uuid(50)]});
    other["choices"] = json!([{uuid(51): body["choices"][0][uuid(50)]}]);
    claim(&other).expect(409).await;
    let what_if =
        json!({"changes": [{"method": "POST", "path": "/placementd/v1/claims", "body": other}]});
    let asked = story.cloud.post("/placementd/v1/what-if", what_if);
    asked.expect(200).await;
    let records = story.records().await;
    let claims: Vec<_> = (records.iter())
        .filter(|record| record["operation"] == "placementd:claims:create")
        .collect();
    let outcomes: Vec<_> = claims.iter().map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["committed", "unchanged", "refused"]);
    assert_eq!(claims[0]["resources"], json!([uuid(50)]));
    assert_eq!(claims[2]["code"], "placement.claim.no_room");
}
