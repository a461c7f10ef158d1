//! Simulates a power loss of real processes. A preloaded library (`power.c`) between a node and its
//! disk records what is synced. After the process is killed, everything else is undone: bytes, new
//! names, renames and removals.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, bail};

use crate::shim;

/// The compiled library for `LD_PRELOAD`, and the directory of its records.
#[derive(Debug, Clone)]
pub struct Power {
    library: PathBuf,
    directory: PathBuf,
}

/// Data that a power loss discarded or restored.
#[derive(Debug, Default, Clone, Copy)]
pub struct LostData {
    /// Bytes cut off at the ends of files.
    pub bytes: u64,
    /// Names of files that were created or renamed.
    pub names: usize,
    /// Names of removed or renamed files that were restored.
    pub back: usize,
    /// Bytes of write-ahead files that were overwritten since the previous power loss; those not
    /// synced were restored.
    pub written_over: u64,
}

/// Files and directory entries that were synced.
#[derive(Debug, Default)]
struct Synced {
    /// For each file, by its [`key`], as of its last sync: its length, and the length of its
    /// `.over` file (the records of overwritten data), in bytes. This part of the `.over` file is
    /// not restored, since the sync made the new content durable.
    files: BTreeMap<String, (u64, u64)>,
    /// For each directory, by its [`key`]: the names in it, each with the key of the file or
    /// directory of that name.
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

    /// Environment of a node's process. Paths that contain `unsynced` are never synced, though the
    /// calls report success.
    ///
    /// # Errors
    /// If a directory cannot be created.
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

    /// Undoes everything that a killed node had not synced.
    ///
    /// # Errors
    /// If its files cannot be read or changed.
    pub fn cut(&self, node: u64, data_dir: &Path) -> anyhow::Result<LostData> {
        let notes = self.notes(node);
        let synced = match fs::read_to_string(&notes) {
            Ok(text) => Synced::read(&text)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Synced::default(),
            Err(error) => return Err(error.into()),
        };
        let mut lost = LostData::default();
        synced.restore(data_dir, &self.kept(node), &mut lost)?;
        Ok(lost)
    }
}

impl Synced {
    fn read(text: &str) -> anyhow::Result<Self> {
        let mut synced = Self::default();
        // A killed process may leave half a line.
        let whole = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        for line in whole {
            let mut words = line.split_whitespace();
            let (Some(kind), Some(key)) = (words.next(), words.next()) else {
                bail!("invalid record: {line:?}");
            };
            if kind == "file" {
                let mut number = || -> anyhow::Result<u64> {
                    Ok(words.next().context("a file without a number")?.parse()?)
                };
                let numbers = (number()?, number()?);
                synced.files.insert(key.to_owned(), numbers);
                continue;
            }
            let entries = words
                .map(|word| {
                    let (file, name) = word.split_once('/').context("an entry without a name")?;
                    Ok((name.to_owned(), file.to_owned()))
                })
                .collect::<anyhow::Result<_>>()?;
            synced.directories.insert(key.to_owned(), entries);
        }
        Ok(synced)
    }

    fn restore(&self, directory: &Path, kept: &Path, lost: &mut LostData) -> anyhow::Result<()> {
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
                if metadata.is_dir() {
                    fs::remove_dir_all(entry.path())?
                } else {
                    fs::remove_file(entry.path())?
                }
                continue;
            }
            there.insert(name);
            if metadata.is_dir() {
                self.restore(&entry.path(), kept, lost)?
            } else {
                self.take_back(&entry.path(), kept, &file, lost)?
            }
        }
        for (name, file) in entries.iter().filter(|(name, _)| !there.contains(*name)) {
            let copy = kept.join(file);
            // A removed directory is not restored: no code replaces a directory by another one.
            if copy.exists() {
                lost.back += 1;
                fs::hard_link(&copy, directory.join(name))?;
                self.take_back(&directory.join(name), kept, file, lost)?;
            }
        }
        Ok(())
    }

    /// Undoes the writes to a file since its last sync.
    fn take_back(
        &self,
        path: &Path,
        kept: &Path,
        name: &str,
        lost: &mut LostData,
    ) -> anyhow::Result<()> {
        let (synced, void) = self.files.get(name).copied().unwrap_or_default();
        let open = || fs::OpenOptions::new().write(true).open(path);
        let over = kept.join(format!("{name}.over"));
        if over.exists() {
            let records = fs::read(&over)?;
            lost.written_over += records.len() as u64;
            let records = overwritten(&records[usize::try_from(void)?..])?;
            for (at, bytes) in records.into_iter().rev() {
                open()?.write_all_at(bytes, at)?;
            }
            // A power loss is final: its records are not used again.
            fs::remove_file(over)?;
        }
        let length = fs::metadata(path)?.len();
        if length > synced {
            lost.bytes += length - synced;
            open()?.set_len(synced)?;
        }
        Ok(())
    }
}

/// Records of overwritten bytes: offset and old content. The last record may be incomplete; then
/// its write never began.
fn overwritten(mut records: &[u8]) -> anyhow::Result<Vec<(u64, &[u8])>> {
    let mut all = Vec::new();
    while let Some((head, rest)) = records.split_first_chunk::<16>() {
        let (at, length) = head.split_at(8);
        let at = u64::from_le_bytes(at.try_into()?);
        let length = u64::from_le_bytes(length.try_into()?);
        let Some((bytes, rest)) = rest.split_at_checked(usize::try_from(length)?) else {
            break;
        };
        all.push((at, bytes));
        records = rest;
    }
    Ok(all)
}

/// Identity of a file. It differs from a later file that reuses the inode number, if the file
/// system records creation times.
fn key(metadata: &fs::Metadata) -> anyhow::Result<String> {
    let born = metadata
        .created()
        .unwrap_or(UNIX_EPOCH)
        .duration_since(UNIX_EPOCH)?;
    Ok(format!(
        "{}-{}.{:09}",
        metadata.ino(),
        born.as_secs(),
        born.subsec_nanos()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsynced_overwrites_are_undone() {
        let dir = tempfile::tempdir().unwrap();
        let record = |at: u64, bytes: &[u8]| {
            [
                &at.to_le_bytes(),
                &(bytes.len() as u64).to_le_bytes(),
                bytes,
            ]
            .concat()
        };
        let (first, second) = (record(0, b"old"), record(4, b"old"));
        let path = dir.path().join("000007.log");
        fs::write(&path, "new new, and more").unwrap();
        let torn = record(9, b"and")[..17].to_vec();
        let over = [first.clone(), second, record(4, b"mid"), torn].concat();
        fs::write(dir.path().join("1-2.over"), over).unwrap();
        let synced = format!("file 1-2 7 {}\n", first.len());
        let mut lost = LostData::default();
        (Synced::read(&synced).unwrap())
            .take_back(&path, dir.path(), "1-2", &mut lost)
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new old");
        assert_eq!(lost.bytes, 10);
    }
}
