//! Why a node gives no answer, as messages for operators.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::path::Path;
use std::time::Duration;

use time::OffsetDateTime;
use time::macros::format_description;
use tokio_rustls::rustls::pki_types::UnixTime;
use tokio_rustls::rustls::{self, CertificateError};

/// A reason why an endpoint cannot be used that does not pass by itself, so that a repetition of
/// the request fails in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// There is no Unix socket at this path.
    NoSocket,
    /// Another user owns the Unix socket.
    SocketDenied,
    /// An unknown authority issued the certificate of the node.
    UnknownAuthority,
    /// The node requires another certificate of the client, or any.
    ClientCertificate,
    /// Other nodes use this port, and not clients or operators.
    PeerPort,
    /// A file, a host name, the scheme or the certificate of the node is wrong.
    Settings,
}

/// Why there is no connection.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct ConnectError {
    pub(crate) reason: String,
    /// `None`: the error may pass by itself.
    pub(crate) obstacle: Option<Obstacle>,
}

impl ConnectError {
    pub(crate) fn permanent(obstacle: Obstacle, reason: String) -> Self {
        let obstacle = Some(obstacle);
        Self { reason, obstacle }
    }

    /// An error that may pass by itself.
    pub(crate) fn passing(reason: String) -> Self {
        let obstacle = None;
        Self { reason, obstacle }
    }
}

/// The message of an error of the operating system, without its number.
pub(crate) fn message(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error ").unwrap_or(text.len());
    text[..end].to_owned()
}

/// The error, and the errors that caused it.
pub(crate) fn chain<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(Some(error), |error| (*error).source())
}

/// The first error of the chain that has this type.
pub(crate) fn cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// Why a Unix socket does not connect.
pub(crate) fn socket_error(error: &io::Error) -> ConnectError {
    match error.kind() {
        ErrorKind::NotFound => {
            ConnectError::permanent(Obstacle::NoSocket, "there is no such socket".to_owned())
        }
        ErrorKind::PermissionDenied => {
            let reason = "this user may not open the socket".to_owned();
            ConnectError::permanent(Obstacle::SocketDenied, reason)
        }
        _ => ConnectError::passing(message(error)),
    }
}

/// Why there is no TCP connection within `limit`.
pub(crate) fn tcp_error(error: &(dyn Error + 'static), limit: Duration) -> ConnectError {
    let Some(error) = cause::<io::Error>(error) else {
        return ConnectError::passing(error.to_string());
    };
    if error.kind() == ErrorKind::TimedOut {
        return ConnectError::passing(format!("no connection within {limit:?}"));
    }
    let text = message(error);
    match text.strip_prefix("failed to lookup address information: ") {
        None => ConnectError::passing(text),
        // The name server may be reachable later.
        Some(why) if why.starts_with("Temporary") => {
            ConnectError::passing(format!("the host name cannot be resolved: {why}"))
        }
        Some(_) => {
            ConnectError::permanent(Obstacle::Settings, "the host name is unknown".to_owned())
        }
    }
}

/// Why a TLS handshake failed. `ca_file`: the file with the known authorities.
pub(crate) fn handshake_error(error: &io::Error, ca_file: Option<&Path>) -> ConnectError {
    let reason = match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(wrong)) => return certificate_error(wrong, ca_file),
        Some(rustls::Error::InvalidMessage(_)) => {
            "this port does not speak TLS: use http://".to_owned()
        }
        Some(rustls::Error::AlertReceived(alert)) => return alert_error(&format!("{alert:?}")),
        Some(error) => format!("the TLS handshake failed: {error}"),
        None if error.kind() == ErrorKind::UnexpectedEof => {
            let reason = "it closed the connection during the TLS handshake";
            return ConnectError::passing(reason.to_owned());
        }
        None => return ConnectError::passing(message(error)),
    };
    ConnectError::permanent(Obstacle::Settings, reason)
}

fn certificate_error(wrong: &CertificateError, ca_file: Option<&Path>) -> ConnectError {
    let mut obstacle = Obstacle::Settings;
    let reason = match wrong {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate ended {}", minute(*not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            let from = minute(*not_before);
            format!("its certificate is valid only from {from}: compare the clocks")
        }
        CertificateError::UnknownIssuer => {
            obstacle = Obstacle::UnknownAuthority;
            match ca_file {
                None => {
                    "an authority that this machine does not know issued its certificate".into()
                }
                Some(file) => {
                    let file = file.display();
                    format!("no authority in {file} issued its certificate")
                }
            }
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let names: Vec<_> = presented.iter().map(|name| plain_name(name)).collect();
            let (expected, names) = (expected.to_str(), names.join(", "));
            format!("its certificate is not for {expected}, but for {names}")
        }
        other => format!("its certificate cannot be accepted: {other}"),
    };
    ConnectError::permanent(obstacle, reason)
}

