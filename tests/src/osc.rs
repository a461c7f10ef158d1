//! OpenStack's command-line client, from PyPI.

use std::path::{Path, PathBuf};

use crate::python;

const PACKAGES: [&str; 2] = ["osc-placement==4.9.1", "python-openstackclient==10.5.0"];

/// Folder of the client's programs; installed once below `installed_in`.
pub fn programs(installed_in: &Path) -> anyhow::Result<PathBuf> {
    python::environment(installed_in, "osc-venv-4.9.1-10.5.0", &PACKAGES)
}
