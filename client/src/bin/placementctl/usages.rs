//! `placementctl usages`: usage of projects.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde_json::{Value, json};

use crate::content::Content;
use crate::held::{Amounts, add_held};
use crate::render::Rows;

#[derive(Args)]
pub(crate) struct Which {
    /// Show only this project.
    #[arg(long)]
    project: Option<String>,
}

/// Key of the number of consumers, as in `GET /usages`.
const COUNT: &str = "consumer_count";

/// Amounts and number of consumers by project and consumer type.
type Sums = BTreeMap<(String, String), Amounts>;

pub(crate) async fn show(content: &Content, which: Which) -> anyhow::Result<String> {
    let filters = json!({ "project": which.project });
    let mut sums = Sums::new();
    let add = |consumer| {
        take(&mut sums, &consumer);
        true
    };
    content.each_consumer(&filters, add).await?;
    content.source.output.rows(listed(sums))
}

/// Adds the allocations of a consumer. The API names a missing type `unknown`.
fn take(sums: &mut Sums, consumer: &Value) {
    let text = |key: &str, missing: &str| consumer[key].as_str().unwrap_or(missing).to_owned();
    let key = (text("project_id", ""), text("type", "unknown"));
    let sum = sums.entry(key).or_default();
    *sum.entry(COUNT.to_owned()).or_default() += 1;
    add_held(sum, consumer);
}

/// A row for each project and type, with a column for each class.
fn listed(sums: Sums) -> Rows {
    let classes: BTreeSet<_> = sums.values().flat_map(|sum| sum.keys().cloned()).collect();
    let mut columns = "project type consumers:consumer_count".to_owned();
    for class in classes.iter().filter(|class| *class != COUNT) {
        columns += &format!(" {class}");
    }
    let items = sums.into_iter().map(|((project, kind), sum)| {
        let mut item = json!(sum);
        (item["project"], item["type"]) = (json!(project), json!(kind));
        item
    });
    Rows::new(&columns, items.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Format;

    #[test]
    fn consumers_add_up_by_project_and_type() {
        let consumer = json!({"project_id": "p", "type": null, "allocations": [
            {"resources": {"VCPU": 2, "MEMORY_MB": 5}}, {"resources": {"VCPU": 1}}]});
        let mut walked = Sums::new();
        take(&mut walked, &consumer);
        take(&mut walked, &consumer);
        let expected = "project,type,consumers,MEMORY_MB,VCPU\np,unknown,2,10,6\n";
        assert_eq!(Format::Csv.printed(listed(walked)), expected);
    }
}
