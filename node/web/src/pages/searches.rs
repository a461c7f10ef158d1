//! Recent searches on all nodes; searches without candidates come first.

use std::cmp::Reverse;

use maud::html;
use placement_wire::NodeStatus;
use placement_wire::searches::{Search, SearchList};
use serde::de::IgnoredAny;

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{RowBudget, Table, cell, link, pages};

/// Maximum number of searches per node.
const LIMIT: &str = "1000";

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let (all, silent, left_out) = on_all_nodes(questions, of).await?;
    let from = of.target.offset();
    let table = table(of);
    let rows = all.iter().skip(from).map(|one| table.row(one));
    let (rows, left) = (
        RowBudget::default().take(rows),
        all.len().saturating_sub(from),
    );
    let href = |from: &str| of.partition.page("searches", &[("from", from)]);
    let body = html! {
        p { "Searches without candidates come first; otherwise newest first." }
        @if !silent.is_empty() { p { "Searches are missing because these nodes do not answer: " (silent.join(", ")) "." } }
        @if left_out > 0 { p { "Showing the newest " (LIMIT) " searches of each node; " (left_out) " older ones are omitted." } }
        (table.with("Recent searches", &rows))
        (pages(from, rows.len(), left, href))
    };
    Ok(View {
        title: "Recent searches".to_owned(),
        body,
        commands: vec![of.command("placementctl searches -o wide", &[])],
    })
}

/// A search, and the node that recorded it.
struct NodeSearch {
    node: u64,
    search: Search<'static, IgnoredAny>,
}

/// Recorded searches in the order of display; the nodes that do not answer; and the number of
/// omitted searches.
async fn on_all_nodes(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
) -> Result<(Vec<NodeSearch>, Vec<String>, u64), Failure> {
    let status: NodeStatus = questions.get("/v1/status".to_owned()).await?;
    let nodes: Vec<u64> = status.members.iter().map(|one| one.id).collect();
    let path = "/placementd/v1/searches";
    let paths = nodes
        .iter()
        .map(|node| of.partition.api_of(*node, path, &[("limit", LIMIT)]));
    let answers = questions.all(paths.collect()).await;
    let (mut found, mut silent, mut left_out) = (Vec::new(), Vec::new(), 0_u64);
    for (&node, answer) in nodes.iter().zip(answers) {
        let answer: Result<SearchList<'_, IgnoredAny>, Failure> = answer;
        match answer {
            Ok(answer) => {
                left_out = left_out.saturating_add(answer.left_out);
                let kept = answer.searches.into_iter();
                found.extend(kept.map(|search| NodeSearch { node, search }));
            }
            // If one node rejects the request, all nodes reject it.
            Err(refused) if refused.status < 500 => return Err(refused),
            Err(_) => silent.push(node.to_string()),
        }
    }
    found.sort_by_cached_key(|NodeSearch { search, .. }| {
        // RFC 3339 texts sort by time, except for the final `Z`, which would sort after a fraction.
        let at = search
            .at
            .as_deref()
            .unwrap_or_default()
            .trim_end_matches('Z')
            .to_owned();
        (search.candidates != 0, Reverse(at))
    });
    Ok((found, silent, left_out))
}

fn table<'a>(of: &'a Content<'a>) -> Table<'a, NodeSearch> {
    Table::new()
        .column("Time", |one: &NodeSearch| cell(&one.search.at))
        .column("Candidates", |one| {
            let more = if one.search.limited { " or more" } else { "" };
            html! { (one.search.candidates) (more) }
        })
        .column("Query", |one| {
            let query = &one.search.query;
            let page = of.partition.page("candidates", &[("query", query)]);
            // The node truncates long queries.
            if query.is_empty() || query.ends_with('…') {
                cell(query)
            } else {
                link(&page, query)
            }
        })
        .column("Reason", |one| {
            match (&one.search.reason, &one.search.refusal) {
                (None, Some(refusal)) => cell(refusal),
                (Some(reason), Some(refusal)) => html! { (reason) ": " (refusal) },
                (reason, None) => cell(reason),
            }
        })
        .column("Milliseconds", |one| cell(one.search.ms))
        .column("Node", |one| cell(one.node))
        .column("Request", |one| {
            let callers = one.search.global_request_id.as_ref();
            cell(callers.unwrap_or(&one.search.request_id))
        })
        .column("Project", |one| {
            let name = one.search.project_name.as_ref();
            cell(name.or(one.search.project_id.as_ref()))
        })
}
