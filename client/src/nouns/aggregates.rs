//! `/resource_providers/{uuid}/aggregates`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// The aggregates one provider belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAggregates {
    /// The provider's generation that they belong to.
    pub resource_provider_generation: u64,
    /// Uuids.
    pub aggregates: Vec<Uuid>,
}

impl Client {
    /// `PUT /resource_providers/{uuid}/aggregates`: these and no others.
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
