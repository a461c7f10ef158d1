//! `POST what-if` predicts the answers that the cluster later gives to the same writes.

use std::collections::BTreeMap;

use http::Method;
use placement_client::{ApiRequest, CandidateQuery, Client, Inventory, NewProvider, NodeStatus};
use placement_tests::cluster::Cluster;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use uuid::Uuid;

const CLASSES: [&str; 4] = ["VCPU", "MEMORY_MB", "CUSTOM_GOLD", "CUSTOM_MISSING"];
const TRAITS: [&str; 3] = ["HW_CPU_X86_AVX2", "CUSTOM_FAST", "CUSTOM_MISSING"];

/// Random writes to few providers and consumers; many are refused.
struct Writes(SmallRng);

impl Writes {
    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all.choose(&mut self.0).expect("no list is empty")
    }

    fn number(&mut self, below: u64) -> u64 {
        self.0.random_range(0..below)
    }

    fn provider(&mut self) -> Uuid {
        Uuid::from_u128(0xa000_0000_0000_4000_8000_0000_0000_0000 + u128::from(self.number(5)))
    }

    fn consumer(&mut self) -> Uuid {
        Uuid::from_u128(0xc000_0000_0000_4000_8000_0000_0000_0000 + u128::from(self.number(4)))
    }

    fn claim(&mut self) -> Value {
        let generation = match self.number(4) {
            0 => json!(null),
            _ => json!(self.number(3)),
        };
        let mut allocations = json!({});
        for _ in 0..self.number(3) {
            let (class, amount) = (self.one_of(&CLASSES), self.number(6));
            allocations[self.provider().to_string()] = json!({ "resources": { class: amount } });
        }
        json!({
            "allocations": allocations, "consumer_generation": generation, "project_id": "p", "user_id": "u",
            "consumer_type": self.one_of(&["INSTANCE", "unknown", "small"]),
        })
    }

    fn inventory(&mut self) -> Value {
        json!({"total": self.number(9), "reserved": self.number(3), "max_unit": self.number(9) + 1})
    }

    fn change(&mut self) -> Value {
        let (provider, class, name) =
            (self.provider(), self.one_of(&CLASSES), self.one_of(&TRAITS));
        let of = |what: &str| format!("/resource_providers/{provider}/{what}");
        let generation = self.number(4);
        let (method, path, body) = match self.number(13) {
            0..3 => {
                let parent = match self.number(2) {
                    0 => json!(null),
                    _ => json!(self.provider()),
                };
                let name = format!("cmp-{}", self.number(6));
                let new = json!({"uuid": provider, "name": name, "parent_provider_uuid": parent});
                ("POST", "/resource_providers".to_owned(), new)
            }
            3 => (
                "DELETE",
                of("").trim_end_matches('/').to_owned(),
                json!(null),
            ),
            4 => ("DELETE", of(&format!("inventories/{class}")), json!(null)),
            5 | 6 => {
                let inventories = json!({ class: self.inventory(), "VCPU": self.inventory() });
                let body =
                    json!({"resource_provider_generation": generation, "inventories": inventories});
                ("PUT", of("inventories"), body)
            }
            7 => {
                let body = json!({"resource_provider_generation": generation, "traits": [name]});
                ("PUT", of("traits"), body)
            }
            8 => {
                if name.starts_with("CUSTOM") {
                    ("PUT", format!("/traits/{name}"), json!(null))
                } else {
                    ("PUT", format!("/resource_classes/{class}"), json!(null))
                }
            }
            9 => (
                "DELETE",
                format!("/allocations/{}", self.consumer()),
                json!(null),
            ),
            10 => {
                let (one, two) = (self.consumer(), self.consumer());
                let mut both = json!({});
                both[one.to_string()] = self.claim();
                both[two.to_string()] = self.claim();
                ("POST", "/allocations".to_owned(), both)
            }
            _ => (
                "PUT",
                format!("/allocations/{}", self.consumer()),
                self.claim(),
            ),
        };
        match body {
            Value::Null => json!({"method": method, "path": path}),
            body => json!({"method": method, "path": path, "body": body}),
        }
    }
}

/// Sends a write in the form of what-if. Returns the answer in the same form, without the request
/// id.
async fn written(client: &Client, change: &Value) -> Value {
    let text = |key: &str| change[key].as_str().unwrap();
    let method = Method::from_bytes(text("method").as_bytes()).unwrap();
    let mut request = ApiRequest::new(method, text("path")).header("accept", "application/json");
    if let Some(body) = change.get("body") {
        request = request.json(body);
    }
    let answer = client.request(request).await.unwrap();
    let body = answer.json::<Value>().unwrap_or_default();
    without_id(json!({"status": answer.status.as_u16(), "body": body}))
}

fn without_id(mut answered: Value) -> Value {
    for error in answered["body"]["errors"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        error.as_object_mut().unwrap().remove("request_id");
    }
    answered
}

/// Answer of what-if; asserts that the cluster is unchanged.
async fn what_if(cluster: &Cluster, body: &Value) -> Value {
    let before = cluster.statuses().await;
    let ask = ApiRequest::post("/placementd/v1/what-if").json(body);
    let found = cluster.client().fetch(ask).await.unwrap();
    let after = cluster.statuses().await;
    let state = |of: &[NodeStatus]| (of[0].last_log, of[0].applied, of[0].digest.clone());
    assert_eq!(state(&before), state(&after));
    found
}

#[tokio::test]
async fn what_if_predicts_the_answers_to_writes() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    let mut writes = Writes(SmallRng::seed_from_u64(1));
    let mut statuses = BTreeMap::<u64, usize>::new();
    for _ in 0..100 {
        let changes: Vec<_> = (0..8).map(|_| writes.change()).collect();
        let found = what_if(&cluster, &json!({"changes": changes})).await;
        for (index, change) in changes.iter().enumerate() {
            let answered = without_id(found["changes"][index].clone());
            assert_eq!(answered, written(&client, change).await, "{change}");
            *statuses
                .entry(answered["status"].as_u64().unwrap())
                .or_default() += 1;
        }
    }
    for status in [200, 201, 204, 400, 404, 409] {
        assert!(
            statuses.contains_key(&status),
            "{status} is not in {statuses:?}"
        );
    }
}

#[tokio::test]
async fn hosts_without_children_take_exactly_the_predicted_claims() {
    let cluster = Cluster::start(1).await.unwrap();
    let client = cluster.client();
    for (index, vcpus) in [7, 8, 3, 16].into_iter().enumerate() {
        let new = NewProvider::named(&format!("cmp-{index}"));
        let uuid = client.create_provider(&new).await.unwrap().uuid;
        let offer = [("VCPU", Inventory::with_total(vcpus).reserved(1))];
        client.replace_inventories(uuid, 0, offer).await.unwrap();
    }
    let body = json!({"ask": [{"fit": {"query": "resources=VCPU:3", "at_most": 1000}}]});
    let found = what_if(&cluster, &body).await;
    assert_eq!(
        found["answers"][0]["fit"],
        json!({"count": 9, "exact": true, "complete": true})
    );
    let query = CandidateQuery::resources(&[("VCPU", 3)]).limit(1);
    let mut claimed = 0;
    while let Some(candidate) = (client.allocation_candidates(&query).await.unwrap())
        .allocation_requests
        .first()
    {
        client
            .put_allocations(Uuid::new_v4(), &candidate.claim("p", "u"))
            .await
            .unwrap();
        claimed += 1;
    }
    assert_eq!(claimed, 9);
}
