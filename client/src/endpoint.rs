//! The address of a listener.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::str::FromStr;

use http::uri::{Authority, Scheme, Uri};

use crate::error::Error;

/// Internal scheme of Unix sockets. The authority is the path in hexadecimal digits.
const UNIX: &str = "unix";

/// Address of a node: `http://host:port`, `https://host:port`, or `unix:/path` for a Unix socket on
/// this machine. A bare `host:port` means `http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: Scheme,
    authority: Authority,
}

impl Endpoint {
    /// Whether it is a Unix socket.
    pub fn is_socket(&self) -> bool {
        self.scheme.as_str() == UNIX
    }

    /// The URL of a path with query on this node.
    pub(crate) fn url(&self, path_and_query: &str) -> Result<Uri, Error> {
        Uri::builder()
            .scheme(self.scheme.clone())
            .authority(self.authority.clone())
            .path_and_query(path_and_query)
            .build()
            .map_err(|error| {
                Error::BadRequest(format!("`{path_and_query}` is not a path: {error}"))
            })
    }
}

/// The path of the Unix socket of a URL; `None` for TCP.
pub(crate) fn socket(url: &Uri) -> Option<PathBuf> {
    match url.scheme_str() {
        Some(UNIX) => path(url.authority()?),
        _ => None,
    }
}

fn path(authority: &Authority) -> Option<PathBuf> {
    let digits = authority.as_str();
    let bytes = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect::<Option<Vec<u8>>>()?;
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadEndpoint {
            endpoint: text.to_owned(),
            reason: reason.to_owned(),
        };
        let unreadable = |error: http::uri::InvalidUri| {
            bad(&format!(
                "expected http://host:port, https://host:port or unix:/path: {error}"
            ))
        };
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(bad("expected unix:/path with an absolute path"));
            }
            let digits: String = path.bytes().map(|byte| format!("{byte:02x}")).collect();
            return Ok(Self {
                scheme: UNIX.parse().map_err(unreadable)?,
                authority: digits.parse().map_err(unreadable)?,
            });
        }
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let scheme = match scheme {
            "http" => Scheme::HTTP,
            "https" => Scheme::HTTPS,
            other => {
                return Err(bad(&format!(
                    "scheme `{other}` is not supported; use http, https or unix"
                )));
            }
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: Authority = rest.parse().map_err(unreadable)?;
        if authority.port_u16().is_none() {
            return Err(bad("expected host:port, the port is missing"));
        }
        Ok(Self { scheme, authority })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme.as_str() {
            UNIX => {
                let path = path(&self.authority).unwrap_or_default();
                write!(f, "unix:{}", path.display())
            }
            scheme => write!(f, "{scheme}://{}", self.authority),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_address_means_http() {
        let endpoint: Endpoint = "127.0.0.1:8778".parse().unwrap();
        assert_eq!(endpoint.to_string(), "http://127.0.0.1:8778");
        assert_eq!(endpoint, "http://127.0.0.1:8778/".parse().unwrap());
    }

    #[test]
    fn a_socket_is_named_by_its_path() {
        let endpoint: Endpoint = "unix:/run/my place/ädmin.sock".parse().unwrap();
        assert_eq!(endpoint.to_string(), "unix:/run/my place/ädmin.sock");
        let url = endpoint.url("/v1/status?a=b").unwrap();
        let path = PathBuf::from("/run/my place/ädmin.sock");
        assert_eq!((socket(&url), url.path()), (Some(path), "/v1/status"));
        let other: Endpoint = "https://host:1".parse().unwrap();
        assert_eq!(socket(&other.url("/").unwrap()), None);
    }

    #[test]
    fn invalid_endpoints_are_refused() {
        for text in [
            "",
            "host",
            "ftp://host:1",
            "http://host:1/path",
            "https://host",
            "a b:1",
            "unix:",
            "unix:here",
        ] {
            assert!(text.parse::<Endpoint>().is_err(), "{text:?}");
        }
    }
}
