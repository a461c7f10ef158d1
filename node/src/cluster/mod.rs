//! This node as a member of the cluster: the way of writes and reads, membership, bootstrap.

pub(crate) mod formation;
mod freshness;
pub(crate) mod group;
pub(crate) mod leadership;
pub(crate) mod membership;
pub(crate) mod peer_calls;
mod propose;
pub(crate) mod read;
pub(crate) mod removal;
pub(crate) mod seat;
pub(crate) mod standards;
pub(crate) mod submit;
mod tickets;

pub use membership::Refused;
