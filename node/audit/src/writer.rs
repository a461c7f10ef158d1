//! The writer thread: writes all waiting records with one sync, and retries failed writes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tokio::sync::oneshot;

use super::queue::{Item, State};
use super::sink::Sink;
use placement_base::log_messages::log;
use placement_base::world::Clock;

/// Size of a batch in bytes; its last record may exceed it.
const BATCH_BYTES: usize = 256 * 1024;
/// Delay before a retry.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval of checks for a shutdown during this delay.
const GLANCE: Duration = Duration::from_millis(50);

pub(super) struct Writer {
    pub(super) items: Receiver<Item>,
    pub(super) state: Arc<State>,
    pub(super) sink: Box<dyn Sink>,
    pub(super) clock: Arc<dyn Clock>,
}

/// Records that are written together.
#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    records: u64,
    bytes: u64,
    kept: Vec<oneshot::Sender<()>>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Writer {
    /// Runs until all senders are dropped.
    pub(super) fn run(mut self) {
        while let Ok(first) = self.items.recv() {
            let mut batch = Batch::default();
            self.take(first, &mut batch);
            while batch.lines.len() < BATCH_BYTES
                && let Ok(item) = self.items.try_recv()
            {
                self.take(item, &mut batch);
            }
            self.keep(batch);
        }
    }

    fn take(&self, item: Item, batch: &mut Batch) {
        match item {
            Item::Record { record, kept } => {
                record.write_json(&mut batch.lines);
                batch.records += 1;
                batch.kept.extend(kept);
                self.state.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            Item::Wake => {}
            Item::Flush(done) => batch.flushed.push(done),
        }
    }

    /// Retries until the batch is written or the node stops.
    fn keep(&mut self, mut batch: Batch) {
        batch.bytes = batch.lines.len() as u64;
        let is_awaited = !batch.kept.is_empty();
        loop {
            self.reopen_if_asked();
            let written = self.in_call(|writer| writer.write(&mut batch.lines, is_awaited));
            let numbers = &self.state.numbers;
            let Err(error) = written else {
                if numbers.failed.swap(false, Ordering::Relaxed) {
                    let lost = numbers.lost.load(Ordering::Relaxed);
                    log!(AUDIT_RECOVERED, lost, "audit records can be written again");
                }
                numbers.records.fetch_add(batch.records, Ordering::Relaxed);
                numbers.bytes.fetch_add(batch.bytes, Ordering::Relaxed);
                return notify(batch.kept.into_iter().chain(batch.flushed));
            };
            if !numbers.failed.swap(true, Ordering::Relaxed) {
                log!(
                    AUDIT_FAILED,
                    %error,
                    "audit records cannot be written; retrying every second"
                );
            }
            // A flush waits for only one attempt.
            notify(batch.flushed.drain(..));
            if !self.pause() {
                numbers.lost.fetch_add(batch.records, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Calls the sink and publishes the start time of the call.
    fn in_call<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        *self.state.in_call_since.lock() = Some(self.clock.monotonic());
        let result = call(self);
        *self.state.in_call_since.lock() = None;
        result
    }

    fn write(&mut self, lines: &mut Vec<u8>, durably: bool) -> io::Result<()> {
        if !durably {
            return self.sink.write(lines);
        }
        // After a failed sync, a second sync may not write the data of the first one. So the lines
        // are written again, and may then be in the file twice.
        let again = lines.clone();
        self.sink.write(lines)?;
        let begun = self.clock.monotonic();
        self.sink.sync().inspect_err(|_| *lines = again)?;
        let took = self.clock.monotonic().saturating_sub(begun);
        self.state.numbers.sync.observe(took.as_secs_f64());
        Ok(())
    }

    fn reopen_if_asked(&mut self) {
        if !self.state.reopen.swap(false, Ordering::Relaxed) {
            return;
        }
        match self.in_call(|writer| writer.sink.reopen()) {
            Ok(()) => log!(AUDIT_REOPENED, "reopened the audit file"),
            Err(error) => {
                log!(
                    AUDIT_NOT_REOPENED,
                    %error,
                    "cannot reopen the audit file; still writing to the previous one"
                )
            }
        }
    }

    /// Waits for the retry delay. Returns false if the node stops.
    #[expect(clippy::disallowed_methods, reason = "this thread does nothing else")]
    fn pause(&self) -> bool {
        let begun = self.clock.monotonic();
        while self.clock.monotonic().saturating_sub(begun) < PAUSE {
            if self.state.ends.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
        true
    }
}

fn notify(waiting: impl Iterator<Item = oneshot::Sender<()>>) {
    for one in waiting {
        // The receiver may have reached its timeout.
        let _ = one.send(());
    }
}
