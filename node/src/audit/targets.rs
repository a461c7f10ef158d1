//! What records are written to.

use std::io::{self, Write};

use super::file::RotatedFile;
use super::sink::Sink;
use super::syslog::Syslog;
use crate::config::Target;

/// # Errors
/// It cannot be written to.
pub(super) fn open(target: &Target) -> io::Result<Box<dyn Sink>> {
    Ok(match target {
        Target::File {
            path,
            max_bytes,
            keep,
        } => Box::new(RotatedFile::open(path, *max_bytes, *keep)?),
        Target::Stderr => Box::new(Stderr),
        Target::Socket(path) => Box::new(Syslog::local(path)),
        Target::Udp(address) => Box::new(Syslog::udp(address)),
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
