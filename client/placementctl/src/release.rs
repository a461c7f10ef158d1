//! `placementctl consumers release`: releases the planned allocations of consumers, and undoes a
//! release.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use placement_wire::consumers::{Consumer, ConsumerAllocation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::content::Content;
use crate::files::{create, sync_dir};
use crate::nova::{INSTANCE, MIGRATION};
use crate::plan::{self, CHANGED, Held, Holdings, PRIVATE, Planned};

#[derive(Args)]
#[command(after_help = "Exit codes: 0 = all consumers were processed; 3 = some were not.")]
pub(crate) struct ReleaseArgs {
    /// Release the allocations of the consumers in this plan. A consumer that has changed since the
    /// audit is skipped.
    #[arg(
        long,
        value_name = "PLAN",
        requires = "undo",
        required_unless_present = "undo_from"
    )]
    apply: Option<PathBuf>,
    /// Record the released allocations in this new file, for `--undo-from`.
    #[arg(long, value_name = "FILE", requires = "apply")]
    undo: Option<PathBuf>,
    /// Maximum number of consumers to release.
    #[arg(long, value_name = "CONSUMERS", default_value_t = 1000)]
    max: usize,
    /// Restore the allocations in this undo file. A consumer is skipped if it has changed since its
    /// release, or if there is no room.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["apply", "undo"])]
    undo_from: Option<PathBuf>,
}

/// A line of a plan or of an undo file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Release {
    #[serde(flatten)]
    pub(crate) of: Planned,
    /// Allocations that are not released. Empty, except for an instance that also has allocations
    /// on hosts where it does not run.
    #[serde(default, skip_serializing_if = "Holdings::is_empty")]
    pub(crate) keeps: Holdings,
    pub(crate) reason: String,
}

impl AsRef<Planned> for Release {
    fn as_ref(&self) -> &Planned {
        &self.of
    }
}

pub(crate) async fn run(content: &Content, args: ReleaseArgs) -> anyhow::Result<ExitCode> {
    let file = args.apply.or(args.undo_from);
    let file = file.context("neither a plan nor an undo file is given")?;
    let all = plan::parse(&file, Release::flaw)?;
    let Some(path) = args.undo else {
        let restore = async |one: &Release| one.restore(content).await;
        return plan::carry_out(&all, None, ("restored", "not restored"), restore).await;
    };
    let mut undo = create(&path, PRIVATE).context("nothing was changed")?;
    sync_dir(&path).context("nothing was changed")?;
    let release = async |one: &Release| one.release(content, &mut undo).await;
    plan::carry_out(&all, Some(args.max), ("released", "refused"), release).await
}

/// Appends a line to the undo file, and syncs it.
fn record(file: &mut File, one: &Release) -> anyhow::Result<()> {
    let written = file
        .write_all(plan::line(one)?.as_bytes())
        .and_then(|()| file.sync_data());
    written.context("cannot write the undo file")
}

impl Release {
    /// The release of a listed consumer. `is_kept` selects the allocations that stay. `None` if its
    /// id is not a UUID.
    pub(crate) fn of_listed(
        listed: &Consumer<'_>,
        reason: &str,
        is_kept: impl Fn(&ConsumerAllocation<'_>) -> bool,
    ) -> Option<Self> {
        let of = Planned::from_listed(listed)?;
        let kept = listed.allocations.iter().filter(|one| is_kept(one));
        let keeps = kept.filter_map(|one| {
            let provider: Uuid = one.provider.uuid.parse().ok()?;
            Some((provider, of.allocations.get(&provider)?.clone()))
        });
        Some(Self {
            keeps: keeps.collect(),
            reason: reason.to_owned(),
            of,
        })
    }

    /// What is wrong with a line.
    fn flaw(&self) -> Option<&'static str> {
        let belongs_to_nova =
            [None, Some(INSTANCE), Some(MIGRATION)].contains(&self.of.r#type.as_deref());
        if !belongs_to_nova {
            return Some("only consumers of Nova can be released");
        }
        let is_held = |(provider, kept): (&Uuid, &Held)| {
            let held = self.of.allocations.get(provider);
            held == Some(kept)
        };
        let are_held = self.keeps.iter().all(is_held);
        (!are_held).then_some("\"keeps\" has an entry that is not in \"allocations\"")
    }

    /// Releases the consumer. Returns the reason if it is skipped.
    async fn release(&self, content: &Content, undo: &mut File) -> anyhow::Result<Option<String>> {
        // The undo file records the planned allocations, so they must be the current ones.
        let now = self.of.present(content).await?;
        if let Some(why) = self.of.difference(now.as_ref()) {
            return Ok(Some(why));
        }
        record(undo, self)?;
        self.put(content, &self.keeps, Some(self.of.generation))
            .await
    }

    /// Restores the allocations unless the consumer has changed since. Returns the reason if it is
    /// skipped.
    async fn restore(&self, content: &Content) -> anyhow::Result<Option<String>> {
        let now = self.of.present(content).await?;
        let (held, generation) = now.map(|now| (now.allocations, now.generation)).unzip();
        if held.unwrap_or_default() != self.keeps {
            return Ok(Some(CHANGED.to_owned()));
        }
        self.put(content, &self.of.allocations, generation).await
    }

    /// Writes allocations. Returns the reason if the API refuses them.
    async fn put(
        &self,
        content: &Content,
        allocations: &Holdings,
        generation: Option<i64>,
    ) -> anyhow::Result<Option<String>> {
        let (of, consumer_type) = (&self.of, self.of.r#type.as_deref());
        of.put(content, allocations, generation, consumer_type)
            .await
    }
}
