//! An S3 bucket with copies of the nodes' backup directories.
//!
//! ```text
//! PREFIX/CLUSTER_ID/node-N/NAME   a copy of the file NAME in the backup directory of node N
//! ```
//! Files are uploaded in parts, one at a time. The store compares the SHA-256 of each part with the
//! SHA-256 in the signed request. An object is either complete or absent.

mod credentials;
mod error;
mod settings;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::path::Path as Key;
use object_store::{
    ClientOptions, GetOptions, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    RetryConfig, StaticCredentialProvider,
};
use placement_base::runtime;

pub use error::BucketError;
use error::refusal;
use placement_base::net::Net;
use placement_outgoing::Outgoing;
pub use settings::BackupS3Section;

/// Bytes of one part. S3 accepts parts of at least 5 MiB, and at most 10,000 parts.
const PIECE_BYTES: usize = 8 << 20;
/// Maximum length of a response: a part, or a page of a list.
const ANSWER_BYTES_MAX: usize = 2 * PIECE_BYTES;
/// Deadline of one request, which carries at most 8 MiB.
const REQUEST_MAX: Duration = Duration::from_secs(60);

/// A bucket, or the objects below a prefix in it.
#[derive(Debug)]
pub struct Bucket {
    store: AmazonS3,
    prefix: Key,
}

/// An object in the bucket.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The name without its directory.
    pub name: String,
    pub length: u64,
    /// When it was written, in seconds since 1970.
    pub written: i64,
    /// Version of the object, which changes with each write (ETag).
    version: Option<String>,
}

