//! `GET /placementd/v1/searches`: the latest searches on this node.

use placement_wire::searches::SearchList;

use super::{ago, parse_limit};
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::searches::{SearchFilter, SearchView};
use crate::http::errors::ApiError;

/// `GET /placementd/v1/searches`, with `since` in seconds, `empty`, `project` and `request_id`.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of("use since=SECONDS for recent searches")?;
    let query = context.query()?;
    query.check_once(context.head.route, context.head.version)?;
    let request_id = query.last("request_id").map(str::to_owned);
    let which = SearchFilter {
        since: query.last("since").map(|age| ago(context, age)),
        empty: query.last("empty") == Some("true"),
        // The explanation of a full host names consumers of all projects.
        explained: request_id.is_some() && context.head.passes_further_rule,
        request_id,
        project: query.last("project").map(str::to_owned),
        limit: query.last("limit").map_or(Ok(LIMIT_USUAL), parse_limit)?,
    };
    // Checks that the partition exists, with the consistency that the request asks for.
    context.view().await?;
    let (searches, left_out) = context.services.server.searches.matching(&which);
    Ok(Answer::json(&SearchList {
        left_out: left_out as u64,
        searches: searches.iter().map(SearchView::json).collect(),
    }))
}

/// Default number of searches.
const LIMIT_USUAL: usize = 100;
