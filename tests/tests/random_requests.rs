//! Random requests of the witness to a service with one address and no consistency levels.

use std::rc::Rc;
use std::time::Duration;

use placement_witness::client::{Client, Venue};
use placement_witness::history::Answer;
use placement_witness::operation::{Level, Operation, Token};
use placement_witness::seed::Seed;
use placement_witness::workload::{Choices, Names};

pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// A number from the environment.
pub(crate) fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |number| number.parse().unwrap())
}

pub(crate) fn choices(seed: u64) -> Choices {
    Choices {
        seed: Seed(seed),
        providers: 3,
        consumers: 6,
        unchecked_percent: 30,
        equal_percent: 0,
        repeated_percent: 0,
        choices_percent: 0,
        holds_percent: 0,
        limits_percent: 0,
    }
}

pub(crate) trait Service {
    async fn answer(&self, operation: Operation) -> Answer;
}

/// One client's view of a service.
struct Field<'a, S> {
    names: &'a Names,
    service: &'a S,
}

impl<S: Service> Venue for Field<'_, S> {
    fn names(&self) -> &Names {
        self.names
    }

    fn nodes(&self) -> Vec<u64> {
        vec![1]
    }

    fn furthest(&self) -> Option<Token> {
        None
    }

    async fn perform(&self, _client: usize, _node: u64, operation: Operation) -> Option<Answer> {
        // Upstream has no consistency levels.
        let operation = match operation {
            Operation::Read(question, _) => Operation::Read(question, Level::Default),
            write @ Operation::Write(_) => write,
        };
        Some(self.service.answer(operation).await)
    }
}

/// Sends this many random requests, after those that create the first providers.
pub(crate) async fn fill(
    service: &impl Service,
    choices: &Choices,
    names: &Names,
    steps: usize,
    writes_percent: u32,
) {
    let field = Rc::new(Field { names, service });
    let mut client = Client::new(0, field, choices, Duration::ZERO);
    client.set_up(8).await;
    for _ in 0..steps {
        client.step(writes_percent).await;
    }
}
