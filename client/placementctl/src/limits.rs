//! `placementctl limits`: limits of the usage of projects.

mod change;
mod conversion;
mod document;
mod keystone;
mod sync;

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use placement_client::Error;
use placement_wire::Capacity;
use placement_wire::events::NO_TYPE;
use placement_wire::limits::{LimitMode, LimitUsagePage, LimitedProject, Limits};
use placement_words::{amount, share};
use serde::Serialize;

use self::sync::SyncArgs;
use crate::content::{Content, EXTENSIONS, filtered};
use crate::render::{Rows, cell, first_names, print, word};

#[derive(Args)]
pub(crate) struct LimitsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show the mode, the counted consumer types and the defaults.
    Show,
    /// List the usage of projects and their limits.
    List(Filters),
    /// Copy Nova's limits from Keystone: write a plan, then apply it.
    ///
    /// The registered limits of the service `compute` become the defaults, and the limits of
    /// projects and domains become those of projects: `servers` becomes `consumers`, and
    /// `class:VCPU` becomes `VCPU`. A project gets its parent if the parent has limits and the
    /// enforcement model of Keystone is `strict_two_level`. The mode and the counted types stay.
    // The usage line that clap generates has nested brackets.
    #[command(
        override_usage = "placementctl limits sync [OPTIONS] <--plan FILE|--apply PLAN>",
        after_help = "Without a token, the command logs in to Keystone with OS_USERNAME or OS_USER_ID, OS_PASSWORD, and \
                      OS_USER_DOMAIN_NAME or OS_USER_DOMAIN_ID. The user needs a role on the system, such as `reader`: with \
                      the token of a project, Keystone may list only the limits of this project."
    )]
    Sync(SyncArgs),
    /// Set whether writes above a limit are reported or refused.
    Mode {
        /// Effect of a limit on a write that exceeds it.
        mode: Mode,
    },
}

/// Query parameters of `GET /placementd/v1/limits/usage`.
#[derive(Args, Serialize)]
struct Filters {
    /// Show only usage above a limit.
    #[arg(long)]
    over: bool,
    /// Show only this project.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
}

/// The effect of a limit on a write that exceeds it.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// The write is done, counted in the metrics and logged.
    Report,
    /// The write is refused with 409, counted in the metrics and logged.
    Enforce,
}

impl From<Mode> for LimitMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Report => Self::Report,
            Mode::Enforce => Self::Enforce,
        }
    }
}

pub(crate) async fn run(content: &Content, args: LimitsArgs) -> anyhow::Result<ExitCode> {
    let text = match args.action {
        Action::Show => show(content).await,
        Action::List(filters) => list(content, &filters).await,
        Action::Sync(args) => sync::run(content, args).await,
        Action::Mode { mode } => set_mode(content, mode.into()).await,
    };
    print(&text?)?;
    Ok(ExitCode::SUCCESS)
}

async fn show(content: &Content) -> anyhow::Result<String> {
    let limits = document::read(content).await?;
    let output = &content.source.output;
    let none = "there are no defaults: a project without limits of its own is unlimited";
    let rows = defaults(&limits).if_none(none);
    output.report(&limits, Some(rows), |table| head(&limits) + &table)
}

/// The text above the defaults.
fn head(limits: &Limits<'_>) -> String {
    let types = limits.types.iter();
    let types: Vec<_> = types.map(|one| one.as_deref().unwrap_or(NO_TYPE)).collect();
    let projects = limits.projects.values();
    let children = match projects.filter(|one| one.parent.is_some()).count() {
        0 => String::new(),
        count => format!(", {count} of them with a parent"),
    };
    format!(
        "mode        {}: {}\ngeneration  {}\nupdated at  {}\ntypes       {}\nprojects    {}{children}\n\n",
        limits.mode.as_str(),
        effect(limits.mode),
        limits.generation,
        word(&limits.updated_at),
        first_names(types.iter().copied()),
        limits.projects.len()
    )
}

/// What happens to a write above a limit.
fn effect(mode: LimitMode) -> &'static str {
    match mode {
        LimitMode::Report => "a write above a limit is done and reported",
        LimitMode::Enforce => "a write above a limit is refused",
    }
}

