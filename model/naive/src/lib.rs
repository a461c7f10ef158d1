//! The rules of placement once more, for tests: plain, slow and obvious. Only the types of
//! commands, questions and answers are the product's, so that what both say alike is right or wrong
//! twice, independently.
//!
//! * [`model`]: every command, every listing, every sum.
//! * [`cluster`]: the partitions of a cluster, a model each.
//! * [`candidates`]: what a search for allocation candidates must find, by trying everything.
//! * [`explain`]: why there is nothing to find, by trying everything.
//! * [`cases`]: random clouds and requests for it.
//! * [`sample_cloud`]: small clouds in domain words, which the latter works on.
//! * [`generate`]: random commands over few names.
//! * [`named`]: what the product's own search finds, with names.

#![allow(
    clippy::unwrap_used,
    reason = "only tests use it; what cannot be ends the test"
)]

pub mod candidates;
pub mod cases;
pub mod cluster;
pub mod explain;
pub mod generate;
pub mod model;
pub mod named;
pub mod sample_cloud;

pub use cluster::NaiveCluster;
pub use model::Naive;

use placement_model::Stamped;
use placement_model::command::{Command, WriteId};
use placement_model::types::{PartitionId, Timestamp};

/// An entry of the log for the default partition, routed by its first routes.
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
