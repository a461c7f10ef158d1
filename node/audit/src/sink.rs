//! Destinations of audit records.

use std::io::{self, Write};

/// Receives lines, each with its newline.
pub(super) trait Sink: Send {
    /// Writes lines. After an error, `lines` contains only what the caller must pass again.
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()>;

    /// Makes written lines durable, where the destination supports it.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Reopens the destination by its name.
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) struct Stderr;

impl Sink for Stderr {
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        while !lines.is_empty() {
            match io::stderr().write(lines) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => drop(lines.drain(..taken)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
