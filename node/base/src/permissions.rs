//! Checks file permissions of the data directory and of files with secrets. The rules are
//! PostgreSQL's.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

/// A directory or file has unsafe permissions.
#[derive(Debug, thiserror::Error)]
pub enum Exposed {
    /// Other users have access to it.
    #[error("{path} is accessible to other users (mode {mode:04o}); run `chmod {right} {path}`")]
    Mode {
        /// The directory or file.
        path: PathBuf,
        /// Permission bits of the directory or file.
        mode: u32,
        /// The permissions to set.
        right: &'static str,
    },
    /// Another user owns it.
    #[error(
        "{path} belongs to user {}, but this process runs as user {}: start it as user {owner}, \
        such as `runuser -u {} -- placementd`, or as root run `chown -R {own} {path}`",
        with_name(*owner), with_name(*own), name(*owner).unwrap_or_else(|| "NAME".to_owned())
    )]
    Owner {
        /// The directory or file.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of this process.
        own: u32,
    },
}

/// A user id, with the user's name if this machine has one.
fn with_name(id: u32) -> String {
    match name(id) {
        Some(name) => format!("{id} ({name})"),
        None => id.to_string(),
    }
}

fn name(id: u32) -> Option<String> {
    name_in(&fs::read_to_string("/etc/passwd").ok()?, id)
}

/// The name of a user in a file in the format of passwd(5).
fn name_in(users: &str, id: u32) -> Option<String> {
    users.lines().find_map(|user| {
        let mut fields = user.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id)).then(|| name.to_owned())
    })
}

/// Sets the umask of this process, so that only its own user can access the files that it creates.
pub fn restrict_umask() {
    umask(Mode::RWXG | Mode::RWXO);
}

/// Checks that the data directory belongs to this user, that only this user can write to it, and
/// that at most its group can read it (0700 or 0750). A missing directory passes the check: it is
/// created later, with these permissions.
pub fn check_data_dir(dir: &Path) -> Result<(), Exposed> {
    match fs::metadata(dir) {
        Ok(found) => check_owner(dir, &found).and_then(|()| is_closed(dir, &found, 0o027, "0700")),
        // Opening it reports why it is inaccessible.
        Err(_) => Ok(()),
    }
}

/// Checks that a file with secrets belongs to this user, without access for others (0600), or to
/// root, with read access for its group at most (0640). A process that runs as root accepts files
/// of all users.
pub fn check_secret_file(path: &Path) -> Result<(), Exposed> {
    let Ok(found) = fs::metadata(path) else {
        return Ok(());
    };
    if found.uid() == 0 {
        return is_closed(path, &found, 0o037, "0640");
    }
    if !geteuid().is_root() {
        check_owner(path, &found)?;
    }
    is_closed(path, &found, 0o077, "0600")
}

fn check_owner(path: &Path, found: &Metadata) -> Result<(), Exposed> {
    let (owner, own) = (found.uid(), geteuid().as_raw());
    if owner == own {
        Ok(())
    } else {
        Err(Exposed::Owner {
            path: path.to_owned(),
            owner,
            own,
        })
    }
}

fn is_closed(
    path: &Path,
    found: &Metadata,
    forbidden: u32,
    right: &'static str,
) -> Result<(), Exposed> {
    match found.mode() & forbidden {
        0 => Ok(()),
        _ => Err(Exposed::Mode {
            path: path.to_owned(),
            mode: found.mode() & 0o7777,
            right,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_owner_is_shown_with_name_and_remedy() {
        let users =
            "root:x:0:0:root:/root:/bin/bash\nbroken\nplacement:x:107:65534::/:/bin/false\n";
        assert_eq!(name_in(users, 107).as_deref(), Some("placement"));
        assert_eq!(name_in(users, 65_534), None);
        let path = PathBuf::from("/data");
        let (owner, own) = (0, u32::MAX);
        let text = Exposed::Owner { path, owner, own }.to_string();
        for words in [
            "/data belongs to user 0 (root), but this process runs as user 4294967295: ",
            "`runuser -u root -- placementd`",
            "`chown -R 4294967295 /data`",
        ] {
            assert!(text.contains(words), "{text}");
        }
    }
}
