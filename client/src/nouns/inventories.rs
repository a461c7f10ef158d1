//! Typed methods of `/resource_providers/{uuid}/inventories`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::client::Client;
use crate::error::Error;
use crate::request::ApiRequest;

/// Inventory of one resource class. Amounts are in units of the class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[must_use]
pub struct Inventory {
    /// Number of existing units.
    pub total: u64,
    /// Number of reserved units.
    pub reserved: u64,
    /// Smallest amount of one allocation.
    pub min_unit: u64,
    /// Largest amount of one allocation.
    pub max_unit: u64,
    /// Allocated amounts are multiples of this.
    pub step_size: u64,
    /// Overcommitment: capacity is `(total - reserved) * allocation_ratio`.
    pub allocation_ratio: f64,
}

impl Inventory {
    /// An inventory without overcommitment that allows any amount up to `total`.
    pub fn with_total(total: u64) -> Self {
        Self {
            total,
            reserved: 0,
            min_unit: 1,
            max_unit: total,
            step_size: 1,
            allocation_ratio: 1.0,
        }
    }

    /// Sets the allocation ratio.
    pub fn ratio(mut self, allocation_ratio: f64) -> Self {
        self.allocation_ratio = allocation_ratio;
        self
    }

    /// Sets the reserved units.
    pub fn reserved(mut self, reserved: u64) -> Self {
        self.reserved = reserved;
        self
    }
}

/// All inventories of one provider, by resource class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventories {
    /// Generation of the provider with these inventories.
    pub resource_provider_generation: u64,
    /// Inventories by name of the resource class.
    pub inventories: BTreeMap<String, Inventory>,
}

impl Client {
    /// `GET /resource_providers/{uuid}/inventories`: all inventories of a provider.
    pub async fn inventories(&self, provider: Uuid) -> Result<Inventories, Error> {
        self.read(&path(provider)).await
    }

    /// `PUT /resource_providers/{uuid}/inventories`: replaces all inventories. A wrong `generation`
    /// fails with 409.
    pub async fn replace_inventories(
        &self,
        provider: Uuid,
        generation: u64,
        inventories: impl IntoIterator<Item = (&str, Inventory)>,
    ) -> Result<Inventories, Error> {
        let inventories = inventories
            .into_iter()
            .map(|(class, inventory)| (class.to_owned(), inventory));
        let body = Inventories {
            resource_provider_generation: generation,
            inventories: inventories.collect(),
        };
        let request = ApiRequest::put(&path(provider)).json(&body);
        self.fetch(request).await
    }
}

fn path(provider: Uuid) -> String {
    format!("/resource_providers/{provider}/inventories")
}
