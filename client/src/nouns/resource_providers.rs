//! `/resource_providers`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// A resource provider as the API shows it from 1.14.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResourceProvider {
    /// Its uuid.
    pub uuid: Uuid,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Rises with each change of what it offers.
    pub generation: u64,
    /// The provider above it.
    pub parent_provider_uuid: Option<Uuid>,
    /// The top of its tree; itself if it has no parent.
    pub root_provider_uuid: Option<Uuid>,
}

/// A provider to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct NewProvider {
    /// Unique in the cluster, 1 to 200 characters.
    pub name: String,
    /// Chosen by the service if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Uuid>,
    /// The provider above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_provider_uuid: Option<Uuid>,
}

impl NewProvider {
    /// A root provider.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uuid: None,
            parent_provider_uuid: None,
        }
    }

    /// With a uuid of the caller's choice, which makes repeating the creation recognisable.
    pub fn uuid(mut self, uuid: Uuid) -> Self {
        self.uuid = Some(uuid);
        self
    }

    /// Below another provider.
    pub fn child_of(mut self, parent: Uuid) -> Self {
        self.parent_provider_uuid = Some(parent);
        self
    }
}

impl Client {
    /// `POST /resource_providers`.
    pub async fn create_provider(&self, provider: &NewProvider) -> Result<ResourceProvider, Error> {
        let request = ApiRequest::post("/resource_providers").json(provider);
        self.fetch(request).await
    }

    /// `GET /resource_providers/{uuid}`.
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

    /// `DELETE /resource_providers/{uuid}`.
    pub async fn delete_provider(&self, uuid: Uuid) -> Result<(), Error> {
        let request = ApiRequest::delete(&format!("/resource_providers/{uuid}"));
        self.execute(request).await
    }
}
