//! What instances, migrations and other consumers hold.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, form, link, pager, row, table};
use crate::target::encoded;
use crate::words::{command, list, pairs, text, word};

/// So many allocations of a consumer are shown in its row.
const HELD_MAX: usize = 5;
/// So many rows are asked for.
const LIMIT: &str = "100";
/// So many providers of one consumer are named.
const NAMED_MAX: usize = 20;
pub(super) const HEADS: [&str; 5] = ["Consumer", "Type", "Project", "Changed", "Holds"];

pub(super) async fn list_page(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
) -> Result<View, Failure> {
    let (partition, target) = (of.partition, of.target);
    let names = ["provider", "project", "user", "type", "class"];
    let filters = target.parameters(&names);
    let [provider, project, user, kind, class] = names.map(|name| target.parameter(name));
    let rest = [("limit", LIMIT), ("marker", target.parameter("marker"))];
    let asked = [&filters[..], &rest].concat();
    let path = partition.api("/placementd/v1/consumers", &asked);
    let answer = questions.get(path).await?;
    let all = list(&answer["consumers"]);
    let rows = Room::default().take(all.iter().map(|one| holder(of, one)));
    // Where there was no room for all, the next page begins behind the last one that is shown.
    let next = match all.get(rows.len().wrapping_sub(1)) {
        Some(last) if rows.len() < all.len() => text(&last["uuid"]),
        _ => text(&answer["next"]),
    };
    let href = |marker: &str| {
        let marker = [("marker", marker)];
        partition.page("consumers", &[&filters[..], &marker].concat())
    };
    let body = html! {
        (form(&partition.page("consumers", &[]), &[
            ("provider", "Of the provider (UUID)", "", provider),
            ("project", "Of the project", "", project),
            ("user", "Of the user", "", user),
            ("type", "Of the type", "INSTANCE", kind),
            ("class", "That hold", "VCPU", class),
        ], "Search"))
        (table("Consumers", &HEADS, &rows))
        (pager(None, (!next.is_empty()).then(|| href(next))))
    };
    let options = [
        ("--provider", provider),
        ("--project", project),
        ("--user", user),
        ("--type", kind),
        ("--class", class),
    ];
    Ok(View {
        title: "Consumers".to_owned(),
        body,
        commands: vec![of.command("placementctl consumers list", &options)],
    })
}

/// A row for a consumer.
pub(super) fn holder(of: &Content<'_>, one: &Value) -> Markup {
    let held = list(&one["allocations"]);
    row(&[
        link(
            &of.partition.consumer_page(text(&one["uuid"])),
            &word(&one["uuid"]),
        ),
        cell(&one["type"]),
        cell(&one["project_id"]),
        cell(&one["updated_at"]),
        html! {
            @for one in held.iter().take(HELD_MAX) {
                (link(&of.partition.provider_page(text(&one["provider"]["uuid"])), &word(&one["provider"]["name"])))
                ": " (word(&one["resources"])) br;
            }
            @if held.len() > HELD_MAX { "and " (held.len() - HELD_MAX) " more" }
        },
    ])
}

pub(super) async fn show(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    uuid: &str,
) -> Result<View, Failure> {
    let path = of
        .partition
        .api(&format!("/allocations/{}", encoded(uuid)), &[]);
    let answer = questions.get(path).await?;
    let held: Vec<_> = pairs(&answer["allocations"]).collect();
    if held.is_empty() {
        let what = format!("No consumer {uuid} holds anything.");
        return Err(Failure::not_found(&what));
    }
    let names = held
        .iter()
        .take(NAMED_MAX)
        .map(|(provider, _)| (of.partition).api("/resource_providers", &[("uuid", provider)]));
    let names = questions.all(names.collect()).await;
    let name = |at: usize, uuid: &str| {
        let answer = names.get(at).and_then(|answer| answer.as_ref().ok());
        let named = answer.map(|answer| &answer["resource_providers"][0]["name"]);
        named.map_or(uuid.to_owned(), word)
    };
    let rows = held.iter().enumerate().map(|(at, (provider, one))| {
        row(&[
            link(&of.partition.provider_page(provider), &name(at, provider)),
            cell(&one["resources"]),
            cell(&one["generation"]),
        ])
    });
    let rows = Room::default().take(rows);
    let body = html! {
        dl {
            dt { "Type" } dd { (word(&answer["consumer_type"])) }
            dt { "Project" } dd { (word(&answer["project_id"])) }
            dt { "User" } dd { (word(&answer["user_id"])) }
            dt { "Generation" } dd { (word(&answer["consumer_generation"])) }
        }
        (table("Allocations", &["Provider", "Holds", "Generation"], &rows))
        p { (link(&of.partition.page("history", &[("consumer", uuid)]), "Its changes")) }
    };
    Ok(View {
        title: format!("Consumer {uuid}"),
        body,
        commands: vec![
            of.command("placementctl consumers show", &[("", uuid)]),
            command("openstack resource provider allocation show", &[("", uuid)]),
        ],
    })
}
