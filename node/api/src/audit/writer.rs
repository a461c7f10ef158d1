//! The thread that writes records: as many as wait under one sync, and again what could not be
//! written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tokio::sync::oneshot;

use super::queue::{Item, State};
use super::sink::Sink;
use crate::world::Clock;

/// Bytes that are written together at most, and some of one record.
const BATCH_BYTES: usize = 256 * 1024;
/// How long it waits before it tries again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long it looks in the meantime whether it is to end.
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
    /// Until no one is left who could put in a record.
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

    /// Tries until it is done, or the node stops.
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
                    tracing::warn!(lost, "audit records are written again");
                }
                numbers.records.fetch_add(batch.records, Ordering::Relaxed);
                numbers.bytes.fetch_add(batch.bytes, Ordering::Relaxed);
                return notify(batch.kept.into_iter().chain(batch.flushed));
            };
            if !numbers.failed.swap(true, Ordering::Relaxed) {
                tracing::error!(%error, "audit records cannot be written; it is tried again each second");
            }
            // A flush waits for one attempt.
            notify(batch.flushed.drain(..));
            if !self.pause() {
                numbers.lost.fetch_add(batch.records, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Calls the sink, while others see how long that takes.
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
        // What a sync did not bring to the disk, a second one does not either: it is written again,
        // and may be there twice.
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
            Ok(()) => tracing::info!("reopened the audit file"),
            Err(error) => {
                tracing::error!(%error, "the audit file cannot be reopened; the previous one is still written to")
            }
        }
    }

    /// False if the node stops in the meantime.
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
        // It may have given up.
        let _ = one.send(());
    }
}
