//! Certificates as they stand in their files, read again when these change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use placement_raft_store::runtime;
use ring::digest::{Digest, SHA256, digest};
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring as cryptography};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CertificateFiles;
use super::Shown;
use placement_api::world::Clock;

/// How often it is looked whether the files have changed.
const LOOK: Duration = Duration::from_secs(5);
const DAY: Duration = Duration::from_hours(24);
/// How long before they end operators are told, once a day.
const SOON: Duration = Duration::from_hours(30 * 24);

/// Whether who connects shows a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// One of the authorities vouches for each.
    Must,
    /// For those that show one, an authority vouches.
    May,
}

/// Certificate files that are of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct WrongFiles {
    file: PathBuf,
    reason: String,
}

fn wrong(file: &Path, reason: impl fmt::Display) -> WrongFiles {
    WrongFiles {
        file: file.to_owned(),
        reason: reason.to_string(),
    }
}

/// What both ends of a connection are made with.
pub(super) struct Ends {
    pub(super) server: Arc<ServerConfig>,
    /// `None` if no one vouches for the other end.
    pub(super) client: Option<Arc<ClientConfig>>,
    /// When the first certificate of the chain ends, or the last authority; `None` if none says.
    end: Option<SystemTime>,
}

/// One end's certificate and authorities, as they stand in their files.
pub(crate) struct Certificates {
    files: CertificateFiles,
    clients: Clients,
    /// What may be spoken under TLS, as ALPN names it.
    protocols: Vec<Vec<u8>>,
    /// A name that the certificate must bear.
    name: Option<String>,
    current: RwLock<(Fingerprint, Arc<Ends>)>,
}

/// Tells contents of files apart.
type Fingerprint = Vec<Vec<u8>>;

struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Contents {
    fn read(files: &CertificateFiles) -> Result<Self, WrongFiles> {
        let read = |file: &Path| std::fs::read(file).map_err(|error| wrong(file, error));
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            authorities: files.authorities.as_deref().map(read).transpose()?,
        })
    }

    fn fingerprint(&self) -> Fingerprint {
        [
            Some(&self.certificate),
            Some(&self.key),
            self.authorities.as_ref(),
        ]
        .into_iter()
        .flatten()
        .map(|bytes| digest(&SHA256, bytes))
        .map(|hash: Digest| hash.as_ref().to_vec())
        .collect()
    }
}

impl Certificates {
    /// Reads the files. `protocols` are what may be spoken under TLS, by their names of ALPN; `name` is what this
    /// end's certificate must be good for.
    ///
    /// # Errors
    /// [`WrongFiles`]: the file and what is wrong with it.
    pub(crate) fn open(
        files: CertificateFiles,
        clients: Clients,
        protocols: &[&str],
        name: Option<String>,
    ) -> Result<Arc<Self>, WrongFiles> {
        let protocols: Vec<_> = (protocols.iter())
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let contents = Contents::read(&files)?;
        let ends = ends(&files, &contents, clients, &protocols, name.as_deref())?;
        Ok(Arc::new(Self {
            current: RwLock::new((contents.fingerprint(), Arc::new(ends))),
            files,
            clients,
            protocols,
            name,
        }))
    }

    pub(super) fn ends(&self) -> Arc<Ends> {
        self.current.read().1.clone()
    }

    /// From when on others refuse what is shown.
    pub(crate) fn end(&self) -> Option<SystemTime> {
        self.current.read().1.end
    }

    /// Full days until then, if they are few: none of an end that is past.
    fn last_days(&self, now: SystemTime) -> Option<u64> {
        let left = self.end()?.duration_since(now).unwrap_or_default();
        (left < SOON).then(|| left.as_secs() / DAY.as_secs())
    }

    /// Reads the files again, and says whether they have changed. What is of no use is not taken over.
    fn look(&self) -> Result<bool, WrongFiles> {
        let contents = Contents::read(&self.files)?;
        let fingerprint = contents.fingerprint();
        if self.current.read().0 == fingerprint {
            return Ok(false);
        }
        let name = self.name.as_deref();
        let ends = ends(&self.files, &contents, self.clients, &self.protocols, name)?;
        *self.current.write() = (fingerprint, Arc::new(ends));
        Ok(true)
    }

