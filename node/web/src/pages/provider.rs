//! The tree of one provider: inventories, traits, and who holds what.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use super::consumers::{HEADS, holder};
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, bar, cell, link, pages, row, table};
use crate::target::encoded;
use crate::words::{command, count, list, pairs, text, word};

/// So many consumers are shown; a page of them has the others.
const HOLDERS: &str = "20";
const INVENTORY: [&str; 8] = [
    "Class", "Use", "Used", "Capacity", "Total", "Reserved", "Ratio", "Units",
];
/// So many inventories of a provider are shown.
const INVENTORIES_MAX: usize = 50;

pub(super) async fn show(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    uuid: &str,
) -> Result<View, Failure> {
    let (partition, target) = (of.partition, of.target);
    let tree = partition.api(&format!("/placementd/v1/trees/{}", encoded(uuid)), &[]);
    let tree = questions.get(tree).await?;
    let filters = [("provider", uuid), ("limit", HOLDERS)];
    let holders = partition.api("/placementd/v1/consumers", &filters);
    let holders = questions.get(holders).await?;
    let all = list(&tree["providers"]);
    let own = all.iter().find(|one| one["uuid"] == uuid);
    let name = own.map_or(uuid.to_owned(), |one| word(&one["name"]));
    let mut room = Room::default();
    let holders = list(&holders["consumers"]).iter();
    let holders = room.take(holders.map(|one| holder(of, one)));
    let from = target.offset();
    let shown = room.take(
        (all.iter().skip(from)).map(|one| provider(of, one, depth(all, one), one["uuid"] == uuid)),
    );
    let href =
        |from: &str| partition.page(&format!("providers/{}", encoded(uuid)), &[("from", from)]);
    let body = html! {
        @for one in &shown { (one) }
        (pages(from, shown.len(), all.len(), href))
        (table(&format!("Consumers of {name}"), &HEADS, &holders))
        p { (link(&partition.page("consumers", &[("provider", uuid)]), "All its consumers")) " · "
            (link(&partition.page("history", &[("provider", uuid)]), "Its changes")) }
    };
    Ok(View {
        title: name,
        body,
        commands: vec![
            of.command("placementctl providers tree", &[("", uuid)]),
            of.command("placementctl providers holders", &[("", uuid)]),
            command("openstack resource provider inventory list", &[("", uuid)]),
            command("openstack resource provider usage show", &[("", uuid)]),
            command("openstack resource provider trait list", &[("", uuid)]),
        ],
    })
}

/// How many providers of a tree are above one.
fn depth(all: &[Value], one: &Value) -> usize {
    let (mut depth, mut parent) = (0, &one["parent"]);
    while let Some(above) = all.iter().find(|above| above["uuid"] == *parent) {
        // A tree has no circle; what is read has as many steps as rows at most.
        if depth >= all.len() {
            break;
        }
        (depth, parent) = (depth + 1, &above["parent"]);
    }
    depth
}

fn provider(of: &Content<'_>, one: &Value, depth: usize, is_own: bool) -> Markup {
    let name = word(&one["name"]);
    let inventories = pairs(&one["inventories"]).take(INVENTORIES_MAX);
    let rows: Vec<Markup> = inventories
        .map(|(class, of)| inventory(class, of))
        .collect();
    html! {
        section class=(format!("provider depth-{}", depth.min(5))) {
            h2 {
                @if is_own { (name) } @else { (link(&of.partition.provider_page(text(&one["uuid"])), &name)) }
            }
            p {
                "Generation " (word(&one["generation"])) ", level " (depth + 1) " of the tree, "
                (count(&one["holders"], "consumer")) "."
            }
            @if !rows.is_empty() { (table(&format!("Inventories of {name}"), &INVENTORY, &rows)) }
            dl {
                dt { "UUID" } dd { (word(&one["uuid"])) }
                dt { "Traits" } dd { (word(&one["traits"])) }
                dt { "Aggregates" } dd { (word(&one["aggregates"])) }
            }
        }
    }
}

fn inventory(class: &str, inventory: &Value) -> Markup {
    let units = ["min_unit", "max_unit", "step_size"].map(|key| word(&inventory[key]));
    row(&[
        html! { (class) },
        bar(class, &inventory["used"], &inventory["capacity"]),
        cell(&inventory["used"]),
        cell(&inventory["capacity"]),
        cell(&inventory["total"]),
        cell(&inventory["reserved"]),
        cell(&inventory["allocation_ratio"]),
        html! { (units[0]) " to " (units[1]) " by " (units[2]) },
    ])
}
