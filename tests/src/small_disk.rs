//! Small disks, for nodes whose disks are to be full.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory; unmounted when dropped.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` without the right to mount.
    ///
    /// # Panics
    /// If there can be no such directory.
    pub fn mount(at: &Path, megabytes: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let options = format!("size={megabytes}m,mode=0700");
        mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], at).then(|| Self(at.to_owned()))
    }

    /// Makes it larger or smaller.
    ///
    /// # Panics
    /// If that cannot be done.
    pub fn resize(&self, megabytes: u32) {
        let options = format!("remount,size={megabytes}m");
        assert!(mount(&["-o", &options], &self.0), "{options}");
    }

    /// The file that takes room.
    pub fn ballast(&self) -> PathBuf {
        self.0.join("ballast")
    }

    /// Leaves no room.
    ///
    /// # Panics
    /// If the file cannot be made.
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
