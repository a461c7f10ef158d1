//! `placementctl consumers release`: releases the planned allocations of consumers, and undoes a
//! release.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use placement_client::{ApiRequest, Error};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::content::Content;
use crate::files::{create, read, sync_dir};
use crate::held::Amounts;
use crate::nova::{INSTANCE, MIGRATION};
use crate::render::{list, print, word};

/// Exit code if there are findings, or consumers were skipped.
pub(crate) const FOUND: u8 = 3;
/// Mode of plans and undo files: they contain allocations of users, so only the owner may read
/// them.
pub(crate) const PRIVATE: u32 = 0o600;
const CHANGED: &str = "the consumer has changed since";
/// Last microversion without consumer types.
const BEFORE_TYPES: &str = "1.37";

#[derive(Args)]
#[command(after_help = "Exit codes: 0 = all consumers were processed; 3 = some were skipped.")]
pub(crate) struct Which {
    /// Release the consumers of this plan that have not changed since.
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
    /// Restore the allocations of this undo file, unless the consumer has changed or there is no
    /// room.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["apply", "undo"])]
    undo_from: Option<PathBuf>,
}

/// A consumer at the time of planning; a line of a plan or of an undo file.
#[derive(Serialize, Deserialize)]
struct Planned {
    consumer: Uuid,
    generation: u64,
    project_id: String,
    user_id: String,
    r#type: Option<String>,
    /// Allocations by provider.
    allocations: BTreeMap<Uuid, Held>,
    /// Allocations that stay: empty, except for an instance that holds one host too many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    keeps: BTreeMap<Uuid, Held>,
    reason: String,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct Held {
    resources: Amounts,
}

pub(crate) async fn run(content: &Content, which: Which) -> anyhow::Result<ExitCode> {
    let file = which.apply.or(which.undo_from);
    let all = parse(&file.context("neither a plan nor an undo file is given")?)?;
    let mut undo = None;
    let (mut done, mut left) = ("restored", "not restored");
    if let Some(path) = which.undo {
        undo = Some(create(&path, PRIVATE).context("nothing was changed")?);
        sync_dir(&path).context("nothing was changed")?;
        (done, left) = ("released", "refused");
    }
    let mut count = 0;
    for one in &all {
        if undo.is_some() && count == which.max {
            print(&format!("stopped: --max {count} is reached\n"))?;
            break;
        }
        let tried = match &mut undo {
            Some(undo) => one.release(content, undo).await,
            None => one.restore(content).await,
        };
        match tried
            .with_context(|| format!("stopped at consumer {} after {count}", one.consumer))?
        {
            None => count += 1,
            Some(why) => print(&format!("{left} {}: {why}\n", one.consumer))?,
        }
    }
    print(&format!("{done} {count} of {}\n", all.len()))?;
    Ok(if count == all.len() { 0 } else { FOUND }.into())
}

/// The lines of a plan or of an undo file.
fn parse(file: &Path) -> anyhow::Result<Vec<Planned>> {
    let mut all = Vec::new();
    for (at, line) in read(file)?.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = || format!("line {} of {}", at + 1, file.display());
        let one: Planned = serde_json::from_slice(line).with_context(place)?;
        let is_of_nova = [None, Some(INSTANCE), Some(MIGRATION)].contains(&one.r#type.as_deref());
        ensure!(
            is_of_nova,
            "{}: only consumers of Nova can be released",
            place()
        );
        let mut keeps = one.keeps.iter();
        ensure!(
            keeps.all(|(provider, kept)| one.allocations.get(provider) == Some(kept)),
            "{}: \"keeps\" has an entry that is not in \"allocations\"",
            place()
        );
        all.push(one);
    }
    Ok(all)
}

/// Appends a line to the undo file, and syncs it.
fn record(file: &mut File, one: &Planned) -> anyhow::Result<()> {
    let line = serde_json::to_string(one)? + "\n";
    let written = file
        .write_all(line.as_bytes())
        .and_then(|()| file.sync_data());
    written.context("cannot write the undo file")
}

/// The plan line of a listed consumer. `is_kept` selects the allocations that stay.
pub(crate) fn planned(listed: &Value, reason: &str, is_kept: impl Fn(&Value) -> bool) -> Value {
    let (mut held, mut keeps) = (json!({}), json!({}));
    for one in list(&listed["allocations"]) {
        let (provider, resources) = (word(&one["provider"]["uuid"]), &one["resources"]);
        if is_kept(one) {
            keeps[&provider] = json!({ "resources": resources });
        }
        held[provider] = json!({ "resources": resources });
    }
    let mut line = json!({
        "consumer": listed["uuid"], "generation": listed["generation"], "project_id": listed["project_id"],
        "user_id": listed["user_id"], "type": listed["type"], "allocations": held, "reason": reason,
    });
    if keeps != json!({}) {
        line["keeps"] = keeps;
    }
    line
}

/// Current allocations of a consumer.
struct Present {
    allocations: BTreeMap<Uuid, Held>,
    /// Null if the consumer does not exist.
    generation: Value,
    consumer_type: Value,
}

impl Planned {
    async fn present(&self, content: &Content) -> anyhow::Result<Present> {
        let path = format!("/allocations/{}", self.consumer);
        let mut now = content.get(&path).await?;
        Ok(Present {
            allocations: serde_json::from_value(now["allocations"].take())?,
            generation: now["consumer_generation"].take(),
            consumer_type: now["consumer_type"].take(),
        })
    }

    /// Releases the consumer. Returns the reason if it is skipped.
    async fn release(&self, content: &Content, undo: &mut File) -> anyhow::Result<Option<String>> {
        let now = self.present(content).await?;
        if now.allocations.is_empty() {
            return Ok(Some("it has no allocations any more".to_owned()));
        }
        // The undo file records the planned allocations, so they must be the current ones.
        let is_of_type = now.consumer_type == self.r#type.as_deref().unwrap_or("unknown");
        let is_the_same = is_of_type && now.generation == self.generation;
        if !is_the_same || now.allocations != self.allocations {
            return Ok(Some(CHANGED.to_owned()));
        }
        record(undo, self)?;
        self.put(content, &self.keeps, json!(self.generation)).await
    }

    /// Restores the allocations unless the consumer has changed since. Returns the reason if it is
    /// skipped.
    async fn restore(&self, content: &Content) -> anyhow::Result<Option<String>> {
        let now = self.present(content).await?;
        if now.allocations != self.keeps {
            return Ok(Some(CHANGED.to_owned()));
        }
        self.put(content, &self.allocations, now.generation).await
    }

    /// Writes allocations. Returns the reason if the API refuses them: the consumer has changed, or
    /// there is no room.
    async fn put(
        &self,
        content: &Content,
        allocations: &BTreeMap<Uuid, Held>,
        generation: Value,
    ) -> anyhow::Result<Option<String>> {
        let mut body = json!({
            "allocations": allocations, "consumer_generation": generation, "project_id": self.project_id,
            "user_id": self.user_id,
        });
        let mut request = ApiRequest::put(&format!("/allocations/{}", self.consumer));
        match &self.r#type {
            Some(kind) => body["consumer_type"] = json!(kind),
            None => request = request.microversion(BEFORE_TYPES),
        }
        match content.send(request.json(&body)).await {
            Ok(_) => Ok(None),
            Err(Error::Refused(error)) if [400, 409].contains(&error.status.as_u16()) => {
                Ok(Some(error.message().to_owned()))
            }
            Err(error) => Err(error.into()),
        }
    }
}