/// A name of a certificate, which may be in the form `DnsName("host")`.
fn plain_name(shown: &str) -> &str {
    let mut parts = shown.split(['(', ')', '"']).skip(1);
    parts.find(|part| !part.is_empty()).unwrap_or(shown)
}

/// Formats a time as `2026-11-27T02:47Z`.
fn minute(at: UnixTime) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]Z");
    let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
    let at = OffsetDateTime::from_unix_timestamp(seconds).ok();
    at.and_then(|at| at.format(form).ok())
        .unwrap_or_else(|| format!("{seconds} s after 1970"))
}

/// Why the node ended the TLS connection. `alert`: the name of its alert.
pub(crate) fn alert_error(alert: &str) -> ConnectError {
    let (obstacle, reason) = match alert {
        "CertificateRequired" => (
            Obstacle::ClientCertificate,
            "it requires a client certificate",
        ),
        "CertificateExpired" => (
            Obstacle::ClientCertificate,
            "it refuses the client certificate as expired; if the certificate is valid, the clock of the node is wrong",
        ),
        "UnknownCA" => (
            Obstacle::ClientCertificate,
            "it refuses the client certificate, which another authority issued",
        ),
        "BadCertificate"
        | "UnsupportedCertificate"
        | "CertificateRevoked"
        | "CertificateUnknown"
        | "AccessDenied" => (
            Obstacle::ClientCertificate,
            "it refuses the client certificate",
        ),
        "NoApplicationProtocol" => (Obstacle::Settings, "it does not speak HTTP"),
        other => {
            let reason = format!("the TLS handshake failed with the alert {other}");
            return ConnectError::permanent(Obstacle::Settings, reason);
        }
    };
    ConnectError::permanent(obstacle, reason.to_owned())
}

/// Why a response breaks off.
pub(crate) fn body_error(error: &hyper::Error) -> String {
    if error.is_incomplete_message() {
        "the connection was closed".to_owned()
    } else {
        innermost(error)
    }
}

/// The message of the first cause.
pub(crate) fn innermost(error: &(dyn Error + 'static)) -> String {
    match (cause(error), chain(error).skip(1).last()) {
        (Some(error), _) => message(error),
        (None, Some(first)) => first.to_string(),
        (None, None) => "the connection was closed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(error: rustls::Error) -> String {
        let error = io::Error::new(ErrorKind::InvalidData, error);
        handshake_error(&error, None).to_string()
    }

    #[test]
    fn errors_of_the_system_have_no_numbers() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(message(&refused), "Connection refused");
    }

    #[test]
    fn a_missing_or_denied_socket_is_an_obstacle_and_a_refusal_may_pass() {
        for (kind, obstacle) in [
            (ErrorKind::NotFound, Some(Obstacle::NoSocket)),
            (ErrorKind::PermissionDenied, Some(Obstacle::SocketDenied)),
            (ErrorKind::ConnectionRefused, None),
        ] {
            assert_eq!(socket_error(&kind.into()).obstacle, obstacle);
        }
    }

    #[test]
    fn unknown_host_names_differ_from_unreachable_name_servers() {
        let lookup = |why: &str| {
            let text = format!("failed to lookup address information: {why}");
            tcp_error(&io::Error::other(text), Duration::ZERO)
        };
        let unknown = lookup("Name or service not known");
        assert_eq!(unknown.to_string(), "the host name is unknown");
        assert_eq!(unknown.obstacle, Some(Obstacle::Settings));
        assert_eq!(
            lookup("Temporary failure in name resolution").obstacle,
            None
        );
    }

    #[test]
    fn the_end_of_an_expired_certificate_is_named() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired = CertificateError::ExpiredContext {
            time: at(1_795_834_078),
            not_after: at(1_795_747_663),
        };
        assert_eq!(
            handshake(rustls::Error::InvalidCertificate(expired)),
            "its certificate ended 2026-11-27T02:47Z"
        );
    }

    #[test]
    fn tls_errors_are_described_without_names_of_types() {
        use rustls::{AlertDescription, InvalidMessage};
        for (error, expected) in [
            (
                rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "this port does not speak TLS: use http://",
            ),
            (
                rustls::Error::AlertReceived(AlertDescription::CertificateRequired),
                "it requires a client certificate",
            ),
            (
                rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer),
                "an authority that this machine does not know issued its certificate",
            ),
        ] {
            assert_eq!(handshake(error), expected);
        }
        assert_eq!(plain_name("DnsName(\"node-1\")"), "node-1");
        assert_eq!(plain_name("IpAddress(10.0.0.1)"), "10.0.0.1");
    }
}
