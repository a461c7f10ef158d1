//! What clients do while they are measured.

use std::time::Duration;

use placement_client::{ApiRequest, Claim, Client};
use placement_tests::load::{self, Measured};
use uuid::Uuid;

pub(super) const WARM_UP: Duration = Duration::from_millis(500);

/// `PUT /allocations`, each for a new consumer, by so many at once, spread over the clients.
pub(super) async fn writes(
    clients: &[Client],
    providers: &[Uuid],
    count: usize,
    duration: Duration,
) -> Measured {
    let claim = |client: Client, provider| async move {
        let claim = Claim::by("project", "user").and(provider, &[("VCPU", 1), ("MEMORY_MB", 2)]);
        client.put_allocations(Uuid::new_v4(), &claim).await
    };
    by_each_on(clients, providers, count, duration, claim).await
}

/// `GET /resource_providers/{uuid}/inventories`.
pub(super) async fn reads(
    clients: &[Client],
    providers: &[Uuid],
    count: usize,
    duration: Duration,
) -> Measured {
    let read = |client: Client, provider| async move {
        let path = format!("/resource_providers/{provider}/inventories");
        client.call(ApiRequest::get(&path)).await.map(drop)
    };
    by_each_on(clients, providers, count, duration, read).await
}

/// The providers in turn.
async fn by_each_on<F, Fut>(
    clients: &[Client],
    providers: &[Uuid],
    count: usize,
    duration: Duration,
    work: F,
) -> Measured
where
    F: Fn(Client, Uuid) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<(), placement_client::Error>> + Send,
{
    let providers = providers.to_vec();
    let work = move |client, nth: usize| work(client, providers[nth % providers.len()]);
    by_each(clients, count, duration, work).await
}

async fn by_each<F, Fut>(clients: &[Client], count: usize, duration: Duration, work: F) -> Measured
where
    F: Fn(Client, usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<(), placement_client::Error>> + Send,
{
    let clients = clients.to_vec();
    load::run(count, WARM_UP, duration, move |nth| {
        work(clients[nth % clients.len()].clone(), nth)
    })
    .await
}
