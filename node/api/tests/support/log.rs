//! The log of a test, as text.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;

/// The log of this thread, as text.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// Collects the log until the guard is dropped.
    pub(crate) fn start(level: &str, json: bool) -> (Self, DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let builder = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(level))
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let guard = if json {
            tracing::subscriber::set_default(builder.json().flatten_event(true).finish())
        } else {
            tracing::subscriber::set_default(builder.finish())
        };
        (log, guard)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}
