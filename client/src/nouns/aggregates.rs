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
    /// `GET /resource_providers/{uuid}/aggregates`.
    pub async fn provider_aggregates(&self, provider: Uuid) -> Result<ProviderAggregates, Error> {
        self.read(&path(provider)).await
    }

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
        let request = ApiRequest::put(&path(provider)).json(&body);
        self.fetch(request).await
    }
}

fn path(provider: Uuid) -> String {
    format!("/resource_providers/{provider}/aggregates")
}
