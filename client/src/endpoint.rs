//! Where one node listens.

use std::fmt;
use std::str::FromStr;

use http::uri::{Authority, Scheme, Uri};

use crate::error::Error;

/// The base URL of one node: `http://host:port`. A bare `host:port` means `http`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    authority: Authority,
}

impl Endpoint {
    /// The URL of a path (with query) on this node.
    pub(crate) fn url(&self, path_and_query: &str) -> Result<Uri, Error> {
        Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(self.authority.clone())
            .path_and_query(path_and_query)
            .build()
            .map_err(|error| Error::BadRequest {
                reason: format!("`{path_and_query}` is not a path: {error}"),
            })
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadEndpoint {
            endpoint: text.to_owned(),
            reason: reason.to_owned(),
        };
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some((scheme, _)) => {
                return Err(bad(&format!(
                    "the scheme `{scheme}` is not supported, only http is"
                )));
            }
            None => text,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let authority: Authority = rest
            .parse()
            .map_err(|error| bad(&format!("expected http://host:port: {error}")))?;
        if authority.port_u16().is_none() {
            return Err(bad("expected http://host:port, the port is missing"));
        }
        Ok(Self { authority })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
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
    fn what_cannot_be_reached_is_refused() {
        for text in ["", "host", "https://host:1", "http://host:1/path", "a b:1"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text:?}");
        }
    }
}
