//! `placementctl limits sync`: copies the limits of Keystone, with a plan first.

use std::path::{Path, PathBuf};

use clap::Args;

use super::change::{Change, carry_out, changes, left, listed};
use super::conversion::convert;
use super::document;
use super::keystone::{Keystone, KeystoneArgs};
use crate::content::Content;
use crate::plan;
use crate::render::{Misuse, warn};

#[derive(Args)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    step: Step,
    #[command(flatten)]
    keystone: KeystoneArgs,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Step {
    /// Read Keystone, and write a plan for --apply to this new file: one line for each change.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Make the changes of this plan. The command refuses a plan if the limits have changed since
    /// it was written.
    #[arg(long, value_name = "PLAN")]
    apply: Option<PathBuf>,
}

pub(crate) async fn run(content: &Content, args: SyncArgs) -> anyhow::Result<String> {
    match (&args.step.plan, &args.step.apply) {
        (Some(file), _) => write_plan(content, file, &args.keystone).await,
        (None, Some(file)) => apply(content, file).await,
        (None, None) => Err(Misuse("give --plan or --apply".to_owned()).into()),
    }
}

/// Compares the limits with those of Keystone, and writes the changes to a plan. Returns them as
/// text.
async fn write_plan(
    content: &Content,
    file: &Path,
    keystone: &KeystoneArgs,
) -> anyhow::Result<String> {
    let now = document::read(content).await?;
    let session = Keystone::log_in(keystone, content.timeout).await?;
    let copied = convert(&session.answers().await?, keystone.region.as_deref())?;
    let found = changes(&now, &copied);
    let rows = listed(found.clone());
    let rows = rows.if_none("nothing to change: these are the limits of Keystone already");
    let text = content.source.output.rows(rows)?;
    plan::write(file, &found)?;
    if let Some(note) = copied.note() {
        warn(&note);
    }
    Ok(text)
}

async fn apply(content: &Content, file: &Path) -> anyhow::Result<String> {
    let all = plan::parse(file, Change::flaw)?;
    let mut limits = document::read(content).await?;
    let left = left(&limits, all)?;
    if left.is_empty() {
        return Ok("nothing was changed: the limits are those of the plan already\n".to_owned());
    }
    carry_out(&mut limits, &left);
    let generation = document::write(content, &limits).await?;
    let count = |kind: &str| left.iter().filter(|one| one.kind() == kind).count();
    Ok(format!(
        "the limits have generation {generation}: {} added, {} changed, {} removed\n",
        count("added"),
        count("changed"),
        count("removed")
    ))
}
