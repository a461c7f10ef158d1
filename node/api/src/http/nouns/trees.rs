//! `/placementd/v1/trees/{uuid}`: trees of providers with their content.

use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::errors::{ApiError, Varies, to_json};

/// `GET /placementd/v1/trees/{uuid}`: the whole tree that contains this provider.
pub(crate) async fn show(context: &RequestContext) -> Result<Answer, ApiError> {
    context
        .query()?
        .check_once(context.route, context.version)?;
    let uuid = context.provider_or_404()?;
    let view = context.view().await?;
    let made = context.listed(move || Ok(view.state.tree_with(&uuid).as_ref().map(to_json)));
    let made = made.await?;
    let body = context.of_provider(Varies::No, |_| made)?;
    Ok(context.modified_now(Answer::chunks(vec![body])))
}
