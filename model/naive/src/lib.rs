//! A second implementation of the rules of placement, as a reference for tests: simple and slow. It
//! shares only the types of commands, queries and answers with the product, so that errors in both
//! are independent.
//!
//! * [`model`]: all commands, queries and sums.
//! * [`cluster`]: the partitions of a cluster, one model each.
//! * [`candidates`]: the expected allocation candidates, by exhaustive search.
//! * [`explain`]: the expected explanations, by exhaustive search.
//! * [`cases`]: random clouds and requests for the search.
//! * [`sample_cloud`]: builders for small clouds, for cases and tests.
//! * [`holding`]: consumers with allocations.
//! * [`generate`]: random commands that use few names.
//! * [`named`]: the answers of the product's search, with names in place of ids.

#![allow(
    clippy::unwrap_used,
    reason = "only tests use this crate; a panic fails the test"
)]

pub mod candidates;
pub mod cases;
pub mod cluster;
pub mod explain;
pub mod generate;
pub mod holding;
pub mod model;
pub mod named;
pub mod sample_cloud;

pub use cluster::NaiveCluster;
pub use model::Naive;

use placement_model::Stamped;
use placement_model::command::{Command, WriteId};
use placement_model::types::{PartitionId, Timestamp};
use proptest::test_runner::Config;

/// A test of this many random cases, which writes no file.
pub fn config(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

/// A log entry for the default partition with its initial routes.
pub fn stamped(at: Timestamp, write_id: Option<WriteId>, command: Command) -> Stamped {
    Stamped {
        at,
        write_id,
        command,
        partition: PartitionId::DEFAULT,
        routes: 0,
        request_id: None,
    }
}
