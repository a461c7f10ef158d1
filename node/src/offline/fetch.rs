//! `placementd fetch-backup`: fetches copies from the bucket of `[backup_s3]`, for a restore.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use placement_model::types::Timestamp;
use placement_raft_store::KeptFile;
use tempfile::NamedTempFile;
use tokio::time::sleep;

use super::{print, restore};
use crate::{Config, Env};
use placement_cluster::bucket::{Bucket, BucketError, Stored};

/// Attempts per file, and the pause after a failure.
const ATTEMPTS: u32 = 5;
const RETRY: Duration = Duration::from_secs(2);

/// Lists the copies in the bucket, or fetches the directory `from` into the new directory `to` and
/// verifies it.
pub(crate) fn run(config: &Config, copy: Option<(&str, &Path)>) -> anyhow::Result<()> {
    if !config.backup_s3.is_used() {
        bail!("the configuration has no bucket: set [backup_s3]");
    }
    let store = match config.backup_s3.endpoint.as_str() {
        "" => "AWS",
        endpoint => endpoint,
    };
    let whole = format!("bucket {} of {store}", config.backup_s3.bucket);
    let bucket =
        Bucket::open(&config.backup_s3, Env::production().net).with_context(|| whole.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    if let Some((from, to)) = copy {
        runtime.block_on(fetch(&bucket, from, to)).context(whole)?;
        return restore::check(to);
    }
    let places = runtime.block_on(list(&bucket)).context(whole)?;
    if places.is_empty() {
        eprintln!("the bucket has no backups at this path");
    }
    Ok(print(&places)?)
}

async fn list(bucket: &Bucket) -> Result<String, BucketError> {
    let mut lines = String::new();
    for place in bucket.places().await? {
        let stored = bucket.files(&place).await?;
        let bytes: u64 = stored.iter().map(|stored| stored.length).sum();
        let newest = |is_backup: bool| {
            let of_kind = stored.iter().filter(|stored| {
                KeptFile::parse(&stored.name, 0).is_some_and(|file| file.is_backup == is_backup)
            });
            let newest = of_kind.max_by_key(|stored| &stored.name);
            let copied = newest.and_then(|newest| Timestamp(newest.written * 1_000_000).rfc3339());
            copied.unwrap_or("none".to_owned())
        };
        lines += &format!(
            "{place}: newest backup copied {}, log copied {}, {} files, {bytes} bytes\n",
            newest(true),
            newest(false),
            stored.len()
        );
    }
    Ok(lines)
}

async fn fetch(bucket: &Bucket, from: &str, to: &Path) -> anyhow::Result<()> {
    let files: Vec<_> = (bucket.files(from).await?.into_iter())
        .filter(|stored| KeptFile::parse(&stored.name, stored.length).is_some())
        .collect();
    if files.is_empty() {
        let there = list(bucket).await?;
        if there.is_empty() {
            bail!("the bucket has no backups")
        } else {
            bail!("the bucket has no {from}. It has:\n{there}")
        }
    }
    let shown = || to.display().to_string();
    fs::create_dir_all(to).with_context(shown)?;
    // Existing files are not overwritten.
    if fs::read_dir(to).with_context(shown)?.next().is_some() {
        let advice = "use an empty or new directory";
        bail!("{}: the directory is not empty: {advice}", shown());
    }
    for (number, stored) in files.iter().enumerate() {
        let Stored { name, length, .. } = stored;
        eprintln!("{} of {}: {name}, {length} bytes", number + 1, files.len());
        let failed = || format!("cannot fetch {name}");
        let mut attempt = 1;
        // A running node may replace the file in the meantime: then the new one is fetched.
        let draft = loop {
            match fetch_once(bucket, from, name, to).await {
                Ok(draft) => break draft,
                Err(error) if attempt == ATTEMPTS => return Err(error).with_context(failed),
                Err(error) => eprintln!("placementd: {name}: {error}; retrying"),
            }
            sleep(RETRY * attempt).await;
            attempt += 1;
        };
        draft
            .persist_noclobber(to.join(name))
            .with_context(failed)?;
    }
    Ok(())
}

async fn fetch_once(
    bucket: &Bucket,
    place: &str,
    name: &str,
    to: &Path,
) -> Result<NamedTempFile, BucketError> {
    let stored = bucket.head(place, name).await?;
    let mut draft = tempfile::Builder::new();
    let draft = draft.prefix(name).suffix(".part").tempfile_in(to)?;
    let mut file = BufWriter::new(draft.as_file());
    bucket.fetch(place, &stored, &mut file).await?;
    // Not synced: the file can be fetched again, and a restore verifies it completely.
    file.flush()?;
    drop(file);
    Ok(draft)
}
