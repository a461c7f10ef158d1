//! The address at which clients reach the API: scheme, host and path.
//!
//! `location` is absolute and links are paths, so both depend on the proxies between a client and
//! this node. In order of precedence: `[api] public_url`; `Forwarded` (RFC 7239) or `X-Forwarded-*`
//! of a trusted proxy; the `Host` header, `http` and `[api] prefix`. Values from a client or proxy
//! are used only if they are a valid scheme, host or path, and ignored otherwise.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use http::request::Parts;
use http::{HeaderMap, Request};
pub use placement_model::types::PathPrefix;

use super::headers::{self, split_outside_quotes};
use placement_audit::access::Encrypted;

/// Maximum length of a host with port (a DNS name has at most 253 characters, RFC 1035).
const HOST_MAX_BYTES: usize = 253 + ":65535".len();

/// The address at which clients reach the API (`[api]`).
#[derive(Debug, Clone, Default)]
pub struct PublicAddress {
    /// `prefix`: the path below which this node serves the API.
    pub prefix: PathPrefix,
    /// `public_url`: base URL of `location` and links, regardless of the request.
    pub url: Option<PublicUrl>,
    /// `trust_proxy_headers`: whether `Forwarded` and `X-Forwarded-*` are trusted.
    pub trust_proxy_headers: bool,
}

impl PublicAddress {
    /// The address of an API below another prefix of this node.
    pub fn elsewhere(&self, prefix: &PathPrefix) -> Self {
        let url = self.url.as_ref().map(|url| PublicUrl {
            origin: url.origin.clone(),
            // Validation of the settings ensures that this path ends with the prefix.
            path: url.path.with_end(&self.prefix, prefix),
        });
        Self {
            prefix: prefix.clone(),
            url,
            trust_proxy_headers: self.trust_proxy_headers,
        }
    }

    /// The host that the client requests, in lower case, without its port and without a trailing
    /// dot.
    pub fn host(&self, request: &Request<impl Sized>) -> Option<String> {
        let host = self.forwarded(request.headers()).host.or_else(|| {
            let host = headers::text(request.headers(), "host").map(Cow::into_owned);
            host.or_else(|| request.uri().authority().map(ToString::to_string))
        })?;
        let name = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => name,
            _ => &host,
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        Some(name.to_ascii_lowercase())
    }

    /// The beginning of links: the path of the API as the client sees it.
    pub(crate) fn path(&self, headers: &HeaderMap) -> Cow<'_, str> {
        if let Some(url) = &self.url {
            return Cow::Borrowed(url.path.as_str());
        }
        match self.stripped_by_proxy(headers) {
            Some(stripped) => Cow::Owned(format!("{stripped}{}", self.prefix)),
            None => Cow::Borrowed(self.prefix.as_str()),
        }
    }

    /// The beginning of `location`: scheme, host and path. Only the path if the host is unknown;
    /// clients resolve it against the request (RFC 9110, section 10.2.2).
    pub(crate) fn url(&self, parts: &Parts) -> String {
        let path = self.path(&parts.headers);
        match &self.url {
            Some(url) => format!("{}{path}", url.origin),
            None => format!("{}{path}", self.origin(parts).unwrap_or_default()),
        }
    }

    /// The configured URL or path of the API.
    pub fn configured(&self) -> String {
        match &self.url {
            Some(url) => url.to_string(),
            None => self.prefix.to_string(),
        }
    }

    fn origin(&self, parts: &Parts) -> Option<String> {
        let forwarded = self.forwarded(&parts.headers);
        let scheme = forwarded.proto.unwrap_or(match parts.extensions.get() {
            Some(Encrypted { .. }) => "https",
            None => "http",
        });
        let host = forwarded
            .host
            .or_else(|| {
                let host = headers::text(&parts.headers, "host");
                host.filter(|host| is_host(host)).map(Cow::into_owned)
            })
            .or_else(|| parts.uri.authority().map(ToString::to_string))
            .filter(|host| is_host(host))?;
        Some(origin(scheme, &host))
    }

    /// The client's address as a trusted proxy reports it, unvalidated.
    pub fn client(&self, headers: &HeaderMap) -> Option<String> {
        self.forwarded(headers).client
    }

    fn forwarded(&self, headers: &HeaderMap) -> Forwarded {
        if !self.trust_proxy_headers {
            return Forwarded::default();
        }
        match headers::text(headers, "forwarded").filter(|text| !text.is_empty()) {
            Some(text) => Forwarded::from_standard_header(&text),
            None => Forwarded::from_x_headers(headers),
        }
    }

    fn stripped_by_proxy(&self, headers: &HeaderMap) -> Option<PathPrefix> {
        if !self.trust_proxy_headers {
            return None;
        }
        first_listed(headers, "x-forwarded-prefix")?.parse().ok()
    }
}

/// The report of the proxy nearest to the client: the first element of each list.
#[derive(Debug, Default, PartialEq, Eq)]
struct Forwarded {
    proto: Option<&'static str>,
    host: Option<String>,
    client: Option<String>,
}

impl Forwarded {
    fn from_standard_header(text: &str) -> Self {
        let mut forwarded = Self::default();
        for (name, value) in first_element(text).unwrap_or_default() {
            match name.as_str() {
                "proto" => forwarded.proto = scheme(&value),
                "host" => forwarded.host = Some(value).filter(|host| is_host(host)),
                "for" => forwarded.client = Some(value),
                _ => {}
            }
        }
        forwarded
    }

