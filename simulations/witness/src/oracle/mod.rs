//! What every request must be answered: the naive model carries out the log, and what it says is
//! put into HTTP by code of our own.

mod candidates;
mod question;
mod write;

use placement_model::Outcome;
use placement_model::command::Stamped;
use placement_model::types::{PartitionId, ProviderUuid, Timestamp};
use placement_naive::Naive;
use placement_naive::sample_cloud::SampleCloud;
use serde_json::Value;
use uuid::Uuid;

use crate::history::Answer;
use crate::operation::{Asked, Question, Write};

pub use write::expected;

/// The state that the log says the cluster must be in.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    /// The partition whose clients ask.
    partition: PartitionId,
    naive: Naive,
    /// For the searches at one place of the log.
    sample_cloud: Option<SampleCloud>,
}

/// What a request must be answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// HTTP status.
    pub status: u16,
    /// Error code of the body, if it is an error and the microversion has codes.
    pub code: Option<&'static str>,
    /// The body. `None`: empty, or an error's, of which only the code counts.
    pub body: Option<Value>,
}

impl Expected {
    fn empty(status: u16) -> Self {
        Self {
            status,
            code: None,
            body: None,
        }
    }

    fn json(status: u16, body: Value) -> Self {
        Self {
            body: Some(body),
            ..Self::empty(status)
        }
    }

    /// An error. Clients are given codes from 1.23 on.
    fn error(status: u16, code: &'static str, minor: u8) -> Self {
        Self {
            code: (minor >= 23).then_some(code),
            ..Self::empty(status)
        }
    }

    /// What is wrong with the answer, if anything is.
    pub fn wrong(&self, answer: &Answer) -> Option<String> {
        if self.status != answer.status {
            return Some(format!("{} is right", self.status));
        }
        if self.status >= 400 {
            let code = answer.code();
            let agrees = code.as_deref() == self.code;
            return (!agrees).then(|| format!("the code {:?} is right", self.code));
        }
        let body = self.body.as_ref();
        let agrees = match body {
            None => answer.body.is_empty(),
            Some(body) => answer.parsed().as_ref() == Some(body),
        };
        (!agrees).then(|| match body {
            None => "no body is right".to_owned(),
            Some(body) => format!("this body is right: {body}"),
        })
    }
}

/// The code of errors that have none of their own.
const UNDEFINED: &str = "placement.undefined_code";

impl Oracle {
    /// For the clients of this partition.
    pub fn of(partition: PartitionId) -> Self {
        Self {
            partition,
            ..Self::default()
        }
    }

    /// Carries out an entry of the log, unless it repeats an earlier one, or is another
    /// partition's.
    pub fn entry(&mut self, stamped: &Stamped) -> Outcome {
        if stamped.partition != self.partition && !stamped.command.is_of_the_cluster() {
            return self.naive.pass_by(stamped);
        }
        self.sample_cloud = None;
        self.naive.apply(stamped)
    }

    /// What a write would be answered that came now.
    pub fn would(&self, write: &Write) -> Outcome {
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

    /// What is wrong with the answer to a question, if anything is.
    pub fn wrong(&mut self, question: &Question, answer: &Answer) -> Option<String> {
        match &question.asked {
            Asked::Candidates(request) => {
                let naive = &self.naive;
                let sample_cloud = self
                    .sample_cloud
                    .get_or_insert_with(|| naive.sample_cloud());
                candidates::wrong(sample_cloud, request, question.minor, answer)
            }
            _ => self.answer(question).wrong(answer),
        }
    }

    /// Everything that can be asked of the state without a filter, in the newest microversion.
    pub fn every_question(&self) -> Vec<Question> {
        let of_provider = |uuid: &ProviderUuid| {
            [
                Asked::Provider(uuid.0),
                Asked::Inventories(uuid.0),
                Asked::ProviderUsages(uuid.0),
                Asked::ProviderAllocations(uuid.0),
                Asked::ProviderTraits(uuid.0),
                Asked::ProviderAggregates(uuid.0),
            ]
        };
        let holders = self.naive.consumers.keys();
        let holders = holders.filter_map(|one| Some(Asked::Allocations(uuid(one.to_string())?)));
        let of_all = [
            Asked::Providers(Default::default()),
            Asked::ResourceClasses,
            Asked::Traits {
                associated: None,
                prefix: None,
            },
            Asked::Traits {
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
            .map(Asked::newest)
            .collect()
    }
}

fn uuid(text: String) -> Option<Uuid> {
    text.parse().ok()
}

/// Whether no client of this partition has asked for an entry: it is the cluster's own, an
/// operator's, or another partition's.
pub fn is_housekeeping(entry: &Stamped, partition: PartitionId) -> bool {
    entry.partition != partition || entry.command.is_of_the_cluster()
}
