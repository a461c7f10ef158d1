//! What records are written to.

use std::io::{self, Write};

/// Takes lines, each with its newline.
pub(super) trait Sink: Send {
    /// Writes lines and takes from the front of `lines` what needs not be given again.
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()>;

    /// Returns once what was written outlives a loss of power, where that can be known.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Goes on at the place that is named so now.
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
