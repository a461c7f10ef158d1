//! `placementctl usages`: what projects use.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use placement_client::ApiRequest;
use serde_json::{Value, json};

use crate::content::Content;
use crate::held::{Amounts, add, add_held};
use crate::render::{Rows, pairs};

#[derive(Args)]
pub(crate) struct Which {
    /// This project alone.
    #[arg(long)]
    project: Option<String>,
}

/// By project and type of consumer; next to classes the API's `consumer_count`.
type Sums = BTreeMap<(String, String), Amounts>;

pub(crate) async fn show(content: &Content, which: Which) -> anyhow::Result<String> {
    let mut sums = Sums::new();
    if let Some(project) = &which.project {
        let request = ApiRequest::get("/usages").query("project_id", project);
        for (kind, amounts) in pairs(&content.ask(request).await?["usages"]) {
            add(
                sums.entry((project.clone(), kind.clone())).or_default(),
                amounts,
            );
        }
    } else {
        let consumers = content.consumers(&Value::Null, None).await?;
        consumers.iter().for_each(|one| take(&mut sums, one));
    }
    content.source.output.rows(listed(sums))
}

/// Adds what a consumer holds. The API calls a missing type `unknown`.
fn take(sums: &mut Sums, consumer: &Value) {
    let text = |key: &str, missing: &str| consumer[key].as_str().unwrap_or(missing).to_owned();
    let key = (text("project_id", ""), text("type", "unknown"));
    let sum = sums.entry(key).or_default();
    add(sum, &json!({"consumer_count": 1}));
    add_held(sum, consumer);
}

/// A row for each project and type, with a column for each class.
fn listed(sums: Sums) -> Rows {
    let classes: BTreeSet<_> = sums.values().flat_map(|sum| sum.keys().cloned()).collect();
    let mut columns = "project type consumers:consumer_count".to_owned();
    for class in classes.iter().filter(|class| *class != "consumer_count") {
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
    fn consumers_add_up_to_what_the_api_says() {
        let consumer = json!({"project_id": "p", "type": null, "allocations": [
            {"resources": {"VCPU": 2, "MEMORY_MB": 5}}, {"resources": {"VCPU": 1}}]});
        let mut walked = Sums::new();
        take(&mut walked, &consumer);
        take(&mut walked, &consumer);
        let mut asked = Sums::new();
        let answer = json!({"VCPU": 6, "MEMORY_MB": 10, "consumer_count": 2});
        let key = ("p".to_owned(), "unknown".to_owned());
        add(asked.entry(key).or_default(), &answer);
        assert_eq!(walked, asked);
        let expected = "project,type,consumers,MEMORY_MB,VCPU\np,unknown,2,10,6\n";
        assert_eq!(Format::Csv.printed(listed(walked)), expected);
    }
}
