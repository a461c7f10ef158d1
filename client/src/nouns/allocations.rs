//! `/allocations` and `/resource_providers/{uuid}/allocations`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::nouns::usages::Resources;
use crate::request::ApiRequest;

/// What one consumer holds of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Amounts by resource class.
    pub resources: Resources,
}

/// Everything that one consumer shall hold: the body of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Claim {
    /// By provider. Empty: the consumer gives everything back.
    pub allocations: BTreeMap<Uuid, Allocation>,
    /// Which group of the candidates request each provider satisfied.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mappings: BTreeMap<String, Vec<Uuid>>,
    /// The owner's project.
    pub project_id: String,
    /// The owner.
    pub user_id: String,
    /// The generation last seen; `None` for a consumer that must be new.
    pub consumer_generation: Option<u64>,
    /// Such as `INSTANCE`.
    pub consumer_type: String,
}

impl Claim {
    /// A new consumer's claim on behalf of this project and user, of nothing yet.
    pub fn by(project_id: &str, user_id: &str) -> Self {
        Self {
            allocations: BTreeMap::new(),
            mappings: BTreeMap::new(),
            project_id: project_id.to_owned(),
            user_id: user_id.to_owned(),
            consumer_generation: None,
            consumer_type: "INSTANCE".to_owned(),
        }
    }

    /// Amounts of a provider.
    pub fn and(mut self, provider: Uuid, resources: &[(&str, u64)]) -> Self {
        let resources = resources.iter();
        let resources = resources.map(|&(class, amount)| (class.to_owned(), amount));
        let resources = resources.collect();
        self.allocations.insert(provider, Allocation { resources });
        self
    }

    /// For a consumer that exists and has this generation.
    pub fn generation(mut self, consumer_generation: u64) -> Self {
        self.consumer_generation = Some(consumer_generation);
        self
    }
}

/// What one consumer holds.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ConsumerAllocations {
    /// By provider; empty for an unknown consumer.
    pub allocations: BTreeMap<Uuid, Allocation>,
    /// `None` for an unknown consumer.
    pub consumer_generation: Option<u64>,
    /// The owner's project.
    pub project_id: Option<String>,
    /// The owner.
    pub user_id: Option<String>,
    /// Such as `INSTANCE`.
    pub consumer_type: Option<String>,
}

/// Who holds what of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderAllocations {
    /// The provider's generation that they belong to.
    pub resource_provider_generation: u64,
    /// By consumer.
    pub allocations: BTreeMap<Uuid, Allocation>,
}

impl Client {
    /// `GET /allocations/{consumer}`.
    pub async fn allocations(&self, consumer: Uuid) -> Result<ConsumerAllocations, Error> {
        self.read(&path(consumer)).await
    }

    /// `PUT /allocations/{consumer}`.
    pub async fn put_allocations(&self, consumer: Uuid, claim: &Claim) -> Result<(), Error> {
        let request = ApiRequest::put(&path(consumer)).json(claim);
        self.execute(request).await
    }

    /// `POST /allocations`: several consumers, all or nothing.
    pub async fn post_allocations(&self, claims: &BTreeMap<Uuid, Claim>) -> Result<(), Error> {
        let request = ApiRequest::post("/allocations").json(claims);
        self.execute(request).await
    }

    /// `DELETE /allocations/{consumer}`.
    pub async fn delete_allocations(&self, consumer: Uuid) -> Result<(), Error> {
        self.execute(ApiRequest::delete(&path(consumer))).await
    }

    /// `GET /resource_providers/{uuid}/allocations`.
    pub async fn provider_allocations(&self, provider: Uuid) -> Result<ProviderAllocations, Error> {
        let path = format!("/resource_providers/{provider}/allocations");
        self.read(&path).await
    }
}

fn path(consumer: Uuid) -> String {
    format!("/allocations/{consumer}")
}
