//! Authentication of a connection before it is served.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, AlertDescription, CertificateError};

use super::PeerCertificate;
use super::certificates::Certificates;
use placement_base::net::BoxStream;

/// First byte of a TLS handshake. An HTTP request never begins with this byte, and neither does a
/// frame between nodes, because its length would exceed the maximum.
const HANDSHAKE: u8 = 22;

/// How the connections of a listener are secured.
#[derive(Clone)]
pub enum Gate {
    /// Accepts plain connections only.
    Plain,
    /// Accepts TLS connections and, with `plain_too`, also plain connections.
    Tls {
        certificates: Arc<Certificates>,
        /// Whether plain connections are accepted as well, during a migration.
        plain_too: bool,
    },
}

/// An authenticated connection, or a plain one where plain connections are allowed.
pub struct Admitted {
    pub stream: BoxStream,
    /// The certificate of the client, if it presented one.
    pub certificate: Option<PeerCertificate>,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// Whether HTTP/2 was negotiated.
    pub is_http2: bool,
}

/// A connection that was rejected before it was served.
pub struct Refused {
    /// The reason, as text for operators.
    pub reason: String,
    /// The connection, if it is plain although TLS is required: the caller can answer without TLS.
    pub plain: Option<BoxStream>,
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self {
            reason: reason(&error),
            plain: None,
        }
    }
}

impl Gate {
    /// Authenticates a connection. This has no timeout, so the caller must set one.
    pub async fn admit(&self, stream: BoxStream) -> Result<Admitted, Refused> {
        let Self::Tls {
            certificates,
            plain_too,
        } = self
        else {
            return Ok(Admitted::plain(stream));
        };
        // The first byte is read without being consumed: it stays in the buffer.
        let mut stream = BufReader::with_capacity(1, stream);
        let Some(first) = stream.fill_buf().await?.first() else {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        };
        if *first != HANDSHAKE {
            return if *plain_too {
                Ok(Admitted::plain(Box::new(stream)))
            } else {
                Err(Refused {
                    reason: "it is not encrypted, and TLS is required".to_owned(),
                    plain: Some(Box::new(stream)),
                })
            };
        }
        let acceptor = TlsAcceptor::from(certificates.ends().server.clone());
        let stream = acceptor.accept(stream).await?;
        let (_, session) = stream.get_ref();
        Ok(Admitted {
            certificate: PeerCertificate::first(session.peer_certificates()),
            is_tls: true,
            is_http2: session.alpn_protocol() == Some(b"h2"),
            stream: Box::new(stream),
        })
    }
}

impl Admitted {
    fn plain(stream: BoxStream) -> Self {
        Self {
            stream,
            certificate: None,
            is_tls: false,
            is_http2: false,
        }
    }
}

/// The reason of a failed handshake, as text for operators.
pub(super) fn reason(error: &io::Error) -> String {
    tls_reason(error).unwrap_or_else(|| error.to_string())
}

/// The reason of an error of TLS, as text for operators; `None` for other errors.
pub(crate) fn tls_reason(error: &io::Error) -> Option<String> {
    let tls = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let words = match tls {
        rustls::Error::NoCertificatesPresented => "it presents no certificate",
        rustls::Error::InvalidCertificate(wrong) => match wrong {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate is signed by an unknown authority: it belongs to another cluster \
                or is self-signed"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate belongs to another node"
            }
            _ => return Some(tls.to_string()),
        },
        rustls::Error::InvalidMessage(_) => "it does not speak TLS",
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::DecryptError
            | AlertDescription::BadCertificate,
        ) => "it rejects this node's certificate: unknown authority",
        rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => {
            "it rejects this node's certificate as expired; if the certificate is valid, the clock of \
            that node is wrong"
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "it requires a certificate"
        }
        _ => return Some(tls.to_string()),
    };
    Some(words.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_rejects_a_certificate_as_expired_may_have_a_wrong_clock() {
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateExpired);
        let error = io::Error::new(io::ErrorKind::InvalidData, alert);
        assert!(reason(&error).ends_with("the clock of that node is wrong"));
        assert_eq!(tls_reason(&io::Error::other("another")), None);
    }
}
