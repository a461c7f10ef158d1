//! The tree of a provider: inventories, traits, aggregates and consumers.

use maud::{Markup, html};
use placement_wire::consumers::ConsumerPage;
use placement_wire::trees::{Tree, TreeInventory, TreeProvider};

use super::Content;
use super::lists::{self, provider};
use super::refuge::mark;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{RowBudget, Table, bar, cell, cut_to, facts, link, pages};
use crate::target::encoded;
use crate::words::{command, word};

/// Number of consumers to show; the list of consumers has all of them.
const HOLDERS: &str = "20";
/// Maximum number of shown inventories of a provider.
const INVENTORIES_MAX: usize = 50;

pub(super) async fn show(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    uuid: &str,
) -> Result<View, Failure> {
    let (partition, own) = (of.partition, format!("providers/{}", encoded(uuid)));
    let tree = format!("/placementd/v1/trees/{}", encoded(uuid));
    let tree: Tree<'_> = questions.get(partition.api(&tree, &[])).await?;
    let filters = [("provider", uuid), ("limit", HOLDERS)];
    let holders = partition.api("/placementd/v1/consumers", &filters);
    let consumers: ConsumerPage<'_> = questions.get(holders).await?;
    let all = &tree.providers;
    let named = all.iter().find(|one| one.uuid == uuid);
    let title = named.map_or(uuid.to_owned(), |one| word(&one.name));
    let mut budget = RowBudget::default();
    let table = lists::consumers(of);
    let holders = budget.take(consumers.consumers.iter().map(|one| table.row(one)));
    let is_cut = consumers.next.is_some() || holders.len() < consumers.consumers.len();
    let from = of.target.offset();
    let shown = budget.take(all.iter().skip(from).map(|one| section(of, all, one)));
    let left = all.len().saturating_sub(from);
    let href = |from: &str| partition.page(&own, &[("from", from)]);
    let [all_consumers, history] =
        ["consumers", "history"].map(|page| partition.page(page, &[("provider", uuid)]));
    let mark = if tree.root == uuid {
        mark(questions, of, uuid).await
    } else {
        html! {}
    };
    let body = html! {
        (mark)
        @for one in &shown { (one) }
        (pages(from, shown.len(), left, href))
        (table.with(&format!("Consumers of {title}"), &holders))
        @if is_cut { p { "Showing the first " (holders.len()) "; there are more." } }
        p { (link(&all_consumers, "All consumers of this provider")) " · " (link(&history, "Changes of this provider")) }
    };
    let own = ["tree", "holders"]
        .map(|verb| of.command(&format!("placementctl providers {verb}"), &[("", uuid)]));
    let upstream = ["inventory list", "usage show", "trait list"]
        .map(|what| format!("openstack resource provider {what}"))
        .map(|words| command(&words, &[("", uuid)]));
    Ok(View {
        title,
        body,
        commands: [&own[..], &upstream].concat(),
    })
}

/// Number of ancestors of a provider.
fn depth(all: &[TreeProvider<'_>], one: &TreeProvider<'_>) -> usize {
    let (mut depth, mut parent) = (0, &one.parent);
    // Terminates even if a faulty response contains a cycle.
    while depth < all.len()
        && let Some(above) = all
            .iter()
            .find(|above| Some(&above.uuid) == parent.as_ref())
    {
        (depth, parent) = (depth + 1, &above.parent);
    }
    depth
}

fn section(of: &Content<'_>, all: &[TreeProvider<'_>], one: &TreeProvider<'_>) -> Markup {
    let depth = depth(all, one);
    let table = inventories();
    let rows: Vec<Markup> = one
        .inventories
        .iter()
        .take(INVENTORIES_MAX)
        .map(|(class, of)| table.row(&(&**class, of)))
        .collect();
    let caption = format!("Inventories of {}", word(&one.name));
    html! {
        section class=(format!("provider depth-{}", depth.min(5))) {
            h2 { (provider(of, &one.uuid, &one.name)) }
            p { "Level " (depth + 1) " of the tree" }
            @if !rows.is_empty() { (table.with(&caption, &rows)) }
            (cut_to(rows.len(), one.inventories.len()))
            (facts(&[
                ("uuid", word(&one.uuid)),
                ("generation", word(one.generation)),
                ("holders", word(one.holders)),
                ("traits", word(&one.traits)),
                ("aggregates", word(&one.aggregates)),
            ]))
        }
    }
}

/// An inventory with its class.
type Classed<'a> = (&'a str, &'a TreeInventory);

fn inventories<'a>() -> Table<'static, Classed<'a>> {
    Table::new()
        .column("Class", |(class, _): &Classed<'_>| html! { (class) })
        .column("Use", |(class, one)| bar(class, one.used, one.capacity))
        .column("Used", |(_, one)| cell(one.used))
        .column("Capacity", |(_, one)| cell(one.capacity))
        .column("Total", |(_, one)| cell(one.total))
        .column("Reserved", |(_, one)| cell(one.reserved))
        .column("Ratio", |(_, one)| cell(one.allocation_ratio))
        .column("Min unit", |(_, one)| cell(one.min_unit))
        .column("Max unit", |(_, one)| cell(one.max_unit))
        .column("Step", |(_, one)| cell(one.step_size))
}
