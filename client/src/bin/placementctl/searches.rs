//! `placementctl searches`: recent searches for candidates on all nodes.

use std::cmp::Reverse;

use clap::Args;
use placement_client::Consistency;
use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::moment::seconds;
use crate::render::{Rows, cut, list, warn, word};

/// Query parameters of `GET /placementd/v1/searches`.
#[derive(Args, Serialize)]
pub(crate) struct Which {
    /// Show only searches of this period, such as 90s, 15m, 12h or 7d.
    #[arg(long, value_name = "AGE", value_parser = seconds)]
    since: Option<u64>,
    /// Show only searches without candidates.
    #[arg(long)]
    empty: bool,
    /// Show only searches of callers of this project.
    #[arg(long)]
    project: Option<String>,
}

/// Number of searches to show without `--limit`.
const LIMIT_USUAL: usize = 100;
/// Maximum number of searches per response.
const LIMIT_MAX: usize = 1000;

pub(crate) async fn show(content: &Content, which: Which) -> anyhow::Result<String> {
    let output = &content.source.output;
    // The newest `limit` searches of the cluster are among the newest `limit` of each node.
    let limit = output.limit.unwrap_or(LIMIT_USUAL).clamp(1, LIMIT_MAX);
    let mut filters = serde_json::to_value(which)?;
    filters["limit"] = json!(limit);
    let (mut found, left_out) = on_all_nodes(content, &filters).await?;
    let all = found.len() as u64 + left_out;
    found.truncate(limit);
    if all > found.len() as u64 {
        cut(&format!("the newest {} of {all} searches", found.len()));
    }
    output.rows(listed(found))
}

/// Recorded searches of all nodes, newest first, with `node` in each, and the number of omitted
/// ones. A node that does not answer is reported on standard error; it is an error if none answers.
pub(crate) async fn on_all_nodes(
    content: &Content,
    filters: &Value,
) -> anyhow::Result<(Vec<Value>, u64)> {
    let request = filtered(&format!("{EXTENSIONS}/searches"), filters);
    let request = request.consistency(Consistency::Local);
    let Content { admin, source, .. } = content;
    let mut asked = Vec::new();
    for member in admin.status().await?.members {
        if source.node.as_ref().is_none_or(|node| node.is(&member)) {
            let node = admin.of(&member, content.timeout)?;
            let (api, request) = (node.placement(&source.partition), request.clone());
            let answer = async move { api.call(request).await?.json::<Value>() };
            asked.push((member.id, tokio::spawn(answer)));
        }
    }
    let (count, mut found, mut failed) = (asked.len(), Vec::new(), Vec::new());
    let mut left_out = 0;
    for (id, answer) in asked {
        match answer.await? {
            Err(error) => failed.push((id, error)),
            Ok(answer) => {
                left_out += answer["left_out"].as_u64().unwrap_or(0);
                for mut search in list(&answer["searches"]).iter().cloned() {
                    search["node"] = json!(id);
                    found.push(search);
                }
            }
        }
    }
    if failed.len() == count
        && let Some((_, error)) = failed.pop()
    {
        return Err(error.into());
    }
    for (id, error) in failed {
        warn(&format!("the searches of node {id} are missing: {error}"));
    }
    found.sort_by_key(|search| Reverse(at(search)));
    Ok((found, left_out))
}

/// Time of a search.
fn at(search: &Value) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(search["at"].as_str()?, &Rfc3339).ok()
}

/// A row for each search. Its id is the global request id, which the caller sent, such as Nova, or
/// else the id of the request, as in `history`.
fn listed(mut searches: Vec<Value>) -> Rows {
    for search in &mut searches {
        let id = match &search["global_request_id"] {
            Value::Null => &search["request_id"],
            callers => callers,
        };
        search["traced_by"] = id.clone();
        search["found"] = match search["limited"] == true {
            true => json!(format!("{}+", word(&search["candidates"]))),
            false => search["candidates"].clone(),
        };
    }
    let columns = "request_id:traced_by at node candidates:found ms reason +answer_id:request_id +user:user_id \
                   +user_name +project:project_id +project_name +microversion +index +query";
    Rows::new(columns, searches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Format;

    #[test]
    fn a_search_is_a_row_with_its_reason() {
        let search = json!({"at": "2026-11-26T20:00:00Z", "request_id": "req-1", "candidates": 0, "ms": 1.5, "node": 3,
            "query": "required=A", "reason": "unknown_name"});
        let printed = Format::Table.printed(listed(vec![search]));
        assert_eq!(
            printed.lines().last(),
            Some("req-1       2026-11-26T20:00:00Z     3           0  1.5  unknown_name")
        );
    }

    #[test]
    fn a_search_shows_the_request_id_of_its_caller_and_its_limit() {
        let search = json!({"at": "2026-11-26T20:00:00Z", "request_id": "req-1", "global_request_id": "req-nova",
            "candidates": 1, "limited": true, "ms": 1.5, "node": 3, "query": "resources=VCPU:1&limit=1"});
        let printed = Format::Table.printed(listed(vec![search.clone()]));
        assert_eq!(
            printed.lines().last(),
            Some("req-nova    2026-11-26T20:00:00Z     3  1+          1.5  -")
        );
        assert_eq!(Format::Name.printed(listed(vec![search])), "req-nova\n");
    }

    #[test]
    fn searches_are_ordered_by_time_and_not_by_text() {
        let search = |at: &str| json!({ "at": at });
        assert!(at(&search("2026-11-26T20:00:00Z")) < at(&search("2026-11-26T20:00:00.5Z")));
        assert_eq!(at(&json!({})), None);
    }
}
