//! `placementctl searches`: recent searches for candidates on all nodes.

use std::cmp::Reverse;

use clap::Args;
use placement_client::Consistency;
use placement_wire::explain::Explained;
use placement_wire::searches::{Search, SearchList};
use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::content::{Content, EXTENSIONS, filtered};
use crate::moment::seconds;
use crate::render::{Cell, Rows, cell, cut, warn};

/// Query parameters of `GET /placementd/v1/searches`.
#[derive(Args, Serialize)]
pub(crate) struct SearchesArgs {
    /// Show only searches up to this age, such as 90s, 15m, 12h or 7d.
    #[arg(long, value_name = "AGE", value_parser = seconds)]
    since: Option<u64>,
    /// Show only searches that found no candidates.
    #[arg(long)]
    empty: bool,
    /// Show only searches that were requested with a token of this project.
    #[arg(long)]
    project: Option<String>,
}

#[derive(Serialize)]
struct Limited {
    #[serde(flatten)]
    which: SearchesArgs,
    limit: usize,
}

/// Number of searches to show without `--limit`.
const LIMIT_USUAL: usize = 100;
/// Maximum number of searches per response.
const LIMIT_MAX: usize = 1000;

pub(crate) async fn show(content: &Content, which: SearchesArgs) -> anyhow::Result<String> {
    let output = &content.source.output;
    // The newest `limit` searches of the cluster are among the newest `limit` of each node.
    let limit = output.limit.unwrap_or(LIMIT_USUAL).clamp(1, LIMIT_MAX);
    let limit = Limited { which, limit };
    let filters = serde_json::to_value(&limit)?;
    let limit = limit.limit;
    let (mut found, left_out) = on_all_nodes(content, &filters).await?;
    let all = found.len() as u64 + left_out;
    found.truncate(limit);
    if all > found.len() as u64 {
        cut(&format!("the newest {} of {all} searches", found.len()));
    }
    output.rows(listed(found).if_none("no searches found"))
}

/// A search, and the node that recorded it.
#[derive(Clone, Default, Serialize)]
pub(crate) struct NodeSearch {
    pub(crate) node: u64,
    #[serde(flatten)]
    pub(crate) search: Search<'static, Explained<'static>>,
}

/// Recorded searches of all nodes, newest first, and the number of omitted ones. A node that does
/// not answer is reported on standard error; it is an error if no node answers.
pub(crate) async fn on_all_nodes(
    content: &Content,
    filters: &Value,
) -> anyhow::Result<(Vec<NodeSearch>, u64)> {
    let request =
        filtered(&format!("{EXTENSIONS}/searches"), filters).consistency(Consistency::Local);
    let Content { admin, source, .. } = content;
    let mut asked = Vec::new();
    for member in admin.status().await?.members {
        if source.node.as_ref().is_none_or(|node| node.is(&member)) {
            let node = admin.for_member(&member, content.timeout)?;
            let (api, request) = (node.placement(&source.partition), request.clone());
            let answer = async move {
                let answer: Result<SearchList<'static, Explained<'static>>, _> =
                    api.fetch(request).await;
                answer
            };
            asked.push((member.id, tokio::spawn(answer)));
        }
    }
    let (count, mut found, mut failed) = (asked.len(), Vec::new(), Vec::new());
    let mut left_out = 0;
    for (node, answer) in asked {
        match answer.await? {
            Err(error) => failed.push((node, error)),
            Ok(answer) => {
                left_out += answer.left_out;
                let searches = answer.searches.into_iter();
                found.extend(searches.map(|search| NodeSearch { node, search }));
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
    found.sort_by_key(|kept| Reverse(parse_time(kept.search.at.as_deref())));
    Ok((found, left_out))
}

/// Time of a search.
fn parse_time(text: Option<&str>) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text?, &Rfc3339).ok()
}

/// A row of the list.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    kept: NodeSearch,
    /// The global request id that a caller such as Nova sent, or else the id of the request, as in
    /// `history`.
    traced_by: String,
    found: Cell,
}

