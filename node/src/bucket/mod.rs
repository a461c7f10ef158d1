//! A bucket of a store that speaks S3: the copies of what nodes keep in their directories for backups.
//!
//! ```text
//! PREFIX/CLUSTER_ID/node-N/NAME   a file of that directory, under its name there
//! ```
//!
//! Files go over in pieces, one at a time. The store compares the SHA-256 of each with that in its signed
//! request, and an object is there whole or not at all.

mod credentials;
mod error;
mod http;
mod settings;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{
    GetOptions, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig,
    StaticCredentialProvider,
};
use placement_raft_store::runtime;
use tokio::time::Instant;

use self::http::{ANSWER_BYTES_MAX, PIECE_BYTES};
pub(crate) use error::BucketError;
use placement_api::net::Net;
use placement_api::outgoing::{self, Outgoing};
pub(crate) use settings::BackupS3Section;

/// How long one request may take before it is given up: 8 MiB are the most that one carries.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// How often something long says how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// A bucket, or the part of it below a prefix.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: AmazonS3,
    prefix: Key,
}

/// An object.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// Its name, without the directory that it stands for.
    pub(crate) name: String,
    pub(crate) length: u64,
    /// When it was written, in seconds since 1970.
    pub(crate) written: i64,
    /// Another one after each writing.
    version: Option<String>,
}

impl Bucket {
    /// Reads the credentials and certificates. Nothing is sent. Blocks.
    pub(crate) fn open(settings: &BackupS3Section, net: Arc<dyn Net>) -> Result<Self, BucketError> {
        let credentials = credentials::read(settings.credentials_file.as_deref())?;
        let tls = match settings.is_plain() {
            true => None,
            false => Some(outgoing::tls(settings.ca_file.as_deref()).map_err(BucketError)?),
        };
        let outgoing = Outgoing::new(net, tls, REQUEST_MAX, ANSWER_BYTES_MAX);
        let (bucket, path) = settings.place();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&settings.region)
            // Most stores have the bucket in the path, and AWS has it in the host.
            .with_virtual_hosted_style_request(settings.endpoint.is_empty())
            .with_allow_http(settings.is_plain())
            .with_disable_bulk_delete(true)
            .with_credentials(Arc::new(StaticCredentialProvider::new(credentials)))
            .with_http_connector(http::Http(outgoing))
            // The caller decides when to ask again.
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            });
        if !settings.endpoint.is_empty() {
            builder = builder.with_endpoint(settings.endpoint.trim_end_matches('/'));
        }
        let prefix = Key::parse(path);
        Ok(Self {
            store: builder.build()?,
            prefix: prefix.map_err(|error| BucketError(error.to_string()))?,
        })
    }

    fn key(&self, place: &str, name: &str) -> Key {
        let mut key = self.prefix.clone();
        let further = place.split('/').chain([name]);
        key.extend(further.filter(|part| !part.is_empty()));
        key
    }

    /// The places that hold something, each `CLUSTER_ID/node-N`.
    pub(crate) async fn places(&self) -> Result<Vec<String>, BucketError> {
        let last = |key: &Key| key.filename().map(str::to_owned);
        let mut places = Vec::new();
        let clusters = self.store.list_with_delimiter(Some(&self.prefix)).await?;
        for cluster in clusters.common_prefixes {
            let nodes = self.store.list_with_delimiter(Some(&cluster)).await?;
            for node in &nodes.common_prefixes {
                let names = last(&cluster).zip(last(node));
                places.extend(names.map(|(cluster, node)| format!("{cluster}/{node}")));
            }
        }
        Ok(places)
    }

    /// What is in a place.
    pub(crate) async fn files(&self, place: &str) -> Result<Vec<Stored>, BucketError> {
        let key = self.key(place, "");
        let found: Vec<ObjectMeta> = self.store.list(Some(&key)).try_collect().await?;
        Ok(found.into_iter().filter_map(Stored::of).collect())
    }

    /// What is under a name.
    pub(crate) async fn look(&self, place: &str, name: &str) -> Result<Stored, BucketError> {
        let found = self.store.head(&self.key(place, name)).await?;
        Stored::of(found).ok_or_else(|| BucketError(format!("{name} is no name")))
    }

    /// Puts the first bytes of a file under its name.
    pub(crate) async fn put(
        &self,
        place: &str,
        name: &str,
        file: &Arc<File>,
        length: u64,
    ) -> Result<(), BucketError> {
        let key = self.key(place, name);
        if length <= PIECE_BYTES as u64 {
            let all = read(file, 0, length).await?;
            self.store.put(&key, all.into()).await?;
            return Ok(());
        }
        let mut upload = self.store.put_multipart(&key).await?;
        let done = put_pieces(&mut *upload, name, file, length).await;
        if done.is_err() {
            // If that fails too, the store forgets the pieces if its rules say so.
            let _ = upload.abort().await;
        }
        done
    }

    /// Whether the first bytes of a file are what is under its name.
    pub(crate) async fn is_same(
        &self,
        place: &str,
        name: &str,
        file: &Arc<File>,
        length: u64,
    ) -> Result<bool, BucketError> {
        let stored = self.look(place, name).await?;
        if stored.length != length {
            return Ok(false);
        }
        let mut progress = Progress::new("reading a copy again", name, length);
        let mut at = 0;
        while at < length {
            let theirs = self.piece(place, &stored, at).await?;
            let ours = read(file, at, length - at).await?;
            if theirs.is_empty() || theirs != ours {
                return Ok(false);
            }
            at += ours.len() as u64;
            progress.is_at(at);
        }
        Ok(true)
    }

    /// Writes what is stored into a file. Fails if it changes in the meantime.
    pub(crate) async fn fetch(
        &self,
        place: &str,
        stored: &Stored,
        mut into: impl Write,
    ) -> Result<(), BucketError> {
        let mut progress = Progress::new("fetching", &stored.name, stored.length);
        let mut at = 0;
        while at < stored.length {
            let piece = self.piece(place, stored, at).await?;
            if piece.is_empty() {
                return Err(BucketError(format!("{} ends too soon", stored.name)));
            }
            into.write_all(&piece)?;
            at += piece.len() as u64;
            progress.is_at(at);
        }
        Ok(())
    }

    async fn piece(&self, place: &str, of: &Stored, at: u64) -> Result<Bytes, BucketError> {
        let end = of.length.min(at + PIECE_BYTES as u64);
        let options = GetOptions {
            range: Some((at..end).into()),
            if_match: of.version.clone(),
            ..GetOptions::default()
        };
        let key = self.key(place, &of.name);
        let found = self.store.get_opts(&key, options).await?;
        Ok(found.bytes().await?)
    }

    /// Removes what is under a name.
    pub(crate) async fn remove(&self, place: &str, name: &str) -> Result<(), BucketError> {
        Ok(self.store.delete(&self.key(place, name)).await?)
    }
}

