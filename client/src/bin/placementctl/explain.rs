//! `placementctl explain`: shows why a query has no or few candidates.

use std::iter::once;

use anyhow::bail;
use clap::Args;
use placement_client::{ApiRequest, MICROVERSION_DEFAULT};
use placement_words::Words;
use serde_json::{Value, json};

use crate::content::{Content, EXTENSIONS, query};
use crate::render::{Output, Rows, list, phrase, some, warn, word};
use crate::searches::on_all_nodes;

#[derive(Args)]
pub(crate) struct Which {
    /// Query of `GET /allocation_candidates`, a complete URI from an access log, or a request id
    /// (`req-…`), whose searches are looked up on all nodes.
    #[arg(value_name = "QUERY|REQUEST_ID")]
    what: String,
}

pub(crate) async fn run(content: &Content, Which { what }: Which) -> anyhow::Result<String> {
    let output = &content.source.output;
    if !what.starts_with("req-") {
        let answer = now(content, &what, MICROVERSION_DEFAULT).await?;
        return output.report(&answer, None, |_| explained(&answer, output.is_wide()));
    }
    let filters = json!({ "request_id": what });
    let (mut searches, left_out) = on_all_nodes(content, &filters).await?;
    if searches.is_empty() {
        bail!(
            "no node has a search of {what}: the request did not search for candidates, is too old, or carried the request id \
             of its caller. In that case use the caller's id, the first of the two in Nova's log: [req-CALLER req-NOVA …]. \
             `placementctl searches --since 1h --project PROJECT` lists the searches of a project"
        );
    }
    if left_out > 0 {
        warn(&format!(
            "{left_out} older searches of the request are omitted"
        ));
    }
    searches.reverse();
    for search in &mut searches {
        if search["candidates"] == 0 && !search["explanation"].is_object() {
            let query = word(&search["query"]);
            if query.ends_with('…') {
                warn(&format!(
                    "the query was too long to be recorded completely: {query}"
                ));
                continue;
            }
            let version = search["microversion"]
                .as_str()
                .unwrap_or(MICROVERSION_DEFAULT);
            match now(content, &query, version).await {
                Ok(explanation) => search["explanation"] = explanation,
                Err(error) => warn(&format!("{query} cannot be explained: {error}")),
            }
            search["explained_now"] = json!(true);
        }
    }
    output.report(&searches, None, |_| looked_up(&searches, output.is_wide()))
}

/// Explains a query against the current state.
async fn now(content: &Content, given: &str, microversion: &str) -> anyhow::Result<Value> {
    let request = ApiRequest::get(&format!("{EXTENSIONS}/explain?{}", query(given)));
    Ok(content.ask(request.microversion(microversion)).await?)
}

/// All searches of a request, oldest first. The first line is the conclusion.
fn looked_up(searches: &[Value], is_wide: bool) -> String {
    let (all, is_answered) = (searches.len(), |one: &&Value| one["candidates"] != 0);
    let mut explanations = searches.iter().map(|search| &search["explanation"]);
    let first = explanations.find(|explanation| explanation.is_object());
    let mut text = match searches.iter().filter(is_answered).count() {
        0 => first.map_or("no candidates".to_owned(), |one| WORDS.cause(one)) + "\n",
        answered => format!(
            "Placement returned candidates for {answered} of {all} searches. If the request failed, the reason \
             is elsewhere: Nova's filters, or a conflicting claim (409)\n"
        ),
    };
    for search in searches {
        let limit = match search["limited"] == true {
            true => " (its limit; there may be more)",
            false => "",
        };
        text += &phrase("\n{at}  {candidates*candidate}", search);
        text += limit;
        text += &phrase(
            " from node {node}, asked in {microversion} by user {user} of project {project}\n  {query}\n",
            &with_names(search),
        );
        if search["explained_now"] == true {
            text += "  the original explanation is not available; explained against the current state:\n";
        }
        if search["explanation"].is_object() {
            text += &indented(&explained(&search["explanation"], is_wide));
        }
    }
    text
}

/// The search with members `user` and `project`: id, preceded by the name if Keystone gave one.
fn with_names(search: &Value) -> Value {
    let mut search = search.clone();
    for who in ["user", "project"] {
        let id = search[format!("{who}_id")].clone();
        search[who] = match (search[format!("{who}_name")].as_str(), id.as_str()) {
            (Some(name), Some(id)) => json!(format!("{name} ({id})")),
            _ => id,
        };
    }
    search
}

/// The same phrases as in the web pages.
const WORDS: Words = Words(word);

/// An explanation as text. The first line states the cause.
pub(crate) fn explained(answer: &Value, is_wide: bool) -> String {
    let mut text = WORDS.cause(answer) + "\n";
    // The first absent name is in the first line.
    let names = WORDS.absent_names(answer).skip(1).map(|name| name + "\n");
    let title = WORDS.nearest_title(answer) + ":\n";
    for (title, part) in [
        ("", names.collect()),
        ("", funnel(answer, is_wide)),
        ("what would fit:\n", indented(&relaxations(answer))),
        (&title, indented(&nearest(answer))),
        (
            "",
            phrase("state {index} of node {node}\n", &answer["position"]),
        ),
    ] {
        if !part.is_empty() {
            text += &format!("\n{title}{part}");
        }
    }
    text
}

fn indented(text: &str) -> String {
    let line = |line: &str| format!("  {line}").trim_end().to_owned() + "\n";
    text.lines().map(line).collect()
}

/// Number of trees that remain after each condition. Conditions that remove none share one row
/// unless `is_wide`.
fn funnel(answer: &Value, is_wide: bool) -> String {
    let (stages, others) = match is_wide {
        true => (list(&answer["funnel"]).iter().collect(), 0),
        false => WORDS.stages(answer),
    };
    let start = json!({"what": "all trees", "left": answer["trees"]});
    let steps = stages.into_iter().map(|step| {
        let mut step = step.clone();
        step["what"] = json!(WORDS.condition(&step));
        step["examples"] = json!(some(list(&step["examples"])));
        step
    });
    let others = (others > 0).then(|| {
        let what = format!("{others} more conditions (-o wide shows them)");
        json!({"gone": 0, "what": what})
    });
    let columns = "remaining:left removed:gone condition:what for_example:examples";
    let rows = Rows::new(columns, once(start).chain(steps).chain(others).collect());
    (Output::default().rows(rows)).unwrap_or_default()
}

/// Relaxed queries that would have candidates.
fn relaxations(answer: &Value) -> String {
    let line = |one: &Value| WORDS.less(one) + &phrase("\n  {query}\n", one);
    WORDS.relaxations(answer).iter().map(line).collect()
}

/// The trees that nearly fit, and the consumers of the resources that they lack.
fn nearest(answer: &Value) -> String {
    let mut text = String::new();
    for one in list(&answer["nearest"]) {
        text += &(WORDS.near(one) + "\n");
        let holder =
            "  {class}:{amount} held by {consumer} ({type}) of project {project} since {since}\n";
        text.extend(list(&one["holders"]).iter().map(|one| phrase(holder, one)));
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
