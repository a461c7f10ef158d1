//! Explanation of a query without candidates, from `/placementd/v1/explain`.

use maud::{Markup, html};
use placement_words::Words;
use serde_json::Value;

use super::Content;
use super::lists::provider;
use crate::parts::{Room, cells, link, row, table};
use crate::words::{cut, list, text, word};

/// Maximum number of shown entries of each part.
const SHOWN_MAX: usize = 20;
/// The same phrases as in `placementctl explain`.
const WORDS: Words = Words(word);

pub(super) fn explained(of: &Content<'_>, answer: &Value) -> Markup {
    let mut room = Room::default();
    // The first absent name is in the first line.
    let names = WORDS.absent_names(answer).skip(1).take(SHOWN_MAX);
    let names = room.take(names.map(|name| html! { li { (sentence(&name)) } }));
    let less = WORDS.relaxations(answer);
    let less = some(&mut room, less.iter(), |one| relaxation(of, one));
    let nearest = some(&mut room, list(&answer["nearest"]).iter(), |one| {
        near(of, one)
    });
    let (stages, others) = WORDS.stages(answer);
    let (mut steps, left_out) = some(&mut room, stages.into_iter(), |one| step(of, one));
    let none = || html! { "–" };
    for (count, removed) in [(left_out, none()), (others, html! { "0" })] {
        if count > 0 {
            let more = html! { (count) " more conditions" };
            steps.push(row(&[more, none(), removed, none()]));
        }
    }
    let heads = "Condition | Trees remaining | Trees removed | For example";
    let title = sentence(&WORDS.nearest_title(answer));
    html! {
        p class="verdict" { (cut(&sentence(&WORDS.cause(answer)))) }
        ul { @for name in &names { (name) } }
        (table("Trees remaining after each condition", heads, &steps))
        @for (title, (lines, more)) in [("What would fit", less), (title.trim_end_matches('.'), nearest)] {
            @if !lines.is_empty() {
                h2 { (title) }
                ul {
                    @for line in &lines { (line) }
                    @if more > 0 { li { "and " (more) " more" } }
                }
            }
        }
    }
}

/// The first entries, and the number of further ones.
fn some<'a>(
    room: &mut Room,
    all: impl ExactSizeIterator<Item = &'a Value>,
    shown: impl FnMut(&'a Value) -> Markup,
) -> (Vec<Markup>, usize) {
    let count = all.len();
    let shown = room.take(all.take(SHOWN_MAX).map(shown));
    let more = count - shown.len();
    (shown, more)
}

/// Turns a phrase into a sentence.
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

/// A relaxed query, with a link to its candidates.
fn relaxation(of: &Content<'_>, one: &Value) -> Markup {
    let query = [("query", text(&one["query"]))];
    let page = of.partition.page("candidates", &query);
    html! { li { (link(&page, &WORDS.less(one).into())) } }
}

/// A nearly fitting tree, and the consumers of the resources that it lacks.
fn near(of: &Content<'_>, one: &Value) -> Markup {
    let root = &one["root"];
    let holders = list(&one["holders"]).iter();
    html! {
        li {
            (provider(of, &root["uuid"], &root["name"])) " " (WORDS.lacks(one))
            ul {
                @for holder in holders.take(SHOWN_MAX) { (held(of, holder)) }
                @if let Some(more) = WORDS.more_holders(one) { li { "and " (more) } }
            }
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
