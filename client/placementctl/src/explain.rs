//! `placementctl explain`: shows why a query has no or few candidates.

use std::iter::once;

use anyhow::bail;
use clap::Args;
use placement_client::{ApiRequest, Error, MICROVERSION_DEFAULT};
use placement_wire::explain::{Explained, Explanation};
use placement_words::{Folded, Words, counted};
use serde::Serialize;
use serde_json::json;

use crate::content::{Content, EXTENSIONS, escaped, query};
use crate::render::{NO_ROWS, Rows, cell, first_names, text, warn, word};
use crate::searches::{NodeSearch, on_all_nodes};

/// Outcome of a claim or of another write of allocations that exceeds the limit of a project.
const OVER_LIMIT: &str = "over_limit";

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// Amounts such as `VCPU:8 MEMORY_MB:4096`, a query of `GET /allocation_candidates`, a complete
    /// URI from an access log, or a request id (`req-…`). The searches of a request id are looked
    /// up on all nodes.
    #[arg(value_name = "QUERY|REQUEST_ID", required = true)]
    what: Vec<String>,
}

pub(crate) async fn run(
    content: &Content,
    ExplainArgs { what }: ExplainArgs,
) -> anyhow::Result<String> {
    let output = &content.source.output;
    let what = match &what[..] {
        [id] if id.starts_with("req-") => id,
        words => {
            let query = query(words)?;
            let answer = now(content, &query, MICROVERSION_DEFAULT).await;
            let answer = content.checked(answer, &query).await?;
            let text = || explained(&answer, output.is_wide());
            return output.report(&cell(&answer), NO_ROWS, |_| text());
        }
    };
    let filters = json!({ "request_id": what });
    let (mut searches, left_out) = on_all_nodes(content, &filters).await?;
    if searches.is_empty() {
        bail!(
            "no node has recorded a search of {what}: the request did not search for candidates, is too old, or carried the \
             request id of its caller. In the last case use the caller's id, the first of the two in Nova's log: \
             [req-CALLER req-NOVA …]. `placementctl searches --since 1h --project PROJECT` lists the searches of a project"
        );
    }
    if left_out > 0 {
        warn(&format!(
            "{left_out} older searches of the request are omitted"
        ));
    }
    searches.reverse();
    let mut looked_up = Vec::new();
    for kept in searches {
        looked_up.push(LookedUp::explain(content, kept).await);
    }
    let text = || text_of(&looked_up, output.is_wide());
    output.report(&cell(&looked_up), NO_ROWS, |_| text())
}

/// A search of a request.
#[derive(Serialize)]
struct LookedUp {
    /// Set if the explanation is about the current state, because the node recorded no explanation
    /// at the time of the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    explained_now: Option<bool>,
    #[serde(flatten)]
    kept: NodeSearch,
}

impl LookedUp {
    /// If a search without candidates has no recorded explanation, explains it against the current
    /// state.
    async fn explain(content: &Content, mut kept: NodeSearch) -> Self {
        let search = &mut kept.search;
        let mut explained_now = None;
        if search.candidates == 0 && search.explanation.is_none() && !search.query.is_empty() {
            let query = text(&search.query);
            if query.ends_with('…') {
                warn(&format!(
                    "this query was recorded incompletely and cannot be explained: {query}"
                ));
            } else {
                let version = search
                    .microversion
                    .as_deref()
                    .unwrap_or(MICROVERSION_DEFAULT);
                match now(content, &escaped(&query), version).await {
                    Ok(explanation) => {
                        search.explanation = Some(explanation);
                        explained_now = Some(true);
                    }
                    Err(error) => warn(&format!("{query} cannot be explained: {error}")),
                }
            }
        }
        Self {
            explained_now,
            kept,
        }
    }
}

/// Explains an escaped query against the current state.
async fn now(
    content: &Content,
    query: &str,
    microversion: &str,
) -> Result<Explained<'static>, Error> {
    let request = ApiRequest::get(&format!("{EXTENSIONS}/explain?{query}"));
    content.ask(request.microversion(microversion)).await
}

/// All searches of a request, oldest first. The first line is the conclusion.
fn text_of(searches: &[LookedUp], is_wide: bool) -> String {
    let all = searches.len();
    let each = || searches.iter().map(|one| &one.kept.search);
    let first = each().find_map(|search| search.explanation.as_ref());
    let is_claimed = |claim: Option<&str>| matches!(claim, Some("claimed" | "repeated"));
    let is_claimed = each().any(|search| is_claimed(search.claim.as_deref()));
    let refusal = each()
        .filter_map(|search| search.refusal.as_deref())
        .next_back();
    // The limit is the cause even if later searches found nothing: it refused the write on a host
    // with room.
    let over_limit = each()
        .filter(|search| search.claim.as_deref() == Some(OVER_LIMIT))
        .filter_map(|search| search.refusal.as_deref())
        .next_back();
    let mut text = match each().filter(|search| search.candidates != 0).count() {
        _ if is_claimed => "The claim was accepted.".to_owned(),
        _ if let Some(over_limit) = over_limit => text(over_limit),
        1.. if let Some(refusal) = refusal => text(refusal),
        0 => match first {
            Some(first) => WORDS.cause(&first.explanation),
            None => "no candidates".to_owned(),
        },
        answered => format!(
            "Placement returned candidates for {answered} of {all} searches. If the request failed, the reason \
             is elsewhere: Nova's filters, or a conflicting claim (409)"
        ),
    };
    text += "\n";
    for one in searches {
        let search = &one.kept.search;
        // A claim of choices that the client sent.
        let is_given = search.query.is_empty() && search.claim.is_some();
        // Limits also concern writes that are no claims.
        let is_write = is_given && search.claim.as_deref() == Some(OVER_LIMIT);
        let limit = if search.limited {
            " (the limit of the query; there may be more)"
        } else {
            ""
        };
        let found = match (is_write, is_given) {
            (true, _) => "a write".to_owned(),
            (_, true) => counted(search.candidates, "choice"),
            _ => counted(search.candidates, "candidate"),
        };
        let asked = match (is_write, is_given) {
            (true, _) => "a write of allocations".to_owned(),
            (_, true) => "a claim of given choices".to_owned(),
            _ => word(&search.query),
        };
        text += &format!(
            "\n{}  {found}{limit} from node {}, requested with microversion {} by user {} of project {}\n  \
             {asked}\n",
            word(&search.at),
            one.kept.node,
            word(&search.microversion),
            named(search.user_name.as_deref(), search.user_id.as_deref()),
            named(search.project_name.as_deref(), search.project_id.as_deref()),
        );
        if let Some(refusal) = &search.refusal {
            let what = if is_write { "write" } else { "claim" };
            text += &format!(
                "  {what} refused ({}): {}\n",
                word(&search.claim),
                word(refusal)
            );
        }
        if one.explained_now.is_some() {
            text += "  the original explanation is not available; explained against the current state:\n";
        }
        if let Some(explanation) = &search.explanation {
            text += &indented(&explained(explanation, is_wide));
        }
    }
    text
}

