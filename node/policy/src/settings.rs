//! The settings of `[policy]`.

use std::path::PathBuf;

use placement_base::settings::settings;

settings! {
    /// Authorization of callers, by rules in files.
    PolicySettings {
        /// File with rules in oslo.policy's YAML syntax that override the default rules. It is read
        /// again when it changes. Unset: no file. The node does not start with a missing or invalid
        /// file.
        file: Option<PathBuf> = None,
        /// Directories with more policy files. The files of a directory are read in the order of
        /// their names, and later rules override earlier rules.
        policy_dirs: Vec<PathBuf> = Vec::new(),
        /// Whether only the new default rules apply. If `false`, the old default rules from before
        /// 2023 apply as well, which allow everything to the role `admin`.
        enforce_new_defaults: bool = true,
        /// Whether system-scoped tokens are refused.
        enforce_scope: bool = true,
    }
}
