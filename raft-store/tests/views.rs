//! Visibility of states to readers.

use std::time::Duration;

use crate::common::{apply, history, new_dir, opened, provider, run};
use placement_base::runtime;
use placement_raft_store::Stopped;

#[test]
fn view_is_immutable_and_waiter_gets_a_newer_one() {
    run(async {
        let dir = new_dir();
        let mut store = opened(dir.path());
        let views = store.views.clone();
        assert_eq!(views.applied_index(), None);
        apply(&mut store.machine, history(5)).await;
        let before = views.current();
        assert_eq!(before.index(), Some(5));

        let waiting = runtime::spawn({
            let views = views.clone();
            async move { views.wait_applied(7).await.map(|view| view.index()) }
        });
        apply(&mut store.machine, vec![provider(1, 6)]).await;
        assert!(!waiting.is_finished());
        apply(&mut store.machine, vec![provider(1, 7)]).await;
        assert_eq!(waiting.await.unwrap(), Ok(Some(7)));
        assert_eq!(before.index(), Some(5));
        assert_eq!(before.cluster.default_partition().sizes().providers, 4);
        assert_eq!(
            views
                .current()
                .cluster
                .default_partition()
                .sizes()
                .providers,
            6
        );
    });
}

#[test]
fn a_waiter_ends_when_the_store_is_closed() {
    run(async {
        let dir = new_dir();
        let store = opened(dir.path());
        let views = store.views.clone();
        let waiting = runtime::spawn(async move { views.wait_applied(1).await.map(|_| ()) });
        tokio::time::sleep(Duration::from_millis(10)).await;
        drop(store);
        assert_eq!(waiting.await.unwrap(), Err(Stopped));
    });
}
