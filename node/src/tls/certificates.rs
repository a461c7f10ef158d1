//! Certificates as they stand in their files, read again when these change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use placement_raft_store::runtime;
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::ring as cryptography;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CertificateFiles;
use super::Shown;
use placement_api::world::Clock;

/// How often it is looked whether the files have changed.
const LOOK: Duration = Duration::from_secs(5);
const DAY: Duration = Duration::from_hours(24);
/// How long before they end operators are warned, once a day.
const SOON: Duration = Duration::from_hours(30 * 24);

/// Whether clients show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// One of the authorities vouches for each.
    Must,
    /// For those that show one, an authority vouches.
    May,
}

/// Certificate files that cannot be used.
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
    /// `None` if no authority vouches for the other end.
    pub(super) client: Option<Arc<ClientConfig>>,
    /// When the first certificate of the chain ends, or the last authority; `None` if that is not known.
    end: Option<SystemTime>,
}

/// One end's certificate and authorities, as they stand in their files.
pub(crate) struct Certificates {
    source: Source,
    current: RwLock<(Contents, Arc<Ends>)>,
}

/// The files, and what their certificates are for.
struct Source {
    files: CertificateFiles,
    clients: Clients,
    /// What may be spoken under TLS, as ALPN names it.
    protocols: Vec<Vec<u8>>,
    /// A name that the certificate must bear.
    name: Option<String>,
}

#[derive(PartialEq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
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
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        let source = Source {
            files,
            clients,
            protocols: protocols.collect(),
            name,
        };
        let contents = source.read()?;
        let ends = Arc::new(source.ends(&contents)?);
        Ok(Arc::new(Self {
            source,
            current: RwLock::new((contents, ends)),
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

    /// Reads the files again; whether they have changed. Unusable ones are ignored.
    fn look(&self) -> Result<bool, WrongFiles> {
        let contents = self.source.read()?;
        if self.current.read().0 == contents {
            return Ok(false);
        }
        let ends = Arc::new(self.source.ends(&contents)?);
        *self.current.write() = (contents, ends);
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
                    file = %self.source.files.certificate.display(), days,
                    "this certificate, or its authority, ends soon, and is refused then: put another one in its place"
                );
            }
            sleep(LOOK).await;
            let looking = self.clone();
            let looked = runtime::blocking(move || looking.look()).await;
            match &looked {
                Ok(true) => tracing::info!(
                    file = %self.source.files.certificate.display(),
                    "changed certificates are in use"
                ),
                Ok(false) => {}
                Err(error) if last.as_ref() != Some(error) => {
                    tracing::error!(%error, "changed certificates cannot be used; those from before stay in use");
                }
                Err(_) => {}
            }
            last = looked.err();
        }
    }
}

impl Source {
    fn read(&self) -> Result<Contents, WrongFiles> {
        let read = |file: &Path| std::fs::read(file).map_err(|error| wrong(file, error));
        Ok(Contents {
            certificate: read(&self.files.certificate)?,
            key: read(&self.files.key)?,
            authorities: self.files.authorities.as_deref().map(read).transpose()?,
        })
    }

    fn ends(&self, contents: &Contents) -> Result<Ends, WrongFiles> {
        let files = &self.files;
        let in_certificate = |error: rustls::Error| wrong(&files.certificate, error);
        let own = chain(&files.certificate, &contents.certificate)?;
        if let Some(name) = &self.name
            && !Shown::first(Some(&own)).is_some_and(|shown| shown.bears(name.clone()))
        {
            let reason = format!("is no certificate for {name}");
            return Err(wrong(&files.certificate, reason));
        }
        let key = PrivateKeyDer::from_pem_slice(&contents.key);
        let key = key.map_err(|error| wrong(&files.key, error))?;
        let provider = Arc::new(cryptography::default_provider());
        let mut end = own.iter().filter_map(end_of).min();
        let mut authorities = None;
        if let (Some(file), Some(bytes)) = (&files.authorities, &contents.authorities) {
            let all = chain(file, bytes)?;
            let last = all.iter().filter_map(end_of).max();
            end = end.into_iter().chain(last).min();
            let mut roots = RootCertStore::empty();
            for certificate in all {
                let added = roots.add(certificate);
                added.map_err(|error| wrong(file, error))?;
            }
            authorities = Some((file, Arc::new(roots)));
        }

        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(in_certificate)?;
        let server = match &authorities {
            None => server.with_no_client_auth(),
            Some((file, roots)) => {
                let provider = provider.clone();
                let asks = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider);
                let asks = match self.clients {
                    Clients::Must => asks,
                    Clients::May => asks.allow_unauthenticated(),
                };
                server.with_client_cert_verifier(asks.build().map_err(|error| wrong(file, error))?)
            }
        };
        let server = server.with_single_cert(own.clone(), key.clone_key());
        let mut server = server.map_err(in_certificate)?;
        server.alpn_protocols = self.protocols.clone();

        let client = authorities.map(|(_, roots)| {
            ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()?
                .with_root_certificates(roots)
                .with_client_auth_cert(own, key)
                .map(Arc::new)
        });
        Ok(Ends {
            server: Arc::new(server),
            client: client.transpose().map_err(in_certificate)?,
            end,
        })
    }
}

/// The certificates of a PEM file, one at least.
fn chain(file: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, WrongFiles> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(file, error))?;
    match chain.is_empty() {
        true => Err(wrong(file, "has no certificate in it")),
        false => Ok(chain),
    }
}

fn end_of(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::fixtures::Authority;

    #[test]
    fn last_days_of_a_certificate_or_its_authority_are_counted() {
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
