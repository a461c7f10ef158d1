//! The policy files: `[policy] file`, then those of each of `[policy] policy_dirs` in the order of
//! their names. What is read later overrides what was read before.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file::{self, PolicyError, Stated};
use crate::http::edge::settings::PolicySettings;

/// What tells one content of the files from another without reading them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look(Vec<(PathBuf, Option<FileLook>)>);

/// A file's number, length, and when it was changed.
type FileLook = (u64, u64, i64, i64);

/// What the files say.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The rule that counts, by its name.
    pub(super) rules: BTreeMap<String, Stated>,
    /// Every rule of every file.
    all: BTreeSet<(PathBuf, String)>,
}

impl Contents {
    /// # Errors
    /// A rule of one of these files that the same file does not have any more.
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

/// Whether there are files to read.
pub(super) fn are_named(settings: &PolicySettings) -> bool {
    settings.file.is_some() || !settings.policy_dirs.is_empty()
}

/// How they are now.
pub(super) fn look(settings: &PolicySettings) -> Look {
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
    Look(found.into_iter().map(look).collect())
}

/// # Errors
/// A file or directory that cannot be read, or says nothing that can be used.
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

/// The files of a directory, but for hidden ones.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // What is gone by now, or cannot be looked at, is an error when it is read.
        if !is_hidden && !entry.path().is_dir() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}
