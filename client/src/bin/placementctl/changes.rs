//! `placementctl history`, and how a change is displayed.

use clap::Args;
use placement_client::ApiRequest;
use placement_words::rest;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::render::{Rows, cut, list, phrase, word};

/// Number of entries to show without `--limit`.
const LIMIT_USUAL: usize = 100;
/// Largest page of the API, in entries.
const PAGE_MAX: usize = 1000;

/// Query parameters of `/placementd/v1/history` and `/placementd/v1/events`. A change must match
/// all of them.
#[derive(Args, Serialize)]
pub(crate) struct Filters {
    /// Show only changes of these kinds, separated by commas: provider, inventory, trait,
    /// aggregate, class, consumer, allocation.
    #[arg(long, value_name = "KINDS")]
    kind: Option<String>,
    /// Show only changes of this provider, given by UUID, name, or the beginning of its name; a
    /// deleted provider by UUID.
    #[arg(long)]
    provider: Option<String>,
    /// Show only changes of this consumer.
    #[arg(long)]
    consumer: Option<String>,
    /// Show only changes of consumers of this project.
    #[arg(long)]
    project: Option<String>,
    /// Show only changes of this resource class.
    #[arg(long)]
    class: Option<String>,
}

impl Filters {
    /// A request with these filters.
    pub(crate) async fn request(
        mut self,
        content: &Content,
        path: &str,
    ) -> anyhow::Result<ApiRequest> {
        if let Some(given) = &mut self.provider {
            // A deleted provider has a history, too.
            let gone = given.parse().ok().map(|uuid: Uuid| uuid.to_string());
            *given = match (content.provider(given).await, gone) {
                (Err(_), Some(uuid)) => uuid,
                (found, _) => found?,
            };
        }
        let path = format!("{EXTENSIONS}/{path}");
        Ok(filtered(&path, &serde_json::to_value(self)?))
    }
}

pub(crate) async fn show(content: &Content, filters: Filters) -> anyhow::Result<String> {
    let output = &content.source.output;
    let request = filters.request(content, "history").await?;
    // Sorting applies to the default number of entries.
    let enough = output.limit.unwrap_or(LIMIT_USUAL);
    let (mut entries, mut before) = (Vec::new(), Value::Null);
    let mut answer = loop {
        let left = (enough - entries.len()).clamp(1, PAGE_MAX);
        let mut page = request.clone().query("limit", &left.to_string());
        if let Some(before) = before.as_str() {
            page = page.query("before", before);
        }
        let answer = content.ask(page).await?;
        entries.extend_from_slice(list(&answer["history"]));
        before = answer["next"].clone();
        if entries.len() >= enough || before.is_null() {
            break answer;
        }
    };
    if !before.is_null() {
        cut(&format!("the last {} entries", entries.len()));
    }
    let rows = listed(&entries);
    answer["history"] = json!(entries);
    output.report(&answer, Some(rows), |table| match before {
        Value::Null => table + &phrase("changes up to {oldest} are not kept any more\n", &answer),
        _ => table,
    })
}

/// A row for each change.
fn listed(entries: &[Value]) -> Rows {
    let columns = "at index verb kind key change +request_id";
    Rows::new(columns, entries.iter().flat_map(changes).collect())
}

/// The changes of an entry, each with the time and index of the entry and a readable difference.
pub(crate) fn changes(entry: &Value) -> Vec<Value> {
    let mut changes = list(&entry["changes"]).to_vec();
    for change in &mut changes {
        for member in ["at", "index", "verb", "request_id"] {
            change[member] = entry[member].clone();
        }
        let (before, after) = (&change["before"], &change["after"]);
        let words = [(before, after), (after, before)].map(|(one, other)| word(&rest(one, other)));
        change["change"] = json!(words.join(" -> "));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Format;

    #[test]
    fn a_change_is_a_row_with_its_difference() {
        let provider = |generation| json!({"name": "a\u{1b}", "generation": generation});
        let entry = json!({"index": "7.12", "at": "2026-11-27T06:00:00Z", "verb": "PutInventory", "changes": [
            {"kind": "provider", "key": {"uuid": "u"}, "before": provider(1), "after": provider(2)},
            {"kind": "allocation", "key": {"consumer": "c"}, "before": {"resources": {"VCPU": 2}}, "after": null},
            {"kind": "trait", "key": {"trait": "A"}, "before": null, "after": {"name": "A"}}]});
        let printed = Format::Csv.printed(listed(&[entry]));
        let lines: Vec<_> = printed.lines().skip(1).collect();
        let from = "2026-11-27T06:00:00Z,7.12,PutInventory";
        assert_eq!(
            lines,
            [
                format!("{from},provider,uuid=u,generation=1 -> generation=2,"),
                format!("{from},allocation,consumer=c,resources=VCPU=2 -> -,"),
                // A spreadsheet would take a leading minus for a formula.
                format!("{from},trait,trait=A,'- -> name=A,"),
            ]
        );
    }
}
