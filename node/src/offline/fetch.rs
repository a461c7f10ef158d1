//! `placementd fetch-backup`: copies out of the bucket of `[backup_s3]`, for a restore.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use placement_raft_store::KeptFile;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::sleep;

use super::restore;
use crate::bucket::{Bucket, BucketError, Stored};
use crate::{Config, Env};

/// How often a file is tried, and how long after a failure.
const ATTEMPTS: u32 = 5;
const RETRY: Duration = Duration::from_secs(2);

/// What there is, or what of it is fetched, and to where.
pub(crate) enum Wanted<'a> {
    List,
    Place { from: &'a str, to: &'a Path },
}

/// Lists what the bucket has, or fetches one place of it into a new directory and checks it.
pub(crate) fn run(config: &Config, wanted: &Wanted) -> anyhow::Result<()> {
    if !config.backup_s3.is_used() {
        bail!("the configuration names no bucket: set [backup_s3]");
    }
    let store = match config.backup_s3.endpoint.as_str() {
        "" => "AWS",
        endpoint => endpoint,
    };
    let whole = format!("bucket {} of {store}", config.backup_s3.bucket);
    let bucket = Bucket::open(&config.backup_s3, Env::production().net);
    let bucket = bucket.with_context(|| whole.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    match wanted {
        Wanted::List => {
            let places = runtime.block_on(list(&bucket)).context(whole)?;
            match places.is_empty() {
                true => eprintln!("there are no backups at this place of the bucket"),
                false => print!("{places}"),
            }
            Ok(())
        }
        Wanted::Place { from, to } => {
            runtime.block_on(fetch(&bucket, from, to)).context(whole)?;
            restore::check(to)
        }
    }
}

async fn list(bucket: &Bucket) -> Result<String, BucketError> {
    let mut lines = String::new();
    for place in bucket.places().await? {
        let stored = bucket.files(&place).await?;
        let bytes: u64 = stored.iter().map(|stored| stored.length).sum();
        let newest = |is_backup: bool| {
            let of_kind = |stored: &&Stored| {
                KeptFile::of(&stored.name, 0).is_some_and(|file| file.is_backup == is_backup)
            };
            let newest = stored
                .iter()
                .filter(of_kind)
                .max_by_key(|stored| &stored.name);
            newest.map_or("none".to_owned(), |stored| moment(stored.written))
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

fn moment(seconds: i64) -> String {
    let moment = OffsetDateTime::from_unix_timestamp(seconds).ok();
    let text = moment.and_then(|moment| moment.format(&Rfc3339).ok());
    text.unwrap_or_else(|| seconds.to_string())
}

async fn fetch(bucket: &Bucket, from: &str, to: &Path) -> anyhow::Result<()> {
    let files: Vec<_> = (bucket.files(from).await?.into_iter())
        .filter(|stored| KeptFile::of(&stored.name, stored.length).is_some())
        .collect();
    if files.is_empty() {
        let there = list(bucket).await?;
        match there.is_empty() {
            true => bail!("there are no backups at all"),
            false => bail!("there is no {from}. What there is:\n{there}"),
        }
    }
    begin(to).with_context(|| to.display().to_string())?;
    for (number, stored) in files.iter().enumerate() {
        let name = &stored.name;
        eprintln!(
            "{} of {}: {name}, {} bytes",
            number + 1,
            files.len(),
            stored.length
        );
        let fetched = fetch_file(bucket, from, name, to).await;
        fetched.with_context(|| format!("{name} could not be fetched"))?;
    }
    Ok(())
}

/// Nothing that is there is overwritten.
fn begin(to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    match fs::read_dir(to)?.next() {
        None => Ok(()),
        Some(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something in it already: name a directory that is empty or new",
        )),
    }
}

/// A node that runs may have another one put there in the meantime: then that is fetched.
async fn fetch_file(
    bucket: &Bucket,
    place: &str,
    name: &str,
    to: &Path,
) -> Result<(), BucketError> {
    let draft = to.join(format!("{name}.part"));
    let mut attempt = 0;
    loop {
        attempt += 1;
        match fetch_once(bucket, place, name, &draft).await {
            Ok(()) => return Ok(fs::rename(&draft, to.join(name))?),
            Err(error) if attempt == ATTEMPTS => return Err(error),
            Err(error) => {
                eprintln!("placementd: {name}: {error}; it is tried again");
                sleep(RETRY * attempt).await;
            }
        }
    }
}

async fn fetch_once(
    bucket: &Bucket,
    place: &str,
    name: &str,
    draft: &Path,
) -> Result<(), BucketError> {
    let stored = bucket.look(place, name).await?;
    let mut file = BufWriter::new(File::create(draft)?);
    bucket.fetch(place, &stored, &mut file).await?;
    // Not synced: it can be fetched again, and a restore reads it whole.
    Ok(file.flush()?)
}
