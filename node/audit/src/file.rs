//! The audit file. An external tool renames it and requests a reopen.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::sink::Sink;

/// Readable only by the owner: records describe the activity of users.
const MODE: u32 = 0o600;

pub(super) struct AuditFile {
    path: PathBuf,
    file: File,
    /// Length up to the last complete record.
    bytes: u64,
}

impl AuditFile {
    /// Opens the file and positions it after its last complete record.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let is_new = !path.exists();
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(MODE)
            .open(path)?;
        if is_new {
            // The name must survive a loss of power, as the records do.
            let parent = path.parent();
            let directory = parent.filter(|parent| !parent.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        let mut bytes = file.metadata()?.len();
        if bytes > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                // A truncated record stays, on its own line.
                file.write_all(b"\n")?;
                bytes += 1;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            bytes,
        })
    }
}

impl Sink for AuditFile {
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        let written = self.file.write_all(lines);
        if let Err(error) = written {
            // Remove a partial record. If that fails, the next attempt fails, too.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        lines.clear();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn reopen(&mut self) -> io::Result<()> {
        *self = Self::open(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(file: &mut AuditFile, text: &str) {
        let mut lines = text.as_bytes().to_vec();
        file.write(&mut lines).unwrap();
        assert!(lines.is_empty());
    }

    #[test]
    fn only_the_owner_may_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        AuditFile::open(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn reopening_leaves_the_renamed_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let mut file = AuditFile::open(&path).unwrap();
        write(&mut file, "before\n");
        let away = directory.path().join("audit.log-20260101");
        fs::rename(&path, &away).unwrap();
        write(&mut file, "between\n");
        file.reopen().unwrap();
        write(&mut file, "after\n");
        assert_eq!(fs::read_to_string(&away).unwrap(), "before\nbetween\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
    }

    #[test]
    fn half_a_record_is_no_part_of_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        fs::write(&path, "whole\nhal").unwrap();
        let mut file = AuditFile::open(&path).unwrap();
        write(&mut file, "next\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nhal\nnext\n");
    }
}
