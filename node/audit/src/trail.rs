//! Entry point for audit records.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::file::AuditFile;
use super::queue::{Numbers, Queue};
use super::record::{Outcome, Record};
use super::settings::{AuditMode, AuditSection, Target};
use super::sink::{Sink, Stderr};
use super::writer::Writer;
use placement_base::log_messages::log;
use placement_base::settings::Invalid;
use placement_base::world::Clock;

/// How long a stopping node waits for the remaining records.
const FLUSH_MAX: Duration = Duration::from_secs(2);
/// How long a write waits until its record is written.
const KEPT_WITHIN: Duration = Duration::from_secs(2);

/// Records requests, if configured. Cheap to clone.
#[derive(Clone, Default)]
pub struct Audit(Option<Arc<Trail>>);

struct Trail {
    queue: Queue,
    node: u64,
    clock: Arc<dyn Clock>,
    mode: AuditMode,
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Audit({})", if self.is_on() { "on" } else { "off" })
    }
}

impl Audit {
    /// An audit log that records nothing.
    pub fn off() -> Self {
        Self(None)
    }

    /// Opens the configured audit log and starts its thread.
    ///
    /// # Errors
    /// The configured destination is not writable.
    pub fn open(section: &AuditSection, node: u64, clock: Arc<dyn Clock>) -> Result<Self, Invalid> {
        let failed = |error: io::Error| {
            let message = format!("cannot write to {}: {error}", section.file.display());
            Invalid::new("audit.file", message)
        };
        let sink: Box<dyn Sink> = match section.to {
            Target::None => return Ok(Self::off()),
            Target::File => Box::new(AuditFile::open(&section.file).map_err(failed)?),
            Target::Stderr => Box::new(Stderr),
        };
        Self::begin(sink, node, clock, section.mode).map_err(failed)
    }

    /// Starts the thread that writes to `sink`.
    fn begin(
        sink: Box<dyn Sink>,
        node: u64,
        clock: Arc<dyn Clock>,
        mode: AuditMode,
    ) -> io::Result<Self> {
        let (queue, items) = Queue::new();
        let writer = Writer {
            items,
            state: queue.state.clone(),
            sink,
            clock: clock.clone(),
        };
        let thread = std::thread::Builder::new().name("audit-writer".to_owned());
        thread.spawn(move || writer.run())?;
        Ok(Self(Some(Arc::new(Trail {
            queue,
            node,
            clock,
            mode,
        }))))
    }

    /// Whether requests are recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Id of this node, for its records.
    pub fn node(&self) -> u64 {
        self.0.as_ref().map_or(0, |trail| trail.node)
    }

    /// The current time, for records.
    pub fn now(&self) -> SystemTime {
        (self.0.as_ref()).map_or(SystemTime::UNIX_EPOCH, |trail| trail.clock.now())
    }

    /// Why writes are rejected now: their records could not be written. `None` if writes are
    /// accepted.
    pub fn why_not(&self) -> Option<&'static str> {
        let trail = self.0.as_ref()?;
        match trail.mode {
            AuditMode::BestEffort => None,
            AuditMode::Strict => {
                let now = trail.clock.monotonic();
                trail.queue.state.why_not(now, KEPT_WITHIN)
            }
        }
    }

    /// Queues a record without waiting for it.
    pub fn put(&self, record: Record) {
        if let Some(trail) = &self.0 {
            trail.queue.put(record, None);
        }
    }

    /// Records a request. Returns whether it may be acknowledged: a committed write in `strict`
    /// mode only if its record is written.
    pub async fn keep(&self, record: Record) -> bool {
        let Some(trail) = &self.0 else {
            return true;
        };
        if trail.mode == AuditMode::BestEffort || record.outcome != Outcome::Committed {
            trail.queue.put(record, None);
            return true;
        }
        let (kept, is_kept) = oneshot::channel();
        trail.queue.put(record, Some(kept));
        matches!(timeout(KEPT_WITHIN, is_kept).await, Ok(Ok(())))
    }

    /// Reopens the file by its name, after a rotation.
    pub fn reopen(&self) {
        if let Some(trail) = &self.0 {
            trail.queue.reopen();
        }
    }

    /// Waits until the queued records are written, at most two seconds.
    pub async fn finish(&self) {
        let flushed = self.0.as_ref().and_then(|trail| trail.queue.flushed());
        if let Some(flushed) = flushed
            && timeout(FLUSH_MAX, flushed).await.is_err()
        {
            log!(
                AUDIT_NOT_FLUSHED,
                "the last audit records were not written before the timeout"
            );
        }
    }

    /// The counters; zeros if nothing is recorded.
    pub fn numbers(&self) -> Arc<Numbers> {
        let trail = self.0.as_ref();
        trail.map_or_else(Arc::default, |trail| trail.queue.state.numbers.clone())
    }
}

#[cfg(test)]
mod tests;
