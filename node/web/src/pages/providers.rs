//! Which providers there are.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, form, link, pages, row, table};
use crate::words::{command, list, text, word};

const HEADS: [&str; 4] = ["Name", "UUID", "Generation", "Parent"];

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let (partition, target) = (of.partition, of.target);
    let [name, class, required] = ["name", "class", "trait"].map(|name| target.parameter(name));
    let resources = amount(class);
    let filters = [("resources", &*resources), ("required", required)];
    let path = partition.api("/resource_providers", &filters);
    let answer = questions.get(path).await?;
    let all = list(&answer["resource_providers"]).iter();
    let mut all: Vec<&Value> = all
        .filter(|one| text(&one["name"]).starts_with(name))
        .collect();
    all.sort_by_key(|one| text(&one["name"]));
    let from = target.offset();
    let rows = Room::default().take(all.iter().skip(from).map(|one| shown(of, one)));
    let href = |from: &str| {
        let given = [("name", name), ("class", class), ("trait", required)];
        partition.page("providers", &[&given[..], &[("from", from)]].concat())
    };
    let body = html! {
        (form(&partition.page("providers", &[]), &[
            ("name", "Name begins with", "cmp-1", name),
            ("class", "With room for", "VCPU:8", class),
            ("trait", "With the trait", "HW_CPU_X86_AVX2", required),
        ], "Search"))
        (table("Providers", &HEADS, &rows))
        (pages(from, rows.len(), all.len(), href))
    };
    let options = [("--name", name), ("--class", class), ("--trait", required)];
    let upstream = [
        ("--resource", &*resources.replace(':', "=")),
        ("--required", required),
    ];
    Ok(View {
        title: "Providers".to_owned(),
        body,
        commands: vec![
            of.command("placementctl providers list", &options),
            command("openstack resource provider list", &upstream),
        ],
    })
}

/// A class with an amount, which is one if none is given.
fn amount(class: &str) -> String {
    match class.is_empty() || class.contains(':') {
        true => class.to_owned(),
        false => format!("{class}:1"),
    }
}

fn shown(of: &Content<'_>, one: &Value) -> Markup {
    let parent = &one["parent_provider_uuid"];
    row(&[
        link(
            &of.partition.provider_page(text(&one["uuid"])),
            &word(&one["name"]),
        ),
        cell(&one["uuid"]),
        cell(&one["generation"]),
        html! {
            @if parent.is_string() { (link(&of.partition.provider_page(text(parent)), &word(parent))) }
            @else { "–" }
        },
    ])
}