impl Stored {
    fn of(found: ObjectMeta) -> Option<Self> {
        Some(Self {
            name: found.location.filename()?.to_owned(),
            length: found.size,
            written: found.last_modified.timestamp(),
            version: found.e_tag,
        })
    }
}

async fn put_pieces(
    upload: &mut dyn MultipartUpload,
    name: &str,
    file: &Arc<File>,
    length: u64,
) -> Result<(), BucketError> {
    let mut progress = Progress::new("copying to the store", name, length);
    let mut at = 0;
    while at < length {
        let piece = read(file, at, length - at).await?;
        at += piece.len() as u64;
        upload.put_part(piece.into()).await?;
        progress.is_at(at);
    }
    upload.complete().await?;
    Ok(())
}

/// A piece of a file.
async fn read(file: &Arc<File>, at: u64, length_max: u64) -> io::Result<Bytes> {
    let file = file.clone();
    let length = length_max.min(PIECE_BYTES as u64);
    runtime::blocking(move || {
        let mut piece = vec![0; usize::try_from(length).unwrap_or(PIECE_BYTES)];
        file.read_exact_at(&mut piece, at)?;
        Ok(piece.into())
    })
    .await
}

/// Opens a file that is to be copied. `None`: it is there no more.
pub(crate) async fn open_to_read(path: &Path) -> io::Result<Option<Arc<File>>> {
    let path = path.to_owned();
    runtime::blocking(move || match File::open(path) {
        Ok(file) => Ok(Some(Arc::new(file))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    })
    .await
}

/// Says now and then how far something long is.
struct Progress<'a> {
    what: &'static str,
    name: &'a str,
    length: u64,
    said: Instant,
}

impl<'a> Progress<'a> {
    fn new(what: &'static str, name: &'a str, length: u64) -> Self {
        Self {
            what,
            name,
            length,
            said: Instant::now(),
        }
    }

    fn is_at(&mut self, bytes: u64) {
        if self.said.elapsed() >= PROGRESS_EVERY {
            self.said = Instant::now();
            tracing::info!(file = self.name, bytes, of = self.length, "{}", self.what);
        }
    }
}
