//! openraft's own demands on a store.

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
fn the_store_does_all_that_openraft_asks_of_one() {
    common::run(Suite::test_all(Builder)).unwrap();
}
