//! `GET /placementd/v1/events`: a stream of changes.
//!
//! A task writes the lines of a stream, and waits until its client has received the previous ones.
//! So at most one chunk per stream is buffered, and a client that stops reading is noticed on any
//! kind of connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::stream;
use placement_model::{LedgerEntry, mutant};
use placement_wire::events::{End, Ended, Kind, Mark};
use serde::de::{IntoDeserializer, value};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, OwnedPermit, Receiver, Sender};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::bad_value;
use crate::http::edge::accept::Accept;
use crate::http::edge::admission::Memory;
use crate::http::edge::answer::{Answer, Stream};
use crate::http::edge::budget::{BudgetShare, Caller};
use crate::http::edge::consistency::parse_token;
use crate::http::edge::headers;
use crate::http::edge::ledger::Ledger;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::state::Server;
use crate::http::edge::tail::{Step, StreamPosition};
use crate::http::errors::{ApiError, code};
use crate::http::wire::changes::{Filter, each_value, line};
use crate::http::wire::chunks::put;
use crate::http::wire::query::Query;
use placement_base::backend::{
    Consistency, LedgerUnavailable, PlacementIndex, SharedState, Unavailable, View,
};
use placement_base::contain::contain;
use placement_base::log_messages::log;
use placement_base::world;

/// Maximum duration of a stream. It bounds how long a revoked token stays usable.
const LIFETIME: Duration = Duration::from_secs(300);
/// Maximum interval between reports of the stream's position.
const PROGRESS: Duration = Duration::from_secs(5);
/// Time limit for the client to receive a chunk. The stream of a slower client ends.
const PATIENCE: Duration = Duration::from_secs(30);
/// Changes within this interval are sent together; the interval grows by this length for each
/// [`STREAMS_APART`] open streams, as their wake-ups take CPU time from writes.
const APART: Duration = Duration::from_millis(20);
const STREAMS_APART: usize = 16;
/// Maximum number of rows examined and of bytes written for a snapshot before the task yields to
/// other tasks.
const ROWS_AT_ONCE: usize = 500;
const PIECE_BYTES: usize = 64 * 1024;
/// Maximum number of past log entries that a stream may send without an audit record.
const UNRECORDED_MAX: u64 = 1_000;

/// The header in which a browser that lost a stream sends the id of the last event.
const LAST_EVENT_ID: &str = "last-event-id";

/// `GET /placementd/v1/events`: starts a stream.
pub(crate) async fn watch(context: &RequestContext) -> Result<Answer, ApiError> {
    context.refuse_as_of("give after=TOKEN")?;
    let query = context.query()?;
    query.check_once(context.head.route, context.head.version)?;
    let is = |name, value| query.last(name) == Some(value);
    let mut filter = parse_filter(query)?;
    filter.rewritten = is("rewritten", "true");
    let text = |name| headers::text(&context.head.headers, name);
    let form = if Accept::parse(text("accept").as_deref()).prefers_events() {
        LineFormat::Events
    } else {
        LineFormat::Lines
    };
    let seen = text(LAST_EVENT_ID).map(|text| parse_place("Last-Event-ID", &text));
    let after = query.last("after").map(|text| parse_place("after", text));
    let after = seen.or(after).transpose()?;
    let view = match after {
        Some(token) => context.view_at(Consistency::Session(token)).await?,
        None => context.view().await?,
    };
    let ledger = context.ledger(&view);
    let floor = ledger.floor().index;
    let begin = match after {
        None => Begin::Snapshot { reset: false },
        Some(token) if token.index >= floor => Begin::After(token.index),
        Some(_) if is("or_snapshot", "true") => Begin::Snapshot { reset: true },
        Some(token) => {
            let what = format!("Changes after {token} are not kept any more");
            return Err(ledger.gone(code::EVENTS_GONE, &what));
        }
    };
    let newest = view.position.index.unwrap_or_default().index;
    context.notes.lock().is_bulk = begin.is_bulk(floor, newest);
    let admission = &context.services.server.admission;
    let place = admission.stream(context.head.caller)?;
    let (sender, receiver) = mpsc::channel(2);
    let last = sender.clone().try_reserve_owned();
    let watch = EventStream {
        server: context.services.server.clone(),
        caller: context.head.caller,
        ledger,
        filter,
        form,
        follows: !is("follow", "false"),
        sender,
        sent: match begin {
            Begin::After(index) => Some(index),
            Begin::Snapshot { .. } => None,
        },
        progress: (Instant::now(), None),
    };
    let last = last.map_err(|_| ApiError::internal())?;
    let task = async move {
        // A panic has been logged already and only ends the stream.
        let _ = contain(watch.run(view, begin, last)).await;
    };
    context.api().background.spawn(Box::pin(task));
    // The stream counts as open until its client has received all of it.
    let body = stream::unfold(
        (receiver, place),
        async |(mut receiver, place): (Receiver<LineBatch>, BudgetShare)| {
            let piece = receiver.recv().await?;
            Some((Ok::<_, Infallible>(piece.lines), (receiver, place)))
        },
    );
    Ok(Answer::stream(Stream {
        content_type: form.content_type(),
        body: Body::from_stream(body),
        within: LIFETIME + PATIENCE,
    }))
}

