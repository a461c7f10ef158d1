//! A host with processors, and claims and holds on it.

use placement_client::claims::{Assignment, ClaimRequest, Claimant};
use placement_client::holds::NewHold;
use placement_client::upstream::Allocation;
use placement_client::{ApiRequest, Claim, Client, Error, Inventory, NewProvider};
use serde_json::Value;
use uuid::Uuid;

use crate::wait::{PATIENCE, until_ok};

/// A due time in the past, with which a hold is overdue from the start.
pub const PAST_DUE: &str = "2020-01-01T00:00:00Z";
/// A due time that no test reaches.
pub const FUTURE_DUE: &str = "2999-12-31T00:00:00Z";

/// Creates a provider of this name; waits for a leader.
///
/// # Panics
/// If the provider is not created.
pub async fn create(client: &Client, name: &str) -> Uuid {
    let uuid = Uuid::new_v4();
    let client = client.clone().with_patience(PATIENCE);
    let new = NewProvider::named(name).uuid(uuid);
    let created = client.create_provider(&new).await;
    created.expect("a cluster with a leader");
    uuid
}

/// Creates a provider with more processors than a test claims.
///
/// # Panics
/// If the provider is not created.
pub async fn with_processors(client: &Client) -> Uuid {
    let host = create(client, "host").await;
    let offer = [("VCPU", Inventory::with_total(1_000_000_000))];
    let stocked = client.replace_inventories(host, 0, offer).await;
    stocked.expect("a cluster with a leader");
    host
}

/// Claims one processor for a new consumer.
///
/// # Errors
/// If the claim fails.
pub async fn claim(client: &Client, host: Uuid) -> Result<Uuid, Error> {
    let consumer = Uuid::new_v4();
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
    client.put_allocations(consumer, &claim).await?;
    Ok(consumer)
}

/// Holds one processor for another consumer until this time, as RFC 3339. Returns the consumer of
/// the hold.
///
/// # Panics
/// If the claim fails.
pub async fn hold(client: &Client, host: Uuid, due: &str) -> Uuid {
    let holder = Uuid::new_v4();
    let claimant = Claimant {
        project_id: "project".to_owned(),
        user_id: "user".to_owned(),
        ..Claimant::default()
    };
    let allocation = Allocation {
        resources: [("VCPU".to_owned(), 1)].into(),
        ..Allocation::default()
    };
    let choice = Assignment {
        allocations: [(host.to_string(), allocation)].into(),
    };
    let claim = ClaimRequest {
        consumers: [(holder.to_string(), claimant)].into(),
        choices: Some(vec![[(holder.to_string(), choice)].into()]),
        hold: Some(NewHold {
            kept_for: vec![Uuid::new_v4().to_string()],
            due: Some(due.to_owned()),
            ..NewHold::default()
        }),
        ..ClaimRequest::default()
    };
    until_ok("a hold", async || client.claim(&claim).await).await;
    holder
}

/// Claims one processor for a new consumer as Nova does, with Nova's own request id.
///
/// # Panics
/// If the claim fails.
pub async fn claim_for_request(client: &Client, host: Uuid, request_id: &str) -> Uuid {
    let consumer = Uuid::new_v4();
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
    let asked = ApiRequest::put(&format!("/allocations/{consumer}")).json(&claim);
    let answer = client.call(asked.header("x-openstack-request-id", request_id));
    answer.await.expect("there is room");
    consumer
}

/// Id of the last request that changed a consumer's allocations, according to this client's node.
///
/// # Panics
/// If the node does not show the change.
pub async fn request_of(client: &Client, consumer: Uuid) -> Value {
    let path = format!("/placementd/v1/history?consumer={consumer}");
    let mut page = path.clone();
    loop {
        let history: Result<Value, _> = client.fetch(ApiRequest::get(&page)).await;
        let history = history.expect("a node with change history");
        if let Some(entry) = history["history"].get(0) {
            return entry["request_id"].clone();
        }
        // On a busy machine a page can end before it has an entry.
        let next = history["next"].as_str();
        let next = next.expect("the change is in the history");
        page = format!("{path}&before={next}");
    }
}
