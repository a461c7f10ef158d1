//! Plans of changes to consumers: a file with a line for each consumer, and the guarded writes that
//! carry out its lines.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use placement_client::{ApiRequest, Error};
use placement_wire::consumers::Consumer;
use placement_wire::events::NO_TYPE;
use placement_wire::upstream::Allocations;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::content::Content;
use crate::files::{create, read};
use crate::held::Amounts;
use crate::render::print;

/// Exit code if there are findings, or consumers were skipped.
const FOUND: u8 = 3;
/// Exit code if the lists of Nova are incomplete.
const INCOMPLETE: u8 = 2;
/// Mode of plans and undo files: they contain allocations of users, so only the owner may read
/// them.
pub(crate) const PRIVATE: u32 = 0o600;
pub(crate) const CHANGED: &str = "the consumer has changed since";
/// Last microversion without consumer types.
const BEFORE_TYPES: &str = "1.37";

/// Allocations of a consumer, by provider.
pub(crate) type Holdings = BTreeMap<Uuid, Held>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Held {
    resources: Amounts,
}

/// A consumer at the time of planning; the part that all lines of plans and undo files have.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Planned {
    pub(crate) consumer: Uuid,
    pub(crate) generation: i64,
    project_id: String,
    user_id: String,
    pub(crate) r#type: Option<String>,
    pub(crate) allocations: Holdings,
}

/// The body of `PUT /allocations/{consumer_uuid}`.
#[derive(Serialize)]
struct Claim<'a> {
    allocations: &'a Holdings,
    consumer_generation: Option<i64>,
    project_id: &'a str,
    user_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer_type: Option<&'a str>,
}

impl Planned {
    /// The state of a listed consumer. `None` if its id is not a UUID: then it does not belong to
    /// Nova.
    pub(crate) fn from_listed(listed: &Consumer<'_>) -> Option<Self> {
        let mut allocations = Holdings::new();
        for one in &listed.allocations {
            let resources = one
                .resources
                .iter()
                .map(|(class, units)| (class.to_string(), *units));
            let held = Held {
                resources: resources.collect(),
            };
            allocations.insert(one.provider.uuid.parse().ok()?, held);
        }
        Some(Self {
            consumer: listed.uuid.parse().ok()?,
            generation: listed.generation,
            project_id: listed.project_id.to_string(),
            user_id: listed.user_id.to_string(),
            r#type: listed.r#type.as_deref().map(str::to_owned),
            allocations,
        })
    }

    /// The present state of the consumer; `None` if it has no allocations.
    pub(crate) async fn present(&self, content: &Content) -> anyhow::Result<Option<Self>> {
        let path = format!("/allocations/{}", self.consumer);
        let now: Allocations = content.get(&path).await?;
        let Some(generation) = now.consumer_generation else {
            return Ok(None);
        };
        let held = now.allocations.into_iter().map(|(provider, held)| {
            let resources = held.resources;
            Ok((provider.parse()?, Held { resources }))
        });
        Ok(Some(Self {
            consumer: self.consumer,
            generation,
            project_id: now.project_id.unwrap_or_default(),
            user_id: now.user_id.unwrap_or_default(),
            r#type: now.consumer_type.filter(|name| name != NO_TYPE),
            allocations: held.collect::<Result<_, uuid::Error>>()?,
        }))
    }

    /// Why the present state is not the planned one; `None` if it is.
    pub(crate) fn difference(&self, now: Option<&Self>) -> Option<String> {
        let why = match now {
            None => "it has no allocations any more",
            Some(now) if now != self => CHANGED,
            Some(_) => return None,
        };
        Some(why.to_owned())
    }

    /// Writes these allocations and this type; without a type, the consumer keeps its own. Returns
    /// the reason if the API refuses the write: the consumer does not have this generation, or
    /// there is no room.
    pub(crate) async fn put(
        &self,
        content: &Content,
        allocations: &Holdings,
        generation: Option<i64>,
        consumer_type: Option<&str>,
    ) -> anyhow::Result<Option<String>> {
        let body = Claim {
            allocations,
            consumer_generation: generation,
            project_id: &self.project_id,
            user_id: &self.user_id,
            consumer_type,
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

/// A consumer as a line of a file.
pub(crate) fn line(one: &impl Serialize) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_value(one)?))
}

/// Writes a plan to a new file.
pub(crate) fn write(file: &Path, all: &[impl Serialize]) -> anyhow::Result<()> {
    let lines = all.iter().map(line).collect::<anyhow::Result<String>>()?;
    let written = create(file, PRIVATE)?.write_all(lines.as_bytes());
    written.with_context(|| format!("cannot write {}", file.display()))
}

/// The lines of a plan or of an undo file. `flaw` returns what is wrong with a line.
pub(crate) fn parse<T: DeserializeOwned>(
    file: &Path,
    flaw: impl Fn(&T) -> Option<&'static str>,
) -> anyhow::Result<Vec<T>> {
    let mut all = Vec::new();
    for (at, line) in read(file)?.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = || format!("line {} of {}", at + 1, file.display());
        let one: T = serde_json::from_slice(line).with_context(place)?;
        if let Some(flaw) = flaw(&one) {
            bail!("{}: {flaw}", place());
        }
        all.push(one);
    }
    Ok(all)
}

/// Carries out the lines with `step`, which returns the reason if it skips a consumer. Stops after
/// `max` consumers. `done` and `skipped` are the words for the output.
pub(crate) async fn carry_out<T: AsRef<Planned>>(
    all: &[T],
    max: Option<usize>,
    (done, skipped): (&str, &str),
    mut step: impl AsyncFnMut(&T) -> anyhow::Result<Option<String>>,
) -> anyhow::Result<ExitCode> {
    let mut count = 0;
    for one in all {
        if max == Some(count) {
            print(&format!("stopped: --max {count} is reached\n"))?;
            break;
        }
        let consumer = one.as_ref().consumer;
        let tried = step(one).await;
        match tried
            .with_context(|| format!("stopped at consumer {consumer} after {count} {done}"))?
        {
            None => count += 1,
            Some(why) => print(&format!("{skipped} {consumer}: {why}\n"))?,
        }
    }
    print(&format!("{done} {count} of {}\n", all.len()))?;
    Ok(exit_code(false, count < all.len()))
}

/// Exit code of a command that looks for consumers to change, or that changes them.
pub(crate) fn exit_code(is_incomplete: bool, is_found: bool) -> ExitCode {
    let code = match (is_incomplete, is_found) {
        (true, _) => INCOMPLETE,
        (_, true) => FOUND,
        _ => 0,
    };
    code.into()
}
