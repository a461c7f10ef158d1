//! The commands of `placementd` that do not run a node. Most work on the data directory of a
//! stopped node.

pub(crate) mod fetch;
pub(crate) mod inspect;
mod moment;
pub(crate) mod policy;
pub(crate) mod recover;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod transfer;

use std::io::{self, ErrorKind, Write};

/// Prints to standard output; if its reader has closed the pipe, that is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
