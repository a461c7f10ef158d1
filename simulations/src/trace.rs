//! A digest of all network packets: runs with equal digests were identical, whatever their
//! histories show.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use xxhash_rust::xxh3::Xxh3;

thread_local! {
    static TRACE: RefCell<Option<Trace>> = const { RefCell::new(None) };
}

struct Trace {
    step: u64,
    packets: u64,
    digest: Xxh3,
}

/// Starts the digest for this thread's simulation.
pub fn begin() {
    TRACE.with(|trace| {
        *trace.borrow_mut() = Some(Trace {
            step: 0,
            packets: 0,
            digest: Xxh3::new(),
        });
    });
}

/// Counts a step of the simulation. The digest of a packet includes the number of its step.
pub fn step() {
    TRACE.with(|trace| {
        if let Some(trace) = trace.borrow_mut().as_mut() {
            trace.step += 1;
        }
    });
}

/// Ends the digest; returns the number of packets and the digest.
pub fn end() -> (u64, u128) {
    TRACE.with(|trace| {
        trace
            .borrow_mut()
            .take()
            .map_or((0, 0), |trace| (trace.packets, trace.digest.digest128()))
    })
}

/// Tracing layer that adds turmoil's packet events to the thread's digest.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketDigest;

impl<S: tracing::Subscriber> Layer<S> for PacketDigest {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        if event.metadata().target() != "turmoil" {
            return;
        }
        TRACE.with(|trace| {
            if let Some(trace) = trace.borrow_mut().as_mut() {
                let mut text = Text(format!("{} ", trace.step));
                event.record(&mut text);
                trace.packets += 1;
                trace.digest.update(text.0.as_bytes());
                if let Ok(path) = std::env::var("PLACEMENT_SIM_TRACE") {
                    dump(&path, &text.0);
                }
            }
        });
    }
}

/// Appends packets as text to a file, to find where two runs diverge.
fn dump(path: &str, line: &str) {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    if let Ok(mut file) = file {
        // The dump is a debugging aid: ignore write errors.
        let _ = writeln!(file, "{line}");
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("strings take all");
    }
}
