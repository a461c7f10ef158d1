//! An S3 store in the test's process that checks signatures and can be made to fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::Body;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::private;

/// The only bucket of the store.
pub const BUCKET: &str = "drill";
/// Secret key of its credentials; must not appear in any log or output.
pub const SECRET: &str = "fJw8+nothing/shows=this";
const KEY_ID: &str = "KEYOFTHEDRILL";
/// Certificate authority, certificate and private key of the store. They are used in tests only.
const AUTHORITY: &str = include_str!("s3/ca.pem");
const CERTIFICATE: &str = include_str!("s3/store.pem");
const KEY: &str = include_str!("s3/store.key");
/// Bytes of a request body after which [`Mood::BreaksOff`] closes the connection.
const BROKEN_AFTER_BYTES: usize = 3_000;

/// Behaviour of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Serves requests like a healthy store.
    Well,
    /// Answers every request with 403.
    Forbids,
    /// Accepts connections and answers nothing.
    Hangs,
    /// Listens, but closes every connection.
    IsDown,
    /// Closes connections in the middle of a request body.
    BreaksOff,
    /// Stores other bytes than it received.
    Lies,
}

/// A running store; stopped when dropped. It answers on the runtime of the test. A test that blocks
/// on a client program needs a second thread.
pub struct Store {
    root: TempDir,
    address: SocketAddr,
    is_secure: bool,
    mood: Arc<Mutex<Mood>>,
    serving: JoinHandle<()>,
}

impl Drop for Store {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Store {
    /// Starts a store with an empty bucket.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start() -> Self {
        Self::start_as(None).await
    }

    /// Starts a store behind TLS, with an empty bucket.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start_secure() -> Self {
        let chain = vec![CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key);
        Self::start_as(Some(TlsAcceptor::from(Arc::new(config.unwrap())))).await
    }

    async fn start_as(tls: Option<TlsAcceptor>) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("objects").join(BUCKET)).unwrap();
        let files = FileSystem::new(root.path().join("objects")).unwrap();
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mood = Arc::new(Mutex::new(Mood::Well));
        let moods = mood.clone();
        let is_secure = tls.is_some();
        let objects = root.path().join("objects");
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let now = *moods.lock().unwrap();
                let known = (service.clone(), objects.clone());
                tokio::spawn(serve(connection, tls.clone(), known, now));
            }
        });
        Self {
            root,
            address,
            is_secure,
            mood,
            serving,
        }
    }

    /// Changes the behaviour, from the next connection on.
    pub fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Settings that point to this store, with the credentials in a file.
    pub fn settings(&self) -> String {
        self.settings_with(SECRET)
    }

    /// Settings that point to this store, with this secret key.
    pub fn settings_with(&self, secret: &str) -> String {
        let credentials = self.root.path().join("credentials");
        let text =
            format!("[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {secret}\n");
        private::write(&credentials, &text).unwrap();
        let authority = self.root.path().join("ca.pem");
        fs::write(&authority, AUTHORITY).unwrap();
        let way = if self.is_secure {
            format!(
                "endpoint = \"https://{}\"\nca_file = {authority:?}",
                self.address
            )
        } else {
            format!("endpoint = \"http://{}\"", self.address)
        };
        format!(
            "[backup_s3]\nbucket = \"{BUCKET}/clouds/one\"\n{way}\ncredentials_file = {credentials:?}\n"
        )
    }

    /// Directory of the objects below a prefix.
    pub fn directory(&self, place: &str) -> PathBuf {
        let objects = self.root.path().join("objects").join(BUCKET);
        objects.join("clouds/one").join(place)
    }

    /// Names and lengths of the objects below a prefix.
    pub fn files(&self, place: &str) -> BTreeMap<String, u64> {
        let found = fs::read_dir(self.directory(place))
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let length = entry.metadata().ok()?.len();
                Some((entry.file_name().into_string().ok()?, length))
            });
        found.collect()
    }
}

async fn serve(
    mut connection: TcpStream,
    tls: Option<TlsAcceptor>,
    known: (S3Service, PathBuf),
    mood: Mood,
) {
    match (mood, tls) {
        (Mood::Well | Mood::Forbids | Mood::Lies, None) => answer(connection, known, mood).await,
        (Mood::Well | Mood::Forbids | Mood::Lies, Some(tls)) => {
            // A client that does not trust the certificate closes the connection.
            if let Ok(connection) = tls.accept(connection).await {
                answer(connection, known, mood).await;
            }
        }
        (Mood::Hangs, _) => {
            pending::<()>().await;
            drop(connection);
        }
        (Mood::IsDown, _) => {
            // Unread data make the close a reset.
            connection.set_zero_linger().unwrap();
        }
        (Mood::BreaksOff, _) => {
            let mut taken = vec![0; BROKEN_AFTER_BYTES];
            let _ = timeout(
                Duration::from_millis(300),
                connection.read_exact(&mut taken),
            )
            .await;
        }
    }
}

async fn answer(
    connection: impl AsyncRead + AsyncWrite + Unpin,
    (service, objects): (S3Service, PathBuf),
    mood: Mood,
) {
    let answer = service_fn(|request: Request<Incoming>| {
        let service = service.clone();
        let is_put = request.method() == http::Method::PUT;
        let object = objects.join(request.uri().path().trim_start_matches('/'));
        async move {
            if mood == Mood::Forbids {
                let body = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
                let mut answer = Response::new(body.to_owned().into());
                *answer.status_mut() = http::StatusCode::FORBIDDEN;
                return Ok(answer);
            }
            let answer = service.call(request.map(Body::from)).await;
            if mood == Mood::Lies && is_put {
                spoil(&object);
            }
            answer
        }
    });
    // A client may close the connection early.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(connection), answer)
        .await;
}

/// Flips a bit in the middle of a file.
///
/// # Panics
/// If that fails.
pub fn spoil(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}
