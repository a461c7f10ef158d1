//! Logs to standard error, for people or for machines, written by a thread of its own.
//!
//! A thread that logs only puts the line into a queue. If standard error is not read (a full pipe,
//! a stalled journal), the queue fills, further lines are dropped and counted, and requests are
//! answered as before. The last lines are also kept in memory: operators can read them when the
//! journal is out of reach or hangs.

use std::collections::VecDeque;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry_sdk::trace::SdkTracer;
use parking_lot::Mutex;
use tracing::Subscriber;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::fmt::writer::{MakeWriter, MakeWriterExt};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::{panics, traces};
use placement_base::log_messages::log;
use placement_base::settings::settings;

settings! {
    /// Logs on standard error.
    LogSection {
        /// Format of log lines: `human` or `json`.
        format: LogFormat = LogFormat::Human,
        /// Log filter, e.g. `info`, `debug` or `info,placement_node=debug`. By default openraft
        /// logs only errors, because this node logs peers and leadership itself.
        level: String = "info,openraft=error".to_owned(),
    }
}

/// The setting `[log] format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the setting says it")]
pub enum LogFormat {
    Human,
    Json,
}

/// Maximum number of queued lines: some 5 MB of typical ones.
const QUEUE_MAX_LINES: usize = 16_384;
/// Maximum time that the ending process waits for the queued lines to be written.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// How long lines are gathered before they are written together, so that a busy node neither wakes
/// the writing thread nor makes a system call for each of them.
const GATHER: Duration = Duration::from_millis(5);
/// How often to check whether lines were dropped.
const DROPPED_EVERY: Duration = Duration::from_secs(10);

/// How much of the end of the log is kept in memory, in bytes: some 2,000 typical lines.
const KEPT_BYTES: usize = 512 * 1024;

/// Counts lines that did not fit into the queue.
static DROPPED: OnceLock<ErrorCounter> = OnceLock::new();
/// The last complete lines of this process.
static LAST: Mutex<VecDeque<u8>> = Mutex::new(VecDeque::new());

/// The logs of this process.
pub struct Logging {
    writer: WorkerGuard,
    filter: reload::Handle<EnvFilter, Registry>,
}

impl Logging {
    /// Starts logging as configured, and exports spans by `traces`. Panics are logged, and end the
    /// process unless they happen in a request.
    ///
    /// # Errors
    /// A text, if the level is invalid or logging was started before.
    pub(crate) fn start(
        format: LogFormat,
        level: &str,
        traces: Option<SdkTracer>,
    ) -> Result<Self, String> {
        let (queue, writer) = NonBlockingBuilder::default()
            .lossy(true)
            .buffered_lines_limit(QUEUE_MAX_LINES)
            .thread_name("log-writer")
            .finish(Gathering(BufWriter::new(io::stderr())));
        let _ = DROPPED.set(queue.error_counter());
        let queue = queue.and(|| LastLines(&LAST));
        let ansi = io::stderr().is_terminal();
        let (filter, handle) = reload::Layer::new(parse(level)?);
        let registry = tracing_subscriber::registry();
        let started = match traces {
            // A global filter is the cheapest.
            None => (registry.with(filter))
                .with(lines(format, queue, ansi))
                .try_init(),
            Some(tracer) => (registry.with(lines(format, queue, ansi).with_filter(filter)))
                .with(traces::layer(tracer))
                .try_init(),
        };
        started.map_err(|error| error.to_string())?;
        panics::end_the_process();
        Ok(Self {
            writer,
            filter: handle,
        })
    }

    /// Changes the log level.
    ///
    /// # Errors
    /// A text, if the level is invalid; the previous level stays.
    pub fn set_level(&self, level: &str) -> Result<(), String> {
        let filter = parse(level)?;
        self.filter
            .reload(filter)
            .map_err(|error| error.to_string())
    }

    /// Writes the queued lines, for at most two seconds.
    pub fn finish(self) {
        let (done, finished) = std::sync::mpsc::channel();
        // If the writer's own shutdown times out, it prints a message to an output that may not be
        // read either. A thread of its own ensures that this does not block the process.
        let flushing = std::thread::Builder::new().spawn(move || {
            drop(self.writer);
            let _ = done.send(());
        });
        if flushing.is_ok() {
            let _ = finished.recv_timeout(FLUSH_MAX);
        }
    }
}