/// The limit of projects that have no own limit of a resource.
#[derive(Serialize)]
struct DefaultLimit {
    resource: String,
    limit: Option<u64>,
}

/// A row for each default.
fn defaults(limits: &Limits<'_>) -> Rows<DefaultLimit> {
    let all = limits
        .defaults
        .iter()
        .map(|(resource, limit)| DefaultLimit {
            resource: resource.to_string(),
            limit: *limit,
        });
    Rows::new(all.collect())
        .column("resource", |row| row.resource.clone())
        .column("limit", |row| row.limit)
        .shown_as(|row, _| {
            let limit = row.limit.map(|limit| amount(&row.resource, limit as f64));
            Some(limit.unwrap_or_else(|| "unlimited".to_owned()))
        })
}

async fn list(content: &Content, filters: &Filters) -> anyhow::Result<String> {
    let found = usages(content, filters).await?;
    let none = match (&filters.project, filters.over) {
        (None, false) => "no limits found".to_owned(),
        (None, true) => "no usage is above a limit".to_owned(),
        (Some(project), false) => format!("no limits of the project {project:?} found"),
        (Some(project), true) => format!("no usage of the project {project:?} is above a limit"),
    };
    content.source.output.rows(listed(found).if_none(none))
}

/// The projects that match the filters, from all pages.
async fn usages(
    content: &Content,
    filters: &Filters,
) -> Result<Vec<LimitedProject<'static>>, Error> {
    let path = format!("{EXTENSIONS}/limits/usage?limit=1000");
    let request = filtered(&path, &cell(filters));
    let mut found = Vec::new();
    let mut marker = String::new();
    loop {
        let page = match marker.as_str() {
            "" => request.clone(),
            marker => request.clone().query("marker", marker),
        };
        let answer: LimitUsagePage<'_> = content.ask(page).await?;
        found.extend(answer.projects);
        // A page may be empty. With a marker that does not advance, the loop would not end.
        match answer.next {
            Some(next) if *next > *marker => marker = next.into_owned(),
            _ => return Ok(found),
        }
    }
}

/// The usage of a resource by a project.
#[derive(Serialize)]
struct Listed {
    project_id: String,
    parent: Option<String>,
    resource: String,
    used: u64,
    limit: u64,
}

impl Listed {
    /// The used part of the limit, by which rows are sorted.
    fn part(&self) -> f64 {
        self.used as f64 / self.limit.max(1) as f64
    }

    fn text(&self) -> String {
        let limit = match i64::try_from(self.limit) {
            Ok(limit) => Capacity::Units(limit),
            Err(_) => Capacity::Large(self.limit as f64),
        };
        share(&self.resource, self.used, limit)
    }
}

/// A row for each project and limited resource.
fn listed(projects: Vec<LimitedProject<'static>>) -> Rows<Listed> {
    let mut rows = Vec::new();
    for project in projects {
        for (resource, usage) in project.resources {
            rows.push(Listed {
                project_id: project.project_id.to_string(),
                parent: project.parent.as_ref().map(ToString::to_string),
                resource: resource.into_owned(),
                used: usage.used,
                limit: usage.limit,
            });
        }
    }
    Rows::new(rows)
        .column("project", |row| row.project_id.clone())
        .column("resource", |row| row.resource.clone())
        .readable("use", Listed::part, |row| Some(row.text()))
        .raw("used", |row| row.used)
        .raw("limit", |row| row.limit)
        .wide("parent", |row| row.parent.clone())
}

async fn set_mode(content: &Content, mode: LimitMode) -> anyhow::Result<String> {
    let mut limits = document::read(content).await?;
    let name = mode.as_str();
    if limits.mode == mode {
        return Ok(format!(
            "nothing was changed: the limits have the mode {name} already\n"
        ));
    }
    limits.mode = mode;
    let generation = document::write(content, &limits).await?;
    Ok(format!(
        "the limits have the mode {name} now: {} (generation {generation})\n",
        effect(mode)
    ))
}

#[cfg(test)]
mod tests;
