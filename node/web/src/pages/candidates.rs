//! Allocation candidates of a query, or an explanation if it has no candidates.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use placement_wire::explain::Explained;
use placement_wire::upstream::{Candidate, Candidates, Providers};
use serde::de::IgnoredAny;

use super::Content;
use super::explanation::explained as explanation;
use super::lists::provider;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Field, ROWS_MAX, RowBudget, Table, form};
use crate::target::{PageAddress, whole_query, with_query};
use crate::words::{command, word};

/// Default limit of candidates.
const LIMIT: &str = "100";
/// Maximum number of shown providers of a candidate.
const PARTS_MAX: usize = 8;
/// Maximum number of trees whose provider names are looked up; other providers are shown by UUID.
const TREES_MAX: usize = 100;

/// Fields of the form: parameter, label, example, and value.
pub(super) fn fields(target: &PageAddress) -> [Field<'_>; 4] {
    [
        ("resources", "Resources", "VCPU:8,MEMORY_MB:32768"),
        ("required", "Traits", "HW_CPU_X86_AVX2,!CUSTOM_OLD"),
        ("member_of", "Aggregates", ""),
        ("in_tree", "In tree of provider (UUID)", ""),
    ]
    .map(|(name, label, example)| (name, label, example, target.parameter(name)))
}

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let (partition, target) = (of.partition, of.target);
    let given = target.parameter("query");
    let asked = if given.is_empty() {
        asked(target)
    } else {
        whole_query(given)
    };
    let label = "Or a complete query, for example from a log line";
    let fields = [&fields(target)[..], &[("query", label, "", given)]].concat();
    let form = form(&partition.page("candidates", &[]), &fields);
    let (result, commands) = if asked.is_empty() {
        (html! { p { "Enter at least the resources." } }, Vec::new())
    } else {
        (result(questions, of, &asked).await?, commands(of, &asked))
    };
    Ok(View {
        title: "Candidates".to_owned(),
        body: html! { (form) (result) },
        commands,
    })
}

/// The query from the fields; empty if no field is set.
pub(super) fn asked(target: &PageAddress) -> String {
    let fields = fields(target).map(|(name, .., value)| (name, value));
    with_query("", &fields).trim_start_matches('?').to_owned()
}

fn commands(of: &Content<'_>, asked: &str) -> Vec<String> {
    let mut commands = vec![
        of.command("placementctl candidates", &[("", asked)]),
        of.command("placementctl explain", &[("", asked)]),
    ];
    let resources = of.target.parameter("resources");
    if of.target.parameter("query").is_empty() && !resources.is_empty() {
        let amounts = resources.replace(':', "=");
        let amounts = amounts.split(',').map(|one| ("--resource", one));
        let required = ("--required", of.target.parameter("required"));
        let options: Vec<_> = amounts.chain([required]).collect();
        commands.push(command("openstack allocation candidate list", &options));
    }
    commands
}

/// The candidates, or an explanation if the query has no candidates.
async fn result(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    asked: &str,
) -> Result<Markup, Failure> {
    let is_limited = asked.split('&').any(|one| one.starts_with("limit="));
    let mut path = format!("/allocation_candidates?{asked}");
    if !is_limited {
        path += &format!("&limit={LIMIT}");
    }
    let path = of.partition.api(&path, &[]);
    let answer: Candidates = match questions.get(path).await {
        Ok(answer) => answer,
        // The query may contain an unknown name, for which the explanation has similar names.
        Err(refused) if refused.status == 400 => {
            let explained = explain(questions, of, asked).await;
            return explained.map_err(|_| refused);
        }
        Err(failure) => return Err(failure),
    };
    let all = &answer.allocation_requests;
    if all.is_empty() {
        return explain(questions, of, asked).await;
    }
    let names = names(questions, of, &answer).await;
    let name = |uuid: &str| provider(of, uuid, names.get(uuid).map_or(uuid, String::as_str));
    let table = Table::new()
        .column("Tree", |one: &Candidate| {
            html! { @for root in roots(&answer, one) { (name(root)) " " } }
        })
        .column("Resources", |one| {
            let parts = one.allocations.iter().take(PARTS_MAX);
            let more = one.allocations.len().saturating_sub(PARTS_MAX);
            html! {
                @for (uuid, held) in parts { (name(uuid)) ": " (word(&held.resources)) br; }
                @if more > 0 { "and " (more) " more" }
            }
        });
    let rows = RowBudget::default().take(all.iter().map(|one| table.row(one)));
    // Truncated by the limit of the query or of the page.
    let limit = asked.split('&').find_map(|one| one.strip_prefix("limit="));
    let limit = limit.unwrap_or(LIMIT).parse().unwrap_or(usize::MAX);
    let (found, shown) = (all.len(), rows.len());
    let noun = if found == 1 {
        "candidate"
    } else {
        "candidates"
    };
    let count = match (found >= limit, shown < found) {
        (false, false) => format!("{found} {noun}."),
        (false, true) => format!("The first {shown} of {found} {noun}."),
        (true, _) => format!("The first {shown} {noun}; there may be more."),
    };
    Ok(html! {
        p class="verdict" { (count) }
        (table.with("Candidates", &rows))
    })
}

async fn explain(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    asked: &str,
) -> Result<Markup, Failure> {
    let path = format!("/placementd/v1/explain?{asked}");
    let path = of.partition.api(&path, &[]);
    let explained: Explained<'_> = questions.get(path).await?;
    Ok(explanation(of, &explained.explanation))
}

/// Names by UUID of the providers in the trees of the shown candidates.
async fn names(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
    answer: &Candidates,
) -> BTreeMap<String, String> {
    let shown = answer.allocation_requests.iter().take(ROWS_MAX);
    let trees: BTreeSet<&str> = shown.flat_map(|one| roots(answer, one)).collect();
    let paths = trees.iter().take(TREES_MAX).map(|root| {
        let tree = [("in_tree", *root)];
        of.partition.api("/resource_providers", &tree)
    });
    let answers = questions.all(paths.collect()).await;
    let answers = answers.into_iter().flatten();
    let named = answers.flat_map(|tree: Providers<IgnoredAny>| tree.resource_providers);
    named.map(|one| (one.uuid, one.name)).collect()
}

/// UUIDs of the root providers of a candidate.
fn roots<'a>(answer: &'a Candidates, candidate: &'a Candidate) -> BTreeSet<&'a str> {
    let root = |provider: &'a String| {
        let summary = answer.provider_summaries.get(provider);
        let root = summary.and_then(|summary| summary.root_provider_uuid.as_ref());
        root.unwrap_or(provider).as_str()
    };
    candidate
        .allocations
        .keys()
        .take(PARTS_MAX)
        .map(root)
        .collect()
}
