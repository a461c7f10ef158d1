//! `placementctl watch` and `bulk`: streams of changes and of the whole content.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use placement_client::ApiRequest;
use serde_json::Value;
use tokio::time::sleep;

use crate::changes::{Filters, changes};
use crate::content::Content;
use crate::render::{is_printed, phrase, warn, word};

/// Delay before a stream that ended is requested again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct Which {
    /// Start after this token instead of now: a `progress`, the `snapshot_end` of `bulk`, or the
    /// index of a change.
    #[arg(long, value_name = "TOKEN")]
    after: Option<String>,
    #[command(flatten)]
    filters: Filters,
}

pub(crate) async fn watch(content: &Content, which: Which) -> anyhow::Result<()> {
    let raw = content.source.output.is_raw()?;
    let path = "events?or_snapshot=true";
    let request = which.filters.request(content, path).await?;
    // Any response has the current token.
    let now = content.send(ApiRequest::get("/resource_classes")).await?;
    let now = now.position().index.map(|now| now.as_str().to_owned());
    let after = which.after.or(now).unwrap_or_default();
    let print = |line: &[u8], event: &Value| {
        let text = match raw {
            true => [line, b"\n"].concat(),
            false => shown(event).into_bytes(),
        };
        Ok(text.is_empty() || is_printed(&text)?)
    };
    follow(content, &request, after, print).await
}

/// Passes each line of a stream and of its continuations to `take`, until that returns false.
pub(crate) async fn follow(
    content: &Content,
    request: &ApiRequest,
    mut after: String,
    mut take: impl FnMut(&[u8], &Value) -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    loop {
        let asked = request.clone().query("after", &after);
        let mut lines = content.lines(asked).await?;
        let ended = loop {
            let line = match lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => break "closed".to_owned(),
                Err(error) => break error.to_string(),
            };
            let event = serde_json::from_slice(&line)?;
            if !take(&line, &event)? {
                return Ok(());
            }
            if let Some(end) = note(&mut after, &event) {
                break end;
            }
        };
        // The server ends a long stream regularly; this is not worth a warning.
        if ended != "lifetime" {
            warn(&format!(
                "the stream ended ({ended}); resuming after {after}"
            ));
        }
        sleep(PAUSE).await;
    }
}

/// Records the position of a stream. Returns the reason if the stream ends.
fn note(after: &mut String, event: &Value) -> Option<String> {
    if !event["reset"].is_null() {
        let reset = word(&event["reset"]);
        warn(&format!(
            "reset: changes after {after} are not kept any more; resuming after {reset}"
        ));
    }
    // A line has all changes of an entry, so its index is a position.
    let reached = ["index", "progress", "snapshot_end", "next"].map(|name| &event[name]);
    if let Some(token) = reached.into_iter().find_map(Value::as_str) {
        token.clone_into(after);
    }
    event["end"].as_str().map(str::to_owned)
}

/// A line for each change.
fn shown(event: &Value) -> String {
    let line = |change| {
        phrase(
            "{at}  {index}  {request_id}  {verb}  {kind} {key}: {change}\n",
            &change,
        )
    };
    changes(event).into_iter().map(line).collect()
}

pub(crate) async fn bulk(content: &Content, filters: Filters) -> anyhow::Result<()> {
    let request = filters.request(content, "events?follow=false").await?;
    let mut lines = content.lines(request).await?;
    let mut last = Value::Null;
    while let Some(line) = lines.next().await? {
        // Parse only the lines that may be the last; rows are many.
        if line.starts_with(b"{\"snapshot_end\"") || line.starts_with(b"{\"end\"") {
            last = serde_json::from_slice(&line)?;
        }
        if !is_printed(&[&line[..], b"\n"].concat())? {
            return Ok(());
        }
    }
    if last["snapshot_end"].is_null() {
        bail!(
            "the content is incomplete: the stream ended early ({})",
            word(&last["end"])
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_watch_resumes_after_the_last_complete_line() {
        let mut reached = "7.1".to_owned();
        for (event, end, after) in [
            (json!({"index": "7.2", "changes": []}), None, "7.2"),
            (json!({"progress": "7.3"}), None, "7.3"),
            (json!({"reset": "7.9"}), None, "7.3"),
            (json!({"snapshot": "7.9"}), None, "7.3"),
            (json!({"snapshot_end": "7.9"}), None, "7.9"),
            (json!({"end": "slow", "next": null}), Some("slow"), "7.9"),
            (
                json!({"end": "drain", "next": "7.11"}),
                Some("drain"),
                "7.11",
            ),
        ] {
            assert_eq!(note(&mut reached, &event).as_deref(), end, "{event}");
            assert_eq!(reached, after, "{event}");
        }
    }

    #[test]
    fn progress_lines_are_not_shown_as_text() {
        assert_eq!(shown(&json!({"progress": "7.2"})), "");
        let change =
            json!({"kind": "trait", "key": {"trait": "A"}, "before": null, "after": {"name": "A"}});
        let event = json!({"index": "7.2", "at": "now", "verb": "PutTrait", "request_id": "req-1", "changes": [change]});
        assert_eq!(
            shown(&event),
            "now  7.2  req-1  PutTrait  trait trait=A: - -> name=A\n"
        );
    }
}
