//! `placementctl check`: the states of all nodes are recounted and compared.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use placement_client::{Claim, Inventory, NewProvider};
use placement_tests::cluster::Cluster;
use uuid::Uuid;

#[tokio::test]
async fn the_states_of_all_nodes_are_recounted_and_compared() {
    let mut cluster = Cluster::start(3).await.unwrap();
    let client = cluster.client();
    let host = Uuid::new_v4();
    let provider = NewProvider::named("host").uuid(host);
    client.create_provider(&provider).await.unwrap();
    client
        .replace_inventories(host, 0, [("VCPU", Inventory::of(8))])
        .await
        .unwrap();
    let claim = Claim::by("project", "user").and(host, &[("VCPU", 6)]);
    client
        .put_allocations(Uuid::new_v4(), &claim)
        .await
        .unwrap();
    cluster.assert_equal_states().await;
    let check = |cluster: &Cluster| {
        let output = cluster.placementctl(&["check"]).unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = check(&cluster);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("node 2: 1 providers, 1 consumers"), "{said}");
    assert!(!said.contains("noticed"), "{said}");
    assert!(said.contains("sound: "), "{said}");

    // The host shrinks below what is allocated, as it may.
    client
        .replace_inventories(host, 2, [("VCPU", Inventory::of(4))])
        .await
        .unwrap();
    cluster.assert_equal_states().await;
    let (code, said) = check(&cluster);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("more is allocated than the capacity: 1"),
        "{said}"
    );
    let line = format!("provider {host}: 6 of VCPU, of which there is 4");
    assert!(said.contains(&line), "{said}");

    let gone = cluster.followers().await.unwrap()[0];
    cluster.kill_9(gone);
    let (code, said) = check(&cluster);
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains(&format!("node {gone} could not be checked")),
        "{said}"
    );
}
