//! Typed methods of `/traits` and `/resource_providers/{uuid}/traits`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::{ApiRequest, encode};

/// The traits of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderTraits {
    /// Generation of the provider with these traits.
    pub resource_provider_generation: u64,
    /// Names of the traits.
    pub traits: BTreeSet<String>,
}

impl Client {
    /// `PUT /traits/{name}`: creates a custom trait unless it exists.
    pub async fn ensure_trait(&self, name: &str) -> Result<(), Error> {
        let request = ApiRequest::put(&format!("/traits/{}", encode(name)));
        self.execute(request).await
    }

    /// `PUT /resource_providers/{uuid}/traits`: replaces all traits.
    pub async fn replace_provider_traits(
        &self,
        provider: Uuid,
        generation: u64,
        traits: impl IntoIterator<Item = &str>,
    ) -> Result<ProviderTraits, Error> {
        let body = ProviderTraits {
            resource_provider_generation: generation,
            traits: traits.into_iter().map(str::to_owned).collect(),
        };
        let path = format!("/resource_providers/{provider}/traits");
        self.fetch(ApiRequest::put(&path).json(&body)).await
    }
}
