//! The tree of a provider: inventories, traits, aggregates and consumers.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use super::lists::{CONSUMER_HEADS, consumer, provider};
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, bar, cells, cut_to, facts, link, pages, row, table};
use crate::target::encoded;
use crate::words::{command, list, pairs, word};

/// Number of consumers to show; the list of consumers has all of them.
const HOLDERS: &str = "20";
/// Maximum number of shown inventories of a provider.
const INVENTORIES_MAX: usize = 50;
const INVENTORY: &str =
    "Class | Use | Used | Capacity | Total | Reserved | Ratio | Min unit | Max unit | Step";
const AMOUNTS: &str = "used capacity total reserved allocation_ratio min_unit max_unit step_size";

pub(super) async fn show(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    uuid: &str,
) -> Result<View, Failure> {
    let (partition, own) = (of.partition, format!("providers/{}", encoded(uuid)));
    let tree = format!("/placementd/v1/trees/{}", encoded(uuid));
    let tree = questions.get(partition.api(&tree, &[])).await?;
    let filters = [("provider", uuid), ("limit", HOLDERS)];
    let holders = partition.api("/placementd/v1/consumers", &filters);
    let consumers = questions.get(holders).await?;
    let all = list(&tree["providers"]);
    let named = all.iter().find(|one| one["uuid"] == uuid);
    let title = named.map_or(uuid.to_owned(), |one| word(&one["name"]));
    let mut room = Room::default();
    let holders = list(&consumers["consumers"]).iter();
    let holders = room.take(holders.map(|one| row(&consumer(of, one))));
    let is_cut =
        !consumers["next"].is_null() || holders.len() < list(&consumers["consumers"]).len();
    let from = of.target.offset();
    let shown = room.take(all.iter().skip(from).map(|one| section(of, all, one)));
    let left = all.len().saturating_sub(from);
    let href = |from: &str| partition.page(&own, &[("from", from)]);
    let [all_consumers, history] =
        ["consumers", "history"].map(|page| partition.page(page, &[("provider", uuid)]));
    let body = html! {
        @for one in &shown { (one) }
        (pages(from, shown.len(), left, href))
        (table(&format!("Consumers of {title}"), CONSUMER_HEADS, &holders))
        @if is_cut { p { "Showing the first " (holders.len()) "; there are more." } }
        p { (link(&all_consumers, &"All consumers of this provider".into())) " · " (link(&history, &"Changes of this provider".into())) }
    };
    let own = ["tree", "holders"];
    let own = own.map(|verb| of.command(&format!("placementctl providers {verb}"), &[("", uuid)]));
    let upstream = ["inventory list", "usage show", "trait list"];
    let upstream = upstream.map(|what| format!("openstack resource provider {what}"));
    let upstream = upstream.map(|words| command(&words, &[("", uuid)]));
    Ok(View {
        title,
        body,
        commands: [&own[..], &upstream].concat(),
    })
}

/// Number of ancestors of a provider.
fn depth(all: &[Value], one: &Value) -> usize {
    let (mut depth, mut parent) = (0, &one["parent"]);
    // Guards against a circle in a faulty response.
    while depth < all.len()
        && let Some(above) = all.iter().find(|above| above["uuid"] == *parent)
    {
        (depth, parent) = (depth + 1, &above["parent"]);
    }
    depth
}

fn section(of: &Content<'_>, all: &[Value], one: &Value) -> Markup {
    let depth = depth(all, one);
    let rows = pairs(&one["inventories"]).take(INVENTORIES_MAX);
    let rows: Vec<Markup> = rows.map(|(class, of)| inventory(class, of)).collect();
    let caption = format!("Inventories of {}", word(&one["name"]));
    html! {
        section class=(format!("provider depth-{}", depth.min(5))) {
            h2 { (provider(of, &one["uuid"], &one["name"])) }
            p { "Level " (depth + 1) " of the tree" }
            @if !rows.is_empty() { (table(&caption, INVENTORY, &rows)) }
            (cut_to(rows.len(), pairs(&one["inventories"]).count()))
            (facts(one, "uuid generation holders traits aggregates"))
        }
    }
}

fn inventory(class: &str, inventory: &Value) -> Markup {
    let mut cells = cells(inventory, AMOUNTS);
    let bar = bar(class, &inventory["used"], &inventory["capacity"]);
    cells.splice(..0, [html! { (class) }, bar]);
    row(&cells)
}
