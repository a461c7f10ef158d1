//! The expected answer of every request: the naive model executes the log, and its results are
//! encoded in HTTP independently of the product.

mod candidates;
mod question;
mod write;

use std::collections::BTreeSet;

use placement_model::Outcome;
use placement_model::command::{Command, ConsumerGeneration, ConsumerTypeUpdate, Stamped};
use placement_model::query::allocations::Consumer;
use placement_model::types::{ConsumerUuid, Generation, PartitionId, ProviderUuid, Timestamp};
use placement_naive::Naive;
use placement_naive::sample_cloud::SampleCloud;
use serde_json::Value;
use uuid::Uuid;

use crate::history::Answer;
use crate::operation::{Question, QuestionKind, Write, claims};

pub use write::expected;

/// The state that follows from the log.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The partition of the clients.
    partition: PartitionId,
    naive: Naive,
    /// Cached for searches at one log index.
    sample_cloud: Option<SampleCloud>,
}

/// The expected answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// Expected HTTP status code.
    pub status: u16,
    /// Error code in the body, if it is an error and the microversion has codes.
    pub code: Option<&'static str>,
    /// Body. `None`: empty, or an error body, of which only the code is compared.
    pub body: Option<Value>,
    /// A member of the body that is not compared.
    except: Option<&'static str>,
}

impl Expected {
    fn empty(status: u16) -> Self {
        Self {
            status,
            code: None,
            body: None,
            except: None,
        }
    }

    /// Does not compare a member of the body, which must be there.
    fn except(self, member: &'static str) -> Self {
        Self {
            except: Some(member),
            ..self
        }
    }

    fn json(status: u16, body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::empty(status)
        }
    }

    /// An expected error. Answers contain upstream's codes from 1.23 on, and the code of exceeded
    /// limits, which only this service has, at every microversion.
    fn error(status: u16, code: &'static str, minor: u8) -> Self {
        Self {
            code: (minor >= 23 || code == PROJECT_OVER_LIMIT).then_some(code),
            ..Self::empty(status)
        }
    }

    /// Describes how the answer differs, if it does.
    pub fn wrong(&self, answer: &Answer) -> Option<String> {
        if self.status != answer.status {
            return Some(format!("expected status {}", self.status));
        }
        if self.status >= 400 {
            let code = answer.code();
            let agrees = code.as_deref() == self.code;
            return (!agrees).then(|| format!("expected code {:?}", self.code));
        }
        let body = self.body.as_ref();
        let agrees = match body {
            None => answer.body.is_empty(),
            Some(body) => answer.parsed().is_some_and(|mut parsed| {
                if let Some(member) = self.except
                    && !parsed[member].is_null()
                {
                    parsed[member] = body[member].clone();
                }
                parsed == *body
            }),
        };
        (!agrees).then(|| match body {
            None => "expected no body".to_owned(),
            Some(body) => format!("expected this body: {body}"),
        })
    }
}

/// Code of a write that exceeds a limit of a project.
const PROJECT_OVER_LIMIT: &str = "placement.project.over_limit";
/// Code of errors that have no specific code.
const UNDEFINED: &str = "placement.undefined_code";

impl Oracle {
    /// The oracle for the clients of this partition.
    pub fn for_partition(partition: PartitionId) -> Self {
        Self {
            partition,
            ..Self::default()
        }
    }

    /// Executes a log entry, unless it repeats an earlier one or belongs to another partition.
    pub fn entry(&mut self, stamped: &Stamped) -> Outcome {
        if stamped.partition != self.partition && !stamped.command.is_cluster_wide() {
            return self.naive.skip(stamped);
        }
        self.sample_cloud = None;
        self.naive.apply(stamped)
    }

    /// A consumer at this point, without the generations of its providers.
    pub(crate) fn consumer(&self, consumer: &ConsumerUuid) -> Option<Consumer> {
        let mut consumer = self.naive.consumer(consumer)?;
        for holding in &mut consumer.allocations {
            holding.generation = Generation(0);
        }
        Some(consumer)
    }

