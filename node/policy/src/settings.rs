//! The settings of `[policy]`.

use std::path::PathBuf;

use placement_base::settings::settings;

settings! {
    /// Authorization of callers, by rules in files.
    PolicySettings {
        /// Rules in oslo.policy's YAML syntax that override the defaults; re-read when it changes.
        /// Unset: no file. The node refuses to start with a missing or invalid file.
        file: Option<PathBuf> = None,
        /// Directories with more such files. The files of each are read in the order of their
        /// names, and later rules override earlier ones.
        policy_dirs: Vec<PathBuf> = Vec::new(),
        /// Whether only the new defaults apply; otherwise the old rules of before 2023 (any admin)
        /// apply too.
        enforce_new_defaults: bool = true,
        /// Whether system-scoped tokens are refused.
        enforce_scope: bool = true,
    }
}
