//! A file of records, with so many older ones beside it: `audit.log`, `audit.log.1`, `audit.log.2`, …

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::sink::Sink;

/// For its owner alone: records tell who works with what.
const MODE: u32 = 0o600;

pub(super) struct RotatedFile {
    path: PathBuf,
    /// `None`: something else renames it.
    max_bytes: Option<u64>,
    keep: u64,
    file: File,
    /// Up to here it holds whole records.
    bytes: u64,
}

impl RotatedFile {
    pub(super) fn open(path: &Path, max_bytes: Option<u64>, keep: u64) -> io::Result<Self> {
        let (file, bytes) = open(path)?;
        Ok(Self {
            path: path.to_owned(),
            max_bytes,
            keep,
            file,
            bytes,
        })
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }

    /// Every step can be done again after a failure at any of them, and takes no file but the oldest.
    fn rotate(&mut self) -> io::Result<()> {
        if !self.path.exists() {
            // Renamed by the attempt before, which could not make a new one, or taken away.
            return self.reopen();
        }
        // From the first gap on: what stands before it moves into it, and nothing behind it needs to move.
        let is_free = |number: &u64| !self.numbered(*number).exists();
        let free = (1..self.keep).find(is_free).unwrap_or(self.keep);
        for number in (2..=free).rev() {
            fs::rename(self.numbered(number - 1), self.numbered(number))?;
        }
        match self.keep {
            0 => fs::remove_file(&self.path)?,
            _ => fs::rename(&self.path, self.numbered(1))?,
        }
        self.reopen()
    }
}

impl Sink for RotatedFile {
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        let more = lines.len() as u64;
        let is_full = |max: u64| self.bytes > 0 && self.bytes + more > max;
        if self.max_bytes.is_some_and(is_full) {
            self.rotate()?;
        }
        let written = self.file.write_all(lines);
        if let Err(error) = written {
            // No half record stays before the next one. If that fails too, the next attempt says so.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += more;
        lines.clear();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn reopen(&mut self) -> io::Result<()> {
        (self.file, self.bytes) = open(&self.path)?;
        Ok(())
    }
}

/// Opens it where its last whole record ends.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let is_new = !path.exists();
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)?;
    if is_new {
        // Its name outlives a loss of power, as its records do.
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    let mut bytes = file.metadata()?.len();
    if bytes > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            // What a crash has cut off stays, on a line of its own.
            file.write_all(b"\n")?;
            bytes += 1;
        }
    }
    Ok((file, bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(file: &mut RotatedFile, text: &str) {
        let mut lines = text.as_bytes().to_vec();
        file.write(&mut lines).unwrap();
        assert!(lines.is_empty());
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn so_many_files_of_so_many_bytes_are_kept_and_no_more() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = RotatedFile::open(&path, Some(100), 2).unwrap();
        for number in 0..50 {
            write(
                &mut file,
                &format!("record {number:03} {}\n", "x".repeat(28)),
            );
            let entries = fs::read_dir(directory.path()).unwrap();
            let bytes = entries.map(|one| one.unwrap().metadata().unwrap().len());
            assert!(bytes.sum::<u64>() <= 300);
        }
        assert_eq!(
            names(directory.path()),
            ["audit.log", "audit.log.1", "audit.log.2"]
        );
        // The newest are there, in their order, none twice.
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let all = read("audit.log.2") + &read("audit.log.1") + &read("audit.log");
        let numbers: Vec<&str> = all.lines().map(|line| &line[7..10]).collect();
        assert_eq!(numbers, ["044", "045", "046", "047", "048", "049"]);
    }

    #[test]
    fn a_rotation_that_was_interrupted_goes_on_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = RotatedFile::open(&path, Some(10), 3).unwrap();
        for record in ["first----\n", "second---\n"] {
            write(&mut file, record);
        }
        // The process ended between the renames.
        fs::rename(file.numbered(1), file.numbered(2)).unwrap();
        let mut file = RotatedFile::open(&path, Some(10), 3).unwrap();
        write(&mut file, "third----\n");
        let read = |number| fs::read_to_string(file.numbered(number)).unwrap();
        assert_eq!(
            (read(2), read(1)),
            ("first----\n".into(), "second---\n".into())
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "third----\n");
    }

    #[test]
    fn a_new_file_that_cannot_be_made_costs_no_older_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = RotatedFile::open(&path, Some(10), 2).unwrap();
        write(&mut file, "first----\n");
        write(&mut file, "second---\n");
        // Renamed, and then there was no room for another name.
        fs::rename(file.numbered(1), file.numbered(2)).unwrap();
        fs::rename(&path, file.numbered(1)).unwrap();
        write(&mut file, "third----\n");
        let read = |number| fs::read_to_string(file.numbered(number)).unwrap();
        assert_eq!(
            (read(2), read(1)),
            ("first----\n".into(), "second---\n".into())
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "third----\n");
    }

    #[test]
    fn it_is_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = RotatedFile::open(&path, Some(10), 1).unwrap();
        write(&mut file, "first----\n");
        write(&mut file, "second---\n");
        for name in names(directory.path()) {
            let mode = fs::metadata(directory.path().join(name)).unwrap();
            assert_eq!(mode.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_was_renamed_is_left_when_it_is_opened_anew() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = RotatedFile::open(&path, None, 0).unwrap();
        write(&mut file, "before\n");
        let away = directory.path().join("audit.log-20260101");
        fs::rename(&path, &away).unwrap();
        write(&mut file, "meanwhile\n");
        file.reopen().unwrap();
        write(&mut file, "after\n");
        assert_eq!(fs::read_to_string(&away).unwrap(), "before\nmeanwhile\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
    }

    #[test]
    fn half_a_record_is_no_part_of_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        fs::write(&path, "whole\nhal").unwrap();
        let mut file = RotatedFile::open(&path, None, 0).unwrap();
        write(&mut file, "next\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nhal\nnext\n");
    }
}