    /// Whether each consumer of a claim is as the claim leaves it, under the generation after the
    /// one that the claim expects.
    pub(crate) fn is_as_requested(&self, command: &Command) -> bool {
        claims(command).iter().all(|claim| {
            let expected = match claim.generation {
                ConsumerGeneration::Unchecked => return false,
                ConsumerGeneration::New => 0,
                ConsumerGeneration::Expect(generation) => generation.0,
            };
            let Some(consumer) = self.consumer(&claim.consumer) else {
                return claim.allocations.is_empty();
            };
            let held = (consumer.allocations.iter()).flat_map(|holding| {
                let amounts = holding.resources.iter();
                amounts.map(move |(class, amount)| {
                    (holding.provider.to_string(), class.to_string(), *amount)
                })
            });
            let asked = (claim.allocations.iter()).flat_map(|amounts| {
                let provider = amounts.provider.to_string();
                let resources = amounts.resources.iter();
                resources.map(move |(class, amount)| (provider.clone(), class.to_string(), *amount))
            });
            let is_type = match &claim.consumer_type {
                ConsumerTypeUpdate::Keep => true,
                ConsumerTypeUpdate::Set(name) => consumer.consumer_type.as_ref() == Some(name),
            };
            consumer.generation.0 == expected + 1
                && consumer.project == claim.project
                && consumer.user == claim.user
                && is_type
                && held.collect::<BTreeSet<_>>() == asked.collect::<BTreeSet<_>>()
        })
    }

    /// The outcome of a write at this point, without executing it.
    pub fn predict(&self, write: &Write) -> Outcome {
        let stamped = Stamped {
            partition: self.partition,
            routes: self.naive.route_changes(self.partition),
            at: Timestamp(0),
            write_id: None,
            command: write.command.clone(),
            request_id: None,
        };
        self.naive.clone().apply(&stamped)
    }

    /// Describes the error in the answer to a question, if there is one.
    pub fn wrong(&mut self, question: &Question, answer: &Answer) -> Option<String> {
        match &question.asked {
            QuestionKind::Candidates(request) => {
                let naive = &self.naive;
                let sample_cloud = self
                    .sample_cloud
                    .get_or_insert_with(|| naive.sample_cloud());
                candidates::wrong(sample_cloud, request, question.minor, answer)
            }
            _ => self.answer(question).wrong(answer),
        }
    }

    /// All questions without filters about the existing data, in the newest microversion.
    pub fn every_question(&self) -> Vec<Question> {
        let of_provider = |uuid: &ProviderUuid| {
            [
                QuestionKind::Provider(uuid.0),
                QuestionKind::Inventories(uuid.0),
                QuestionKind::ProviderUsages(uuid.0),
                QuestionKind::ProviderAllocations(uuid.0),
                QuestionKind::ProviderTraits(uuid.0),
                QuestionKind::ProviderAggregates(uuid.0),
            ]
        };
        let holders = self
            .naive
            .consumers
            .keys()
            .filter_map(|one| Some(QuestionKind::Allocations(uuid(one.to_string())?)));
        let of_all = [
            QuestionKind::Providers(Default::default()),
            QuestionKind::ResourceClasses,
            QuestionKind::Traits {
                associated: None,
                prefix: None,
            },
            QuestionKind::Traits {
                associated: Some(true),
                prefix: None,
            },
        ];
        self.naive
            .providers
            .keys()
            .flat_map(of_provider)
            .chain(holders)
            .chain(of_all)
            .map(QuestionKind::newest)
            .collect()
    }
}

fn uuid(text: String) -> Option<Uuid> {
    text.parse().ok()
}

/// Whether an entry is not a write of this partition's clients: it comes from the cluster itself,
/// an operator or another partition.
pub fn is_housekeeping(entry: &Stamped, partition: PartitionId) -> bool {
    entry.partition != partition
        || entry.command.is_cluster_wide()
        || matches!(entry.command, Command::ExpireHolds(_))
}
