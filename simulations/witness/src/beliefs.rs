//! The state that one client has seen and assumes when it writes.

use std::collections::BTreeMap;

use placement_model::Command;
use placement_model::command::{
    Claim, ConsumerAllocations, ConsumerGeneration, DeleteAllocations, ReplaceAllocations,
    ReplaceLimits,
};
use placement_model::types::ConsumerUuid;
use serde_json::Value;
use uuid::Uuid;

use crate::history::Answer;
use crate::operation::{Operation, QuestionKind, Token, Write};

/// The resource class that all clients contend for.
pub const CLASS: &str = "VCPU";

/// The state that one client has seen.
#[derive(Debug, Clone, Default)]
pub struct Beliefs {
    /// Consumer generations; `None`: the consumer does not exist.
    consumers: BTreeMap<Uuid, Option<i64>>,
    /// Generations of providers by UUID.
    providers: BTreeMap<Uuid, i64>,
    /// Generation and total of [`CLASS`] from the same inventory answer.
    stock: BTreeMap<Uuid, (i64, u32)>,
    /// Generation of the limits of projects.
    limits: i64,
    /// The highest index that this client was shown.
    pub token: Option<Token>,
}

impl Beliefs {
    /// The assumed generation of a consumer, if it is assumed to exist.
    pub fn consumer(&self, consumer: Uuid) -> Option<i64> {
        self.consumers.get(&consumer).copied().flatten()
    }

    /// The assumed generation of a provider.
    pub fn generation(&self, provider: Uuid) -> i64 {
        self.providers.get(&provider).copied().unwrap_or_default()
    }

    /// Generation and total of [`CLASS`], if an answer showed them.
    pub fn stock(&self, provider: Uuid) -> Option<(i64, u32)> {
        self.stock.get(&provider).copied()
    }

    /// The assumed generation of the limits of projects.
    pub fn limits(&self) -> i64 {
        self.limits
    }

    /// Updates the assumptions from an answer.
    pub fn learn(&mut self, operation: &Operation, answer: &Answer) {
        if answer.status >= 500 {
            return;
        }
        let is_of_another = |own: &Token| answer.index.is_some_and(|new| new.epoch != own.epoch);
        if self.token.as_ref().is_some_and(is_of_another) {
            self.limits = 0;
        }
        // After the cluster was replaced, only the tokens of the new cluster are valid.
        self.token = (self.token.filter(|own| !is_of_another(own))).max(answer.index);
        match operation {
            Operation::Read(question, _) => self.learn_read(&question.asked, answer),
            Operation::Write(write) => match &write.command {
                Command::Claim(claim) => self.learn_choice(claim, answer),
                Command::ReplaceLimits(replace) => self.learn_limits(replace, answer),
                _ => self.learn_write(write, answer.status),
            },
        }
    }

    fn learn_read(&mut self, asked: &QuestionKind, answer: &Answer) {
        if answer.status != 200 {
            return;
        }
        match asked {
            QuestionKind::Inventories(uuid) => {
                let body = answer.json();
                self.learn_provider(*uuid, &body);
                let total = body["inventories"][CLASS]["total"].as_u64();
                let total = total.and_then(|total| u32::try_from(total).ok());
                let generation = body["resource_provider_generation"].as_i64();
                if let (Some(generation), Some(total)) = (generation, total) {
                    self.stock.insert(*uuid, (generation, total));
                }
            }
            QuestionKind::Provider(uuid)
            | QuestionKind::ProviderUsages(uuid)
            | QuestionKind::ProviderAllocations(uuid)
            | QuestionKind::ProviderTraits(uuid)
            | QuestionKind::ProviderAggregates(uuid) => self.learn_provider(*uuid, &answer.json()),
            QuestionKind::Allocations(consumer) => {
                let body = answer.json();
                let holdings = body["allocations"].as_object();
                for (provider, holding) in holdings.into_iter().flatten() {
                    if let Ok(uuid) = provider.parse() {
                        self.learn_provider(uuid, holding);
                    }
                }
                let generation = body["consumer_generation"].as_i64();
                let holds = holdings.is_some_and(|all| !all.is_empty());
                if generation.is_some() || !holds {
                    self.consumers.insert(*consumer, generation);
                }
            }
            _ => {}
        }
    }

    fn learn_provider(&mut self, uuid: Uuid, body: &Value) {
        let generation = body["resource_provider_generation"].as_i64();
        if let Some(generation) = generation.or(body["generation"].as_i64()) {
            self.providers.insert(uuid, generation);
        }
    }

    fn learn_write(&mut self, write: &Write, status: u16) {
        match &write.command {
            Command::ReplaceAllocations(ReplaceAllocations { consumers }) => {
                for one in consumers {
                    self.learn_claim(one, status);
                }
            }
            Command::DeleteAllocations(DeleteAllocations { consumer })
                if status == 204 || status == 404 =>
            {
                if let Some(consumer) = uuid(consumer) {
                    self.consumers.insert(consumer, None);
                }
            }
            _ => {}
        }
    }

    fn learn_choice(&mut self, claim: &Claim, answer: &Answer) {
        let body = answer.json();
        for claimant in &claim.claimants {
            let Some(consumer) = uuid(&claimant.consumer) else {
                continue;
            };
            let believed = match answer.status {
                200 => body["consumer_generations"][consumer.to_string()].as_i64(),
                // As for other claims.
                409 if claimant.generation == ConsumerGeneration::New => {
                    Some(i64::from(self.token.is_none_or(is_even)))
                }
                409 => None,
                _ => continue,
            };
            self.consumers.insert(consumer, believed);
        }
    }

    fn learn_limits(&mut self, replace: &ReplaceLimits, answer: &Answer) {
        match answer.status {
            200 => self.limits = answer.json()["generation"].as_i64().unwrap_or_default(),
            // Clients do not read limits: they try each generation until one is right.
            409 => self.limits = replace.generation.0 + 1,
            _ => {}
        }
    }

    fn learn_claim(&mut self, claim: &ConsumerAllocations, status: u16) {
        let Some(consumer) = uuid(&claim.consumer) else {
            return;
        };
        let believed = match (status, claim.generation) {
            (204, _) if claim.allocations.is_empty() => None,
            (204, ConsumerGeneration::New) => Some(1),
            (204, ConsumerGeneration::Expect(was)) => Some(was.0 + 1),
            // A refuted assumption is replaced by a guess, which a read corrects: another client
            // may have written first, or a refused write may have left the consumer behind.
            (409, ConsumerGeneration::New) => Some(i64::from(self.token.is_none_or(is_even))),
            (409, ConsumerGeneration::Expect(_)) => None,
            _ => return,
        };
        self.consumers.insert(consumer, believed);
    }
}

fn is_even(token: Token) -> bool {
    token.index.is_multiple_of(2)
}

fn uuid(consumer: &ConsumerUuid) -> Option<Uuid> {
    consumer.to_string().parse().ok()
}