/// Parses the filter of a query for changes.
///
/// # Errors
/// 400 for an unknown kind and for an invalid name.
pub(super) fn parse_filter(query: &Query) -> Result<Filter, ApiError> {
    let kinds = query.last("kind").map(|text| {
        let kinds = text.split(',').map(|one| {
            let kind: Result<_, value::Error> = Kind::deserialize(one.into_deserializer());
            let right = "give one or more of provider, inventory, trait, aggregate, class, consumer and allocation";
            kind.map_err(|_| bad_value("kind", one, right))
        });
        kinds.collect::<Result<Vec<_>, _>>()
    });
    let provider = query.last("provider").map(|text| {
        let right = "give the UUID of a resource provider, in lower case with hyphens";
        text.parse().map_err(|_| bad_value("provider", text, right))
    });
    let class = query.last("class").map(|text| {
        let right = "give the name of a resource class, such as VCPU";
        text.parse().map_err(|_| bad_value("class", text, right))
    });
    Ok(Filter {
        kinds: kinds.transpose()?,
        provider: provider.transpose()?,
        consumer: query.last("consumer").map(Into::into),
        project: query.last("project").map(Into::into),
        class: class.transpose()?,
        rewritten: false,
    })
}

/// Parses a token from a query or a header.
///
/// # Errors
/// 400 if the text is not a token.
pub(super) fn parse_place(name: &str, text: &str) -> Result<PlacementIndex, ApiError> {
    let right = "give a token of an earlier answer, such as 7.1234";
    parse_token(text).ok_or_else(|| bad_value(name, text, right))
}

/// The starting point of a stream.
enum Begin {
    /// After the entry with this index.
    After(u64),
    /// With a snapshot; `reset` if the changes after the client's position are no longer retained.
    Snapshot { reset: bool },
}

impl Begin {
    /// Whether the stream sends so much content that it needs an audit record. In a small cloud,
    /// the entries after the floor are the whole content, and the first ones may have no changes.
    fn is_bulk(&self, floor: u64, newest: u64) -> bool {
        match self {
            Self::Snapshot { .. } => true,
            Self::After(index) => {
                let half = newest.saturating_sub(floor) / 2;
                newest.saturating_sub(*index) > half.min(UNRECORDED_MAX)
            }
        }
    }
}

/// The format of lines.
#[derive(Clone, Copy)]
enum LineFormat {
    /// A JSON value per line.
    Lines,
    /// Server-sent events. Source: the HTML standard, section 9.2.
    Events,
}

impl LineFormat {
    fn content_type(self) -> &'static str {
        match self {
            Self::Lines => "application/x-ndjson",
            Self::Events => "text/event-stream",
        }
    }

    /// Writes a line; `id` is the position from which a client resumes after this line.
    fn put(self, out: &mut Vec<u8>, id: Option<&str>, line: &impl Serialize) {
        match self {
            Self::Lines => put(out, line),
            Self::Events => {
                for part in id.iter().flat_map(|id| ["id: ", id, "\n"]) {
                    out.extend_from_slice(part.as_bytes());
                }
                out.extend_from_slice(b"data: ");
                put(out, line);
                out.push(b'\n');
            }
        }
        out.push(b'\n');
    }
}

/// Some lines, and the memory that they occupy.
struct LineBatch {
    lines: Bytes,
    _memory: Memory,
}

/// A stream in progress.
struct EventStream {
    server: Arc<Server>,
    caller: Caller,
    ledger: Ledger,
    filter: Filter,
    form: LineFormat,
    /// Whether the stream continues after all changes so far have been sent.
    follows: bool,
    /// Sender to the body of the response. The channel has room for one chunk and for the last
    /// line.
    sender: Sender<LineBatch>,
    /// All entries up to this index are sent; `None` until the snapshot has ended.
    sent: Option<u64>,
    /// The time of the latest report of the position, and the position.
    progress: (Instant, Option<u64>),
}

