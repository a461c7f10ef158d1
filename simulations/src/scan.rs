//! The last client: reads everything from every node once all is calm. What was acknowledged must
//! be there, which the witness check then finds out.

use std::rc::Rc;
use std::time::Duration;

use crate::operation::{Level, Operation, Question};
use crate::shared::{Phase, Shared};

/// Waits for its time, reads everything, and says that the run is over.
///
/// # Errors
/// None; the signature is turmoil's.
pub async fn scan(shared: Rc<Shared>) -> turmoil::Result {
    shared.until(Phase::Scan).await;
    let questions = every_question(&shared);
    let nodes = shared.nodes.borrow().clone();
    for node in nodes {
        for question in &questions {
            let level = shared
                .furthest
                .get()
                .map_or(Level::Linearizable, Level::Session);
            insist(&shared, node, Operation::Read(question.clone(), level)).await;
        }
        let fresh = Operation::Read(questions[0].clone(), Level::Linearizable);
        insist(&shared, node, fresh).await;
    }
    shared.phase.set(Phase::Done);
    Ok(())
}

fn every_question(shared: &Shared) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    for provider in shared.providers.borrow().iter() {
        questions.push(Question::Inventories(*provider));
        questions.push(Question::ProviderUsages(*provider));
        questions.push(Question::ProviderAllocations(*provider));
    }
    questions.extend(
        shared
            .consumers
            .iter()
            .map(|consumer| Question::Allocations(*consumer)),
    );
    questions.extend(
        shared
            .projects
            .iter()
            .map(|one| Question::ProjectUsages(one.clone())),
    );
    questions
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
