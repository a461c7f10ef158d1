//! `placementctl history`, and the text form of a change.

use std::borrow::Cow;
use std::collections::BTreeSet;

use clap::Args;
use placement_client::{ApiRequest, Error};
use placement_wire::events::History;
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::content::{AnyChange, AnyEntry, Content, EXTENSIONS, filtered, one_unit};
use crate::names::Names;
use crate::render::{Rows, cell, cut, pairs, warn, word};

/// Number of entries to read, and of rows of a table, without `--limit`.
const LIMIT_USUAL: usize = 50;
/// Largest page of the API, in entries.
const PAGE_MAX: usize = 1000;

/// Query parameters of `/placementd/v1/history` and `/placementd/v1/events`. A change or value must
/// match all of them.
#[derive(Args, Serialize)]
pub(crate) struct Filters {
    /// Show only these kinds, separated by commas: provider, inventory, trait, aggregate, class,
    /// consumer, allocation.
    #[arg(long, value_name = "KINDS")]
    kind: Option<String>,
    /// Show only this provider and its inventories, traits, aggregates and allocations. Given by
    /// UUID, name, or the beginning of its name; a deleted provider by UUID.
    #[arg(long)]
    provider: Option<String>,
    /// Show only this consumer and its allocations.
    #[arg(long)]
    consumer: Option<String>,
    /// Show only the consumers of this project and their allocations.
    #[arg(long)]
    project: Option<String>,
    /// Show only this resource class and its inventories and allocations.
    #[arg(long)]
    class: Option<String>,
}

/// Query parameters of `/placementd/v1/history`.
#[derive(Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    filters: Filters,
    /// Show only the changes of the request with this id, such as Nova's.
    #[arg(long)]
    request_id: Option<String>,
}

impl Filters {
    /// Warns if the resource class does not exist: its changes may be in the past or in the future,
    /// but its name is more likely misspelled.
    pub(crate) async fn check_class(&self, content: &Content) {
        if let Some(class) = &self.class
            && let Some(absent) = content.unknown_names(&one_unit(class)).await
        {
            warn(&absent);
        }
    }

