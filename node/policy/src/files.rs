//! The policy files: `[policy] file`, then the files of each of `[policy] policy_dirs` in the order
//! of their names. Later rules override earlier ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file::{self, LocatedRule, PolicyError};
use crate::settings::PolicySettings;

/// Fingerprint of the files, to detect changes without reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint(Vec<(PathBuf, Option<FileLook>)>);

/// A file's inode, size and modification time (seconds, nanoseconds).
type FileLook = (u64, u64, i64, i64);

/// The rules of all files.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The rule in effect, by name.
    pub(super) rules: BTreeMap<String, LocatedRule>,
    /// Every rule of every file, including overridden ones.
    all: BTreeSet<(PathBuf, String)>,
}

impl Contents {
    /// Checks that `other` still has each rule of these files, in the same file.
    ///
    /// # Errors
    /// The first missing rule.
    pub(super) fn is_contained_in(&self, other: &Self) -> Result<(), PolicyError> {
        match self.all.difference(&other.all).next() {
            None => Ok(()),
            Some((path, rule)) => Err(PolicyError::Gone(path.clone(), rule.clone())),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }
}

/// Whether any file or directory is configured.
pub(super) fn are_configured(settings: &PolicySettings) -> bool {
    settings.file.is_some() || !settings.policy_dirs.is_empty()
}

/// Takes the fingerprint of the files now.
pub(super) fn look(settings: &PolicySettings) -> Fingerprint {
    let mut found: Vec<PathBuf> = settings.file.iter().cloned().collect();
    for directory in &settings.policy_dirs {
        found.push(directory.clone());
        found.extend(list(directory).unwrap_or_default());
    }
    let look = |path: PathBuf| {
        let seen = std::fs::metadata(&path)
            .ok()
            .map(|file: Metadata| (file.ino(), file.len(), file.mtime(), file.mtime_nsec()));
        (path, seen)
    };
    Fingerprint(found.into_iter().map(look).collect())
}

/// # Errors
/// A file or directory is unreadable, or a file is invalid.
pub(super) fn read(settings: &PolicySettings) -> Result<Contents, PolicyError> {
    let mut files: Vec<PathBuf> = settings.file.iter().cloned().collect();
    for directory in &settings.policy_dirs {
        let listed = list(directory);
        files.extend(listed.map_err(|error| PolicyError::Unreadable(directory.clone(), error))?);
    }
    let mut contents = Contents::default();
    for path in files {
        let rules = file::read(&path)?;
        let names = rules.keys().map(|name| (path.clone(), name.clone()));
        contents.all.extend(names);
        contents.rules.extend(rules);
    }
    Ok(contents)
}

/// The files of a directory, except hidden ones, in the order of their names.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A file that has vanished or is inaccessible leads to an error when it is read.
        if !is_hidden && !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
