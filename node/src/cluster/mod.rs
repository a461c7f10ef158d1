//! This node as a member of the cluster: the doors, membership, bootstrap.

pub mod doors;
