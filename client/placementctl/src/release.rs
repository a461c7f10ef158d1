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
use placement_wire::consumers::{Consumer, ConsumerAllocation};
use placement_wire::events::NO_TYPE;
use placement_wire::upstream::Allocations;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::content::Content;
use crate::files::{create, read, sync_dir};
use crate::held::Amounts;
use crate::nova::{INSTANCE, MIGRATION};
use crate::render::print;

/// Exit code if there are findings, or consumers were skipped.
pub(crate) const FOUND: u8 = 3;
/// Mode of plans and undo files: they contain allocations of users, so only the owner may read
/// them.
pub(crate) const PRIVATE: u32 = 0o600;
const CHANGED: &str = "the consumer has changed since";
/// Last microversion without consumer types.
const BEFORE_TYPES: &str = "1.37";

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

/// A consumer at the time of planning; a line of a plan or of an undo file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) consumer: Uuid,
    generation: i64,
    project_id: String,
    user_id: String,
    pub(crate) r#type: Option<String>,
    /// The consumer's allocations, by provider.
    pub(crate) allocations: BTreeMap<Uuid, Held>,
    /// Allocations that are not released. Empty, except for an instance that also has allocations
    /// on hosts where it does not run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) keeps: BTreeMap<Uuid, Held>,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Held {
    resources: Amounts,
}

pub(crate) async fn run(content: &Content, args: ReleaseArgs) -> anyhow::Result<ExitCode> {
    let file = args.apply.or(args.undo_from);
    let all = parse(&file.context("neither a plan nor an undo file is given")?)?;
    let mut undo = None;
    let (mut done, mut left) = ("restored", "not restored");
    if let Some(path) = args.undo {
        undo = Some(create(&path, PRIVATE).context("nothing was changed")?);
        sync_dir(&path).context("nothing was changed")?;
        (done, left) = ("released", "refused");
    }
    let mut count = 0;
    for one in &all {
        if undo.is_some() && count == args.max {
            print(&format!("stopped: --max {count} is reached\n"))?;
            break;
        }
        let tried = match &mut undo {
            Some(undo) => one.release(content, undo).await,
            None => one.restore(content).await,
        };
        match tried
            .with_context(|| format!("stopped at consumer {} after {count} {done}", one.consumer))?
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
        let belongs_to_nova =
            [None, Some(INSTANCE), Some(MIGRATION)].contains(&one.r#type.as_deref());
        ensure!(
            belongs_to_nova,
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

/// Current allocations of a consumer.
struct Present {
    allocations: BTreeMap<Uuid, Held>,
    /// `None` if the consumer does not exist.
    generation: Option<i64>,
    consumer_type: Option<String>,
}

/// The body of `PUT /allocations/{consumer_uuid}`.
#[derive(Serialize)]
struct Claim<'a> {
    allocations: &'a BTreeMap<Uuid, Held>,
    consumer_generation: Option<i64>,
    project_id: &'a str,
    user_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_type: Option<&'a str>,
}

impl Planned {
    /// The plan for a listed consumer. `is_kept` selects the allocations that stay. `None` if its
    /// id is not a UUID: then it does not belong to Nova.
    pub(crate) fn from_listed(
        listed: &Consumer<'_>,
        reason: &str,
        is_kept: impl Fn(&ConsumerAllocation<'_>) -> bool,
    ) -> Option<Self> {
        let (mut allocations, mut keeps) = (BTreeMap::new(), BTreeMap::new());
        for one in &listed.allocations {
            let provider: Uuid = one.provider.uuid.parse().ok()?;
            let resources = one
                .resources
                .iter()
                .map(|(class, units)| (class.to_string(), *units));
            let held = Held {
                resources: resources.collect(),
            };
            if is_kept(one) {
                keeps.insert(provider, held.clone());
            }
            allocations.insert(provider, held);
        }
        Some(Self {
            consumer: listed.uuid.parse().ok()?,
            generation: listed.generation,
            project_id: listed.project_id.to_string(),
            user_id: listed.user_id.to_string(),
            r#type: listed.r#type.as_deref().map(str::to_owned),
            allocations,
            keeps,
            reason: reason.to_owned(),
        })
    }

    /// This consumer as one line of a plan.
    pub(crate) fn line(&self) -> anyhow::Result<String> {
        Ok(format!("{}\n", serde_json::to_value(self)?))
    }

    async fn present(&self, content: &Content) -> anyhow::Result<Present> {
        let path = format!("/allocations/{}", self.consumer);
        let now: Allocations = content.get(&path).await?;
        let held = now.allocations.into_iter().map(|(provider, held)| {
            let resources = held.resources;
            Ok((provider.parse()?, Held { resources }))
        });
        Ok(Present {
            allocations: held.collect::<Result<_, uuid::Error>>()?,
            generation: now.consumer_generation,
            consumer_type: now.consumer_type,
        })
    }

    /// Releases the consumer. Returns the reason if it is skipped.
    async fn release(&self, content: &Content, undo: &mut File) -> anyhow::Result<Option<String>> {
        let now = self.present(content).await?;
        if now.allocations.is_empty() {
            return Ok(Some("it has no allocations any more".to_owned()));
        }
        // The undo file records the planned allocations, so they must be the current ones.
        let consumer_type = self.r#type.as_deref().unwrap_or(NO_TYPE);
        let has_same_type = now.consumer_type.as_deref() == Some(consumer_type);
        let is_the_same = has_same_type && now.generation == Some(self.generation);
        if !is_the_same || now.allocations != self.allocations {
            return Ok(Some(CHANGED.to_owned()));
        }
        record(undo, self)?;
        self.put(content, &self.keeps, Some(self.generation)).await
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
        generation: Option<i64>,
    ) -> anyhow::Result<Option<String>> {
        let body = Claim {
            allocations,
            consumer_generation: generation,
            project_id: &self.project_id,
            user_id: &self.user_id,
            consumer_type: self.r#type.as_deref(),
        };
        let mut request = ApiRequest::put(&format!("/allocations/{}", self.consumer));
        if body.consumer_type.is_none() {
            request = request.microversion(BEFORE_TYPES);
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
