//! The list pages: capacity, consumers and changes.

use maud::{Markup, html};
use placement_wire::capacity::{CapacityReport, ClassCapacity};
use placement_wire::consumers::{Consumer, ConsumerAllocation, ConsumerPage};
use placement_wire::events::{Change, Entry, History};
use placement_words::without_equal_members;
use serde_json::{Value, to_value};

use super::Content;
use super::listing::{Listing, Order, Paged};
use crate::parts::{Table, bar, cell, link};
use crate::words::{WORDS, word};

/// Maximum number of allocations of a consumer, or changes of an entry, in a row.
const SHOWN_MAX: usize = 5;

pub(super) const CAPACITY: Listing<CapacityReport<'static>, ClassCapacity<'static>> = Listing {
    title: "Capacity",
    page: "capacity",
    command: "placementctl capacity",
    api: "/placementd/v1/capacity",
    filters: &[
        ("class", "Class", "VCPU", "--class"),
        (
            "by",
            "Group by class, aggregate, trait, provider or tree",
            "class",
            "--by",
        ),
    ],
    rows: |answer| &answer.capacity,
    table: |of| {
        Table::new()
            .column("Class", |one: &ClassCapacity<'_>| cell(&one.class))
            .column("Use", |one| bar(&word(&one.class), one.used, one.capacity))
            .column("Used", |one| cell(one.used))
            .column("Capacity", |one| cell(one.capacity))
            .column("Free", |one| cell(one.free))
            .column("Largest free amount of one provider", |one| {
                cell(one.largest_free)
            })
            .column("Aggregate, trait or provider", |one| {
                let facet = one.aggregate.as_ref().or(one.r#trait.as_ref());
                html! {
                    (facet.map(|name| &**name).unwrap_or_default())
                    @if let Some(one) = &one.provider { (provider(of, &one.uuid, &one.name)) }
                }
            })
            .column("Providers", |one| {
                let resources = format!("{}:1", word(&one.class));
                let page = of.partition.page("providers", &[("resources", &resources)]);
                link(&page, one.providers)
            })
    },
    order: Order::Given,
};

pub(super) const CONSUMERS: Listing<ConsumerPage<'static>, Consumer<'static>> = Listing {
    title: "Consumers",
    page: "consumers",
    command: "placementctl consumers list",
    api: "/placementd/v1/consumers",
    filters: &[
        ("provider", "Provider (UUID)", "", "--provider"),
        ("project", "Project", "", "--project"),
        ("user", "User", "", "--user"),
        ("type", "Type", "INSTANCE", "--type"),
        ("class", "Resource class", "VCPU", "--class"),
    ],
    rows: |answer| &answer.consumers,
    table: consumers,
    order: Order::Paged(Paged {
        parameter: "marker",
        after: |answer| answer.next.as_deref(),
        after_row: |one| &one.uuid,
    }),
};

/// A change of any kind, including kinds that only newer nodes know.
type AnyChange = Change<String, Value, Value>;
/// A log entry with changes of any kind.
type AnyEntry = Entry<'static, AnyChange>;

pub(super) const HISTORY: Listing<History<'static, AnyEntry>, AnyEntry> = Listing {
    title: "Changes, newest first",
    page: "history",
    command: "placementctl history",
    api: "/placementd/v1/history",
    filters: &[
        ("kind", "Kinds", "inventory,allocation", "--kind"),
        ("provider", "Provider (UUID)", "", "--provider"),
        ("consumer", "Consumer (UUID)", "", "--consumer"),
        ("project", "Project", "", "--project"),
        ("class", "Resource class", "VCPU", "--class"),
        ("request_id", "Request id", "", "--request-id"),
    ],
    rows: |answer| &answer.history,
    table: |_| {
        Table::new()
            .column("Time", |one: &AnyEntry| cell(&one.at))
            .column("Entry", |one| cell(&one.index))
            .column("Command", |one| cell(&one.verb))
            .column("Request", |one| cell(&one.request_id))
            .column("Changes", |one| first_elements(&one.changes, change))
    },
    order: Order::Paged(Paged {
        parameter: "before",
        after: |answer| answer.next.as_deref(),
        after_row: |one| &one.index,
    }),
};

/// The table of consumers.
pub(super) fn consumers<'a>(of: &'a Content<'a>) -> Table<'a, Consumer<'static>> {
    let held = |one: &ConsumerAllocation<'_>| {
        let named = &one.provider;
        html! { (provider(of, &named.uuid, &named.name)) ": " (word(&one.resources)) }
    };
    Table::new()
        .column("Consumer", |one: &Consumer<'_>| {
            link(&of.partition.consumer_page(&one.uuid), &one.uuid)
        })
        .column(
            "Type",
            |one| html! { (cell(&one.r#type)) (WORDS.hold(one.hold.as_ref())) },
        )
        .column("Project", |one| cell(&one.project_id))
        .column("Changed", |one| cell(&one.updated_at))
        .column("Allocations", move |one| {
            first_elements(&one.allocations, held)
        })
}

/// A link to the page of a provider.
pub(super) fn provider(of: &Content<'_>, uuid: &str, name: &str) -> Markup {
    link(&of.partition.provider_page(uuid), name)
}

/// The first elements, one per line.
fn first_elements<T>(all: &[T], shown: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @for one in all.iter().take(SHOWN_MAX) { (shown(one)) br; }
        @if all.len() > SHOWN_MAX { "and " (all.len() - SHOWN_MAX) " more" }
    }
}

/// Old and new value without the members that did not change.
fn change(change: &AnyChange) -> Markup {
    let [before, after] =
        [&change.before, &change.after].map(|value| to_value(value).unwrap_or_default());
    let [before, after] = [(&before, &after), (&after, &before)]
        .map(|(one, other)| without_equal_members(one, other));
    html! {
        (word(&change.kind)) " " (word(&change.key)) ": " (word(before)) " → " (word(after))
    }
}
