//! A store for unit tests.

use std::path::Path;

use placement_raft_store::{Identity, Store, StoreOptions, create, open};
use uuid::Uuid;

/// The store of node 1 in an empty directory.
///
/// # Panics
/// If it cannot be created.
pub fn new_store(dir: &Path) -> Store {
    let identity = Identity {
        cluster: Uuid::from_u128(1),
        epoch: 1,
        node: 1,
    };
    create(dir, identity).expect("the directory is empty");
    open(StoreOptions::new(dir)).expect("a new store opens")
}
