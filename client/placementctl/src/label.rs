//! `placementctl consumers label`: gives consumers without a type the type of Nova's list that
//! contains them.

use std::collections::HashSet;
use std::iter::once;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::Args;
use placement_wire::consumers::Consumer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::content::Content;
use crate::nova::{INSTANCE, Lists, MIGRATION, Nova, UNTYPED};
use crate::plan::{self, Planned};
use crate::render::warn;

#[derive(Args)]
#[command(
    after_help = "A type can be replaced by another one, but not removed: there is no undo, so review the plan. \
                  Exit codes: 0 = no consumer needs a type, or all of the plan have it; 3 = some need one, or were skipped; \
                  2 = Nova's lists are incomplete, or no node answers; 1 = other error."
)]
pub(crate) struct LabelArgs {
    #[command(flatten)]
    lists: Lists,
    /// Write a plan for --apply to this new file: one line for each consumer that gets a type.
    #[arg(long, value_name = "FILE", requires = "Lists")]
    plan: Option<PathBuf>,
    /// Set the types in this plan. A consumer that has changed since, or that a hold is kept for,
    /// is skipped.
    #[arg(
        long,
        value_name = "PLAN",
        required_unless_present = "Lists",
        conflicts_with_all = ["Lists", "plan"]
    )]
    pub(crate) apply: Option<PathBuf>,
}

/// A line of a plan. It does not parse as a line of `consumers release`, which has a reason.
#[derive(Debug, Serialize, Deserialize)]
struct Label {
    #[serde(flatten)]
    of: Planned,
    /// The type that the consumer gets.
    becomes: String,
}

impl AsRef<Planned> for Label {
    fn as_ref(&self) -> &Planned {
        &self.of
    }
}

/// Finds the consumers that get a type, and writes the plan. Returns them with their new types, and
/// the exit code.
pub(crate) async fn find(
    content: &Content,
    args: LabelArgs,
) -> anyhow::Result<(Vec<Consumer<'static>>, ExitCode)> {
    let consumers = content.consumers(&Value::Null).await?;
    // Only consumers in the lists get a type, so the lists may lack young ones.
    let nova = args.lists.read(SystemTime::now(), u64::MAX)?;
    let found = Labels::judge(consumers, &nova);
    if let Some(file) = &args.plan {
        plan::write(file, &found.planned)?;
    }
    for note in &found.notes {
        warn(note);
    }
    let code = plan::exit_code(found.is_incomplete, !found.consumers.is_empty());
    Ok((found.consumers, code))
}

/// Sets the types of a plan.
pub(crate) async fn apply(content: &Content, file: &Path) -> anyhow::Result<ExitCode> {
    let all = plan::parse(file, Label::flaw)?;
    let kept = of_holds(&content.consumers(&json!({ "held": true })).await?);
    let set = async |one: &Label| one.set(content, &kept).await;
    plan::carry_out(&all, None, ("labelled", "skipped"), set).await
}

/// Consumers of holds, and consumers that holds are kept for. A write of their allocations, even
/// without a change, would end these holds.
fn of_holds(consumers: &[Consumer<'_>]) -> HashSet<Uuid> {
    let holds = consumers
        .iter()
        .filter_map(|one| Some((&*one.uuid, one.hold.as_ref()?)));
    let ids = holds.flat_map(|(holder, hold)| {
        let kept_for = hold.kept_for.iter();
        once(holder).chain(kept_for.map(String::as_str))
    });
    ids.filter_map(|id| id.parse().ok()).collect()
}

/// The consumers that get a type.
#[derive(Default)]
struct Labels {
    planned: Vec<Label>,
    /// The same consumers, with their new types.
    consumers: Vec<Consumer<'static>>,
    /// Notes about the other consumers, printed on standard error.
    notes: Vec<String>,
    is_incomplete: bool,
}

impl Labels {
    fn judge(consumers: Vec<Consumer<'static>>, nova: &Nova) -> Self {
        let mut found = Self::default();
        let kept = of_holds(&consumers);
        let (mut instances, mut held, mut others) = (0, 0, 0);
        for mut consumer in consumers {
            let (kind, is_known) = nova.judge(&consumer);
            instances += usize::from((kind, is_known) == (INSTANCE, Some(true)));
            if consumer.r#type.is_some() || consumer.allocations.is_empty() {
                continue;
            }
            let Some(of) = Planned::from_listed(&consumer) else {
                others += 1;
                continue;
            };
            if kept.contains(&of.consumer) {
                held += 1;
            } else if is_known == Some(true) {
                let becomes = kind.to_owned();
                consumer.r#type = Some(becomes.clone().into());
                found.planned.push(Label { of, becomes });
                found.consumers.push(consumer);
            } else {
                others += 1;
            }
        }
        found.weigh(nova, instances, held, others);
        found
    }

    /// Adds a note about the consumers with holds, one about the consumers that are not in the
    /// lists, and one for each reason why the lists may lack them.
    fn weigh(&mut self, nova: &Nova, instances: usize, held: usize, others: usize) {
        if held > 0 {
            self.notes.push(format!(
                "skipped {held} consumers that have a hold, or that a hold is kept for: a write of their allocations \
                 would end the hold. `placementctl holds list` shows the holds"
            ));
        }
        if others == 0 {
            return;
        }
        self.notes.push(nova.about_untyped(others));
        for reason in [nova.doubt(UNTYPED, others, instances), nova.outage()] {
            self.is_incomplete |= reason.is_some();
            let note = |reason: String| format!("consumers without a type may remain: {reason}");
            self.notes.extend(reason.map(note));
        }
    }
}

impl Label {
    /// What is wrong with a line.
    fn flaw(&self) -> Option<&'static str> {
        let is_right =
            self.of.r#type.is_none() && [INSTANCE, MIGRATION].contains(&self.becomes.as_str());
        (!is_right).then_some("only consumers without a type get one, INSTANCE or MIGRATION")
    }

    /// Sets the type unless the consumer has it already. Returns the reason if the consumer is
    /// skipped.
    async fn set(&self, content: &Content, kept: &HashSet<Uuid>) -> anyhow::Result<Option<String>> {
        let (of, becomes) = (&self.of, Some(&*self.becomes));
        let now = of.present(content).await?;
        let present_type = now.as_ref().and_then(|now| now.r#type.as_deref());
        if present_type == becomes {
            return Ok(None);
        }
        if let Some(why) = of.difference(now.as_ref()) {
            return Ok(Some(why));
        }
        if kept.contains(&of.consumer) {
            return Ok(Some("a write would end a hold".to_owned()));
        }
        of.put(content, &of.allocations, Some(of.generation), becomes)
            .await
    }
}

#[cfg(test)]
mod tests;
