//! The fields of a line for people, as `tracing-subscriber` writes them: a plain text without its detours, as the
//! access log has eight in each line.

use std::error::Error;
use std::fmt::{self, Debug, Write};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::{RecordFields, VisitOutput};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};

/// Writes the message, and `name=value` for each other field.
pub(super) struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = Line {
            coloured: writer.has_ansi_escapes(),
            writer,
            empty: true,
            result: Ok(()),
        };
        fields.record(&mut line);
        line.result
    }
}

struct Line<'writer> {
    writer: Writer<'writer>,
    coloured: bool,
    empty: bool,
    result: fmt::Result,
}

impl Line<'_> {
    fn usual(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.result.is_ok() {
            let empty = std::mem::take(&mut self.empty);
            let mut usual = DefaultVisitor::new(self.writer.by_ref(), empty);
            record(&mut usual);
            self.result = usual.finish();
        }
    }

    fn plain(&mut self, name: &str, text: &str) -> fmt::Result {
        if !std::mem::take(&mut self.empty) {
            self.writer.write_char(' ')?;
        }
        for part in [name, "=\"", text, "\""] {
            self.writer.write_str(part)?;
        }
        Ok(())
    }
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
        if self.coloured || field.name() == "message" || !value.bytes().all(is_plain) {
            self.usual(|usual| usual.record_str(field, value));
        } else if self.result.is_ok() {
            self.result = self.plain(field.name(), value);
        }
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.usual(|usual| usual.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.usual(|usual| usual.record_debug(field, value));
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::SubscriberBuilder;
    use tracing_subscriber::fmt::format::DefaultFields;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn log() {
        let error = io::Error::other("no \"room\"\u{1b}[31m");
        let error: &dyn Error = &error;
        tracing::info!(
            client = "::1",
            status = Some(200),
            ms = 0.25,
            uri = "/a b",
            "answered"
        );
        tracing::info!(
            quoted = "a\"b",
            slash = "\\",
            escape = "\u{1b}[31m",
            line = "a\nb"
        );
        tracing::info!(
            error,
            empty = "",
            r#type = "x",
            none = None::<&str>,
            "\u{1b}[31m {}",
            "é"
        );
        let span = tracing::info_span!("http", path = "/", node = 1, other = "ü");
        let _entered = span.enter();
        tracing::warn!("{}", "within");
    }

    #[test]
    fn fields_are_written_as_tracing_subscriber_writes_them() {
        for coloured in [false, true] {
            let (usual, ours) = (Written::default(), Written::default());
            let lines = |to: &Written| {
                let to = to.clone();
                let lines: SubscriberBuilder<DefaultFields> = tracing_subscriber::fmt();
                let lines = lines.without_time().with_ansi(coloured);
                lines.with_writer(move || to.clone())
            };
            tracing::subscriber::with_default(lines(&usual).finish(), log);
            let lines = lines(&ours).fmt_fields(Fields).finish();
            tracing::subscriber::with_default(lines, log);
            let [usual, ours] = [usual, ours]
                .map(|written| String::from_utf8(written.0.lock().unwrap().clone()).unwrap());
            assert_eq!(ours, usual);
            assert_eq!(usual.lines().count(), 4, "{usual}");
        }
    }
}
