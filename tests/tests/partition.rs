//! Networks that fall apart, between real processes: what each side may say meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use placement_client::{Client, Consistency, Error, NewProvider};
use placement_tests::cluster::Cluster;
use placement_tests::link::Way;
use uuid::Uuid;

const CONFIG: &str = "[cluster]\nwait_ms = 1500\n[log]\nlevel = \"warn,placement::access=off\"\n";
/// More than the nodes ever say.
const BITS_PER_S: u32 = 200_000_000;
/// An election, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(30);

async fn create(client: &Client, name: &str) -> Result<(), Error> {
    let new = NewProvider::named(name).uuid(Uuid::new_v4());
    client.create_provider(&new).await.map(|_| ())
}

/// Both directions between one node and the others.
fn around(one: u64, others: &[u64]) -> Vec<Way> {
    let both = |other: &u64| [(one, *other), (*other, one)];
    others.iter().flat_map(both).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_says_nothing_that_is_not_so() {
    let mut cluster = Cluster::start_linked(3, CONFIG, BITS_PER_S).await.unwrap();
    let old = cluster.leader().await.unwrap();
    let others = cluster.followers().await.unwrap();
    let short = Duration::from_secs(4);
    let cut_off = cluster.client_of(old).with_patience(short);
    create(&cut_off, "before").await.unwrap();

    cluster.cut(around(old, &others));
    let refused = create(&cut_off, "to the minority").await.unwrap_err();
    let new = cluster.leader_other_than(Some(old)).await.unwrap();
    let majority = cluster.client_of(new).with_patience(PATIENCE);
    let made = NewProvider::named("to the majority").uuid(Uuid::new_v4());
    majority.create_provider(&made).await.unwrap();
    let uuid = made.uuid.unwrap();

    let linearizable = cut_off.clone().with_consistency(Consistency::Linearizable);
    let read = linearizable.provider(uuid).await.unwrap_err();
    assert!(read.status().is_none_or(|status| status == 503), "{read}");
    // What it has it gives to those who ask for no more.
    let local = cut_off.with_consistency(Consistency::Local);
    let read = local.provider(uuid).await.unwrap_err();
    assert_eq!(read.status().map(|status| status.as_u16()), Some(404));

    cluster.mend();
    cluster.wait_healthy().await.unwrap();
    linearizable
        .with_patience(PATIENCE)
        .provider(uuid)
        .await
        .unwrap();
    let there = cluster.has_provider("to the minority").await;
    if matches!(refused, Error::NothingCommitted { .. }) {
        assert!(!there, "{refused}");
    }
    cluster.assert_equal_states().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_hears_nobody_does_not_hold_up_the_others() {
    let mut cluster = Cluster::start_linked(3, CONFIG, BITS_PER_S).await.unwrap();
    let deaf = cluster.leader().await.unwrap();
    let others = cluster.followers().await.unwrap();
    cluster.cut(others.iter().map(|other| (*other, deaf)));
    // It is heard, so nobody calls an election, until it gives up connections that say nothing.
    let client = cluster.client_of(others[0]).with_patience(PATIENCE);
    create(&client.repeating_unknown(), "meanwhile")
        .await
        .unwrap();
    cluster.leader_other_than(Some(deaf)).await.unwrap();
    cluster.mend();
    cluster.wait_healthy().await.unwrap();
    assert!(cluster.has_provider("meanwhile").await);
    cluster.assert_equal_states().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nobody_writes_and_afterwards_all_do() {
    let mut cluster = Cluster::start_linked(5, CONFIG, BITS_PER_S).await.unwrap();
    // Pairs that hear each other, and one alone.
    let ids = cluster.ids();
    let group = |id: u64| (id - 1) / 2;
    for one in &ids {
        let apart = ids.iter().filter(|other| group(**other) != group(*one));
        cluster.cut(apart.map(|other| (*one, *other)));
    }
    let mut refused = Vec::new();
    for id in &ids {
        let client = cluster.client_of(*id).with_patience(Duration::from_secs(4));
        let name = format!("at {id}");
        refused.push((create(&client, &name).await.unwrap_err(), name));
    }
    cluster.mend();
    cluster.wait_healthy().await.unwrap();
    for (error, name) in refused {
        let there = cluster.has_provider(&name).await;
        assert!(
            !there || matches!(error, Error::OutcomeUnknown { .. }),
            "{name}: {error}"
        );
    }
    for id in ids {
        let client = cluster.client_of(id).with_patience(PATIENCE);
        create(&client, &format!("again {id}")).await.unwrap();
    }
    cluster.assert_equal_states().await;
}
