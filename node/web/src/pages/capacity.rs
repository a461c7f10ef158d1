//! What there is of each class, what is used, and the most that one provider can give.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, bar, cell, form, link, pages, row, table};
use crate::words::{list, text, word};

const HEADS: [&str; 7] = [
    "Class",
    "Use",
    "Used",
    "Capacity",
    "Free",
    "Largest free",
    "Providers",
];

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let (partition, target) = (of.partition, of.target);
    let [class, by] = ["class", "by"].map(|name| target.parameter(name));
    let filters = [("class", class), ("by", by)];
    let path = partition.api("/placementd/v1/capacity", &filters);
    let answer = questions.get(path).await?;
    let facet = Some(text(&answer["by"])).filter(|by| *by != "class");
    let (all, from) = (list(&answer["capacity"]), target.offset());
    let rows = all.iter().skip(from).map(|one| shown(of, one, facet));
    let rows = Room::default().take(rows);
    let heads: Vec<&str> = HEADS.into_iter().chain(facet).collect();
    let href = |from: &str| {
        let [class, by] = filters;
        partition.page("capacity", &[class, by, ("from", from)])
    };
    let body = html! {
        p { "“Largest free” is the most that one provider can give to one request." }
        (form(&partition.page("capacity", &[]), &[
            ("class", "Class", "VCPU", class),
            ("by", "By class, aggregate or trait", "class", by),
        ], "Show"))
        (table("Capacity", &heads, &rows))
        (pages(from, rows.len(), all.len(), href))
    };
    Ok(View {
        title: "Capacity".to_owned(),
        body,
        commands: vec![of.command("placementctl capacity", &[("--class", class), ("--by", by)])],
    })
}

fn shown(of: &Content<'_>, one: &Value, facet: Option<&str>) -> Markup {
    let class = word(&one["class"]);
    let providers = of.partition.page("providers", &[("class", &class)]);
    let mut cells = vec![
        html! { (class) },
        bar(&class, &one["used"], &one["capacity"]),
        cell(&one["used"]),
        cell(&one["capacity"]),
        cell(&one["free"]),
        cell(&one["largest_free"]),
        link(&providers, &word(&one["providers"])),
    ];
    cells.extend(facet.map(|facet| cell(&one[facet])));
    row(&cells)
}
