//! A digest of everything that went over the network: two runs with equal digests were the same
//! run, whatever their histories show.

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

/// Begins the digest of this thread's simulation.
pub fn begin() {
    TRACE.with(|trace| {
        *trace.borrow_mut() = Some(Trace {
            step: 0,
            packets: 0,
            digest: Xxh3::new(),
        });
    });
}

/// Says that the simulation makes a step, so that packets carry their time.
pub fn step() {
    TRACE.with(|trace| {
        if let Some(trace) = trace.borrow_mut().as_mut() {
            trace.step += 1;
        }
    });
}

/// Ends the digest: how many network events there were, and their digest.
pub fn end() -> (u64, u128) {
    TRACE.with(|trace| {
        trace
            .borrow_mut()
            .take()
            .map_or((0, 0), |trace| (trace.packets, trace.digest.digest128()))
    })
}

/// Feeds turmoil's packet events into the digest of the thread.
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

/// For finding out where two runs part: the packets as text.
fn dump(path: &str, line: &str) {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path);
    if let Ok(mut file) = file {
        // A lost line of a debugging aid is no reason to stop.
        let _ = writeln!(file, "{line}");
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).expect("strings take all");
    }
}
