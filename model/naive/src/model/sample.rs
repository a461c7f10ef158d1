//! The cloud as input of the exhaustive candidate search.

use placement_model::state::change::InventoryRow;
use placement_model::types::{ProviderUuid, ResourceClassName};

use super::{Naive, NaiveProvider};
use crate::sample_cloud::{self, SampleCloud, Stock};

impl Naive {
    /// The cloud as input of [`crate::candidates::judge`]. Providers are named by their UUIDs.
    pub fn sample_cloud(&self) -> SampleCloud {
        let mut providers: Vec<_> = self.providers.iter().collect();
        providers.sort_by_key(|(_, provider)| provider.order);
        let sample_cloud =
            |(uuid, provider): (&ProviderUuid, &NaiveProvider)| sample_cloud::Provider {
                name: uuid.to_string(),
                uuid: *uuid,
                parent: provider.parent.map(|parent| parent.to_string()),
                stocks: (provider.inventories.iter())
                    .map(|(class, row)| (class.to_string(), self.stock(uuid, class, row)))
                    .collect(),
                traits: provider.traits.iter().map(ToString::to_string).collect(),
                aggregates: (provider.aggregates.iter())
                    .map(ToString::to_string)
                    .collect(),
            };
        SampleCloud {
            providers: providers.into_iter().map(sample_cloud).collect(),
            classes: self.classes.keys().map(ToString::to_string).collect(),
            traits: self.traits.keys().map(ToString::to_string).collect(),
        }
    }

    fn stock(&self, uuid: &ProviderUuid, class: &ResourceClassName, row: &InventoryRow) -> Stock {
        Stock {
            inventory: row.inventory,
            used: self.used(uuid, class),
        }
    }
}
