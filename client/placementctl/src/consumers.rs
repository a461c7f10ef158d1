//! `placementctl consumers`: allocations of instances, migrations and other consumers.

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use placement_client::encode;
use placement_wire::consumers::Consumer;
use placement_wire::upstream::{Allocations, Provider};
use serde::Serialize;
use serde_json::json;

use crate::content::Content;
use crate::held::{Amounts, add_held};
use crate::holds::ends;
use crate::moment::seconds;
use crate::providers::NO_HOLDERS;
use crate::render::{Rows, cell, print, word};
use crate::{audit, label, release};

#[derive(Args)]
pub(crate) struct ConsumersArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List consumers and the sums of their allocations.
    ///
    /// A consumer must match all given conditions.
    List(Filters),
    /// Show the allocations of one consumer.
    Show {
        /// UUID of the consumer.
        uuid: String,
    },
    /// Find leaked allocations, and write a plan for their release.
    Audit(audit::AuditArgs),
    /// Release the allocations of a plan, or restore released allocations.
    Release(release::ReleaseArgs),
    /// Set the type of consumers without one, by Nova's lists.
    ///
    /// Consumers without a type count as `unknown` in usages and quota by consumer type. A server
    /// in Nova's lists gets the type INSTANCE, and a migration the type MIGRATION. Without --apply,
    /// the command only shows them.
    Label(label::LabelArgs),
}

/// Query parameters of `GET /placementd/v1/consumers`.
#[derive(Args, Serialize)]
struct Filters {
    /// Show only consumers with allocations on this provider, given by UUID, name, or the beginning
    /// of its name.
    #[arg(long)]
    provider: Option<String>,
    /// Show only consumers of this project.
    #[arg(long)]
    project: Option<String>,
    /// Show only consumers of this user.
    #[arg(long)]
    user: Option<String>,
    /// Show only consumers of this type, such as INSTANCE.
    #[arg(long)]
    r#type: Option<String>,
    /// Show only consumers with allocations of this resource class.
    #[arg(long)]
    class: Option<String>,
    /// Show only consumers that have not changed for this long, such as 90s, 15m, 12h or 7d.
    #[arg(long, value_name = "AGE", value_parser = seconds)]
    older_than: Option<u64>,
    /// Show only consumers with allocations in two or more trees, such as evacuated or doubled
    /// instances, or consumers of shared storage.
    #[arg(long)]
    several_trees: bool,
}

pub(crate) async fn run(content: &Content, args: ConsumersArgs) -> anyhow::Result<ExitCode> {
    let mut filters = match args.action {
        Action::List(filters) => filters,
        Action::Show { uuid } => {
            print(&show(content, &uuid).await?)?;
            return Ok(ExitCode::SUCCESS);
        }
        Action::Audit(args) => return audit::run(content, args).await,
        Action::Release(args) => return release::run(content, args).await,
        Action::Label(args) => return labels(content, args).await,
    };
    if let Some(provider) = &mut filters.provider {
        *provider = content.provider(provider).await?;
    }
    let output = &content.source.output;
    // Sorting needs all rows. Otherwise one row above the limit is read, to detect that there are
    // more rows.
    let enough = output.limit.filter(|_| output.sort.is_none());
    let asked = serde_json::to_value(&filters)?;
    let mut found = Vec::new();
    let take = |consumer| {
        found.push(consumer);
        enough.is_none_or(|enough| found.len() <= enough)
    };
    let done = content.each_consumer(&asked, take).await;
    content
        .checked_class(done, filters.class.as_deref())
        .await?;
    let none = if found.is_empty() && output.is_table() {
        let given = [
            ("project", filters.project.as_ref()),
            ("user", filters.user.as_ref()),
            ("type", filters.r#type.as_ref()),
        ];
        match content.no_consumers(&given).await? {
            Some(none) => none,
            None if filters.provider.is_some() => NO_HOLDERS.to_owned(),
            None => "no consumers found".to_owned(),
        }
    } else {
        String::new()
    };
    print(&output.rows(listed(found).if_none(none))?)?;
    Ok(ExitCode::SUCCESS)
}

async fn labels(content: &Content, args: label::LabelArgs) -> anyhow::Result<ExitCode> {
    if let Some(plan) = &args.apply {
        return label::apply(content, plan).await;
    }
    let (found, code) = label::find(content, args).await?;
    let rows = listed(found).if_none("no consumer gets a type");
    print(&content.source.output.rows(rows)?)?;
    Ok(code)
}

/// A consumer, and the sum of its allocations by resource class.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    consumer: Consumer<'static>,
    resources: Amounts,
}

