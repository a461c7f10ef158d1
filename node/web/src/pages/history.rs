//! What was changed, the last first.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, form, pager, row, table};
use crate::words::{list, text, word};

/// So many entries are asked for.
const LIMIT: &str = "100";
/// So many changes of an entry are shown.
const CHANGES_MAX: usize = 5;

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let (partition, target) = (of.partition, of.target);
    let names = ["kind", "provider", "consumer", "project", "class"];
    let filters = target.parameters(&names);
    let [kind, provider, consumer, project, class] = names.map(|name| target.parameter(name));
    let rest = [("limit", LIMIT), ("before", target.parameter("before"))];
    let asked = [&filters[..], &rest].concat();
    let path = partition.api("/placementd/v1/history", &asked);
    let answer = questions.get(path).await?;
    let all = list(&answer["history"]);
    let rows = Room::default().take(all.iter().map(entry));
    // Where there was no room for all, the next page begins behind the last one that is shown.
    let next = match all.get(rows.len().wrapping_sub(1)) {
        Some(last) if rows.len() < all.len() => text(&last["index"]),
        _ => text(&answer["next"]),
    };
    let href = |before: &str| {
        let before = [("before", before)];
        partition.page("history", &[&filters[..], &before].concat())
    };
    let body = html! {
        (form(&partition.page("history", &[]), &[
            ("kind", "Kinds", "inventory,allocation", kind),
            ("provider", "Of the provider (UUID)", "", provider),
            ("consumer", "Of the consumer", "", consumer),
            ("project", "Of the project", "", project),
            ("class", "Of the class", "VCPU", class),
        ], "Search"))
        (table("Changes, the last first", &["Time", "Entry", "Command", "Changes", "Request"], &rows))
        @if next.is_empty() {
            p { "Changes up to entry " (word(&answer["oldest"])) " are not kept any more." }
        }
        (pager(None, (!next.is_empty()).then(|| href(next))))
    };
    let options = [
        ("--kind", kind),
        ("--provider", provider),
        ("--consumer", consumer),
        ("--project", project),
        ("--class", class),
    ];
    Ok(View {
        title: "Changes".to_owned(),
        body,
        commands: vec![of.command("placementctl history", &options)],
    })
}

fn entry(entry: &Value) -> Markup {
    let changes = list(&entry["changes"]);
    row(&[
        cell(&entry["at"]),
        cell(&entry["index"]),
        cell(&entry["verb"]),
        html! {
            @for one in changes.iter().take(CHANGES_MAX) { (change(one)) br; }
            @if changes.len() > CHANGES_MAX { "and " (changes.len() - CHANGES_MAX) " more" }
        },
        cell(&entry["request_id"]),
    ])
}

/// What it was, and what it is: without what is alike.
fn change(change: &Value) -> Markup {
    let (before, after) = (&change["before"], &change["after"]);
    html! {
        (word(&change["kind"])) " " (word(&change["key"])) ": "
        (word(&rest(before, after))) " → " (word(&rest(after, before)))
    }
}

/// A value without the members that another one has alike.
fn rest(value: &Value, other: &Value) -> Value {
    let mut rest = value.clone();
    if let Value::Object(members) = &mut rest {
        members.retain(|name, member| other.get(name) != Some(member));
    }
    rest
}
