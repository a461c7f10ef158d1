//! A typed client of the placement service that knows several nodes of one cluster.
//!
//! It sends each request to one node, and tries the next node if the node refuses the connection.
//! It repeats reads, and writes that provably never reached the log: there was no connection, or
//! the node answered with a 503 which states that nothing was committed. With
//! [`Client::repeating_unknown`] it also repeats other writes.
//!
//! ```no_run
//! # async fn example() -> Result<(), placement_client::Error> {
//! use placement_client::{Client, NewProvider};
//!
//! let client = Client::new(["http://10.0.0.1:8778", "http://10.0.0.2:8778"])?;
//! let host = client.create_provider(&NewProvider::named("compute-1")).await?;
//! println!("{} has generation {}", host.name, host.generation);
//! # Ok(())
//! # }
//! ```

mod admin;
mod backup;
mod client;
mod connect;
mod connect_error;
mod consistency;
mod endpoint;
mod error;
mod failures;
mod lines;
mod nouns;
mod request;
mod response;
mod tokens;
mod transport;

pub use admin::Admin;
pub use backup::{BackupError, BackupStream};
pub use client::{Client, MICROVERSION_DEFAULT};
pub use connect::BoxFuture;
pub use connect::Trust;
pub use connect_error::Obstacle;
pub use consistency::{Consistency, IndexToken, Position};
pub use endpoint::Endpoint;
pub use error::{ApiError, Error};
pub use lines::Lines;
pub use nouns::aggregates::ProviderAggregates;
pub use nouns::allocation_candidates::{
    AllocationCandidates, AllocationRequest, CandidateQuery, ProviderSummary, SummaryResource,
};
pub use nouns::allocations::{Allocation, Claim, ConsumerAllocations, ProviderAllocations};
pub use nouns::inventories::{Inventories, Inventory};
pub use nouns::resource_classes::ResourceClass;
pub use nouns::resource_providers::{NewProvider, ResourceProvider};
pub use nouns::traits::ProviderTraits;
pub use nouns::usages::Resources;
pub use placement_wire::*;
pub use request::{ApiRequest, encode};
pub use response::ApiResponse;
pub use transport::{Body, Transport, TransportError, whole};

/// Compiles the programs of the page.
#[cfg(doctest)]
#[doc = include_str!("../../docs/clients.md")]
struct ClientsPage;