impl EventStream {
    /// Writes the stream until it ends.
    async fn run(mut self, view: View, begin: Begin, last: OwnedPermit<LineBatch>) {
        let (client, ledger) = (self.sender.clone(), self.ledger.clone());
        let ended = tokio::select! {
            biased;
            () = client.closed() => return,
            () = ledger.shutdown_begun() => Err(End::Drain),
            () = sleep(LIFETIME) => Err(End::Lifetime),
            ended = self.write(view, begin) => ended,
        };
        if let Err(end) = ended {
            let next = self.sent.map(|sent| self.token(sent));
            let ended = Ended {
                end,
                next: next.as_deref().map(Into::into),
            };
            let mut lines = Vec::new();
            self.form.put(&mut lines, next.as_deref(), &ended);
            last.send(LineBatch {
                lines: lines.into(),
                _memory: self.server.admission.answer(self.caller),
            });
        }
    }

    async fn write(&mut self, view: View, begin: Begin) -> Result<(), End> {
        let newest = view.position.index.unwrap_or_default().index;
        match begin {
            Begin::After(_) => drop(view),
            Begin::Snapshot { reset } => {
                let token = self.token(newest);
                if reset {
                    let mark = Mark::Reset((&token).into());
                    self.send_mark(&mark, None).await?;
                }
                let mark = Mark::Snapshot((&token).into());
                self.send_mark(&mark, None).await?;
                self.send_rows(view.state).await?;
                let end = Mark::SnapshotEnd((&token).into());
                self.send_mark(&end, Some(&token)).await?;
                self.sent = Some(newest);
                self.progress.1 = self.sent;
            }
        }
        if self.follows {
            return self.follow().await;
        }
        self.catch_up(newest).await?;
        if self.progress.1 == self.sent {
            Ok(())
        } else {
            self.send_progress().await
        }
    }

    /// Sends all matching values. The state is dropped as soon as they are sent.
    async fn send_rows(&mut self, state: SharedState) -> Result<(), End> {
        let mut rows = state.rows();
        loop {
            let (mut lines, mut looked) = (Vec::new(), 0);
            while looked < ROWS_AT_ONCE && lines.len() < PIECE_BYTES {
                let Some(row) = rows.next() else {
                    return self.send(lines).await;
                };
                each_value(&state, &row, &self.filter, |value| {
                    self.form.put(&mut lines, None, value);
                });
                looked += 1;
            }
            self.send(lines).await?;
            // Other tasks need this thread too.
            tokio::task::yield_now().await;
        }
    }

    /// Sends changes as they are applied.
    async fn follow(&mut self) -> Result<(), End> {
        loop {
            let (seen, newest) = self.newest().await?;
            self.catch_up(newest).await?;
            if self.progress.0.elapsed() >= PROGRESS {
                self.send_progress().await?;
            }
            sleep_until(seen + self.apart()).await;
            let news = self.ledger.applied_after(self.sent.unwrap_or_default());
            let due = self.progress.0 + PROGRESS;
            // Without changes, the stream wakes up for the next report of its position.
            let _ = timeout_at(due, news).await;
        }
    }

    fn apart(&self) -> Duration {
        let streams = self.server.admission.streams_open() / STREAMS_APART;
        APART * u32::try_from(streams).map_or(u32::MAX, |more| 1 + more)
    }

    /// The index up to which this node has applied entries, and the time at which it was read. All
    /// streams share it for a while, so that they advance in the same steps. An error if the
    /// partition is deleted.
    async fn newest(&self) -> Result<(Instant, u64), End> {
        let mut tail = self.server.tail.lock().await;
        if let Some(newest) = tail
            .newest
            .filter(|(seen, _)| seen.elapsed() < self.apart())
        {
            return Ok(newest);
        }
        let view = self.server.api.read.view(Consistency::Local).await;
        match view {
            Ok(view) if self.ledger.is_for_view(&view) => {
                let index = view.position.index.unwrap_or_default().index;
                Ok(*tail.newest.insert((Instant::now(), index)))
            }
            Ok(_) | Err(Unavailable::NoPartition(_) | Unavailable::Rerouted) => {
                Err(End::PartitionGone)
            }
            Err(_) => Err(End::Drain),
        }
    }

    /// Sends the changes up to index `newest`, or slightly beyond.
    async fn catch_up(&mut self, newest: u64) -> Result<(), End> {
        while let Some(sent) = self.sent.filter(|sent| *sent < newest) {
            let step = self.step(sent, newest).await?;
            let lines = if self.filter.is_all() {
                step.lines[self.form as usize]
                    .get_or_init(|| self.lines(&step))
                    .clone()
            } else {
                self.lines(&step)
            };
            let has_some = !lines.is_empty();
            self.send(lines).await?;
            self.sent = Some(step.up_to);
            if has_some {
                self.progress = (Instant::now(), self.sent);
            } else if self.progress.0.elapsed() >= PROGRESS {
                self.send_progress().await?;
            }
        }
        Ok(())
    }

