//! `placementctl usages`: usage of projects.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use placement_wire::consumers::Consumer;
use placement_wire::events::NO_TYPE;
use serde::Serialize;
use serde_json::json;

use crate::content::{Content, none_has};
use crate::held::{Amounts, add_held};
use crate::render::Rows;

#[derive(Args)]
pub(crate) struct UsagesArgs {
    /// Show only this project.
    #[arg(long)]
    project: Option<String>,
}

/// Key of the number of consumers, as in `GET /usages`.
const COUNT: &str = "consumer_count";

/// Amounts and number of consumers by project and consumer type.
type Sums = BTreeMap<(String, String), Amounts>;

pub(crate) async fn show(content: &Content, args: UsagesArgs) -> anyhow::Result<String> {
    let filters = json!({ "project": args.project });
    let mut sums = Sums::new();
    let add = |consumer| {
        take(&mut sums, &consumer);
        true
    };
    content.each_consumer(&filters, add).await?;
    let none = match &args.project {
        Some(project) => none_has("project", project),
        None => "no consumers found".to_owned(),
    };
    content.source.output.rows(listed(sums).if_none(none))
}

/// Adds the allocations of a consumer. The API names a missing type `unknown`.
fn take(sums: &mut Sums, consumer: &Consumer<'_>) {
    let consumer_type = consumer.r#type.as_deref().unwrap_or(NO_TYPE);
    let key = (consumer.project_id.to_string(), consumer_type.to_owned());
    let sum = sums.entry(key).or_default();
    *sum.entry(COUNT.to_owned()).or_default() += 1;
    add_held(sum, &consumer.allocations);
}

/// Sum of the allocations of all consumers of one type in a project.
#[derive(Serialize)]
struct Usage {
    project: String,
    r#type: String,
    /// Used amounts by class, and the number of consumers.
    #[serde(flatten)]
    amounts: Amounts,
}

/// A row for each project and type, with a column for each class.
fn listed(sums: Sums) -> Rows<Usage> {
    let classes: BTreeSet<_> = sums.values().flat_map(|sum| sum.keys().cloned()).collect();
    let usages = sums.into_iter().map(|((project, kind), amounts)| Usage {
        project,
        r#type: kind,
        amounts,
    });
    let rows = Rows::new(usages.collect())
        .column("project", |usage| usage.project.clone())
        .column("type", |usage| usage.r#type.clone())
        .column("consumers", amount(COUNT));
    let classes = classes.iter().filter(|class| *class != COUNT);
    classes.fold(rows, |rows, class| {
        let name = class.clone();
        rows.column(class.clone(), amount(class))
            .in_units(move |_| name.clone())
    })
}

/// Returns a function that reads the used amount of a class.
fn amount(class: &str) -> impl Fn(&Usage) -> Option<u64> + use<> {
    let class = class.to_owned();
    move |usage| usage.amounts.get(&class).copied()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::render::Format;

    #[test]
    fn consumers_add_up_by_project_and_type() {
        let consumer = json!({"project_id": "p", "type": null, "allocations": [
            {"resources": {"VCPU": 2, "MEMORY_MB": 5}}, {"resources": {"VCPU": 1}}]});
        let consumer = Consumer::deserialize(&consumer).unwrap();
        let mut walked = Sums::new();
        take(&mut walked, &consumer);
        take(&mut walked, &consumer);
        let expected = "project,type,consumers,MEMORY_MB,VCPU\np,unknown,2,10,6\n";
        assert_eq!(Format::Csv.printed(listed(walked)), expected);
    }
}
