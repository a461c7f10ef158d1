//! `placementctl holds`: allocations that are kept for other consumers, or for a limited time.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use placement_client::{ApiRequest, Error, encode};
use placement_wire::consumers::Consumer;
use placement_wire::holds::{Hold, HoldTerm};
use serde::Serialize;
use serde_json::json;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::content::{Content, EXTENSIONS};
use crate::held::{Amounts, add_held};
use crate::moment::{seconds, span, timestamp};
use crate::render::{Rows, first_names};

#[derive(Args)]
pub(crate) struct HoldsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List holds; the hold that ends next comes first.
    List(Filters),
    /// Change when the hold of a consumer ends.
    ///
    /// A hold with a due time can only get another due time, since others may rely on it.
    // The usage line that clap generates is longer than 80 columns.
    #[command(
        override_usage = "placementctl holds renew <CONSUMER> <--lease DURATION|--due TIME|--open>"
    )]
    Renew {
        /// UUID of the consumer that has the hold.
        #[arg(value_name = "CONSUMER")]
        uuid: String,
        #[command(flatten)]
        end: NewEnd,
    },
}

#[derive(Args)]
struct Filters {
    /// Show only holds of consumers of this project.
    #[arg(long, value_name = "ID")]
    project: Option<String>,
    /// Show only holds whose due time has passed.
    #[arg(long)]
    overdue: bool,
}

/// The new end of a hold.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct NewEnd {
    /// Time from now after which the hold ends unless it is renewed or confirmed, such as 90s, 15m,
    /// 12h or 7d. The maximum is 31d.
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    lease: Option<u32>,
    /// Time from which on the hold is overdue, such as 2026-12-24T06:00:00Z. The hold does not end
    /// by itself.
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    due: Option<String>,
    /// Remove the end: only a write ends the hold.
    #[arg(long)]
    open: bool,
}

impl NewEnd {
    fn term(self) -> HoldTerm {
        if self.open {
            return HoldTerm::default();
        }
        HoldTerm {
            lease_s: self.lease,
            due: self.due,
        }
    }
}

/// Parses the duration of a lease into seconds.
pub(crate) fn lease(text: &str) -> Result<u32, String> {
    let seconds = seconds(text)?;
    u32::try_from(seconds).map_err(|_| "this duration is too long".to_owned())
}

pub(crate) async fn run(content: &Content, args: HoldsArgs) -> anyhow::Result<String> {
    match args.action {
        Action::List(filters) => list(content, filters).await,
        Action::Renew { uuid, end } => renew(content, &uuid, end.term()).await,
    }
}

async fn list(content: &Content, filters: Filters) -> anyhow::Result<String> {
    let asked = json!({ "held": true, "project": filters.project });
    let mut found = content.consumers(&asked).await?;
    if filters.overdue {
        found.retain(|consumer| consumer.hold.as_ref().is_some_and(is_overdue));
    }
    let output = &content.source.output;
    let none = if found.is_empty() && output.is_table() {
        nothing(content, filters.project).await?
    } else {
        String::new()
    };
    output.rows(listed(found).if_none(none))
}

/// The message for an empty list: names the project if it has no consumers at all.
async fn nothing(content: &Content, project: Option<String>) -> Result<String, Error> {
    if let Some(project) = project
        && !content.has_consumer(&json!({ "project": project })).await?
    {
        return Ok(format!(
            "no holds found: no consumer has the project {project:?}"
        ));
    }
    Ok("no holds found".to_owned())
}

/// A consumer with a hold.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    consumer: Consumer<'static>,
    /// Sum of the allocations by resource class.
    resources: Amounts,
    /// Names of the root providers.
    hosts: BTreeSet<String>,
    /// When the hold ends, as text.
    ends: String,
}

impl Listed {
    fn kept_for(&self) -> &[String] {
        let hold = self.consumer.hold.as_ref();
        hold.map_or(&[], |hold| hold.kept_for.as_slice())
    }

    fn lease_until(&self) -> Option<String> {
        self.consumer.hold.as_ref()?.lease_until.clone()
    }

    fn due(&self) -> Option<String> {
        self.consumer.hold.as_ref()?.due.clone()
    }

    /// Time at which the lease ends or the hold becomes overdue.
    fn end(&self) -> Option<String> {
        self.lease_until().or_else(|| self.due())
    }
}

/// A row for each hold, sorted by its end; holds without an end come last.
fn listed(consumers: Vec<Consumer<'static>>) -> Rows<Listed> {
    let row = |consumer: Consumer<'static>| {
        let ends = ends(consumer.hold.as_ref()?);
        let mut resources = Amounts::new();
        add_held(&mut resources, &consumer.allocations);
        let roots = consumer.allocations.iter().map(|one| &one.root.name);
        Some(Listed {
            resources,
            hosts: roots.map(ToString::to_string).collect(),
            ends,
            consumer,
        })
    };
    let mut rows: Vec<_> = consumers.into_iter().filter_map(row).collect();
    // The times are in UTC with whole seconds, so their texts have the same order.
    rows.sort_by_cached_key(|row| {
        let end = row.end();
        (end.is_none(), end)
    });
    Rows::new(rows)
        .column("consumer", |row| row.consumer.uuid.clone())
        .column("type", |row| row.consumer.r#type.clone())
        .column("project", |row| row.consumer.project_id.clone())
        .column("hosts", |row| row.hosts.clone())
        .column("for", |row| row.kept_for().to_vec())
        .shown_as(|row, _| Some(first_names(row.kept_for().iter().map(String::as_str))))
        .readable("ends", Listed::end, |row| Some(row.ends.clone()))
        .raw("lease_until", Listed::lease_until)
        .raw("due", Listed::due)
        .wide("resources", |row| row.resources.clone())
        .wide("user", |row| row.consumer.user_id.clone())
        .wide("generation", |row| row.consumer.generation)
        .wide("updated_at", |row| row.consumer.updated_at.clone())
}

