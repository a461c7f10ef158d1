//! Another cloud in the same cluster: in some runs each node has clients of a second partition, which write what they
//! like over the same names and UUIDs, and now and then the whole of it is deleted and made anew.
//!
//! Nobody asks what they were answered. The witness judges the clients of the default partition by a model that holds
//! nothing else, so whatever of the neighbour shows in an answer is noticed; that all nodes come to the same rows of the
//! neighbour, by the digest.

use std::sync::Arc;
use std::time::Duration;

use placement_model::Command;
use placement_model::command::{
    CapacityRule, ConsumerAllocations, ConsumerGeneration, ConsumerTypeUpdate, CreatePartition,
    CreateProvider, DeleteAllocations, DeletePartition, DeleteProvider, EnsureTrait,
    ProviderAmounts, ReplaceAllocations, ReplaceInventories,
};
use placement_model::types::{
    ConsumerUuid, Generation, Given, Inventory, PartitionName, ProviderUuid, ResourceClassName,
};
use placement_node::doors::{Unavailable, WriteDoor};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use tokio::time::sleep;

use crate::parameters::Parameters;
use crate::workload::Names;

/// What the second partition is called.
pub(crate) fn name() -> PartitionName {
    "neighbour".parse().expect("a name")
}

/// The clients of the neighbour at one node.
pub(crate) struct Neighbour {
    pub(crate) default: Arc<dyn WriteDoor>,
    pub(crate) own: Arc<dyn WriteDoor>,
    pub(crate) random: SmallRng,
    names: Names,
    /// When they have had enough, since the start of the simulation.
    until: Duration,
}

impl Neighbour {
    pub(crate) fn new(
        parameters: &Parameters,
        default: Arc<dyn WriteDoor>,
        own: Arc<dyn WriteDoor>,
        random: SmallRng,
    ) -> Self {
        Self {
            default,
            own,
            random,
            names: Names::new(&parameters.choices()),
            // Before all is mended, as all nodes must come to one place then.
            until: parameters.storm,
        }
    }

    /// Writes until it has had enough.
    pub(crate) async fn live(mut self) {
        while turmoil::sim_elapsed().is_some_and(|now| now < self.until) {
            sleep(Duration::from_millis(self.random.random_range(10..200))).await;
            let name = name();
            let written = match self.random.random_range(0..40) {
                0 => {
                    let delete = DeletePartition { name, force: true };
                    let command = Command::DeletePartition(delete);
                    self.default.submit(command, "neighbour".to_owned()).await
                }
                _ => {
                    let command = self.command();
                    self.own.submit(command, "neighbour".to_owned()).await
                }
            };
            if let Err(Unavailable::NoPartition { name }) = written {
                let create = Command::CreatePartition(CreatePartition { name });
                // Where the level is not reached yet it is refused, and tried again.
                let _ = self.default.submit(create, "neighbour".to_owned()).await;
            }
        }
    }

    fn command(&mut self) -> Command {
        let class: Given<ResourceClassName> =
            Given::Valid("VCPU".parse().expect("a standard class"));
        let random = &mut self.random;
        let all: Vec<_> = self.names.core.iter().chain(&self.names.field).collect();
        let provider = ProviderUuid(**all.choose(random).expect("a run has providers"));
        let consumer = self.names.consumers.choose(random);
        let consumer = ConsumerUuid::from(consumer.expect("a run has consumers").to_string());
        match random.random_range(0..7) {
            0 | 1 => Command::CreateProvider(CreateProvider {
                uuid: provider,
                name: provider.to_string().try_into().expect("a name"),
                parent: None,
            }),
            2 => Command::ReplaceInventories(ReplaceInventories {
                provider,
                generation: Generation(random.random_range(0..3)),
                inventories: [(
                    class,
                    Inventory {
                        total: random.random_range(1..100),
                        reserved: 0,
                        min_unit: 1,
                        max_unit: 100,
                        step_size: 1,
                        allocation_ratio: 1.0,
                    },
                )]
                .into(),
                capacity_rule: CapacityRule::NotNegative,
            }),
            3 => Command::DeleteProvider(DeleteProvider { uuid: provider }),
            4 => Command::DeleteAllocations(DeleteAllocations { consumer }),
            5 => Command::EnsureTrait(EnsureTrait {
                name: "CUSTOM_NEIGHBOURLY".parse().expect("a trait"),
            }),
            _ => Command::ReplaceAllocations(ReplaceAllocations {
                consumers: vec![ConsumerAllocations {
                    consumer,
                    allocations: vec![ProviderAmounts {
                        provider: Given::Valid(provider),
                        resources: [(class, random.random_range(1..5))].into_iter().collect(),
                    }],
                    project: "red".into(),
                    user: "neighbour".into(),
                    generation: ConsumerGeneration::Unchecked,
                    consumer_type: ConsumerTypeUpdate::Keep,
                }],
            }),
        }
    }
}
