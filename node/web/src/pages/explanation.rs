//! Why a query has no candidates, as `/placementd/v1/explain` says it.

use maud::{Markup, html};
use placement_words::Words;
use serde_json::Value;

use super::Content;
use super::lists::provider;
use crate::parts::{Room, cells, link, row, table};
use crate::words::{cut, list, text, word};

/// So many entries of each part are shown.
const SHOWN_MAX: usize = 20;
/// As `placementctl explain` says it.
const WORDS: Words = Words(word);

pub(super) fn explained(of: &Content<'_>, answer: &Value) -> Markup {
    let mut room = Room::default();
    let mut shown = |member: &str, line: &dyn Fn(&Value) -> Markup| {
        let all = list(&answer[member]).iter().take(SHOWN_MAX);
        room.take(all.map(line))
    };
    let item = |line: String| html! { li { (sentence(&line)) } };
    let unknown = shown("unknown", &|name| item(WORDS.unknown(name)));
    let unused = shown("unused", &|name| item(WORDS.unused(name)));
    let less = shown("relaxations", &|one| relaxation(of, one));
    let nearest = shown("nearest", &|one| near(of, one));
    let steps = shown("funnel", &|one| step(of, one));
    let heads = "Condition | Trees left | Trees gone | Gone are";
    html! {
        p class="verdict" { (cut(&sentence(&WORDS.cause(answer)))) }
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

/// A line of text as a sentence.
fn sentence(line: &str) -> String {
    let mut rest = line.chars();
    let first = rest.next().into_iter().flat_map(char::to_uppercase);
    first.collect::<String>() + rest.as_str() + "."
}

fn step(of: &Content<'_>, step: &Value) -> Markup {
    let mut cells = cells(step, "left gone");
    cells.insert(0, html! { (WORDS.condition(step)) });
    let gone = list(&step["examples"]).iter().take(SHOWN_MAX);
    cells.push(html! { @for one in gone { (provider(of, &one["uuid"], &one["name"])) " " } });
    row(&cells)
}

/// What a query does without, with a link to the candidates that it has then.
fn relaxation(of: &Content<'_>, one: &Value) -> Markup {
    let query = [("query", text(&one["query"]))];
    let page = of.partition.page("candidates", &query);
    html! { li { (link(&page, &WORDS.less(one).into())) } }
}

/// A tree that nearly fits, and who holds what it lacks.
fn near(of: &Content<'_>, one: &Value) -> Markup {
    let lacks = list(&one["lacks"]).iter().take(SHOWN_MAX);
    let lacks: Vec<String> = lacks.map(|atom| WORDS.condition(atom)).collect();
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