/// When a hold ends, as text.
pub(crate) fn ends(hold: &Hold) -> String {
    match (&hold.lease_until, &hold.due) {
        (Some(until), _) => format!("lease until {until}"),
        (None, Some(due)) if is_overdue(hold) => format!("overdue since {due}"),
        (None, Some(due)) => format!("due {due}"),
        (None, None) => "no end".to_owned(),
    }
}

/// Whether the due time of a hold has passed.
fn is_overdue(hold: &Hold) -> bool {
    let due = hold.due.as_deref();
    let due = due.and_then(|due| OffsetDateTime::parse(due, &Rfc3339).ok());
    due.is_some_and(|due| due <= OffsetDateTime::now_utc())
}

async fn renew(content: &Content, uuid: &str, term: HoldTerm) -> anyhow::Result<String> {
    let path = format!("{EXTENSIONS}/holds/{}", encode(uuid));
    content.send(ApiRequest::put(&path).json(&term)).await?;
    Ok(renewed(uuid, &term))
}

/// The result of a renewal as text.
fn renewed(uuid: &str, term: &HoldTerm) -> String {
    let end = match (term.lease_s, &term.due) {
        (Some(lease), _) => {
            let lease = span(lease.into());
            format!("ends in {lease} unless it is renewed or confirmed")
        }
        (None, Some(due)) => format!("is due {due}"),
        (None, None) => "has no end".to_owned(),
    };
    format!("the hold of consumer {uuid} {end}\n")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::render::Format;

    fn consumer(uuid: &str, hold: &Value) -> Consumer<'static> {
        let consumer = json!({"uuid": uuid, "type": "INSTANCE", "project_id": "p", "user_id": "u", "generation": 1,
            "updated_at": "2026-11-26T20:00:00Z", "hold": hold, "allocations": [
                {"provider": {"name": "cmp-1_numa0"}, "root": {"name": "cmp-1"}, "resources": {"VCPU": 2}},
                {"provider": {"name": "cmp-1_numa1"}, "root": {"name": "cmp-1"}, "resources": {"VCPU": 1}}]});
        Consumer::deserialize(consumer).unwrap()
    }

    fn holds() -> Vec<Consumer<'static>> {
        vec![
            consumer("open", &json!({"for": ["a", "b"]})),
            consumer("due", &json!({"for": [], "due": "9999-12-24T06:00:00Z"})),
            consumer(
                "lease",
                &json!({"for": ["a"], "lease_until": "2026-11-26T21:00:00Z"}),
            ),
            consumer(
                "late",
                &json!({"for": ["a"], "due": "2001-01-01T00:00:00Z"}),
            ),
            consumer("ordinary", &Value::Null),
        ]
    }

    #[test]
    fn the_hold_that_ends_next_comes_first() {
        let printed = Format::Table.printed(listed(holds()));
        let expected = "\
CONSUMER  TYPE      PROJECT  HOSTS  FOR   ENDS
late      INSTANCE  p        cmp-1  a     overdue since 2001-01-01T00:00:00Z
lease     INSTANCE  p        cmp-1  a     lease until 2026-11-26T21:00:00Z
due       INSTANCE  p        cmp-1  -     due 9999-12-24T06:00:00Z
open      INSTANCE  p        cmp-1  a, b  no end
";
        assert_eq!(printed, expected);
    }

    #[test]
    fn csv_has_the_times_of_a_hold() {
        let printed = Format::Csv.printed(listed(holds()));
        let lines: Vec<_> = printed.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "consumer,type,project,hosts,for,lease_until,due,resources,user,generation,updated_at",
                "late,INSTANCE,p,cmp-1,a,,2001-01-01T00:00:00Z,VCPU=3,u,1,2026-11-26T20:00:00Z",
                "lease,INSTANCE,p,cmp-1,a,2026-11-26T21:00:00Z,,VCPU=3,u,1,2026-11-26T20:00:00Z",
            ]
        );
    }

    #[test]
    fn a_renewal_names_the_new_end() {
        let of = |lease_s: Option<u32>, due: Option<&str>| {
            let due = due.map(str::to_owned);
            renewed("c", &HoldTerm { lease_s, due })
        };
        assert_eq!(
            of(Some(7200), None),
            "the hold of consumer c ends in 2 h 0 min unless it is renewed or confirmed\n"
        );
        assert_eq!(
            of(None, Some("2026-12-24T06:00:00Z")),
            "the hold of consumer c is due 2026-12-24T06:00:00Z\n"
        );
        assert_eq!(of(None, None), "the hold of consumer c has no end\n");
    }

    #[test]
    fn a_lease_is_a_duration_with_a_unit() {
        assert_eq!(lease("2h"), Ok(7200));
        for text in ["soon", "-1s", "50000d"] {
            assert!(lease(text).is_err(), "{text:?}");
        }
    }
}
