//! The last client: reads everything from every node once all is calm. What was acknowledged must
//! be there, which the witness check then finds out.

use std::rc::Rc;
use std::time::Duration;

use futures::future::join_all;

use crate::operation::{Level, Operation};
use crate::shared::{Phase, Shared};

/// Waits for its time, reads everything from all nodes at once, and says that the run is over.
///
/// # Errors
/// None; the signature is turmoil's.
pub async fn scan(shared: Rc<Shared>) -> turmoil::Result {
    shared.until(Phase::Scan).await;
    let nodes = shared.nodes.borrow().clone();
    join_all(nodes.into_iter().map(|node| read_all(&shared, node))).await;
    shared.phase.set(Phase::Done);
    Ok(())
}

async fn read_all(shared: &Shared, node: u64) {
    let questions = shared.questions.borrow().clone();
    for question in &questions {
        let level = shared
            .furthest
            .get()
            .map_or(Level::Linearizable, Level::Session);
        insist(shared, node, Operation::Read(question.clone(), level)).await;
    }
    if let Some(first) = questions.first() {
        let fresh = Operation::Read(first.clone(), Level::Linearizable);
        insist(shared, node, fresh).await;
    }
}

/// Asks until there is an answer.
async fn insist(shared: &Shared, node: u64, operation: Operation) {
    let scanner = shared.parameters.clients;
    loop {
        let answer = shared.perform(scanner, node, operation.clone()).await;
        if answer.is_some_and(|answer| answer.status < 500) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
