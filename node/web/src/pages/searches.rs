//! Recent searches on all nodes; searches without candidates come first.

use std::cmp::Reverse;

use maud::{Markup, html};
use serde_json::{Value, json};

use super::Content;
use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, cells, link, pages, table};
use crate::words::{list, text, word};

/// Maximum number of searches per node.
const LIMIT: &str = "1000";
const HEADS: &str = "Time | Candidates | Query | Reason | Milliseconds | Node | Request | Project";

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let (all, silent, left_out) = on_all_nodes(questions, of).await?;
    let from = of.target.offset();
    let rows = all.iter().skip(from).map(|one| shown(of, one));
    let (rows, left) = (Room::default().take(rows), all.len().saturating_sub(from));
    let href = |from: &str| of.partition.page("searches", &[("from", from)]);
    let body = html! {
        p { "Searches without candidates come first; otherwise newest first." }
        @if !silent.is_empty() { p { "Searches are missing because these nodes do not answer: " (silent.join(", ")) "." } }
        @if left_out > 0 { p { "Showing the newest " (LIMIT) " searches of each node; " (left_out) " older ones are omitted." } }
        (table("Recent searches", HEADS, &rows))
        (pages(from, rows.len(), left, href))
    };
    Ok(View {
        title: "Recent searches".to_owned(),
        body,
        commands: vec![of.command("placementctl searches -o wide", &[])],
    })
}

/// Recorded searches in the order of display, with `node` in each; the nodes that do not answer;
/// and the number of omitted searches.
async fn on_all_nodes(
    questions: &mut Questions<'_>,
    of: &Content<'_>,
) -> Result<(Vec<Value>, Vec<String>, u64), Failure> {
    let status = questions.get("/v1/status".to_owned()).await?;
    let members = list(&status["members"]).iter();
    let nodes: Vec<u64> = members.filter_map(|one| one["id"].as_u64()).collect();
    let path = "/placementd/v1/searches";
    let paths = nodes.iter();
    let paths = paths.map(|node| of.partition.api_of(*node, path, &[("limit", LIMIT)]));
    let answers = questions.all(paths.collect()).await;
    let (mut found, mut silent, mut left_out) = (Vec::new(), Vec::new(), 0_u64);
    for (node, answer) in nodes.iter().zip(answers) {
        match answer {
            // A faulty node may return any JSON.
            Ok(answer) => {
                left_out = left_out.saturating_add(answer["left_out"].as_u64().unwrap_or(0));
                let kept = list(&answer["searches"]).iter().cloned();
                found.extend(kept.filter(Value::is_object).map(|mut search| {
                    search["node"] = json!(node);
                    search
                }));
            }
            // A request that one node refuses is refused by all.
            Err(refused) if refused.status < 500 => return Err(refused),
            Err(_) => silent.push(node.to_string()),
        }
    }
    found.sort_by_cached_key(|search| {
        // RFC 3339 texts sort by time, except for the final `Z`, which would sort after a fraction.
        let at = text(&search["at"]).trim_end_matches('Z').to_owned();
        (search["candidates"] != 0, Reverse(at))
    });
    Ok((found, silent, left_out))
}

fn shown(of: &Content<'_>, one: &Value) -> Markup {
    let query = text(&one["query"]);
    let page = of.partition.page("candidates", &[("query", query)]);
    let project = match one["project_name"] {
        Value::String(_) => "project_name",
        _ => "project_id",
    };
    let columns = format!("at candidates query reason ms node request_id {project}");
    let mut row = cells(one, &columns);
    if one["limited"] == true {
        row[1] = html! { (word(&one["candidates"])) " or more" };
    }
    if !one["global_request_id"].is_null() {
        row[6] = cell(&one["global_request_id"]);
    }
    // The node truncates long queries.
    if !query.is_empty() && !query.ends_with('…') {
        row[2] = link(&page, &one["query"]);
    }
    crate::parts::row(&row)
}
