//! Why a query has no candidates, as `/placementd/v1/explain` says it.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use super::lists::provider;
use crate::parts::{Room, cells, link, row, table};
use crate::words::{count, list, some, text, word};

/// So many entries of each part are shown.
const SHOWN_MAX: usize = 20;

pub(super) fn explained(of: &Content<'_>, answer: &Value) -> Markup {
    let mut room = Room::default();
    let mut shown = |member: &str, line: &dyn Fn(&Value) -> Markup| {
        let all = list(&answer[member]).iter().take(SHOWN_MAX);
        room.take(all.map(line))
    };
    let unknown = shown("unknown", &unknown);
    let unused = shown(
        "unused",
        &|name| html! { li { "No provider has the " (absent(name)) } },
    );
    let less = shown("relaxations", &|one| relaxation(of, one));
    let nearest = shown("nearest", &|one| near(of, one));
    let steps = shown("funnel", &|one| step(of, one));
    let heads = "Condition | Trees left | Trees gone | Gone are";
    html! {
        p class="verdict" { (verdict(answer)) }
        ul { @for name in unknown.iter().chain(&unused) { (name) } }
        (table("What each condition leaves", heads, &steps))
        @for (title, lines) in [("What would fit", less), ("What nearly fits", nearest)] {
            @if !lines.is_empty() {
                h2 { (title) }
                ul { @for line in &lines { (line) } }
            }
        }
    }
}

fn verdict(answer: &Value) -> String {
    let trees = count(&answer["trees"], "tree");
    match text(&answer["verdict"]) {
        "some" => format!("There are candidates now, on {trees}: ask again."),
        "undecided" => format!("No candidates on {trees} so far; not all were searched in time."),
        _ => format!("No candidates on {trees}."),
    }
}

fn unknown(name: &Value) -> Markup {
    let nearest = list(&name["nearest"]);
    html! {
        li {
            "There is no " (absent(name))
            @if !nearest.is_empty() { "; similar: " (some(nearest)) }
        }
    }
}

/// A name with what it names.
fn absent(name: &Value) -> String {
    let kinds = [
        ("class", "resource class"),
        ("trait", "trait"),
        ("aggregate", "aggregate"),
    ];
    let found = kinds.iter().find(|(key, _)| name.get(key).is_some());
    found.map_or_else(
        || word(name),
        |(key, kind)| format!("{kind} {}", word(&name[key])),
    )
}

/// A condition of a query as what a tree has that meets it.
fn condition(atom: &Value) -> String {
    let names = match list(&atom["traits"]) {
        [] => format!("aggregate {}", some(list(&atom["aggregates"]))),
        traits => format!("trait {}", some(traits)),
    };
    let amount = format!("{}:{}", word(&atom["class"]), word(&atom["asked"]));
    let what = match text(&atom["atom"]) {
        "root_required" => format!("a root with {names}"),
        "member_of" | "required" => names,
        "forbidden" => format!("a provider without the forbidden {names}"),
        "inventory" => format!("an inventory of {}", word(&atom["class"])),
        "in_tree" => format!("the provider {}", word(&atom["provider"])),
        "unit" => format!("units for {amount}"),
        "room" => format!("room for {amount}"),
        "together" => "a place for all groups and resources together".to_owned(),
        other => other.to_owned(),
    };
    let group = match text(&atom["group"]) {
        "" => String::new(),
        group => format!(" for group {group}"),
    };
    let free = match (&atom["most_free"], &atom["free"]) {
        (Value::Null, Value::Null) => String::new(),
        (Value::Null, free) => format!(" ({} free)", word(free)),
        (most, _) => format!(" ({} free at most)", word(most)),
    };
    what + &group + &free
}

fn step(of: &Content<'_>, step: &Value) -> Markup {
    let mut cells = cells(step, "left gone");
    cells.insert(0, html! { (condition(step)) });
    let gone = list(&step["examples"]).iter().take(SHOWN_MAX);
    cells.push(html! { @for one in gone { (provider(of, &one["uuid"], &one["name"])) " " } });
    row(&cells)
}

/// What a query does without, with a link to the candidates that it has then.
fn relaxation(of: &Content<'_>, one: &Value) -> Markup {
    let less = list(&one["less"]).iter().map(|atom| match &atom["enough"] {
        Value::Null => format!("without asking for {}", condition(atom)),
        enough => {
            let asked = word(&atom["asked"]);
            format!(
                "with {}:{} in place of {asked}",
                word(&atom["class"]),
                word(enough)
            )
        }
    });
    let less: Vec<String> = less.take(SHOWN_MAX).collect();
    let page = of
        .partition
        .page("candidates", &[("query", text(&one["query"]))]);
    html! {
        li { (link(&page, &less.join(" and ").into())) ": " (count(&one["trees"], "tree")) }
    }
}

/// A tree that nearly fits, and who holds what it lacks.
fn near(of: &Content<'_>, one: &Value) -> Markup {
    let lacks = list(&one["lacks"]).iter().take(SHOWN_MAX).map(condition);
    let lacks: Vec<String> = lacks.collect();
    html! {
        li {
            (provider(of, &one["root"]["uuid"], &one["root"]["name"])) " lacks " (lacks.join(" and "))
            ul { @for holder in list(&one["holders"]).iter().take(SHOWN_MAX) { (held(of, holder)) } }
        }
    }
}

fn held(of: &Content<'_>, holder: &Value) -> Markup {
    let consumer = &holder["consumer"];
    html! {
        li {
            (word(&holder["class"])) ":" (word(&holder["amount"])) " held by "
            (link(&of.partition.consumer_page(text(consumer)), consumer))
            " of project " (word(&holder["project"])) " since " (word(&holder["since"]))
        }
    }
}