/// Formats lines; `ansi`: with colours.
fn lines<S, W>(format: LogFormat, writer: W, ansi: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(ansi);
    match format {
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .boxed(),
        LogFormat::Human => lines.boxed(),
    }
}

/// The writing thread's target. It flushes when the queue is empty.
struct Gathering<W: Write>(BufWriter<W>);

impl<W: Write> Write for Gathering<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the thread that writes lines does nothing else"
    )]
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        std::thread::sleep(GATHER);
        Ok(())
    }
}

/// Stores one line at a time, and drops the oldest lines for it.
struct LastLines<'a>(&'a Mutex<VecDeque<u8>>);

impl Write for LastLines<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock();
        kept.extend(line);
        if let Some(excess) = kept.len().checked_sub(KEPT_BYTES + 1) {
            let end = kept.iter().skip(excess).position(|byte| *byte == b'\n');
            let end = end.map_or(kept.len(), |end| excess + end + 1);
            kept.drain(..end);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The last lines that this process has logged: at most 512 KiB, without colours.
pub(crate) fn last_lines() -> String {
    let kept = {
        let kept = LAST.lock();
        let (first, last) = kept.as_slices();
        [first, last].concat()
    };
    without_colours(&String::from_utf8_lossy(&kept))
}

/// Colour codes would break searches for names.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once('m').map_or(part, |(_, rest)| rest)
    })
}

/// Number of lines dropped since this process started.
pub fn dropped_lines() -> u64 {
    DROPPED
        .get()
        .map_or(0, |counter| counter.dropped_lines() as u64)
}

/// Logs, once there is room again, how many lines were dropped. Never returns.
pub async fn report_dropped() {
    let mut reported = 0;
    loop {
        tokio::time::sleep(DROPPED_EVERY).await;
        let dropped = dropped_lines();
        if dropped > reported {
            log!(
                LOG_LINES_DROPPED,
                lines = dropped - reported,
                total = dropped,
                "lines of this log were dropped because standard error was not read in time"
            );
            reported = dropped;
        }
    }
}

/// Checks a level without starting anything.
///
/// # Errors
/// A text, if the level is invalid.
pub fn check(level: &str) -> Result<(), String> {
    parse(level).map(|_| ())
}

fn parse(level: &str) -> Result<EnvFilter, String> {
    EnvFilter::try_new(level).map_err(|error| format!("log.level: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_lines_are_whole_and_bounded() {
        let kept = Mutex::default();
        for number in 0..20_000 {
            writeln!(LastLines(&kept), "line {number:020} ...................").unwrap();
        }
        let text: Vec<u8> = kept.lock().iter().copied().collect();
        let text = String::from_utf8(text).unwrap();
        assert!((KEPT_BYTES - 100..=KEPT_BYTES).contains(&text.len()));
        assert!(
            text.lines().all(|line| line.starts_with("line ")),
            "{text:.100}"
        );
        assert!(text.ends_with("19999 ...................\n"));

        let long = "x".repeat(2 * KEPT_BYTES) + "\n";
        LastLines(&kept).write_all(long.as_bytes()).unwrap();
        assert!(kept.lock().is_empty());
    }

    /// One warning in this format.
    fn logged(format: LogFormat) -> String {
        static LINES: Mutex<VecDeque<u8>> = Mutex::new(VecDeque::new());
        let lines = lines(format, || LastLines(&LINES), false);
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            log!(PEER_UNREACHABLE, peer = 2, "a peer cannot be reached");
        });
        let bytes = LINES.lock().drain(..).collect();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn lines_of_both_formats_have_the_name_of_their_event() {
        let line = logged(LogFormat::Human);
        let words = "WARN placement_node::logging::tests: a peer cannot be reached \
            event=\"peer-unreachable\" peer=2\n";
        assert!(line.ends_with(words), "{line}");
        let line: serde_json::Value = serde_json::from_str(&logged(LogFormat::Json)).unwrap();
        assert_eq!(line["event"], "peer-unreachable");
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "a peer cannot be reached");
        assert_eq!(line["peer"], 2);
    }

    #[test]
    fn names_and_values_stand_together_without_colours() {
        let text = "\u{1b}[3mpassword\u{1b}[0m\u{1b}[2m=\u{1b}[0mhunter2 m";
        assert_eq!(without_colours(text), "password=hunter2 m");
    }
}
