//! Certificates from files, which are reloaded when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::RwLock;
use placement_base::log_messages::log;
use placement_base::runtime;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::ring as cryptography;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CertificateFiles;
use super::PeerCertificate;
use placement_base::world::Clock;

/// How often the files are checked for changes.
const LOOK: Duration = Duration::from_secs(5);
const DAY: Duration = Duration::from_hours(24);
/// Warnings begin this long before a certificate expires, and are repeated once a day.
const SOON: Duration = Duration::from_hours(30 * 24);

/// Whether clients must present a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Each client must present a certificate signed by one of the authorities.
    Must,
    /// Clients may connect without a certificate. If a client presents one, it must be signed by
    /// one of the authorities.
    May,
}

/// A certificate file cannot be used.
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

/// TLS configurations as a server and as a client.
pub(super) struct Ends {
    pub(super) server: Arc<ServerConfig>,
    /// `None` if no authorities are configured to verify the other side.
    pub(super) client: Option<Arc<ClientConfig>>,
    /// Validity of this node's certificate chain, which comes first, and of the authorities.
    periods: Vec<Period>,
}

/// Validity of the certificates of a file; `None` where it is unknown.
struct Period {
    file: PathBuf,
    from: Option<SystemTime>,
    until: Option<SystemTime>,
}

