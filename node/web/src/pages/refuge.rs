//! Whether hosts can be emptied, and where their consumers would go.

use maud::{Markup, html};
use placement_wire::consumers::ConsumerAllocation;
use placement_wire::refuge::{EachRefuge, Left, Move, Refuge, StuckTree};
use placement_words::{each_refuge, refuge};

use super::Content;
use super::lists::provider;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{RowBudget, Table, cell, cut_to, form, link};
use crate::words::{WORDS, cut, sentence};

const PATH: &str = "/placementd/v1/refuge";

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let fields = [
        ("provider", "Host (UUID)", ""),
        ("required", "Traits of new hosts", "CUSTOM_GPU,!CUSTOM_OLD"),
        ("member_of", "Aggregate of new hosts (UUID)", ""),
    ]
    .map(|(name, label, example)| (name, label, example, of.target.parameter(name)));
    let [host, required, aggregate] = fields.map(|(.., value)| value);
    let conditions = [("required", required), ("member_of", aggregate)];
    let options = [("--required", required), ("--member-of", aggregate)];
    let with = |name, value| [&[(name, value)][..], &conditions].concat();
    let (result, commands) = if !host.is_empty() {
        let query = [&with("provider", host)[..], &[("moves", "true")]].concat();
        let answer: Refuge<'_> = questions.get(of.partition.api(PATH, &query)).await?;
        let options = [&[("", host)][..], &options].concat();
        let command = of.command("placementctl refuge --moves", &options);
        (of_host(of, &answer), vec![command])
    } else if of.target.parameter("each") == "root" {
        let path = of.partition.api(PATH, &with("each", "root"));
        let answer: EachRefuge<'_> = questions.get(path).await?;
        let command = of.command("placementctl refuge --each", &options);
        (of_each(of, &answer, &conditions), vec![command])
    } else {
        let each = of.partition.page("refuge", &with("each", "root"));
        let body = html! {
            p { "Enter a host to see where its consumers could go." }
            p { (link(&each, "Look at each host by itself")) " (up to 10 seconds)" }
        };
        (body, Vec::new())
    };
    Ok(View {
        title: "Can this host go?".to_owned(),
        body: html! { (form(&of.partition.page("refuge", &[]), &fields)) (result) },
        commands,
    })
}

/// Whether the consumers of a tree have room elsewhere, if this is known soon, with a link to the
/// page.
pub(super) async fn mark(questions: &mut Questions<'_>, of: &Content<'_>, root: &str) -> Markup {
    let asked = of.partition.api(PATH, &[("provider", root)]);
    let answer: Option<Refuge<'_>> = questions.glance(asked).await;
    let page = of.partition.page("refuge", &[("provider", root)]);
    html! {
        p {
            (link(&page, "Can this host go?"))
            @if let Some(answer) = answer { " " (cut(&sentence(&refuge(&answer)[0]))) }
        }
    }
}

fn lines(lines: &[String]) -> Markup {
    html! {
        @for (at, line) in lines.iter().enumerate() {
            p class=[(at == 0).then_some("verdict")] { (sentence(line)) }
        }
    }
}

fn of_host(of: &Content<'_>, answer: &Refuge<'_>) -> Markup {
    let mut budget = RowBudget::default();
    let consumer = |uuid: &str| link(&of.partition.consumer_page(uuid), uuid);
    let why = |one: &Left<'_>| {
        let why = one.why.and_then(|index| answer.explanations.get(index));
        why.map_or_else(String::new, |why| sentence(&WORDS.cause(why)))
    };
    let without = Table::new()
        .column("Consumer", |one: &Left<'_>| consumer(&one.consumer))
        .column("Project", |one| cell(&one.project_id))
        .column("Resources", |one| cell(&one.resources))
        .column("Why it has no room", move |one| cell(why(one)));
    let left = budget.take(answer.left.iter().map(|one| without.row(one)));
    let part = |one: &ConsumerAllocation<'_>| {
        let host = provider(of, &one.provider.uuid, &one.provider.name);
        html! { (host) ": " (cell(&one.resources)) br; }
    };
    let with = Table::new()
        .column("Consumer", |one: &Move<'_>| consumer(&one.consumer))
        .column("Project", |one| cell(&one.project_id))
        .column("New allocations", |one| {
            html! { @for one in &one.to { (part(one)) } }
        });
    let moves = answer.moves.as_deref().unwrap_or_default();
    let moved = budget.take(moves.iter().map(|one| with.row(one)));
    html! {
        (lines(&refuge(answer)))
        @if !answer.left.is_empty() {
            (without.with("Consumers without room elsewhere", &left))
            (cut_to(left.len(), answer.left.len()))
        }
        @if !moves.is_empty() {
            (with.with("Moves that are possible in this order", &moved))
            (cut_to(moved.len(), moves.len()))
        }
    }
}

fn of_each(of: &Content<'_>, answer: &EachRefuge<'_>, conditions: &[(&str, &str)]) -> Markup {
    let table = Table::new()
        .column("Host", |one: &StuckTree<'_>| {
            let query = [&[("provider", &*one.provider.uuid)][..], conditions].concat();
            link(&of.partition.page("refuge", &query), &one.provider.name)
        })
        .column("Consumers", |one| cell(one.consumers))
        .column("Without room elsewhere", |one| cell(one.left))
        .column("Largest of these", |one| cell(&one.largest));
    let rows = RowBudget::default().take(answer.stuck.iter().map(|one| table.row(one)));
    html! {
        (lines(&each_refuge(answer)))
        @if !answer.stuck.is_empty() {
            (table.with("Hosts that cannot be emptied", &rows))
            (cut_to(rows.len(), answer.stuck.len()))
        }
    }
}
