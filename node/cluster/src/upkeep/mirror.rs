//! Copies this node's backup directory to a bucket, according to `[backup_s3]`.
//!
//! Nothing waits for the copies. The bucket follows the directory: missing files are copied, the
//! newest first, and files that the newest backups in the bucket do not need are removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use placement_base::log_messages::log;
use placement_base::runtime;
use placement_raft_store::{BackupDir, KeptFile, superfluous};
use tokio::time::{Instant, sleep};

use super::backups::{FailureReporter, open};
use crate::bucket::{Bucket, BucketError, open_to_read};
use crate::kept_backups::BackupPart;
use crate::running::Running;
use crate::settings::Settings;
use placement_base::net::Net;

/// Interval between copies of the log file that is still growing. If all nodes are lost, the writes
/// since the last copy are lost.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Keeps the copies up to date.
pub(crate) async fn run(node: Arc<Running>, net: Arc<dyn Net>) {
    let config = node.replica.config.clone();
    let Some(root) = config.backup.directory.clone() else {
        return;
    };
    if config.backup_s3.is_plain() {
        log!(
            COPIES_NOT_ENCRYPTED,
            "backups are copied over plain HTTP: anyone on the path can read them"
        );
    }
    node.kept.begin_copies();
    let identity = node.replica.identity;
    let mut mirror = Mirror {
        dir: open(&node, root, BackupPart::Copies).await,
        place: format!("{}/node-{}", identity.cluster, identity.node),
        net,
        bucket: None,
        copied: BTreeMap::new(),
        unread: BTreeSet::new(),
        longer: BTreeSet::new(),
        log_copied: None,
        config,
    };
    let mut failing = FailureReporter::new(&node.kept, BackupPart::Copies);
    while node.replica.failure().is_none() {
        let wait = match mirror.copy_and_prune().await {
            Ok(()) => {
                node.kept.all_copied(node.clock.now());
                failing.is_over("backups are copied to the store");
                LOG_EVERY
            }
            Err(error) => failing.failed("backups are not copied to the store", error),
        };
        sleep(wait).await;
    }
}

/// The state of the copies in the bucket.
struct Mirror {
    config: Arc<Settings>,
    net: Arc<dyn Net>,
    dir: BackupDir,
    place: String,
    /// `None` at first and after an error. Then the next attempt reads the credentials again and
    /// lists the bucket.
    bucket: Option<Bucket>,
    /// Names and lengths of the objects in the bucket. An object is either complete or absent.
    copied: BTreeMap<String, u64>,
    /// Objects that this process has written and not verified yet.
    unread: BTreeSet<String>,
    /// Files of the archived log whose copy in the bucket is longer than the local file; each is
    /// reported once.
    longer: BTreeSet<String>,
    /// When the newest file of the archived log was last copied.
    log_copied: Option<Instant>,
}

impl Mirror {
    fn keep(&self) -> usize {
        usize::try_from(self.config.backup.keep).unwrap_or(usize::MAX)
    }

    async fn copy_and_prune(&mut self) -> Result<(), BucketError> {
        let bucket = match self.bucket.take() {
            Some(bucket) => bucket,
            None => self.open().await?,
        };
        self.copy_all(&bucket).await?;
        self.remove_superfluous(&bucket).await?;
        self.bucket = Some(bucket);
        Ok(())
    }

    async fn open(&mut self) -> Result<Bucket, BucketError> {
        let (config, net) = (self.config.clone(), self.net.clone());
        let bucket = runtime::blocking(move || Bucket::open(&config.backup_s3, net)).await?;
        let found = bucket.files(&self.place).await?.into_iter();
        self.copied = found.map(|stored| (stored.name, stored.length)).collect();
        Ok(bucket)
    }