impl Period {
    /// The period in which all certificates of a chain are valid.
    fn of_chain(file: &Path, chain: &[CertificateDer<'_>]) -> Self {
        Self {
            file: file.to_owned(),
            from: chain.iter().filter_map(|one| Some(validity(one)?.0)).max(),
            until: chain.iter().filter_map(|one| Some(validity(one)?.1)).min(),
        }
    }

    /// The period in which at least one authority may be valid.
    fn of_authorities(file: &Path, all: &[CertificateDer<'_>]) -> Self {
        Self {
            file: file.to_owned(),
            from: all.iter().filter_map(|one| Some(validity(one)?.0)).min(),
            until: all.iter().filter_map(|one| Some(validity(one)?.1)).max(),
        }
    }

    fn must_include(&self, now: SystemTime) -> Result<(), WrongFiles> {
        match (self.from, self.until) {
            (_, Some(until)) if until < now => {
                Err(wrong(&self.file, format!("expired {}", shown(until))))
            }
            (Some(from), _) if from > now => {
                let reason = format!("is not valid before {}", shown(from));
                Err(wrong(&self.file, reason))
            }
            _ => Ok(()),
        }
    }
}

/// Formats a time according to RFC 3339.
fn shown(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at).format(&Rfc3339);
    at.unwrap_or_else(|_| "at an unknown time".to_owned())
}

/// The certificate and the authorities of a listener, loaded from files.
pub struct Certificates {
    source: Source,
    current: RwLock<(Contents, Arc<Ends>)>,
    /// Why the current files cannot be used; the previous contents are then still in use. `None` if
    /// the files can be used.
    refused: RwLock<Option<WrongFiles>>,
}

/// The files, and how their certificates are used.
struct Source {
    files: CertificateFiles,
    clients: Clients,
    /// ALPN names of the allowed protocols.
    protocols: Vec<Vec<u8>>,
    /// A name that the certificate must contain.
    name: Option<String>,
}

#[derive(PartialEq)]
struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Certificates {
    /// Loads the files. `protocols` are the ALPN names of the allowed protocols; `name` is a name
    /// that this node's certificate must contain.
    ///
    /// # Errors
    /// [`WrongFiles`]: the file, and the reason why it cannot be used.
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
            refused: RwLock::default(),
        }))
    }

    pub(super) fn ends(&self) -> Arc<Ends> {
        self.current.read().1.clone()
    }

    /// The earliest expiry of the certificates in use.
    pub fn end(&self) -> Option<SystemTime> {
        Some(self.first_to_end()?.1)
    }

    /// The file whose certificates expire first, and when.
    fn first_to_end(&self) -> Option<(PathBuf, SystemTime)> {
        let ends = self.ends();
        let ends = ends.periods.iter();
        ends.filter_map(|one| Some((one.file.clone(), one.until?)))
            .min_by_key(|(_, until)| *until)
    }

    /// Checks that the certificates in use are valid now.
    ///
    /// # Errors
    /// A certificate has expired, or is not valid yet.
    pub fn must_be_valid(&self, now: SystemTime) -> Result<(), WrongFiles> {
        let ends = self.ends();
        ends.periods
            .iter()
            .try_for_each(|one| one.must_include(now))
    }

    /// When this node's own certificate expired, in RFC 3339, if it has.
    pub fn expired(&self, now: SystemTime) -> Option<String> {
        let ends = self.ends();
        let own = ends.periods.first()?;
        own.until.filter(|until| *until < now).map(shown)
    }

    /// The problem that operators have to solve, if there is one.
    pub fn problem(&self, now: SystemTime) -> Option<String> {
        let refused = self.refused.read().clone().map(Warning::Refused);
        Some(refused.or_else(|| self.warning(now))?.to_string())
    }

    /// The warning about the certificates in use.
    fn warning(&self, now: SystemTime) -> Option<Warning> {
        if let Err(wrong) = self.must_be_valid(now) {
            return Some(Warning::Invalid(wrong));
        }
        let (file, until) = self.first_to_end()?;
        let remaining = until.duration_since(now).unwrap_or_default();
        let days = remaining.as_secs() / DAY.as_secs();
        (remaining < SOON).then_some(Warning::Expires { file, days })
    }

    /// Reloads the files and returns whether they have changed. If they cannot be used, or if their
    /// certificates have expired or are not valid yet, the previous contents stay in use.
    fn look(&self, now: SystemTime) -> Result<bool, WrongFiles> {
        let contents = self.source.read()?;
        if self.current.read().0 == contents {
            return Ok(false);
        }
        let ends = Arc::new(self.source.ends(&contents)?);
        ends.periods
            .iter()
            .try_for_each(|one| one.must_include(now))?;
        *self.current.write() = (contents, ends);
        Ok(true)
    }

    /// Watches the files and reloads them when they change; new connections then use the new files.
    /// While only one of certificate and key is replaced, they do not match, and the previous
    /// contents stay in use.
    pub async fn watch(self: Arc<Self>, clock: Arc<dyn Clock>) {
        let mut warned: Option<(Warning, Duration)> = None;
        loop {
            let warning = self.warning(clock.now());
            let is_due = warned.as_ref().is_none_or(|(known, at)| {
                warning.as_ref().is_some_and(|new| !new.is_like(known))
                    || clock.monotonic().saturating_sub(*at) >= DAY
            });
            if let Some(warning) = warning.filter(|_| is_due) {
                if matches!(warning, Warning::Expires { .. }) {
                    log!(CERTIFICATE_EXPIRES, "{warning}");
                } else {
                    log!(CERTIFICATE_INVALID, "{warning}");
                }
                warned = Some((warning, clock.monotonic()));
            }
            sleep(LOOK).await;
            let (looking, now) = (self.clone(), clock.now());
            let looked = runtime::blocking(move || looking.look(now)).await;
            if let Ok(true) = looked {
                log!(
                    CERTIFICATE_CHANGED,
                    file = %self.source.files.certificate.display(),
                    "changed certificates are in use"
                );
            }
            let refused = looked.err();
            if let Some(error) = &refused
                && self.refused.read().as_ref() != Some(error)
            {
                log!(
                    CERTIFICATE_REFUSED,
                    %error,
                    "cannot use changed certificates; the previous ones stay in use"
                );
            }
            *self.refused.write() = refused;
        }
    }
}

/// Warnings about certificates, for operators.
enum Warning {
    Expires {
        file: PathBuf,
        days: u64,
    },
    /// A certificate in use is not valid.
    Invalid(WrongFiles),
    /// Changed files cannot be used.
    Refused(WrongFiles),
}

