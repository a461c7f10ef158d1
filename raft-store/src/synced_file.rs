//! Files that are synced as they grow.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::files;

/// Bytes after which a growing file is synced. A sync of the log waits for at most so many bytes of
/// it.
const SYNC_BYTES: u64 = 1 << 20;

/// A file that is synced as it grows. Otherwise syncs of the log, on the same disk, would wait
/// until all data of the file in the page cache is written.
#[derive(Debug)]
pub(crate) struct SyncedFile {
    pub(crate) file: File,
    pub(crate) length: u64,
    unsynced: u64,
}

impl SyncedFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: files::to_write().truncate(true).open(path)?,
            length: 0,
            unsynced: 0,
        })
    }
}

impl Write for SyncedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        self.unsynced += written as u64;
        if self.unsynced >= SYNC_BYTES {
            files::sync(&self.file)?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use placement_base::platform::{Platform, install};

    /// Length of the file at its last sync.
    #[derive(Default)]
    struct LastSync(Cell<u64>);

    impl Platform for LastSync {
        fn sync(&self, file: &File) -> io::Result<()> {
            self.0.set(file.metadata()?.len());
            Ok(())
        }
    }

    #[test]
    fn growing_file_is_synced_in_pieces() {
        let top = tempfile::TempDir::new().unwrap();
        let disk = Rc::new(LastSync::default());
        let _installed = install(disk.clone());
        let mut file = SyncedFile::create(&top.path().join("much")).unwrap();
        for _ in 0..3 {
            file.write_all(&[7; SYNC_BYTES as usize / 2]).unwrap();
        }
        assert_eq!(disk.0.get(), SYNC_BYTES, "one piece is not synced yet");
    }
}
