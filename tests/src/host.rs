//! A host with processors, and claims on it.

use placement_client::{Claim, Client, Error, Inventory, NewProvider};
use uuid::Uuid;

use crate::wait::PATIENCE;

/// Creates a provider of this name; waits for a leader.
///
/// # Panics
/// If it is not created.
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
/// If it is not created.
pub async fn with_processors(client: &Client) -> Uuid {
    let host = create(client, "host").await;
    let offer = [("VCPU", Inventory::of(1_000_000_000))];
    let stocked = client.replace_inventories(host, 0, offer).await;
    stocked.expect("a cluster with a leader");
    host
}

/// A new consumer of one processor.
///
/// # Errors
/// What the client says.
pub async fn claim(client: &Client, host: Uuid) -> Result<Uuid, Error> {
    let consumer = Uuid::new_v4();
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 1)]);
    client.put_allocations(consumer, &claim).await?;
    Ok(consumer)
}