    /// The lines of the matching entries and the position after them; empty if no entry matches.
    fn lines(&self, step: &Step) -> Bytes {
        let mut lines = Vec::new();
        let is_here = |entry: &&Arc<LedgerEntry>| self.ledger.has(entry);
        let entries = step.entries(self.filter.provider.as_ref());
        for entry in entries.iter().filter(is_here) {
            if let Some(line) = line(self.ledger.epoch, entry, &self.filter) {
                let token = self.token(entry.index);
                self.form.put(&mut lines, Some(&token), &line);
            }
        }
        if !lines.is_empty() {
            let (token, at) = (self.token(step.up_to), lines.len());
            let mark = Mark::Progress((&token).into());
            self.form.put(&mut lines, Some(&token), &mark);
            if mutant!("progress-comes-first") {
                lines.rotate_left(at);
            }
        }
        lines.into()
    }

    /// A page of the entries after index `after` and up to index `up_to`.
    async fn step(&self, after: u64, up_to: u64) -> Result<Arc<Step>, End> {
        let mut tail = self.server.tail.lock().await;
        match tail.position_after(self.ledger.epoch, after) {
            StreamPosition::Before(step) => Ok(step),
            StreamPosition::Elsewhere(start) => {
                drop(tail);
                self.read(after, up_to.min(start)).await
            }
            // Other streams wait for this step and use it too.
            StreamPosition::AtTheEnd => {
                let step = self.read(after, up_to).await?;
                tail.add(after, Arc::clone(&step));
                Ok(step)
            }
        }
    }

    async fn read(&self, after: u64, up_to: u64) -> Result<Arc<Step>, End> {
        let turn = self
            .server
            .admission
            .events
            .turn(PATIENCE)
            .await
            .map_err(|_| End::Slow)?;
        let ledger = self.ledger.clone();
        let read = move || {
            let _turn = turn;
            ledger.forward(after, up_to)
        };
        let offload = &self.server.api.offload;
        match world::compute(|work| offload.run(work), read).await {
            Some(Ok(entries)) => {
                let up_to = entries.last().map_or(up_to, |entry| entry.index);
                Ok(Arc::new(Step::new(up_to, entries)))
            }
            Some(Err(LedgerUnavailable::Gone(_))) => Err(End::Gone),
            // The client may succeed on another node.
            Some(Err(LedgerUnavailable::Failed(reason))) => {
                log!(CHANGES_UNREADABLE, reason, "the change log cannot be read");
                Err(End::Drain)
            }
            None => Err(End::Drain),
        }
    }

    fn token(&self, index: u64) -> String {
        self.ledger.token(index).to_string()
    }

    async fn send_progress(&mut self) -> Result<(), End> {
        let token = self.sent.map(|sent| self.token(sent)).unwrap_or_default();
        let mark = Mark::Progress((&token).into());
        self.send_mark(&mark, Some(&token)).await?;
        self.progress = (Instant::now(), self.sent);
        Ok(())
    }

    async fn send_mark(&self, mark: &Mark<'_>, id: Option<&str>) -> Result<(), End> {
        let mut lines = Vec::new();
        self.form.put(&mut lines, id, mark);
        self.send(lines).await
    }

    /// Sends lines after the client has received the previous ones.
    async fn send(&self, lines: impl Into<Bytes>) -> Result<(), End> {
        let lines = lines.into();
        if lines.is_empty() {
            return Ok(());
        }
        let mut memory = self.server.admission.answer(self.caller);
        memory.grow_to(lines.len()).map_err(|_| End::Slow)?;
        match timeout(PATIENCE, self.sender.reserve()).await {
            Ok(Ok(free)) => {
                free.send(LineBatch {
                    lines,
                    _memory: memory,
                });
                Ok(())
            }
            _ => Err(End::Slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_many_past_entries_is_bulk() {
        for (after, newest, expected) in [
            (0, 0, false),
            (0, 10, true),
            (4, 10, true),
            (5, 10, false),
            (10, 10, false),
            (98_999, 100_000, true),
            (99_000, 100_000, false),
        ] {
            let is_bulk = Begin::After(after).is_bulk(0, newest);
            assert_eq!(is_bulk, expected, "after {after} of {newest}");
        }
        // Only the entries after the floor are retained.
        assert!(Begin::After(92).is_bulk(90, 100));
        assert!(!Begin::After(95).is_bulk(90, 100));
    }
}