/// A row for each consumer with the sum of its allocations.
fn listed(consumers: Vec<Consumer<'static>>) -> Rows<Listed> {
    let rows = consumers.into_iter().map(|consumer| {
        let mut resources = Amounts::new();
        add_held(&mut resources, &consumer.allocations);
        Listed {
            consumer,
            resources,
        }
    });
    Rows::new(rows.collect())
        .column("uuid", |row| row.consumer.uuid.clone())
        .column("type", |row| row.consumer.r#type.clone())
        .column("project", |row| row.consumer.project_id.clone())
        .column("updated_at", |row| row.consumer.updated_at.clone())
        .column("trees", |row| row.consumer.trees)
        .column("resources", |row| row.resources.clone())
        .wide("user", |row| row.consumer.user_id.clone())
        .wide("generation", |row| row.consumer.generation)
        .wide("hold", |row| row.consumer.hold.as_ref().map(ends))
}

/// Allocated amount of one resource class on one provider.
#[derive(Serialize)]
struct Held {
    #[serde(flatten)]
    provider: Provider,
    class: String,
    amount: u64,
}

async fn show(content: &Content, uuid: &str) -> anyhow::Result<String> {
    let path = format!("/allocations/{}", encode(uuid));
    let answer: Allocations = content.get(&path).await?;
    let mut items = Vec::new();
    for (provider, held) in &answer.allocations {
        let found = content
            .providers(json!({ "uuid": provider }))
            .await?
            .into_iter()
            .next()
            .unwrap_or_default();
        items.extend(held.resources.iter().map(|(class, amount)| Held {
            provider: found.clone(),
            class: class.clone(),
            amount: *amount,
        }));
    }
    if items.is_empty() {
        bail!("consumer {uuid:?} does not exist or has no allocations");
    }
    let head = format!(
        "type        {}\nproject     {}\nuser        {}\ngeneration  {}\n\n",
        word(&answer.consumer_type),
        word(&answer.project_id),
        word(&answer.user_id),
        word(answer.consumer_generation)
    );
    let rows = Rows::new(items)
        .column("provider", |held| held.provider.name.clone())
        .column("uuid", |held| held.provider.uuid.clone())
        .column("class", |held| held.class.clone())
        .column("amount", |held| held.amount)
        .wide("root", |held| held.provider.root_provider_uuid.clone());
    let output = &content.source.output;
    output.report(&cell(&answer), Some(rows), |table| head + &table)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::render::Format;

    #[test]
    fn a_consumer_is_a_row_with_the_sum_of_its_allocations() {
        let consumer = json!({"uuid": "c", "type": null, "project_id": "p", "user_id": "u", "generation": 2, "trees": 2,
            "updated_at": "2026-11-26T20:00:00Z", "allocations": [
                {"provider": {"uuid": "1", "name": "one"}, "resources": {"VCPU": 2, "MEMORY_MB": 512}},
                {"provider": {"uuid": "2", "name": "two"}, "resources": {"VCPU": 3}}]});
        let consumer = Consumer::deserialize(consumer).unwrap();
        let printed = Format::Csv.printed(listed(vec![consumer]));
        assert_eq!(
            printed.lines().last(),
            Some("c,,p,2026-11-26T20:00:00Z,2,MEMORY_MB=512 VCPU=5,u,2,")
        );
    }

    #[test]
    fn all_columns_have_the_end_of_a_hold() {
        let consumer =
            json!({"uuid": "c", "hold": {"for": ["d"], "lease_until": "2026-11-26T21:00:00Z"}});
        let consumer = Consumer::deserialize(consumer).unwrap();
        let printed = Format::Wide.printed(listed(vec![consumer]));
        assert!(
            printed.ends_with("  lease until 2026-11-26T21:00:00Z\n"),
            "{printed}"
        );
    }
}
