use placement_node::doors::{Consistency, Unavailable};

use crate::estate::{cluster, create, eventually, has, settled};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_disk_is_gone_leaves_and_says_why_and_nothing_is_lost() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    machines[leader].create(1).await;
    // Files that are open stay; the next new one cannot be made.
    std::fs::remove_dir_all(machines[leader].config.data_dir.join("state")).unwrap();
    machines[leader].admin("POST", "/v1/compact", "").await;

    let failure = eventually("a failed disk", || {
        machines[leader].node().status().storage_failure
    });
    let failure = failure.await;
    let error = machines[leader].submit(create(2)).await.unwrap_err();
    assert!(
        matches!(error, Unavailable::NothingCommitted { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(&failure), "{error}");
    let (status, body) = machines[leader].api("GET", "/readyz", "").await;
    assert_eq!(status, 503);
    assert!(body.contains(&failure), "{body}");
    let local = machines[leader].view(Consistency::Local).await.unwrap();
    assert!(has(&local.state, 1));

    let sick = machines.remove(leader);
    settled(&machines).await;
    machines[0].create(2).await;
    for machine in &machines {
        assert!(machine.sees(1).await && machine.sees(2).await);
    }
    drop(sick);
}