impl Warning {
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expires { file, days } => {
                let (file, plural) = (file.display(), if *days == 1 { "" } else { "s" });
                write!(
                    f,
                    "{file}: the certificate expires in {days} day{plural}: renew it"
                )
            }
            Self::Invalid(wrong) => {
                write!(
                    f,
                    "{wrong}: other nodes and clients reject this certificate: renew it"
                )
            }
            Self::Refused(wrong) => write!(f, "{wrong}: the previous certificate stays in use"),
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
            && !PeerCertificate::first(Some(&own))
                .is_some_and(|certificate| certificate.has_name(name.clone()))
        {
            let reason = format!("is not a certificate for {name}");
            return Err(wrong(&files.certificate, reason));
        }
        let key = PrivateKeyDer::from_pem_slice(&contents.key);
        let key = key.map_err(|error| wrong(&files.key, error))?;
        let provider = Arc::new(cryptography::default_provider());
        let mut periods = vec![Period::of_chain(&files.certificate, &own)];
        let mut authorities = None;
        if let (Some(file), Some(bytes)) = (&files.authorities, &contents.authorities) {
            let all = chain(file, bytes)?;
            periods.push(Period::of_authorities(file, &all));
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
            periods,
        })
    }
}

/// The certificates of a PEM file, at least one.
fn chain(file: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, WrongFiles> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(file, error))?;
    if chain.is_empty() {
        Err(wrong(file, "contains no certificate"))
    } else {
        Ok(chain)
    }
}

/// Start and end of a certificate's validity.
fn validity(certificate: &CertificateDer<'_>) -> Option<(SystemTime, SystemTime)> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let validity = certificate.validity();
    let at = |seconds: i64| {
        let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(seconds)
    };
    let (from, until) = (&validity.not_before, &validity.not_after);
    Some((at(from.timestamp())?, at(until.timestamp())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::fixtures::Authority;

    #[test]
    fn operators_are_warned_before_a_certificate_or_its_authority_expires() {
        let certificates = Authority::new().node(1);
        // The authority expires on 2999-12-31.
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(32_503_593_600);
        assert_eq!(certificates.end(), Some(end));
        for (left, expected) in [
            (SOON, None),
            (DAY * 9 / 2, Some(4)),
            (Duration::ZERO, Some(0)),
        ] {
            let days = certificates
                .warning(end - left)
                .map(|warning| match warning {
                    Warning::Expires { file, days } => {
                        assert!(file.ends_with("ca.pem"), "{}", file.display());
                        days
                    }
                    other => panic!("{other}"),
                });
            assert_eq!(days, expected, "{left:?}");
        }
        let Some(Warning::Invalid(wrong)) = certificates.warning(end + DAY) else {
            panic!("it is valid after it has expired");
        };
        assert!(
            wrong
                .to_string()
                .ends_with("ca.pem: expired 2999-12-31T00:00:00Z"),
            "{wrong}"
        );
        // A new certificate of the node would not help.
        assert_eq!(certificates.expired(end + DAY), None);
    }

    #[test]
    fn invalid_certificate_does_not_replace_a_valid_one() {
        let authority = Authority::new();
        let certificates = authority.node(1);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_800_000);
        let shown = || certificates.ends().periods[0].until;
        let before = shown();
        for (years, words) in [
            (2020..2021, "node-1.pem: expired 2021-01-01T00:00:00Z"),
            (
                2030..2031,
                "node-1.pem: is not valid before 2030-01-01T00:00:00Z",
            ),
        ] {
            authority.issue_for(1, years);
            let wrong = certificates.look(now).unwrap_err().to_string();
            assert!(wrong.ends_with(words), "{wrong}");
            assert_eq!(shown(), before);
        }
        authority.issue_for(1, 2026..2027);
        assert_eq!(certificates.look(now), Ok(true));
        assert_ne!(shown(), before);
        assert_eq!(certificates.expired(now), None);
        let expired = certificates.expired(now + 365 * DAY);
        assert_eq!(expired.as_deref(), Some("2027-01-01T00:00:00Z"));
    }
}