    fn from_x_headers(headers: &HeaderMap) -> Self {
        Self {
            proto: first_listed(headers, "x-forwarded-proto").and_then(|text| scheme(&text)),
            host: first_listed(headers, "x-forwarded-host").filter(|host| is_host(host)),
            client: first_listed(headers, "x-forwarded-for"),
        }
    }
}

fn first_listed(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers::text(headers, name)?;
    let first = text.split(',').next().unwrap_or_default().trim();
    (!first.is_empty()).then(|| first.to_owned())
}

/// The pairs of the first element of `Forwarded` (RFC 7239, section 4), with names in lower case.
/// Pairs and elements may be empty. `None` if the element is malformed.
fn first_element(text: &str) -> Option<Vec<(String, String)>> {
    let mut elements = split_outside_quotes(text, ',').into_iter().map(|element| {
        let pairs = split_outside_quotes(element, ';')
            .into_iter()
            .map(str::trim);
        pairs.filter(|pair| !pair.is_empty()).collect::<Vec<_>>()
    });
    let first = elements.find(|pairs| !pairs.is_empty())?;
    let pairs = first.into_iter().map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim_end().to_ascii_lowercase();
        Some((name, unquoted(value.trim_start())?))
    });
    pairs.collect()
}

/// A token, or the content of a quoted string.
fn unquoted(text: &str) -> Option<String> {
    let Some(quoted) = text.strip_prefix('"') else {
        return (!text.contains('"')).then(|| text.to_owned());
    };
    let mut value = String::new();
    let mut characters = quoted.chars();
    loop {
        match characters.next()? {
            '"' => return characters.as_str().is_empty().then_some(value),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
}

fn scheme(text: &str) -> Option<&'static str> {
    let mut known = ["http", "https"].into_iter();
    known.find(|known| known.eq_ignore_ascii_case(text))
}

/// Scheme and host. The default port is omitted, as upstream does.
fn origin(scheme: &str, host: &str) -> String {
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    let host = host.strip_suffix(default_port).unwrap_or(host);
    format!("{scheme}://{host}")
}

/// Whether the text is a host name or an IP address, with or without a port.
fn is_host(text: &str) -> bool {
    if text.len() > HOST_MAX_BYTES {
        return false;
    }
    let (name, behind) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, behind)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
                ("ipv6", behind)
            }
            _ => return false,
        },
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let is_port =
        |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let name_bytes = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    !name.is_empty()
        && name.bytes().all(name_bytes)
        && (behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port))
}

/// An absolute URL with scheme, host and path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: String,
    /// The path, without a trailing slash.
    pub path: PathPrefix,
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path)
    }
}

impl FromStr for PublicUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "is not of the form http://host:port/path or https://host:port/path";
        let (scheme_name, rest) = text.split_once("://").ok_or(FORM)?;
        let scheme = scheme(scheme_name).ok_or(FORM)?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if !is_host(host) {
            return Err("has no valid host name or IP address");
        }
        Ok(Self {
            origin: origin(scheme, host),
            path: path.parse()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(text: &str) -> Forwarded {
        Forwarded::from_standard_header(text)
    }

    #[test]
    fn the_first_element_of_forwarded_is_the_proxy_nearest_to_the_client() {
        let parsed = forwarded(
            "For=\"[2001:db8::1]:4711\"; proto=HTTPS ;host=\"a.example:8443\", for=10.0.0.9;proto=http",
        );
        assert_eq!(parsed.proto, Some("https"));
        assert_eq!(parsed.host.as_deref(), Some("a.example:8443"));
        assert_eq!(parsed.client.as_deref(), Some("[2001:db8::1]:4711"));
        let quoted = forwarded("for=\"a, b;c \\\" d\";proto=https");
        assert_eq!(quoted.client.as_deref(), Some("a, b;c \" d"));
        assert_eq!(quoted.proto, Some("https"));
        assert_eq!(forwarded("for=10.0.0.9").proto, None);
        assert_eq!(forwarded(", ;; proto=https;").proto, Some("https"));
    }

    #[test]
    fn malformed_header_is_ignored() {
        for text in [
            "",
            "https",
            "proto, proto=https",
            "proto=https;host",
            "proto=https;host=\"a.example",
            "host=\"a\\",
            "proto=\"https\"x",
        ] {
            assert_eq!(forwarded(text), Forwarded::default(), "{text:?}");
        }
    }

    #[test]
    fn only_names_and_addresses_are_hosts() {
        for host in [
            "a",
            "a.example",
            "a_b-c:80",
            "10.0.0.1:8778",
            "[::1]",
            "[2001:db8::1]:443",
        ] {
            assert!(is_host(host), "{host}");
        }
        let long = "a".repeat(300);
        for host in [
            "",
            ":80",
            "a:",
            "a:b",
            "a:+1",
            "a:99999",
            "a b",
            "a/b",
            "a@b",
            "a\"",
            "a?b",
            "a#b",
            "a\\b",
            "[::1",
            "[evil]",
            "[::1]x",
            "[::1]:",
            "::1",
            "a,b",
            "é.example",
            "%61",
            &long,
        ] {
            assert!(!is_host(host), "{host}");
        }
    }

    #[test]
    fn a_public_url_has_a_scheme_and_a_host() {
        let url: PublicUrl = "https://cloud.example:443/placement/".parse().unwrap();
        assert_eq!(url.origin, "https://cloud.example");
        assert_eq!(url.path.as_str(), "/placement");
        for text in [
            "cloud.example",
            "ftp://cloud.example",
            "https://",
            "https:///placement",
            "https://u@h",
            "https://h?x",
            "https://h/a b",
            "https://h//x",
            "https://h/x?y",
            "https://h:port",
        ] {
            assert!(text.parse::<PublicUrl>().is_err(), "{text}");
        }
    }
}
