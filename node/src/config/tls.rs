//! Certificates and where they are asked for, as they are named in the configuration.

use std::path::PathBuf;

use super::load::is_loopback;
use super::{Config, ConfigError};

/// Whether the connections of a listener are secured by TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// No.
    Off,
    /// Those that begin so. Other nodes are connected to plainly.
    Allow,
    /// Those that begin so. Other nodes are connected to by TLS.
    Prefer,
    /// All.
    Require,
}

/// Where a certificate is, its key, and what vouches for the other end's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    /// PEM: this end's certificate first, then what leads to its authority.
    pub(crate) certificate: PathBuf,
    /// PEM: the key of it.
    pub(crate) key: PathBuf,
    /// PEM: the authorities that vouch for the other end. `None`: nobody is asked for a certificate.
    pub(crate) authorities: Option<PathBuf>,
}

/// What is missing where TLS is wanted.
const FILE: &str = "is required where TLS is not off";

impl Config {
    /// `[peer] tls` and the files for it.
    pub(crate) fn peer_tls(&self) -> Result<Option<(TlsMode, CertificateFiles)>, ConfigError> {
        match mode("peer.tls", &self.peer.tls)? {
            TlsMode::Off => Ok(None),
            mode => Ok(Some((mode, self.of_the_cluster()?))),
        }
    }

    /// `[admin] tls` and the files for it.
    pub(crate) fn admin_tls(&self) -> Result<Option<CertificateFiles>, ConfigError> {
        match mode("admin.tls", &self.admin.tls)? {
            TlsMode::Off if self.admin.listen.is_empty() || is_loopback(&self.admin.listen) => {
                Ok(None)
            }
            TlsMode::Off if self.admin.plain_beyond_loopback => Ok(None),
            TlsMode::Off => Err(ConfigError::invalid(
                "admin.listen",
                "is no loopback address, and whoever reaches it would be obeyed: set admin.tls = \"require\", or \
                 leave it empty and use the socket; admin.plain_beyond_loopback = true allows it nevertheless",
            )),
            TlsMode::Require => Ok(Some(self.of_the_cluster()?)),
            TlsMode::Allow | TlsMode::Prefer => Err(ConfigError::invalid(
                "admin.tls",
                "is off or require: whoever came plainly would be obeyed",
            )),
        }
    }

    /// `[api] tls` and the files for it.
    pub(crate) fn api_tls(&self) -> Result<Option<(TlsMode, CertificateFiles)>, ConfigError> {
        let mode = mode("api.tls", &self.api.tls)?;
        match mode {
            TlsMode::Off => return Ok(None),
            TlsMode::Prefer => {
                return Err(ConfigError::invalid(
                    "api.tls",
                    "is off, allow or require: clients choose how they connect",
                ));
            }
            TlsMode::Allow | TlsMode::Require => {}
        }
        let (api, tls) = (&self.api, &self.tls);
        let (certificate, key) = match (&api.tls_cert_file, &api.tls_key_file) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            (None, None) => (
                required("tls.cert_file", tls.cert_file.as_ref())?,
                required("tls.key_file", tls.key_file.as_ref())?,
            ),
            _ => {
                return Err(ConfigError::invalid(
                    "api.tls_key_file",
                    "and api.tls_cert_file are set both or neither",
                ));
            }
        };
        let authorities = api.tls_client_ca_file.clone();
        let files = CertificateFiles {
            certificate,
            key,
            authorities,
        };
        Ok(Some((mode, files)))
    }

    fn of_the_cluster(&self) -> Result<CertificateFiles, ConfigError> {
        Ok(CertificateFiles {
            certificate: required("tls.cert_file", self.tls.cert_file.as_ref())?,
            key: required("tls.key_file", self.tls.key_file.as_ref())?,
            authorities: Some(required("tls.ca_file", self.tls.ca_file.as_ref())?),
        })
    }
}

impl Config {
    /// The socket for operators of this machine.
    pub(crate) fn admin_socket(&self) -> Option<PathBuf> {
        let socket = &self.admin.socket;
        (!socket.as_os_str().is_empty()).then(|| self.data_dir.join(socket))
    }
}

fn required(setting: &str, file: Option<&PathBuf>) -> Result<PathBuf, ConfigError> {
    file.cloned()
        .ok_or_else(|| ConfigError::invalid(setting, FILE))
}

fn mode(setting: &str, text: &str) -> Result<TlsMode, ConfigError> {
    match text {
        "off" => Ok(TlsMode::Off),
        "allow" => Ok(TlsMode::Allow),
        "prefer" => Ok(TlsMode::Prefer),
        "require" => Ok(TlsMode::Require),
        other => Err(ConfigError::invalid(
            setting,
            format!("{other:?} is none of off, allow, prefer and require"),
        )),
    }
}