/// A row for each search.
fn listed(searches: Vec<NodeSearch>) -> Rows<Listed> {
    let rows = searches.into_iter().map(|kept| {
        let search = &kept.search;
        let id = search.global_request_id.as_ref();
        Listed {
            traced_by: id.unwrap_or(&search.request_id).to_string(),
            found: if search.limited {
                cell(format!("{}+", search.candidates))
            } else {
                cell(search.candidates)
            },
            kept,
        }
    });
    Rows::new(rows.collect())
        .column("request_id", |row| row.traced_by.clone())
        .column("at", |row| row.kept.search.at.clone())
        .column("node", |row| row.kept.node)
        .column("candidates", |row| row.found.clone())
        .column("ms", |row| row.kept.search.ms)
        .column("reason", |row| {
            let search = &row.kept.search;
            let refused = search.claim.clone().filter(|_| search.refusal.is_some());
            search.reason.clone().or(refused)
        })
        .wide("claim", |row| row.kept.search.claim.clone())
        .wide("refusal", |row| row.kept.search.refusal.clone())
        .wide("answer_id", |row| row.kept.search.request_id.clone())
        .wide("user", |row| row.kept.search.user_id.clone())
        .wide("user_name", |row| row.kept.search.user_name.clone())
        .wide("project", |row| row.kept.search.project_id.clone())
        .wide("project_name", |row| row.kept.search.project_name.clone())
        .wide("microversion", |row| row.kept.search.microversion.clone())
        .wide("index", |row| row.kept.search.index.clone())
        .wide("query", |row| row.kept.search.query.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Format;

    fn search() -> Search<'static, Explained<'static>> {
        Search {
            at: Some("2026-11-26T20:00:00Z".into()),
            request_id: "req-1".into(),
            ms: 1.5,
            ..Search::default()
        }
    }

    #[test]
    fn a_search_is_a_row_with_its_reason() {
        let search = Search {
            query: "required=A".into(),
            reason: Some("unknown_name".into()),
            ..search()
        };
        let printed = Format::Table.printed(listed(vec![NodeSearch { node: 3, search }]));
        assert_eq!(
            printed.lines().last(),
            Some("req-1       2026-11-26T20:00:00Z     3           0  1.5  unknown_name")
        );
    }

    #[test]
    fn a_search_shows_the_request_id_of_its_caller_and_its_limit() {
        let search = Search {
            global_request_id: Some("req-nova".into()),
            candidates: 1,
            limited: true,
            query: "resources=VCPU:1&limit=1".into(),
            ..search()
        };
        let kept = NodeSearch { node: 3, search };
        let printed = Format::Table.printed(listed(vec![kept.clone()]));
        assert_eq!(
            printed.lines().last(),
            Some("req-nova    2026-11-26T20:00:00Z     3  1+          1.5  -")
        );
        assert_eq!(Format::Name.printed(listed(vec![kept])), "req-nova\n");
    }

    #[test]
    fn a_refused_claim_shows_its_outcome_as_reason() {
        let search = |refusal: Option<&'static str>| Search {
            claim: Some("over_ceiling".into()),
            refusal: refusal.map(Into::into),
            candidates: 2,
            ..search()
        };
        let printed = |refusal| {
            let search = search(refusal);
            Format::Table.printed(listed(vec![NodeSearch { node: 3, search }]))
        };
        let last = |refusal| {
            printed(refusal)
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned()
        };
        assert!(last(Some("too much")).ends_with("over_ceiling"));
        assert!(last(None).ends_with('-'));
    }

    #[test]
    fn searches_are_ordered_by_time_and_not_by_text() {
        assert!(
            parse_time(Some("2026-11-26T20:00:00Z")) < parse_time(Some("2026-11-26T20:00:00.5Z"))
        );
        assert_eq!(parse_time(None), None);
    }
}
