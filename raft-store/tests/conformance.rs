//! openraft's own test suite for stores.

use crate::common;
use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use placement_raft_store::{LogStore, StateMachine, TypeConfig};
use tempfile::TempDir;

struct Builder;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<TypeConfig>> {
        let dir = common::new_dir();
        let store = common::opened(dir.path());
        Ok((dir, store.log, store.machine))
    }
}

#[test]
fn store_passes_the_suite_of_openraft() {
    common::run(Suite::test_all(Builder)).unwrap();
}
