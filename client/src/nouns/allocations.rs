//! Typed methods of `/allocations` and `/resource_providers/{uuid}/allocations`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::nouns::usages::Resources;
use crate::request::ApiRequest;

/// Allocation of one consumer on one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Amounts by resource class.
    pub resources: Resources,
}

/// All allocations that a consumer should have: the body of a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[must_use]
pub struct Claim {
    /// Allocations by UUID of the provider. Empty: releases everything.
    pub allocations: BTreeMap<Uuid, Allocation>,
    /// Providers by the suffix of the request group that they satisfied.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mappings: BTreeMap<String, Vec<Uuid>>,
    /// Project of the owner.
    pub project_id: String,
    /// User who owns the consumer.
    pub user_id: String,
    /// Last known generation; `None` for a new consumer.
    pub consumer_generation: Option<u64>,
    /// Consumer type, such as `INSTANCE`.
    pub consumer_type: String,
}

impl Claim {
    /// An empty claim for a new consumer of this project and user.
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

    /// Adds an allocation on a provider.
    pub fn and(mut self, provider: Uuid, resources: &[(&str, u64)]) -> Self {
        let resources = resources
            .iter()
            .map(|&(class, amount)| (class.to_owned(), amount))
            .collect();
        self.allocations.insert(provider, Allocation { resources });
        self
    }

    /// Sets the generation of an existing consumer.
    pub fn generation(mut self, consumer_generation: u64) -> Self {
        self.consumer_generation = Some(consumer_generation);
        self
    }
}

/// Allocations of one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ConsumerAllocations {
    /// Allocations by UUID of the provider; empty for an unknown consumer.
    pub allocations: BTreeMap<Uuid, Allocation>,
    /// Generation of the consumer; `None` for an unknown consumer.
    pub consumer_generation: Option<u64>,
    /// Project of the owner.
    pub project_id: Option<String>,
    /// User who owns the consumer.
    pub user_id: Option<String>,
    /// Consumer type, such as `INSTANCE`.
    pub consumer_type: Option<String>,
}

/// Allocations on one provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderAllocations {
    /// Generation of the provider with these allocations.
    pub resource_provider_generation: u64,
    /// Allocations by UUID of the consumer.
    pub allocations: BTreeMap<Uuid, Allocation>,
}

impl Client {
    /// `GET /allocations/{consumer}`: the allocations of a consumer.
    pub async fn allocations(&self, consumer: Uuid) -> Result<ConsumerAllocations, Error> {
        self.read(&path(consumer)).await
    }

    /// `PUT /allocations/{consumer}`: replaces the allocations of a consumer.
    pub async fn put_allocations(&self, consumer: Uuid, claim: &Claim) -> Result<(), Error> {
        let request = ApiRequest::put(&path(consumer)).json(claim);
        self.execute(request).await
    }

    /// `POST /allocations`: writes several consumers atomically.
    pub async fn post_allocations(&self, claims: &BTreeMap<Uuid, Claim>) -> Result<(), Error> {
        let request = ApiRequest::post("/allocations").json(claims);
        self.execute(request).await
    }

    /// `DELETE /allocations/{consumer}`: releases the allocations of a consumer.
    pub async fn delete_allocations(&self, consumer: Uuid) -> Result<(), Error> {
        self.execute(ApiRequest::delete(&path(consumer))).await
    }

    /// `GET /resource_providers/{uuid}/allocations`: the allocations on a provider.
    pub async fn provider_allocations(&self, provider: Uuid) -> Result<ProviderAllocations, Error> {
        let path = format!("/resource_providers/{provider}/allocations");
        self.read(&path).await
    }
}

fn path(consumer: Uuid) -> String {
    format!("/allocations/{consumer}")
}
