//! Typed methods of `/resource_providers/{uuid}/aggregates`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// The aggregates of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAggregates {
    /// Generation of the provider with these aggregates.
    pub resource_provider_generation: u64,
    /// UUIDs of the aggregates.
    pub aggregates: Vec<Uuid>,
}

impl Client {
    /// `PUT /resource_providers/{uuid}/aggregates`: replaces all aggregates.
    pub async fn replace_provider_aggregates(
        &self,
        provider: Uuid,
        generation: u64,
        aggregates: impl IntoIterator<Item = Uuid>,
    ) -> Result<ProviderAggregates, Error> {
        let body = ProviderAggregates {
            resource_provider_generation: generation,
            aggregates: aggregates.into_iter().collect(),
        };
        let path = format!("/resource_providers/{provider}/aggregates");
        self.fetch(ApiRequest::put(&path).json(&body)).await
    }
}