/// An id, with the name in front if Keystone sent one.
fn named(name: Option<&str>, id: Option<&str>) -> String {
    match (name, id) {
        (Some(name), Some(id)) => text(&format!("{name} ({id})")),
        _ => word(id),
    }
}

/// The same phrases as in the web pages.
pub(crate) const WORDS: Words = Words(text);

/// An explanation as text. The first line states the cause.
pub(crate) fn explained(answer: &Explained<'_>, is_wide: bool) -> String {
    let (answer, position) = (&answer.explanation, &answer.position);
    let mut text = WORDS.cause(answer) + "\n";
    if answer.trees == 0 {
        return text;
    }
    // The first absent name is in the first line.
    let names = WORDS.absent_names(answer).skip(1).map(|name| name + "\n");
    let title = WORDS.nearest_title(answer) + ":\n";
    let (index, node) = (word(&position.index), word(position.node));
    for (title, part) in [
        ("", names.collect()),
        ("", funnel(answer, is_wide)),
        ("what would fit:\n", indented(&relaxations(answer))),
        (&title, indented(&nearest(answer))),
        ("", format!("{}\n", of_state(&index, &node))),
    ] {
        if !part.is_empty() {
            text += &format!("\n{title}{part}");
        }
    }
    text
}

/// The state that was explained, and how to explain the same state again.
fn of_state(index: &str, node: &str) -> String {
    format!(
        "explained from state {index} of node {node}; --as-of {index} explains the same state again"
    )
}

fn indented(text: &str) -> String {
    let line = |line: &str| format!("  {line}").trim_end().to_owned() + "\n";
    text.lines().map(line).collect()
}

/// A row of the funnel: a condition, the numbers of trees that it keeps and removes, and some of
/// the removed trees.
struct Step {
    left: Option<u64>,
    gone: Option<u64>,
    what: String,
    examples: String,
}

/// The number of trees that remain after each condition. Unless `is_wide`, conditions that remove
/// no tree share one row.
fn funnel(answer: &Explanation<'_>, is_wide: bool) -> String {
    let (stages, others) = if is_wide {
        (WORDS.all_stages(answer), 0)
    } else {
        WORDS.stages(answer)
    };
    let start = Step {
        left: Some(answer.trees),
        gone: None,
        what: "all trees".to_owned(),
        examples: String::new(),
    };
    let steps = stages.iter().map(|one| Step {
        left: Some(one.stage.left),
        gone: Some(one.stage.gone),
        what: WORDS.condition(answer, one),
        examples: first_names(one.stage.examples.iter().map(|one| &*one.name)),
    });
    let others = (others > 0).then(|| Step {
        left: None,
        gone: Some(0),
        what: format!("{others} more conditions remove nothing (-o wide)"),
        examples: String::new(),
    });
    Rows::new(once(start).chain(steps).chain(others).collect())
        .column("remaining", |step| step.left)
        .column("removed", |step| step.gone)
        .column("condition", |step| step.what.clone())
        .column("for_example", |step| step.examples.clone())
        .table()
}

/// Relaxed queries that would have candidates.
fn relaxations(answer: &Explanation<'_>) -> String {
    let line = |one: &Folded<'_>| {
        let query = word(&one.relaxation.query);
        format!("{}\n  {query}\n", WORDS.folded(one))
    };
    WORDS.relaxations(answer).iter().map(line).collect()
}

/// The trees that nearly fit, and the consumers of the resources that they lack.
fn nearest(answer: &Explanation<'_>) -> String {
    let mut text = String::new();
    for one in WORDS.nearest(answer) {
        text += &(WORDS.near(one) + "\n");
        text.extend(one.holders.iter().map(|holder| {
            format!(
                "  {}:{} held by {} ({}) of project {} since {}{}\n",
                word(&holder.class),
                holder.amount,
                word(&holder.consumer),
                word(&holder.r#type),
                word(&holder.project),
                word(&holder.since),
                WORDS.hold(holder.hold.as_ref())
            )
        }));
        text.extend(
            WORDS
                .more_holders(one)
                .map(|more| format!("  and {more}\n")),
        );
    }
    text
}

#[cfg(test)]
mod tests;
