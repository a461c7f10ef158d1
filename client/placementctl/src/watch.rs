//! `placementctl watch` and `bulk`: streams of changes and of the whole content.

use std::iter::once;
use std::time::Duration;

use anyhow::bail;
use bytes::Bytes;
use clap::Args;
use placement_client::ApiRequest;
use placement_wire::events::{End, Ended, Mark};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::time::sleep;

use crate::changes::{Filters, changes, spoken};
use crate::content::{AnyEntry, Content};
use crate::names::Names;
use crate::render::{is_printed, text, warn, word};

/// Delay before a stream that ended is requested again.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// Start after this token instead of now. A token is the value of a `progress` line, of the
    /// `snapshot_end` line of `bulk`, or the index of a change.
    #[arg(long, value_name = "TOKEN")]
    after: Option<String>,
    #[command(flatten)]
    filters: Filters,
}

pub(crate) async fn watch(content: &Content, args: WatchArgs) -> anyhow::Result<()> {
    let raw = content.source.output.is_raw()?;
    let path = "events?or_snapshot=true";
    args.filters.check_class(content).await;
    let request = args.filters.request(content, path).await?;
    // The headers of any response contain the current token.
    let now = content.send(ApiRequest::get("/resource_classes")).await?;
    let now = now.position().index.map(|now| now.as_str().to_owned());
    let after = args.after.or(now).unwrap_or_default();
    let mut names = Names::default();
    let print = async |line: &[u8], event: &Event| {
        let text = match event {
            _ if raw => [line, b"\n"].concat(),
            Event::Entry(entry) => {
                names.add(content, once(entry)).await;
                shown(entry, &names).into_bytes()
            }
            _ => Vec::new(),
        };
        Ok(text.is_empty() || is_printed(&text)?)
    };
    follow(content, &request, after, print).await
}

/// Passes each line of a stream to `take` until it returns false. Requests the stream again when it
/// ends.
pub(crate) async fn follow(
    content: &Content,
    request: &ApiRequest,
    mut after: String,
    mut take: impl AsyncFnMut(&[u8], &Event) -> anyhow::Result<bool>,
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
            if !take(&line, &event).await? {
                return Ok(());
            }
            if let Some(end) = note(&mut after, &event) {
                break end.as_str().to_owned();
            }
        };
        // The node ends each stream after a maximum lifetime, which needs no warning.
        if ended != End::Lifetime.as_str() {
            warn(&format!(
                "the stream ended ({ended}); resuming after {after}"
            ));
        }
        sleep(PAUSE).await;
    }
}

/// A line of a stream.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Event {
    /// An entry with all its changes, so the stream can resume after its index.
    Entry(AnyEntry),
    Ended(Ended<'static>),
    Mark(Mark<'static>),
    /// A value of a snapshot.
    Other(IgnoredAny),
}

/// Records the position of a stream. Returns the reason if the stream ends.
fn note(after: &mut String, event: &Event) -> Option<End> {
    let (reached, end) = match event {
        Event::Entry(entry) => (Some(&entry.index), None),
        Event::Mark(Mark::Progress(token) | Mark::SnapshotEnd(token)) => (Some(token), None),
        Event::Mark(Mark::Reset(token)) => {
            let reset = word(token);
            warn(&format!(
                "reset: changes after {after} are no longer available; resuming after {reset}"
            ));
            (None, None)
        }
        Event::Ended(ended) => (ended.next.as_ref(), Some(ended.end)),
        Event::Mark(Mark::Snapshot(_)) | Event::Other(_) => (None, None),
    };
    if let Some(token) = reached {
        after.clear();
        after.push_str(token);
    }
    end
}

/// A line for each change.
fn shown(entry: &AnyEntry, names: &Names) -> String {
    let lines = changes(entry).map(|row| {
        format!(
            "{}  {}  {}  {}  {} {}: {}\n",
            word(&row.at),
            word(&row.index),
            word(&row.request_id),
            word(spoken(&row.verb)),
            word(&row.values.kind),
            text(&names.shown(&row.values.key)),
            word(&row.change)
        )
    });
    lines.collect()
}

pub(crate) async fn bulk(content: &Content, filters: Filters) -> anyhow::Result<()> {
    filters.check_class(content).await;
    let request = filters.request(content, "events?follow=false").await?;
    let mut lines = content.lines(request).await?;
    let mut last = Bytes::new();
    while let Some(line) = lines.next().await? {
        if !is_printed(&[&line[..], b"\n"].concat())? {
            return Ok(());
        }
        last = line;
    }
    let end = match serde_json::from_slice(&last) {
        Ok(Event::Mark(Mark::SnapshotEnd(_))) => return Ok(()),
        Ok(Event::Ended(ended)) => ended.end.as_str(),
        _ => "-",
    };
    bail!("the content is incomplete: the stream ended early ({end})");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_watch_resumes_after_the_last_complete_line() {
        let mut reached = "7.1".to_owned();
        for (event, end, after) in [
            (
                json!({"index": "7.2", "verb": "v", "changes": []}),
                None,
                "7.2",
            ),
            (json!({"progress": "7.3"}), None, "7.3"),
            (json!({"reset": "7.9"}), None, "7.3"),
            (json!({"snapshot": "7.9"}), None, "7.3"),
            (json!({"snapshot_end": "7.9"}), None, "7.9"),
            (json!({"end": "slow", "next": null}), Some(End::Slow), "7.9"),
            (
                json!({"end": "drain", "next": "7.11"}),
                Some(End::Drain),
                "7.11",
            ),
        ] {
            let read = Event::deserialize(&event).unwrap();
            assert_eq!(note(&mut reached, &read), end, "{event}");
            assert_eq!(reached, after, "{event}");
        }
    }

    #[test]
    fn each_change_of_an_entry_is_a_line() {
        let change =
            json!({"kind": "trait", "key": {"trait": "A"}, "before": null, "after": {"name": "A"}});
        let entry = json!({"index": "7.2", "at": "now", "verb": "PutTrait", "request_id": "req-1", "changes": [change]});
        let entry = AnyEntry::deserialize(entry).unwrap();
        assert_eq!(
            shown(&entry, &Names::default()),
            "now  7.2  req-1  put trait  trait trait=A: created name=A\n"
        );
    }
}