    /// Takes over what is written to the files, for connections that are made then. A certificate and a key
    /// that are not written at once do not fit for a moment: those from before stay.
    pub(crate) async fn watch(self: Arc<Self>, clock: Arc<dyn Clock>) {
        let mut last = None;
        let mut warned: Option<Duration> = None;
        loop {
            if let Some(days) = self.last_days(clock.now())
                && warned.is_none_or(|at| clock.monotonic().saturating_sub(at) >= DAY)
            {
                warned = Some(clock.monotonic());
                tracing::warn!(
                    file = %self.files.certificate.display(), days,
                    "this certificate, or its authority, ends soon, and is refused then: put another one in its place"
                );
            }
            sleep(LOOK).await;
            let looking = self.clone();
            let looked = runtime::blocking(move || looking.look()).await;
            match &looked {
                Ok(true) => tracing::info!(
                    file = %self.files.certificate.display(),
                    "changed certificates are in use"
                ),
                Ok(false) => {}
                Err(error) if last.as_ref() != Some(error) => {
                    tracing::error!(%error, "changed certificates are of no use; those from before are in use");
                }
                Err(_) => {}
            }
            last = looked.err();
        }
    }
}

fn ends(
    files: &CertificateFiles,
    contents: &Contents,
    clients: Clients,
    protocols: &[Vec<u8>],
    name: Option<&str>,
) -> Result<Ends, WrongFiles> {
    let in_certificate = |error: &dyn fmt::Display| wrong(&files.certificate, error);
    let chain = chain(&contents.certificate).map_err(|error| in_certificate(&error))?;
    let key =
        || PrivateKeyDer::from_pem_slice(&contents.key).map_err(|error| wrong(&files.key, error));
    if let Some(name) = name {
        bears(&chain, name).map_err(|error| in_certificate(&error))?;
    }
    let provider = Arc::new(cryptography::default_provider());
    let mut end = chain.iter().filter_map(end_of).min();
    let authorities = match (&files.authorities, &contents.authorities) {
        (Some(file), Some(bytes)) => {
            let all = self::chain(bytes).map_err(|error| wrong(file, error))?;
            end = (end.into_iter())
                .chain(all.iter().filter_map(end_of).max())
                .min();
            Some((file, roots(all).map_err(|error| wrong(file, error))?))
        }
        _ => None,
    };

    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| in_certificate(&error))?;
    let server = match &authorities {
        None => server.with_no_client_auth(),
        Some((file, roots)) => {
            let roots = Arc::new(roots.clone());
            let asks = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
            let asks = match clients {
                Clients::Must => asks,
                Clients::May => asks.allow_unauthenticated(),
            };
            server.with_client_cert_verifier(asks.build().map_err(|error| wrong(file, error))?)
        }
    };
    let mut server =
        (server.with_single_cert(chain.clone(), key()?)).map_err(|error| in_certificate(&error))?;
    server.alpn_protocols = protocols.to_vec();

    let client = match authorities {
        None => None,
        Some((_, roots)) => Some(Arc::new(
            client(provider, roots, chain, key()?).map_err(|error| in_certificate(&error))?,
        )),
    };
    Ok(Ends {
        server: Arc::new(server),
        client,
        end,
    })
}

fn client(
    provider: Arc<CryptoProvider>,
    roots: RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ClientConfig, tokio_rustls::rustls::Error> {
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
}

/// The certificates of a PEM file, one at least.
fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    match chain.is_empty() {
        true => Err("has no certificate in it".to_owned()),
        false => Ok(chain),
    }
}

fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in authorities {
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    Ok(roots)
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn bears(chain: &[CertificateDer<'static>], name: &str) -> Result<(), String> {
    let shown = Shown::first(Some(chain));
    match shown.is_some_and(|shown| shown.bears(name.to_owned())) {
        true => Ok(()),
        false => Err(format!("is no certificate for {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::samples::Authority;

    #[test]
    fn the_last_days_of_a_certificate_or_of_its_authority_are_counted() {
        let certificates = Authority::new().node(1);
        // The authority's: 2999-12-31.
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(32_503_593_600);
        assert_eq!(certificates.end(), Some(end));
        for (left, days) in [
            (SOON, None),
            (DAY * 9 / 2, Some(4)),
            (Duration::ZERO, Some(0)),
        ] {
            assert_eq!(certificates.last_days(end - left), days, "{left:?}");
        }
        assert_eq!(certificates.last_days(end + DAY), Some(0));
    }
}
