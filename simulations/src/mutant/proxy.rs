//! A proxy between clients and nodes that breaks the consistency guarantees of reads.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use placement_witness::witness::keeps;

use super::Mutant;
use crate::history::{Answer, End};
use crate::http::call;
use crate::operation::{Level, Operation, Question, QuestionKind, Token};

/// Forwards requests of clients to nodes, unchanged unless a mutant is set.
pub(crate) struct Proxy {
    mutant: Option<Mutant>,
    /// Last answer of each node to each request.
    before: RefCell<BTreeMap<(u64, String), String>>,
}

impl Proxy {
    pub(crate) fn new(mutant: Option<Mutant>) -> Self {
        Self {
            mutant,
            before: RefCell::default(),
        }
    }

    /// Sends a request to a node, and returns a possibly altered answer.
    pub(crate) async fn call(&self, node: u64, asked: &Operation, patience: Duration) -> End {
        let (Operation::Read(question, level), Some(mutant)) = (asked, self.mutant) else {
            return call(node, &asked.request(), patience).await;
        };
        let sent = Operation::Read(
            searched(mutant, question.clone()),
            promised(mutant, level.clone()),
        );
        let end = call(node, &sent.request(), patience).await;
        let End::Answer(mut answer) = end else {
            return end;
        };
        if mutant == Mutant::SessionGivesUp
            && answer.status == 503
            && matches!(level, Level::Session(_))
        {
            let local = Operation::Read(question.clone(), Level::Local);
            return match call(node, &local.request(), patience).await {
                End::Answer(answer) => End::Answer(claiming(answer, &local, asked)),
                other => other,
            };
        }
        self.change(mutant, node, asked, &mut answer);
        End::Answer(claiming(answer, &sent, asked))
    }

    fn change(&self, mutant: Mutant, node: u64, asked: &Operation, answer: &mut Answer) {
        match mutant {
            Mutant::TokenNotWaitedFor => {
                if let Operation::Read(_, Level::Session(token)) = asked
                    && answer.index < Some(*token)
                {
                    answer.status = 503;
                    answer.body = NOT_YET.to_owned();
                }
            }
            Mutant::HalvedStaleness => answer.staleness = answer.staleness.map(|age| age / 2),
            Mutant::AgeBeginsAgain => {
                // The state of a node in contact with the leader is never that old.
                let begun = Duration::from_secs(3);
                let again = |age: Duration| age.checked_sub(begun).unwrap_or(age);
                answer.staleness = answer.staleness.map(again);
            }
            Mutant::LocalCalledLinearizable
                if matches!(asked, Operation::Read(_, Level::Local)) =>
            {
                answer.effective = Some("linearizable".to_owned());
            }
            Mutant::OtherEpoch => {
                if let Some(index) = &mut answer.index {
                    index.epoch += 1;
                }
            }
            Mutant::StateOfTheReadBefore if answer.status == 200 => {
                let request = asked.request();
                let question = (node, format!("{} {}", request.path, request.minor));
                let mut before = self.before.borrow_mut();
                if let Some(before) = before.insert(question, answer.body.clone()) {
                    answer.body = before;
                }
            }
            _ => {}
        }
    }
}

/// The answer of a node that rejects a read without waiting.
const NOT_YET: &str = r#"{"errors": [{"status": 503, "code": "placement.nothing_committed"}]}"#;

/// The consistency level sent to the node instead of the client's.
fn promised(mutant: Mutant, level: Level) -> Level {
    match (mutant, level) {
        (Mutant::LocalReadAsLinearizable, Level::Default | Level::Linearizable)
        | (Mutant::TokenNotWaitedFor, Level::Session(_))
        | (Mutant::BoundIgnored, Level::Bounded(_)) => Level::Local,
        (Mutant::TokenLessOne, Level::Session(token)) => Level::Session(Token {
            index: token.index.saturating_sub(1),
            ..token
        }),
        (_, level) => level,
    }
}

/// The question sent to the node instead of the client's.
fn searched(mutant: Mutant, mut question: Question) -> Question {
    if let QuestionKind::Candidates(request) = &mut question.asked {
        match mutant {
            Mutant::OneCandidateTooMany => request.limit = request.limit.map(|limit| limit + 1),
            Mutant::ForbiddenTraitIgnored => {
                for group in &mut request.groups {
                    group.forbidden.clear();
                }
            }
            _ => {}
        }
    }
    question
}

/// Replaces the consistency level that the answer names: that of `asked` instead of that of `sent`.
fn claiming(mut answer: Answer, sent: &Operation, asked: &Operation) -> Answer {
    if answer.effective == Some(keeps(sent)) {
        answer.effective = Some(keeps(asked));
    }
    answer
}
