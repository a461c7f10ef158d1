use placement_node::StartError;
use placement_wire::NodeRole;

use crate::estate::{Machine, cluster, converged, create, eventually, machines, settled};

#[tokio::test(flavor = "multi_thread")]
async fn three_empty_nodes_form_one_cluster_with_the_standard_classes() {
    let machines = cluster(3).await;
    converged(&machines).await;
    let ids: Vec<_> = machines
        .iter()
        .map(|machine| machine.node().status().cluster_id)
        .collect();
    assert!(ids[0].is_some());
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let vcpu = placement_model::types::ResourceClassName::try_from("VCPU".to_owned()).unwrap();
    eventually("VCPU everywhere", || {
        machines
            .iter()
            .all(|machine| {
                let current = machine.node().views().unwrap().current();
                let state = current.cluster.default_partition();
                state.resource_class_id(&vcpu).is_some()
            })
            .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_alone_answers_that_it_belongs_to_no_cluster_until_it_is_told_to_form_one() {
    let mut machine = Machine::new(7);
    machine.config.cluster.wait_ms = 200;
    machine.start().await;
    let error = machine.submit(create(1)).await.unwrap_err();
    assert!(
        error.to_string().contains("does not belong to a cluster"),
        "{error}"
    );
    assert_eq!(machine.node().status().role, NodeRole::Waiting);
    assert_eq!(machine.node().read_door().position().index, None);
    let (status, body) = machine.admin("GET", "/status", "").await;
    assert_eq!(status, 404);
    assert!(body.contains("GET /v1/status, POST /v1/init"), "{body}");
    assert_eq!(machine.api("GET", "/readyz", "").await.0, 503);
    assert_eq!(machine.api("GET", "/livez", "").await.0, 200);

    assert_eq!(machine.admin("POST", "/v1/init", "").await.0, 204);
    let machines = [machine];
    settled(&machines).await;
    machines[0].create(1).await;
    assert_eq!(machines[0].api("GET", "/readyz", "").await.0, 200);
    assert_eq!(machines[0].admin("POST", "/v1/init", "").await.0, 409);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_node_that_has_lost_its_data_forms_no_second_cluster() {
    let mut machines = cluster(3).await;
    machines[1].create(1).await;
    machines[0].kill().await;
    machines[0].wipe();
    machines[0].start().await;
    settled(&machines[1..]).await;
    machines[1].create(2).await;
    assert_eq!(machines[0].node().status().cluster_id, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_directory_serves_one_process_and_one_node() {
    let mut machines = machines(1);
    machines[0].start().await;
    settled(&machines).await;

    let mut second = Machine::new(1);
    second.config.data_dir = machines[0].config.data_dir.clone();
    let error = second.try_start().await.unwrap_err();
    assert!(
        error.to_string().contains("in use by another placementd"),
        "{error}"
    );

    machines[0].shutdown().await;
    let mut stranger = Machine::new(2);
    stranger.config.data_dir = machines[0].config.data_dir.clone();
    let error = stranger.try_start().await.unwrap_err();
    assert!(matches!(error, StartError::Store(_)), "{error}");
    assert!(error.to_string().contains("belongs to node 1"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_named() {
    let machines = cluster(1).await;
    let mut second = Machine::new(2);
    second.config.api.listen = machines[0].config.api.listen.clone();
    let error = second.try_start().await.unwrap_err().to_string();
    assert!(error.contains(&machines[0].config.api.listen), "{error}");
}
