//! Small file systems, for tests of full disks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tmpfs; unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a tmpfs of this size. `None` without the privilege to mount.
    ///
    /// # Panics
    /// If the directory cannot be created.
    pub fn mount(at: &Path, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = format!("size={megabytes}m,mode=0700");
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], at).then(|| Self(at.to_owned()))
    }

    /// Changes the size of the file system.
    ///
    /// # Panics
    /// If that fails.
    pub fn resize(&self, megabytes: u32) {
        let options = format!("remount,size={megabytes}m");
        assert!(mount(&["-o", &options], &self.0), "{options}");
    }

    /// File that [`SmallDisk::fill`] writes.
    pub fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Fills the file system to the last byte.
    ///
    /// # Panics
    /// If the file cannot be created.
    pub fn fill(&self) {
        let mut file = fs::File::create(self.ballast()).unwrap();
        for size in [1 << 20, 4096, 1] {
            let block = vec![7; size];
            while file.write_all(&block).is_ok() {}
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

fn mount(arguments: &[&str], at: &Path) -> bool {
    let mounted = Command::new("mount").args(arguments).arg(at).output();
    mounted.is_ok_and(|output| output.status.success())
}
