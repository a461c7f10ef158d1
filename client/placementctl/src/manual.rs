//! `placementctl completion` and `man`: shell completion and manual pages.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap_complete::Shell;

use crate::help::definition;
use crate::render::print;

pub(crate) fn complete(shell: Shell) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut definition(), "placementctl", &mut text);
    print(&String::from_utf8(text)?)
}

/// Writes a manual page for each command.
pub(crate) fn write(directory: &Path) -> anyhow::Result<()> {
    let written = fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(definition(), directory));
    written.with_context(|| format!("cannot write to {}", directory.display()))
}
