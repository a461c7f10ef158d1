//! What must hold at every moment, one property per file.

mod commit_immutable;
mod equal_digest;
mod generations_rise;
mod leadership;
mod no_over_allocation;
mod usages_are_sums;

use std::collections::BTreeSet;

use placement_model::command::CreateProvider;
use placement_model::types::ProviderUuid;
use placement_model::{Command, Outcome, Stamped, State};

pub use leadership::{Leadership, Role};

/// A command at the moment in which one node applies it.
pub struct Applied<'a> {
    /// The node.
    pub node: u64,
    /// The command's place in the log.
    pub index: u64,
    /// The node's state before the command.
    pub before: &'a State,
    /// The command.
    pub stamped: &'a Stamped,
    /// What the node decided.
    pub outcome: &'a Outcome,
}

/// Something that must hold whenever a node applies a command.
pub trait Invariant {
    /// Its name, for the report.
    fn name(&self) -> &'static str;

    /// Looks at one command being applied.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn applied(&mut self, applied: &Applied<'_>) -> Result<(), String>;
}

/// All that are looked at with each applied command.
pub fn all() -> Vec<Box<dyn Invariant + Send>> {
    vec![
        Box::<commit_immutable::CommitImmutable>::default(),
        Box::<equal_digest::EqualDigest>::default(),
        Box::<generations_rise::GenerationsRise>::default(),
        Box::<no_over_allocation::NoOverAllocation>::default(),
        Box::<usages_are_sums::UsagesAreSums>::default(),
    ]
}

/// The providers that the log has named so far.
#[derive(Debug, Default)]
struct Providers(BTreeSet<ProviderUuid>);

impl Providers {
    fn learn(&mut self, command: &Command) {
        if let Command::CreateProvider(CreateProvider { uuid, .. }) = command {
            self.0.insert(*uuid);
        }
    }
}
