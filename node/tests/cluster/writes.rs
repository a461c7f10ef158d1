use std::time::Duration;

use placement_model::{Outcome, Refusal};
use placement_node::doors::Unavailable;

use crate::estate::{cluster, converged, create, has, settled};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_on_any_node_is_read_on_all() {
    let machines = cluster(3).await;
    for (number, machine) in (1..).zip(&machines) {
        let written = machine.create(number).await;
        assert!(has(&written.view.state, number));
        assert!(written.view.position.index >= Some(written.index));
        for other in &machines {
            assert!(
                other.sees(number).await,
                "node {} sees {number}",
                other.id()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_an_answer_wherever_it_is_asked() {
    let machines = cluster(3).await;
    machines[0].create(1).await;
    for machine in &machines {
        let written = machine.submit(create(1)).await.unwrap();
        assert!(
            matches!(
                written.outcome,
                Outcome::Refused(
                    Refusal::DuplicateProviderUuid(_) | Refusal::DuplicateProviderName(_)
                )
            ),
            "{:?}",
            written.outcome
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writes_at_once_through_all_nodes_are_each_done_once() {
    let machines = cluster(3).await;
    let doors: Vec<_> = machines
        .iter()
        .map(|machine| machine.node().write_door())
        .collect();
    let writers: Vec<_> = (0..300_u128)
        .map(|number| {
            let door = doors[number as usize % 3].clone();
            tokio::spawn(async move { door.submit(create(1000 + number), "many".to_owned()).await })
        })
        .collect();
    let mut indexes = Vec::new();
    for writer in writers {
        let written = writer.await.unwrap().unwrap();
        assert!(
            matches!(written.outcome, Outcome::Done(_)),
            "{:?}",
            written.outcome
        );
        indexes.push(written.index.index);
    }
    indexes.sort_unstable();
    indexes.dedup();
    assert_eq!(indexes.len(), 300, "each write has its own place");
    converged(&machines).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_go_on_while_the_leader_dies_and_none_is_done_twice() {
    let mut machines = cluster(3).await;
    let leader = settled(&machines).await;
    let survivor = (leader + 1) % 3;
    let door = machines[survivor].node().write_door();
    let writer = tokio::spawn(async move {
        let mut outcomes = Vec::new();
        for number in 0..200_u128 {
            outcomes.push(door.submit(create(number), format!("req-{number}")).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        outcomes
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    machines[leader].kill().await;
    let outcomes = writer.await.unwrap();
    for (number, outcome) in outcomes.iter().enumerate() {
        // A second execution would be refused as a duplicate.
        let written = outcome
            .as_ref()
            .unwrap_or_else(|error| panic!("{number}: {error}"));
        assert!(
            matches!(written.outcome, Outcome::Done(_)),
            "{number}: {:?}",
            written.outcome
        );
    }
    for number in 0..200 {
        assert!(machines[survivor].sees(number).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_a_write_is_answered_503_within_the_configured_time() {
    let mut machines = crate::estate::machines(3);
    for machine in &mut machines {
        machine.config.cluster.wait_ms = 1_500;
        machine.start().await;
    }
    let leader = settled(&machines).await;
    machines[leader].create(1).await;
    machines[(leader + 1) % 3].kill().await;
    machines[(leader + 2) % 3].kill().await;
    // Long enough for the leader to know that nobody follows.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let begun = tokio::time::Instant::now();
    let error = machines[leader].submit(create(2)).await.unwrap_err();
    let took = begun.elapsed();
    // Far below what the other tests configure, far above what a busy machine may add.
    assert!(
        took >= Duration::from_millis(1_400) && took < Duration::from_secs(8),
        "{took:?}"
    );
    assert!(
        matches!(
            error,
            Unavailable::NothingCommitted { .. } | Unavailable::OutcomeUnknown { .. }
        ),
        "{error}"
    );
}