impl Bucket {
    /// Reads the credentials and certificates; sends no request to the store. Blocks.
    pub fn open(settings: &BackupS3Section, net: Arc<dyn Net>) -> Result<Self, BucketError> {
        let credentials = credentials::read(settings.credentials_file.as_deref())?;
        let tls =
            (!settings.is_plain()).then(|| placement_outgoing::tls(settings.ca_file.as_deref()));
        let tls = tls.transpose().map_err(BucketError)?;
        let outgoing = Outgoing::new(net, tls, REQUEST_MAX, ANSWER_BYTES_MAX);
        let (bucket, path) = settings.place();
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&settings.region)
            // Most stores expect the bucket in the path; AWS expects it in the host name.
            .with_virtual_hosted_style_request(settings.endpoint.is_empty())
            .with_allow_http(settings.is_plain())
            .with_disable_bulk_delete(true)
            .with_credentials(Arc::new(StaticCredentialProvider::new(credentials)))
            .with_http_connector(Http(outgoing))
            // The caller decides when to retry.
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            });
        if !settings.endpoint.is_empty() {
            builder = builder.with_endpoint(settings.endpoint.trim_end_matches('/'));
        }
        Ok(Self {
            store: builder.build()?,
            prefix: Key::parse(path).map_err(|error| BucketError(error.to_string()))?,
        })
    }

    fn key(&self, place: &str, name: &str) -> Key {
        let mut key = self.prefix.clone();
        let further = place.split('/').chain([name]);
        key.extend(further.filter(|part| !part.is_empty()));
        key
    }

    /// The directories that contain objects, each as `CLUSTER_ID/node-N`.
    pub async fn places(&self) -> Result<Vec<String>, BucketError> {
        let mut places = Vec::new();
        let clusters = self.store.list_with_delimiter(Some(&self.prefix)).await?;
        for cluster in clusters.common_prefixes {
            let nodes = self.store.list_with_delimiter(Some(&cluster)).await?;
            for node in &nodes.common_prefixes {
                let names = cluster.filename().zip(node.filename());
                places.extend(names.map(|(cluster, node)| format!("{cluster}/{node}")));
            }
        }
        Ok(places)
    }

    /// The objects in a directory.
    pub async fn files(&self, place: &str) -> Result<Vec<Stored>, BucketError> {
        let key = self.key(place, "");
        let found: Vec<ObjectMeta> = self.store.list(Some(&key)).try_collect().await?;
        Ok(found.into_iter().map(Stored::from_meta).collect())
    }

    /// Metadata of the object with this name.
    pub async fn head(&self, place: &str, name: &str) -> Result<Stored, BucketError> {
        Ok(Stored::from_meta(
            self.store.head(&self.key(place, name)).await?,
        ))
    }

    /// Uploads the first `length` bytes of a file under `name`.
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
        let done = put_pieces(&mut *upload, file, length).await;
        if done.is_err() {
            // If the abort fails too, the parts remain until a lifecycle rule of the store deletes
            // them.
            let _ = upload.abort().await;
        }
        done
    }

    /// Whether an object equals the first `length` bytes of a file.
    pub(crate) async fn is_same(
        &self,
        place: &str,
        name: &str,
        file: &Arc<File>,
        length: u64,
    ) -> Result<bool, BucketError> {
        let stored = self.head(place, name).await?;
        if stored.length != length {
            return Ok(false);
        }
        let mut at = 0;
        while at < length {
            let theirs = self.piece(place, &stored, at).await?;
            let ours = read(file, at, length).await?;
            if theirs.is_empty() || theirs != ours {
                return Ok(false);
            }
            at += ours.len() as u64;
        }
        Ok(true)
    }

    /// Downloads an object. Fails if the object changes during the download.
    pub async fn fetch(
        &self,
        place: &str,
        stored: &Stored,
        mut into: impl Write,
    ) -> Result<(), BucketError> {
        let mut at = 0;
        while at < stored.length {
            let piece = self.piece(place, stored, at).await?;
            if piece.is_empty() {
                return Err(BucketError(format!("{} is truncated", stored.name)));
            }
            into.write_all(&piece)?;
            at += piece.len() as u64;
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

    /// Removes the object of this name.
    pub(crate) async fn remove(&self, place: &str, name: &str) -> Result<(), BucketError> {
        Ok(self.store.delete(&self.key(place, name)).await?)
    }
}

impl Stored {
    fn from_meta(found: ObjectMeta) -> Self {
        Self {
            name: found.location.filename().unwrap_or_default().to_owned(),
            length: found.size,
            written: found.last_modified.timestamp(),
            version: found.e_tag,
        }
    }
}

async fn put_pieces(
    upload: &mut dyn MultipartUpload,
    file: &Arc<File>,
    length: u64,
) -> Result<(), BucketError> {
    let mut at = 0;
    while at < length {
        let piece = read(file, at, length).await?;
        at += piece.len() as u64;
        upload.put_part(piece.into()).await?;
    }
    upload.complete().await?;
    Ok(())
}

/// Reads up to [`PIECE_BYTES`] from `at` of a file of `length` bytes.
async fn read(file: &Arc<File>, at: u64, length: u64) -> io::Result<Bytes> {
    let file = file.clone();
    let length = (length - at).min(PIECE_BYTES as u64);
    runtime::blocking(move || {
        let mut piece = vec![0; usize::try_from(length).unwrap_or(PIECE_BYTES)];
        file.read_exact_at(&mut piece, at)?;
        Ok(piece.into())
    })
    .await
}

/// Opens a file in order to copy it. `None`: the file no longer exists.
pub(crate) async fn open_to_read(path: &Path) -> io::Result<Option<Arc<File>>> {
    let path = path.to_owned();
    match runtime::blocking(move || File::open(path)).await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => Ok(Some(Arc::new(opened?))),
    }
}

/// Sends the requests of the S3 client over this node's own HTTP client.
#[derive(Debug, Clone)]
struct Http(Outgoing);

#[async_trait]
impl HttpService for Http {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let failed = |error| HttpError::new(HttpErrorKind::Unknown, error);
        let answer = self.0.request(request).await.map_err(failed)?;
        let (head, body) = answer.into_parts();
        match refusal(head.status, &body) {
            Some(refused) => Err(HttpError::new(HttpErrorKind::Unknown, refused)),
            None => Ok(HttpResponse::from_parts(head, body.into())),
        }
    }
}

impl HttpConnector for Http {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