    /// A request with these filters.
    pub(crate) async fn request(
        mut self,
        content: &Content,
        path: &str,
    ) -> anyhow::Result<ApiRequest> {
        if let Some(given) = &mut self.provider {
            // A deleted provider still has a history.
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

pub(crate) async fn show(content: &Content, args: HistoryArgs) -> anyhow::Result<String> {
    let output = &content.source.output;
    let filters = args.filters;
    let (class, project) = (filters.class.clone(), filters.project.clone());
    let mut request = filters.request(content, "history").await?;
    if let Some(id) = &args.request_id {
        request = request.query("request_id", id);
    }
    // Number of the newest entries to read; their rows are sorted afterwards.
    let enough = output.limit.unwrap_or(LIMIT_USUAL);
    let mut entries = Vec::new();
    let mut before: Option<String> = None;
    let (oldest, oldest_at) = loop {
        let left = (enough - entries.len()).clamp(1, PAGE_MAX);
        let mut page = request.clone().query("limit", &left.to_string());
        if let Some(before) = &before {
            page = page.query("before", before);
        }
        let answer: History<'_, AnyEntry> = content.ask(page).await?;
        entries.extend(answer.history);
        before = answer.next.map(Cow::into_owned);
        if entries.len() >= enough || before.is_none() {
            break (answer.oldest, answer.oldest_at);
        }
    };
    let none = if entries.is_empty() && output.is_table() {
        nothing(content, class, project).await?
    } else {
        String::new()
    };
    let mut names = Names::default();
    if output.is_table() {
        names.add(content, entries.iter().rev()).await;
    }
    let mut changes: Vec<_> = entries.iter().flat_map(changes).collect();
    // The standard classes and traits of a new cluster are hundreds of changes in one entry.
    let is_long = output.is_table() && output.limit.is_none() && changes.len() > LIMIT_USUAL;
    if is_long {
        cut(&format!("the newest {LIMIT_USUAL} changes"));
        changes.truncate(LIMIT_USUAL);
    } else if before.is_some() {
        cut(&format!("the newest {} entries", entries.len()));
    }
    let rows = listed(changes, names).if_none(none);
    let answer = History {
        history: entries,
        oldest,
        oldest_at,
        next: before.map(Cow::from),
    };
    output.report(&cell(&answer), Some(rows), |table| {
        if is_long || answer.next.is_some() {
            return table;
        }
        let oldest = word(&answer.oldest);
        let at = answer.oldest_at.as_deref();
        let at = at.map_or_else(String::new, |at| format!(" ({})", word(at)));
        format!("{table}changes up to {oldest}{at} are no longer available\n")
    })
}

/// The message for an empty list: names the filter that matches nothing at all.
async fn nothing(
    content: &Content,
    class: Option<String>,
    project: Option<String>,
) -> Result<String, Error> {
    let mut reason = None;
    if let Some(class) = class {
        reason = content.unknown_names(&one_unit(&class)).await;
    }
    if let (None, Some(project)) = (&reason, project)
        && !content.has_consumer(&json!({ "project": project })).await?
    {
        reason = Some(format!("no consumer has the project {project:?}"));
    }
    Ok(match reason {
        Some(reason) => format!("no changes found: {reason}"),
        None => "no changes found".to_owned(),
    })
}

/// A change, with the time and index of its entry and a readable difference.
#[derive(Serialize)]
pub(crate) struct Listed {
    pub(crate) at: Option<Cow<'static, str>>,
    pub(crate) index: Cow<'static, str>,
    pub(crate) verb: Cow<'static, str>,
    pub(crate) request_id: Option<Cow<'static, str>>,
    #[serde(flatten)]
    pub(crate) values: AnyChange,
    pub(crate) change: String,
}

/// A row for each change.
fn listed(changes: Vec<Listed>, names: Names) -> Rows<Listed> {
    Rows::new(changes)
        .column("at", |row| row.at.clone())
        .column("index", |row| row.index.clone())
        .column("verb", |row| spoken(&row.verb))
        .column("kind", |row| row.values.kind.clone())
        .column("key", |row| row.values.key.clone())
        .shown_as(move |_, key| Some(names.shown(key)))
        .column("change", |row| row.change.clone())
        .wide("request_id", |row| row.request_id.clone())
}

/// The changes of an entry.
pub(crate) fn changes(entry: &AnyEntry) -> impl Iterator<Item = Listed> {
    entry.changes.iter().map(|values| Listed {
        at: entry.at.clone(),
        index: entry.index.clone(),
        verb: entry.verb.clone(),
        request_id: entry.request_id.clone(),
        values: values.clone(),
        change: difference(values),
    })
}

/// The name of a command as separate words, such as "delete allocations".
pub(crate) fn spoken(verb: &str) -> String {
    let mut words = String::new();
    for c in verb.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

/// A new or deleted value, or the members that differ.
fn difference(change: &AnyChange) -> String {
    let [created, deleted] = match change.kind.as_str() {
        "allocation" => ["claimed", "released"],
        _ => ["created", "deleted"],
    };
    match (&change.before, &change.after) {
        (None, None) => String::new(),
        (None, Some(after)) => format!("{created} {}", word(members(after))),
        (Some(before), None) => format!("{deleted} {}", word(members(before))),
        (Some(before), Some(after)) => {
            let (before, after) = (members(before), members(after));
            let all = [before, after].into_iter().flat_map(pairs);
            let names: BTreeSet<&String> = all.map(|(name, _)| name).collect();
            let differ = names
                .into_iter()
                .map(|name| (name, before.get(name), after.get(name)))
                .filter(|(_, before, after)| before != after)
                .map(|(name, before, after)| format!("{name} {} -> {}", word(before), word(after)));
            differ.collect::<Vec<_>>().join(", ")
        }
    }
}

/// The members of a value; for an allocation, its amounts.
fn members(value: &Value) -> &Value {
    value.get("resources").unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::render::Format;

    #[test]
    fn a_change_is_a_row_with_its_difference() {
        let provider = |generation| json!({"name": "a\u{1b}", "generation": generation});
        let entry = json!({"index": "7.12", "at": "2026-11-27T06:00:00Z", "verb": "PutInventory", "changes": [
            {"kind": "provider", "key": {"uuid": "u"}, "before": provider(1), "after": provider(2)},
            {"kind": "allocation", "key": {"consumer": "c"}, "before": {"resources": {"VCPU": 2}}, "after": null},
            {"kind": "allocation", "key": {"consumer": "c"}, "before": {"resources": {"PCPU": 1, "VCPU": 2}},
             "after": {"resources": {"PCPU": 1, "VCPU": 4}}},
            {"kind": "trait", "key": {"trait": "A"}, "before": null, "after": {"name": "A"}}]});
        let entry = AnyEntry::deserialize(entry).unwrap();
        let printed = Format::Csv.printed(listed(changes(&entry).collect(), Names::default()));
        let lines: Vec<_> = printed.lines().skip(1).collect();
        let from = "2026-11-27T06:00:00Z,7.12,put inventory";
        assert_eq!(
            lines,
            [
                format!("{from},provider,uuid=u,generation 1 -> 2,"),
                format!("{from},allocation,consumer=c,released VCPU=2,"),
                format!("{from},allocation,consumer=c,VCPU 2 -> 4,"),
                format!("{from},trait,trait=A,created name=A,"),
            ]
        );
    }
}
