//! Reads of an earlier state (`Placement-As-Of`).

use serde_json::json;

use crate::cloud::{Answer, Cloud, uuid};

const AS_OF: &str = "placement-as-of";

/// Two hosts created one after the other, and the answers to the writes.
async fn hosts() -> (Cloud, Vec<Answer>) {
    let cloud = Cloud::new();
    let mut answers = Vec::new();
    for number in 1..=2 {
        cloud.provider(number, None).await;
        let path = format!("/resource_providers/{}/inventories", uuid(number));
        let stock = json!({"resource_class": "VCPU", "total": 8});
        answers.push(cloud.post(&path, stock).expect(201).await);
    }
    answers.push(cloud.claim(900, 1, "VCPU", 3).await.expect(204));
    answers.push(
        cloud
            .delete(&format!("/allocations/{}", uuid(900)))
            .expect(204)
            .await,
    );
    (cloud, answers)
}

fn token(answer: &Answer) -> String {
    answer.header("placement-index").unwrap().to_owned()
}

async fn names(cloud: &Cloud, as_of: &str) -> Vec<String> {
    let read = cloud.get("/resource_providers").header(AS_OF, as_of);
    let answer = read.expect(200).await;
    let providers = answer.json()["resource_providers"].clone();
    let names = providers.as_array().unwrap().iter();
    names
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn every_get_reads_the_requested_moment() {
    let (cloud, answers) = hosts().await;
    let [first, second, claimed, freed] = [0, 1, 2, 3].map(|which| token(&answers[which]));
    assert_eq!(names(&cloud, "1.1").await, [""; 0]);
    assert_eq!(names(&cloud, &first).await, ["provider 1"]);
    assert_eq!(names(&cloud, &second).await, ["provider 1", "provider 2"]);

    let used = async |as_of: &str| {
        let path = format!("/resource_providers/{}/usages", uuid(1));
        let answer = cloud.get(&path).header(AS_OF, as_of).expect(200).await;
        assert_eq!(token(&answer), as_of);
        assert_eq!(answer.header("placement-staleness"), Some("unknown"));
        answer.json()["usages"]["VCPU"].as_u64().unwrap()
    };
    assert_eq!(used(&second).await, 0);
    assert_eq!(used(&claimed).await, 3);
    assert_eq!(used(&freed).await, 0);

    let candidates = "/allocation_candidates?resources=VCPU:6";
    let found = cloud
        .get(candidates)
        .header(AS_OF, &claimed)
        .expect(200)
        .await
        .json()["allocation_requests"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(found, 1, "host 1 has five left");
    // An explanation holds its permit while it waits for the permit to read the earlier state.
    let explain = candidates.replace("/allocation_candidates", "/placementd/v1/explain");
    let explained = cloud.get(&explain).header(AS_OF, &claimed).expect(200);
    assert_eq!(explained.await.json()["with_candidates"], 1);
    // The current state is unchanged.
    assert_eq!(
        cloud.read("/resource_providers").await["resource_providers"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn time_means_the_last_entry_that_is_not_later() {
    let (cloud, answers) = hosts().await;
    let history = cloud.read("/placementd/v1/history").await;
    let entries = history["history"].as_array().unwrap();
    for entry in entries {
        let at = entry["at"].as_str().unwrap();
        let read = cloud.get("/resource_providers").header(AS_OF, at);
        let stands = token(&read.expect(200).await);
        // Several entries may have the same timestamp.
        let same: Vec<_> = entries
            .iter()
            .filter(|other| other["at"] == entry["at"])
            .map(|other| other["index"].as_str().unwrap())
            .collect();
        assert_eq!(Some(&*stands), same.first().copied());
    }
    let last = token(answers.last().unwrap());
    let late = cloud.get("/traits").header(AS_OF, "9999-01-01T00:00:00Z");
    assert_eq!(token(&late.expect(200).await), last);
    let early = cloud
        .get("/resource_providers")
        .header(AS_OF, "1999-01-01T00:00:00Z")
        .expect(200)
        .await;
    assert_eq!(token(&early), "1.0");
}

#[tokio::test]
async fn expired_moment_is_gone() {
    let (cloud, answers) = hosts().await;
    let second = token(&answers[1]);
    let index = second.split_once('.').unwrap().1;
    cloud.memory.keep_after(index.parse().unwrap());
    assert_eq!(names(&cloud, &second).await.len(), 2);
    for moment in ["1.2", "1999-01-01T00:00:00Z"] {
        let read = cloud.get("/resource_providers").header(AS_OF, moment);
        let gone = read
            .refused(410, &format!("after {second}"))
            .await
            .code("placement.as_of.gone");
        let error = &gone.json()["errors"][0];
        assert_eq!(error["oldest"], second);
        assert_eq!(
            names(&cloud, error["oldest_at"].as_str().unwrap())
                .await
                .len(),
            2
        );
    }
}

#[tokio::test]
async fn moment_that_expires_during_the_read_is_gone() {
    let (cloud, answers) = hosts().await;
    let [first, claimed] = [0, 2].map(|which| token(&answers[which]));
    let (_, index) = claimed.split_once('.').unwrap();
    for moment in [&*first, "1999-01-01T00:00:00Z"] {
        cloud.memory.keep_after_next_page(index.parse().unwrap());
        let read = cloud.get("/resource_providers").header(AS_OF, moment);
        let gone = read.refused(410, &format!("after {claimed}")).await;
        gone.code("placement.as_of.gone");
    }
}

#[tokio::test]
async fn moment_outside_this_history_is_refused() {
    let (cloud, _) = hosts().await;
    let ask = |as_of: &str| cloud.get("/traits").header(AS_OF, as_of);
    for wrong in ["yesterday", "7", "1.x", "2026-11-27"] {
        let refused = ask(wrong).refused(400, "Placement-As-Of").await;
        refused.code("placement.consistency.bad_value");
    }
    ask("7.1").expect(412).await;
    ask("1.99").expect(503).await;
    let write = cloud.post("/resource_providers", json!({"name": "a"}));
    write.header(AS_OF, "1.1").refused(400, "is for GET").await;
    for path in ["events", "history"] {
        let ask = cloud
            .get(&format!("/placementd/v1/{path}"))
            .header(AS_OF, "1.1");
        ask.refused(400, "=TOKEN").await;
    }
}

#[tokio::test]
async fn an_earlier_moment_needs_the_rule_of_history_too() {
    let (cloud, answers) = hosts().await;
    let moment = token(&answers[0]);
    // With default rules a reader may see the current usage of its own project.
    let path = "/usages?project_id=readers";
    let ask = |role: &str| {
        let ask = cloud.get(path).token(Some("rob:readers"));
        ask.header("x-roles", role)
    };
    ask("reader").expect(200).await;
    let refused = ask("reader").header(AS_OF, &moment).send().await;
    refused.refused(403, "placementd:history");
    for role in ["admin", "service", "placement_reader"] {
        ask(role).header(AS_OF, &moment).expect(200).await;
    }
}

#[tokio::test]
async fn as_of_is_refused_on_routes_without_state() {
    let (cloud, answers) = hosts().await;
    let moment = token(&answers[0]);
    for path in ["/", "/placementd/v1", "/placementd/v1/searches"] {
        cloud.get(path).expect(200).await;
        let asked = cloud.get(path).header(AS_OF, &moment);
        asked
            .refused(400, "Placement-As-Of is not supported on this path")
            .await;
    }
}
