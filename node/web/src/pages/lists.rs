//! The list pages: capacity, providers, consumers and changes.

use maud::{Markup, html};
use placement_words::rest;
use serde_json::Value;

use super::Content;
use super::listing::Listing;
use crate::parts::{bar, cell, cells, link};
use crate::words::{list, text, word};

/// Maximum number of allocations of a consumer, or changes of an entry, in a row.
const SHOWN_MAX: usize = 5;

pub(super) const CAPACITY: Listing = Listing {
    title: "Capacity",
    page: "capacity",
    command: "placementctl capacity",
    api: ("/placementd/v1/capacity", "capacity"),
    filters: &[
        ("class", "Class", "VCPU", "--class"),
        ("by", "Group by class, aggregate or trait", "class", "--by"),
    ],
    heads: "Class | Use | Used | Capacity | Free | Largest free amount of one provider | Aggregate or trait | Providers",
    row: |of, one| {
        let class = word(&one["class"]);
        let resources = format!("{class}:1");
        let providers = of.partition.page("providers", &[("resources", &resources)]);
        let mut row = vec![
            cell(&one["class"]),
            bar(&class, &one["used"], &one["capacity"]),
        ];
        row.extend(cells(one, "used capacity free largest_free"));
        let facets = ["aggregate", "trait"].map(|facet| text(&one[facet]));
        row.push(html! { (facets.concat()) });
        row.push(link(&providers, &one["providers"]));
        row
    },
    next: None,
};

pub(super) const PROVIDERS: Listing = Listing {
    title: "Providers",
    page: "providers",
    command: "placementctl providers list",
    api: ("/resource_providers", "resource_providers"),
    filters: &[
        ("prefix", "Name begins with", "cmp-1", "--name"),
        ("resources", "With room for", "VCPU:8", "--class"),
        ("required", "With traits", "HW_CPU_X86_AVX2", "--trait"),
    ],
    heads: "Name | UUID | Generation | Parent",
    row: |of, one| {
        let mut row = vec![provider(of, &one["uuid"], &one["name"])];
        row.extend(cells(one, "uuid generation parent_provider_uuid"));
        row
    },
    next: None,
};

pub(super) const CONSUMERS: Listing = Listing {
    title: "Consumers",
    page: "consumers",
    command: "placementctl consumers list",
    api: ("/placementd/v1/consumers", "consumers"),
    filters: &[
        ("provider", "Provider (UUID)", "", "--provider"),
        ("project", "Project", "", "--project"),
        ("user", "User", "", "--user"),
        ("type", "Type", "INSTANCE", "--type"),
        ("class", "Resource class", "VCPU", "--class"),
    ],
    heads: CONSUMER_HEADS,
    row: consumer,
    next: Some(("marker", "uuid")),
};

pub(super) const HISTORY: Listing = Listing {
    title: "Changes, newest first",
    page: "history",
    command: "placementctl history",
    api: ("/placementd/v1/history", "history"),
    filters: &[
        ("kind", "Kinds", "inventory,allocation", "--kind"),
        ("provider", "Provider (UUID)", "", "--provider"),
        ("consumer", "Consumer (UUID)", "", "--consumer"),
        ("project", "Project", "", "--project"),
        ("class", "Resource class", "VCPU", "--class"),
    ],
    heads: "Time | Entry | Command | Request | Changes",
    row: |_, one| {
        let mut row = cells(one, "at index verb request_id");
        row.push(some(list(&one["changes"]), change));
        row
    },
    next: Some(("before", "index")),
};

pub(super) const CONSUMER_HEADS: &str = "Consumer | Type | Project | Changed | Allocations";

pub(super) fn consumer(of: &Content<'_>, one: &Value) -> Vec<Markup> {
    let mut row = vec![link(
        &of.partition.consumer_page(text(&one["uuid"])),
        &one["uuid"],
    )];
    row.extend(cells(one, "type project_id updated_at"));
    let held = |one: &Value| {
        let named = &one["provider"];
        html! { (provider(of, &named["uuid"], &named["name"])) ": " (word(&one["resources"])) }
    };
    row.push(some(list(&one["allocations"]), held));
    row
}

/// A link to the page of a provider.
pub(super) fn provider(of: &Content<'_>, uuid: &Value, name: &Value) -> Markup {
    link(&of.partition.provider_page(text(uuid)), name)
}

/// The first elements, one per line.
fn some(all: &[Value], shown: impl Fn(&Value) -> Markup) -> Markup {
    html! {
        @for one in all.iter().take(SHOWN_MAX) { (shown(one)) br; }
        @if all.len() > SHOWN_MAX { "and " (all.len() - SHOWN_MAX) " more" }
    }
}

/// Old and new value without the members that are equal.
fn change(change: &Value) -> Markup {
    let (before, after) = (&change["before"], &change["after"]);
    let [before, after] = [(before, after), (after, before)].map(|(one, other)| rest(one, other));
    html! {
        (word(&change["kind"])) " " (word(&change["key"])) ": " (word(&before)) " → " (word(&after))
    }
}
