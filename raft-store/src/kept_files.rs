//! File names in a backup directory, and which files can be removed.

pub(crate) const BACKUP: &str = "backup-";
pub(crate) const LOG: &str = "log-";

/// A complete file in a backup directory, or its copy in a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// Whether it is a backup; otherwise it is a log file.
    pub is_backup: bool,
    /// The last entry that a backup covers, or the first entry of a log file.
    pub index: u64,
    /// File name without a directory.
    pub name: String,
    /// File length in bytes.
    pub length: u64,
}

impl KeptFile {
    /// Parses a file name; `None` for any other file.
    pub fn parse(name: &str, length: u64) -> Option<Self> {
        let (is_backup, index) = match name.strip_prefix(BACKUP) {
            Some(index) => (true, index),
            None => (false, name.strip_prefix(LOG)?),
        };
        Some(Self {
            is_backup,
            index: index.parse().ok()?,
            name: name.to_owned(),
            length,
        })
    }
}

/// The files that can be removed: all except the newest `keep` backups and the log since the oldest
/// of these.
pub fn superfluous(files: &[KeptFile], keep: usize) -> Vec<KeptFile> {
    let of_kind = |is_backup: bool| {
        let mut found: Vec<&KeptFile> = (files.iter())
            .filter(|file| file.is_backup == is_backup)
            .collect();
        found.sort_by_key(|file| file.index);
        found
    };
    let (mut backups, logs) = (of_kind(true), of_kind(false));
    let kept = backups.split_off(backups.len().saturating_sub(keep.max(1)));
    let Some(oldest) = kept.first() else {
        return Vec::new();
    };
    let ends = logs.iter().skip(1).map(|next| next.index);
    let covered = (logs.iter().zip(ends)).filter(|(_, end)| *end <= oldest.index + 1);
    backups.extend(covered.map(|(log, _)| *log));
    backups.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_backups_and_the_log_since_them_stay() {
        let names = [
            "log-1",
            "log-6",
            "log-11",
            "backup-5",
            "backup-10",
            "backup-15",
            "draft",
        ];
        let files: Vec<_> = (names.iter())
            .filter_map(|name| KeptFile::parse(name, 1))
            .collect();
        assert_eq!(files.len(), 6);
        let gone = |keep| {
            let gone = superfluous(&files, keep);
            gone.into_iter().map(|file| file.name).collect::<Vec<_>>()
        };
        assert_eq!(gone(2), ["backup-5", "log-1", "log-6"]);
        assert_eq!(gone(3), ["log-1"]);
        assert_eq!(gone(1), ["backup-5", "backup-10", "log-1", "log-6"]);
        assert!(
            superfluous(&files[..3], 1).is_empty(),
            "without a backup, the whole log is needed"
        );
    }
}
