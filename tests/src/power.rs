//! A loss of power for real processes. A library stands between a node and its disk and writes down what
//! is synced (`power.c`); when the process has been killed, everything else is taken away again: bytes,
//! new names, renames and removals.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, bail};

use crate::shim;

/// The library.
#[derive(Debug, Clone)]
pub struct Power {
    library: PathBuf,
    directory: PathBuf,
}

/// What a loss of power took.
#[derive(Debug, Default, Clone, Copy)]
pub struct Lost {
    /// Bytes at the ends of files.
    pub bytes: u64,
    /// Names of files that were made or renamed.
    pub names: usize,
    /// Names of files that were removed or renamed away, and are back.
    pub back: usize,
}

/// What was synced.
#[derive(Debug, Default)]
struct Synced {
    /// The length of each file.
    files: BTreeMap<String, u64>,
    /// The entries of each directory: name and file.
    directories: BTreeMap<String, BTreeMap<String, String>>,
}

impl Power {
    /// Compiles the library into `directory`. `None` without a C compiler.
    ///
    /// # Panics
    /// If `directory` cannot be written to.
    pub fn new(directory: &Path) -> Option<Self> {
        let library = shim::compile(directory, include_str!("power.c"))?;
        let directory = directory.to_owned();
        Some(Self { library, directory })
    }

    fn notes(&self, node: u64) -> PathBuf {
        self.directory.join(format!("synced-{node}"))
    }

    fn kept(&self, node: u64) -> PathBuf {
        self.directory.join(format!("synced-{node}.kept"))
    }

    /// The environment of a node's process. What has `unsynced` in its path is never synced, though the
    /// calls report success.
    ///
    /// # Errors
    /// No directory can be made.
    pub fn environment(
        &self,
        node: u64,
        unsynced: Option<&str>,
    ) -> anyhow::Result<Vec<(String, String)>> {
        fs::create_dir_all(self.kept(node))?;
        let mut environment = vec![
            ("LD_PRELOAD".to_owned(), self.library.display().to_string()),
            (
                "PLACEMENT_TEST_SYNCED".to_owned(),
                self.notes(node).display().to_string(),
            ),
        ];
        if let Some(words) = unsynced {
            environment.push(("PLACEMENT_TEST_UNSYNCED".to_owned(), words.to_owned()));
        }
        Ok(environment)
    }

    /// Takes away what a node that was killed had not synced.
    ///
    /// # Errors
    /// Its files cannot be read or changed.
    pub fn cut(&self, node: u64, data_dir: &Path) -> anyhow::Result<Lost> {
        let notes = self.notes(node);
        let synced = match fs::read_to_string(&notes) {
            Ok(text) => Synced::read(&text)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Synced::default(),
            Err(error) => return Err(error.into()),
        };
        let mut lost = Lost::default();
        synced.restore(data_dir, &self.kept(node), &mut lost)?;
        Ok(lost)
    }
}

impl Synced {
    fn read(text: &str) -> anyhow::Result<Self> {
        let mut synced = Self::default();
        // A process that is killed may leave half a line.
        let whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        for line in whole {
            let mut words = line.split_whitespace();
            let (Some(kind), Some(key)) = (words.next(), words.next()) else {
                bail!("a note says nothing: {line:?}");
            };
            if kind == "file" {
                let length = words.next().context("a file without a length")?.parse()?;
                synced.files.insert(key.to_owned(), length);
                continue;
            }
            let entries = words.map(|word| {
                let (file, name) = word.split_once('/').context("an entry without a name")?;
                Ok((name.to_owned(), file.to_owned()))
            });
            let entries = entries.collect::<anyhow::Result<_>>()?;
            synced.directories.insert(key.to_owned(), entries);
        }
        Ok(synced)
    }

    fn restore(&self, directory: &Path, kept: &Path, lost: &mut Lost) -> anyhow::Result<()> {
        let none = BTreeMap::new();
        let key = key(&fs::metadata(directory)?)?;
        let entries = self.directories.get(&key).unwrap_or(&none);
        let mut there = BTreeSet::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let file = self::key(&metadata)?;
            if entries.get(&name) != Some(&file) {
                lost.names += 1;
                match metadata.is_dir() {
                    true => fs::remove_dir_all(entry.path())?,
                    false => fs::remove_file(entry.path())?,
                }
                continue;
            }
            there.insert(name);
            match metadata.is_dir() {
                true => self.restore(&entry.path(), kept, lost)?,
                false => self.shorten(&entry.path(), &file, lost)?,
            }
        }
        for (name, file) in entries.iter().filter(|(name, _)| !there.contains(*name)) {
            let copy = kept.join(file);
            // A directory that was removed is not brought back: no one removes one to put another in its place.
            if copy.exists() {
                lost.back += 1;
                fs::hard_link(&copy, directory.join(name))?;
                self.shorten(&directory.join(name), file, lost)?;
            }
        }
        Ok(())
    }

    fn shorten(&self, path: &Path, file: &str, lost: &mut Lost) -> anyhow::Result<()> {
        let length = fs::metadata(path)?.len();
        let synced = self.files.get(file).copied().unwrap_or_default();
        if length > synced {
            lost.bytes += length - synced;
            fs::OpenOptions::new()
                .write(true)
                .open(path)?
                .set_len(synced)?;
        }
        Ok(())
    }
}

/// What tells a file from every other; also from one that gets its number when it is gone, where the file
/// system says when a file was made.
fn key(metadata: &fs::Metadata) -> anyhow::Result<String> {
    let born = metadata.created().unwrap_or(UNIX_EPOCH);
    let born = born.duration_since(UNIX_EPOCH)?;
    Ok(format!(
        "{}-{}.{:09}",
        metadata.ino(),
        born.as_secs(),
        born.subsec_nanos()
    ))
}
