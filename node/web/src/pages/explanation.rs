//! Explanation of a query without candidates, from `/placementd/v1/explain`.

use maud::{Markup, html};
use placement_wire::explain::{Explanation, Holder, NearTree};
use placement_words::{Folded, FoldedStage};

use super::Content;
use super::lists::provider;
use crate::parts::{RowBudget, Table, cell, link, row};
use crate::words::{WORDS, cut, sentence, word};

/// Maximum number of shown entries of each part.
const SHOWN_MAX: usize = 20;
pub(super) fn explained(of: &Content<'_>, answer: &Explanation<'_>) -> Markup {
    let mut budget = RowBudget::default();
    // The first absent name is in the first line.
    let names = WORDS.absent_names(answer).skip(1).take(SHOWN_MAX);
    let names = budget.take(names.map(|name| html! { li { (sentence(&name)) } }));
    let less = WORDS.relaxations(answer);
    let less = first_entries(&mut budget, less.iter(), |one| relaxation(of, one));
    let nearest = WORDS.nearest(answer).into_iter();
    let nearest = first_entries(&mut budget, nearest, |one| near(of, one));
    let (stages, others) = WORDS.stages(answer);
    let table = Table::new()
        .column(
            "Condition",
            |one: &FoldedStage<'_>| html! { (WORDS.condition(answer, one)) },
        )
        .column("Trees remaining", |one| cell(one.stage.left))
        .column("Trees removed", |one| cell(one.stage.gone))
        .column("For example", |one| {
            let gone = one.stage.examples.iter().take(SHOWN_MAX);
            html! { @for one in gone { (provider(of, &one.uuid, &one.name)) " " } }
        });
    let (mut steps, left_out) = first_entries(&mut budget, stages.iter(), |one| table.row(one));
    let none = || html! { "–" };
    for (count, end, removed) in [
        (left_out, "", none()),
        (others, " remove nothing", html! { "0" }),
    ] {
        if count > 0 {
            let more = html! { (count) " more conditions" (end) };
            steps.push(row(&[more, none(), removed, none()]));
        }
    }
    let title = sentence(&WORDS.nearest_title(answer));
    html! {
        p class="verdict" { (cut(&sentence(&WORDS.cause(answer)))) }
        ul { @for name in &names { (name) } }
        (table.with("Trees remaining after each condition", &steps))
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
fn first_entries<'a, T: 'a>(
    budget: &mut RowBudget,
    all: impl ExactSizeIterator<Item = &'a T>,
    shown: impl FnMut(&'a T) -> Markup,
) -> (Vec<Markup>, usize) {
    let count = all.len();
    let shown = budget.take(all.take(SHOWN_MAX).map(shown));
    let more = count - shown.len();
    (shown, more)
}

/// A relaxed query, with a link to its candidates.
fn relaxation(of: &Content<'_>, one: &Folded<'_>) -> Markup {
    let query = [("query", &*one.relaxation.query)];
    let page = of.partition.page("candidates", &query);
    html! { li { (link(&page, WORDS.folded(one))) } }
}

/// A nearly fitting tree, and the consumers of the resources that it lacks.
fn near(of: &Content<'_>, one: &NearTree<'_>) -> Markup {
    let root = &one.root;
    html! {
        li {
            (provider(of, &root.uuid, &root.name)) " " (WORDS.lacks(one))
            ul {
                @for holder in one.holders.iter().take(SHOWN_MAX) { (held(of, holder)) }
                @if let Some(more) = WORDS.more_holders(one) { li { "and " (more) } }
            }
        }
    }
}

fn held(of: &Content<'_>, holder: &Holder<'_>) -> Markup {
    let consumer = &holder.consumer;
    html! {
        li {
            (word(&holder.class)) ":" (holder.amount) " held by "
            (link(&of.partition.consumer_page(consumer), consumer))
            " of project " (word(&holder.project)) " since " (word(&holder.since))
            (WORDS.hold(holder.hold.as_ref()))
        }
    }
}
