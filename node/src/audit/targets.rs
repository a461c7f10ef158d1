//! What records are written to.

use std::io::{self, Write};

use super::file::AuditFile;
use super::sink::Sink;
use crate::config::Target;

/// # Errors
/// It cannot be written to.
pub(super) fn open(target: &Target) -> io::Result<Box<dyn Sink>> {
    Ok(match target {
        Target::File(path) => Box::new(AuditFile::open(path)?),
        Target::Stderr => Box::new(Stderr),
    })
}

struct Stderr;

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