    /// Copies until no file is missing. Files that appear during the copying are newer, and are
    /// copied next.
    async fn copy_all(&mut self, bucket: &Bucket) -> Result<(), BucketError> {
        loop {
            let dir = self.dir.clone();
            let files = runtime::blocking(move || dir.files()).await?;
            self.report_longer(&files);
            let mut all = self.stored();
            all.extend(files.iter().filter(|file| self.is_new(file)).cloned());
            // Files that would be removed again are not copied.
            let old = superfluous(&all, self.keep());
            let newest_log = files.iter().find(|file| !file.is_backup);
            let next = files.iter().find(|file| {
                old.iter().all(|old| old.name != file.name)
                    && self.lacks(file, newest_log == Some(file))
            });
            let Some(next) = next else {
                return Ok(());
            };
            self.copy(bucket, next, newest_log == Some(next)).await?;
        }
    }

    fn is_new(&self, file: &KeptFile) -> bool {
        !self.copied.contains_key(&file.name)
    }

    fn is_whole(&self, file: &KeptFile) -> bool {
        self.copied.get(&file.name) == Some(&file.length)
    }

    /// A file of the archived log only grows. If its copy in the bucket is longer, the local file
    /// was damaged or is an older copy.
    fn is_longer_in_bucket(&self, file: &KeptFile) -> bool {
        let there = self.copied.get(&file.name);
        !file.is_backup && there.is_some_and(|length| *length > file.length)
    }

    fn report_longer(&mut self, files: &[KeptFile]) {
        for file in files {
            if self.is_longer_in_bucket(file) && self.longer.insert(file.name.clone()) {
                log!(
                    COPY_LONGER,
                    file = file.name,
                    bytes = file.length,
                    copied_bytes = self.copied[&file.name],
                    "the copy of this file in the bucket is longer than the file in [backup] directory; the copy is not \
                     overwritten"
                );
            }
        }
    }

    /// Whether a file must be copied now. The newest file of the archived log still grows, so it is
    /// copied at most once per interval.
    fn lacks(&self, file: &KeptFile, grows: bool) -> bool {
        if self.is_longer_in_bucket(file) {
            return false;
        }
        match (self.is_whole(file), grows) {
            (true, true) => false,
            (true, false) => self.unread.contains(&file.name),
            (false, true) => (self.log_copied).is_none_or(|at| at.elapsed() >= LOG_EVERY),
            (false, false) => true,
        }
    }

    /// Copies a file unless its copy is complete, and verifies the copy once the file no longer
    /// grows.
    async fn copy(
        &mut self,
        bucket: &Bucket,
        file: &KeptFile,
        grows: bool,
    ) -> Result<(), BucketError> {
        let KeptFile { name, length, .. } = file;
        let Some(source) = open_to_read(&self.dir.path().join(name)).await? else {
            return Ok(());
        };
        if !self.is_whole(file) {
            self.unread.insert(name.clone());
            bucket.put(&self.place, name, &source, *length).await?;
        }
        let is_good = if grows {
            bucket.head(&self.place, name).await?.length == *length
        } else {
            bucket.is_same(&self.place, name, &source, *length).await?
        };
        if !is_good {
            bucket.remove(&self.place, name).await?;
            let reason = format!("the copy of {name} in the bucket differs from the file");
            return Err(BucketError(reason));
        }
        if grows {
            self.log_copied = Some(Instant::now())
        } else {
            self.unread.remove(name);
        }
        self.copied.insert(name.clone(), *length);
        Ok(())
    }

    /// The files in the bucket.
    fn stored(&self) -> Vec<KeptFile> {
        let files = self.copied.iter();
        files
            .filter_map(|(name, length)| KeptFile::parse(name, *length))
            .collect()
    }

    /// Removes all copies except the newest `keep` backups and the log since the oldest of these.
    /// Only the files in the bucket count, so the copies remain if the backup directory is lost.
    async fn remove_superfluous(&mut self, bucket: &Bucket) -> Result<(), BucketError> {
        for file in superfluous(&self.stored(), self.keep()) {
            bucket.remove(&self.place, &file.name).await?;
            self.copied.remove(&file.name);
            self.unread.remove(&file.name);
        }
        Ok(())
    }
}
