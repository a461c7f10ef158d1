//! The last client reads everything from every node in the healthy cluster. The witness then checks
//! that all acknowledged writes are present.

use std::rc::Rc;
use std::time::Duration;

use futures::future::join_all;
use placement_witness::client::read_all;
use tokio::time::sleep;

use crate::neighbour::NeighbourVenue;
use crate::shared::{Phase, Shared};

/// Waits for the scan phase, reads everything from all nodes concurrently, and ends the run.
///
/// # Errors
/// None; turmoil requires the signature.
pub async fn scan(shared: Rc<Shared>) -> turmoil::Result {
    shared.wait_for_phase(Phase::Scan).await;
    let (nodes, questions) = (
        shared.nodes.borrow().clone(),
        shared.questions.borrow().clone(),
    );
    let ([own, neighbours], neighbour) = (questions, NeighbourVenue(shared.clone()));
    let scanner = shared.parameters.clients;
    let reads = (nodes.into_iter()).map(async |node| {
        read_all(&*shared, scanner, node, &own).await;
        read_all(&neighbour, scanner, node, &neighbours).await;
    });
    join_all(reads).await;
    while !shared.watched.get() {
        sleep(Duration::from_millis(5)).await;
    }
    shared.phase.set(Phase::Done);
    Ok(())
}
