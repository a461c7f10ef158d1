//! Typed methods of `/resource_providers`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// A resource provider (from microversion 1.14).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResourceProvider {
    /// UUID of the provider.
    pub uuid: Uuid,
    /// Name, unique in the partition.
    pub name: String,
    /// Increases with each change of its inventories, traits or aggregates.
    pub generation: u64,
    /// UUID of the parent.
    pub parent_provider_uuid: Option<Uuid>,
    /// UUID of the root of its tree; its own if it has no parent.
    pub root_provider_uuid: Option<Uuid>,
}

/// Body of a request that creates a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct NewProvider {
    /// Name, unique in the partition, 1 to 200 characters.
    pub name: String,
    /// UUID; chosen by the service if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Uuid>,
    /// UUID of the parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_provider_uuid: Option<Uuid>,
}

impl NewProvider {
    /// A root provider with this name.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uuid: None,
            parent_provider_uuid: None,
        }
    }

    /// Sets the UUID, so that a repeated creation is recognized.
    pub fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// Sets the parent of the provider.
    pub fn child_of(mut self, parent: Uuid) -> Self {
        self.parent_provider_uuid = Some(parent);
        self
    }
}

impl Client {
    /// `POST /resource_providers`: creates a provider.
    pub async fn create_provider(&self, provider: &NewProvider) -> Result<ResourceProvider, Error> {
        let request = ApiRequest::post("/resource_providers").json(provider);
        self.fetch(request).await
    }

    /// `GET /resource_providers/{uuid}`: one provider.
    pub async fn provider(&self, uuid: Uuid) -> Result<ResourceProvider, Error> {
        self.read(&format!("/resource_providers/{uuid}")).await
    }

    /// `GET /resource_providers` with any filters, such as `("name", "compute-1")`.
    pub async fn providers(
        &self,
        filters: &[(&str, &str)],
    ) -> Result<Vec<ResourceProvider>, Error> {
        let mut request = ApiRequest::get("/resource_providers");
        for (key, value) in filters {
            request = request.query(key, value);
        }
        self.fetch_member(request, "resource_providers").await
    }

    /// `DELETE /resource_providers/{uuid}`: deletes an unused provider.
    pub async fn delete_provider(&self, uuid: Uuid) -> Result<(), Error> {
        let request = ApiRequest::delete(&format!("/resource_providers/{uuid}"));
        self.execute(request).await
    }
}
