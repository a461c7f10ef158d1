//! Routes, which assign requests to a partition by path prefix or host.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::InvalidName;
use super::names::{shown_as_text, written_as_text};

/// Maximum length of a path prefix, in bytes.
const PREFIX_MAX_BYTES: usize = 256;
/// Maximum length of a DNS name (RFC 1035), in bytes.
const HOST_MAX_BYTES: usize = 253;
/// Maximum number of routes per partition.
const ROUTES_MAX: usize = 32;

/// The first segments of all paths that a node serves for the default partition, below `[api]
/// prefix`. A route prefix must not contain such a segment, so it cannot hide a path of the default
/// partition, whatever `[api] prefix` is.
pub const RESERVED_SEGMENTS: [&str; 12] = [
    "allocation_candidates",
    "allocations",
    "livez",
    "metrics",
    "openapi.json",
    "placementd",
    "readyz",
    "reshaper",
    "resource_classes",
    "resource_providers",
    "traits",
    "usages",
];

/// A path prefix: empty, or `/` and segments. It never ends with `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathPrefix(Arc<str>);

impl PathPrefix {
    /// Whether every path below `other` is also below this prefix.
    pub fn covers(&self, other: &Self) -> bool {
        self.rest_of(&other.0).is_some()
    }

    /// The rest of a path below this prefix, starting with `/`; `None` if the path is not below it.
    pub fn rest_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        match path.strip_prefix(&*self.0)? {
            "" => Some("/"),
            rest => rest.starts_with('/').then_some(rest),
        }
    }

    /// Replaces the suffix `old` by `new`. Returns `new` alone if the path does not end with `old`.
    #[must_use]
    pub fn with_end(&self, old: &Self, new: &Self) -> Self {
        let begin = self.0.strip_suffix(&*old.0).unwrap_or_default();
        Self(format!("{begin}{new}").into())
    }

    /// Whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path as in a URL; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PathPrefix {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_suffix('/').unwrap_or(text);
        if path.len() > PREFIX_MAX_BYTES {
            return Err("is longer than 256 characters");
        }
        let segments = match path.strip_prefix('/') {
            Some(segments) => segments,
            None if path.is_empty() => return Ok(Self::default()),
            None => return Err("does not begin with `/`"),
        };
        let allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        for segment in segments.split('/') {
            match segment {
                "" => return Err("has an empty segment (`//`)"),
                "." | ".." => return Err("has a segment `.` or `..`"),
                segment if segment.bytes().all(allowed) => {}
                _ => return Err("has characters other than letters, digits and `-._~/`"),
            }
        }
        Ok(Self(path.into()))
    }
}

/// The name or address of a host in lower case, without a port. An IPv6 address is in brackets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(Arc<str>);

impl HostName {
    /// The host as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for HostName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        // A fully qualified DNS name may end with a dot.
        let text = text.strip_suffix('.').unwrap_or(text);
        let fits = match text.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
            Some(address) => address.is_some_and(is_ipv6_like),
            None => {
                (1..=HOST_MAX_BYTES).contains(&text.len())
                    && text.bytes().all(allowed)
                    && text.bytes().any(|byte| byte.is_ascii_alphanumeric())
            }
        };
        if fits {
            Ok(Self(text.to_ascii_lowercase().into()))
        } else {
            Err(InvalidName {
                noun: "host",
                value: text.to_owned(),
                expected: "a DNS name or an address, without a port; an IPv6 address in brackets",
            })
        }
    }
}

/// Whether a text looks like an IPv6 address (RFC 4291, section 2.2). An approximation suffices,
/// since no client sends a malformed address.
fn is_ipv6_like(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    text.len() <= 45 && text.bytes().all(allowed) && text.matches(':').count() >= 2
}

/// The path prefix of a partition's API. It is not the root, and contains no [reserved
/// segment](RESERVED_SEGMENTS).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RoutePrefix(PathPrefix);

impl RoutePrefix {
    /// The prefix as a path.
    pub fn path(&self) -> &PathPrefix {
        &self.0
    }

    fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for RoutePrefix {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let invalid = |expected| InvalidName {
            noun: "path prefix",
            value: text.to_owned(),
            expected,
        };
        let prefix: PathPrefix = text.parse().map_err(invalid)?;
        if prefix.is_root() {
            return Err(invalid("the root belongs to the default partition"));
        }
        let mut segments = prefix.as_str().split('/');
        if segments.any(|segment| RESERVED_SEGMENTS.contains(&segment)) {
            return Err(invalid(
                "it contains a path segment of the default partition's API, such as `traits`",
            ));
        }
        Ok(Self(prefix))
    }
}

written_as_text!(HostName, "{}");
written_as_text!(RoutePrefix, "{}");

/// A property of requests that assigns them to a partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Route {
    /// The path of the request is below this prefix.
    Prefix(RoutePrefix),
    /// The request is addressed to this host.
    Host(HostName),
}

impl Route {
    /// Whether one request can match both routes.
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Prefix(RoutePrefix(one)), Self::Prefix(RoutePrefix(other))) => {
                one.covers(other) || other.covers(one)
            }
            (Self::Host(one), Self::Host(other)) => one == other,
            // A path takes precedence over a host.
            _ => false,
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "path {prefix}"),
            Self::Host(host) => write!(f, "host {host}"),
        }
    }
}

/// All routes of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Route>", into = "Vec<Route>")]
pub struct Routes(BTreeSet<Route>);

impl Routes {
    /// Whether the partition has no routes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All routes, prefixes first.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.iter()
    }

    /// The hosts among the routes.
    pub fn hosts(&self) -> impl Iterator<Item = &HostName> {
        self.iter().filter_map(|route| match route {
            Route::Host(host) => Some(host),
            Route::Prefix(_) => None,
        })
    }
}

impl TryFrom<Vec<Route>> for Routes {
    type Error = InvalidName;

    fn try_from(routes: Vec<Route>) -> Result<Self, InvalidName> {
        if routes.len() > ROUTES_MAX {
            return Err(InvalidName {
                noun: "number of routes",
                value: routes.len().to_string(),
                expected: "a partition has at most 32 hosts and prefixes",
            });
        }
        Ok(Self(routes.into_iter().collect()))
    }
}

impl From<Routes> for Vec<Route> {
    fn from(routes: Routes) -> Self {
        routes.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_rejects_hosts_and_dot_segments() {
        for (text, path) in [
            ("", ""),
            ("/", ""),
            ("/placement", "/placement"),
            ("/a/b-c/", "/a/b-c"),
        ] {
            assert_eq!(text.parse::<PathPrefix>().unwrap().as_str(), path);
        }
        let long = format!("/{}", "a".repeat(300));
        for text in [
            "placement",
            "//evil.example",
            "/a//b",
            "/a/../b",
            "/.",
            "/a b",
            "/a?b",
            "/a%2Fb",
            "/a\"",
            "//",
            "/é",
            &long,
        ] {
            assert!(text.parse::<PathPrefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn prefix_matches_whole_segments() {
        let prefix: PathPrefix = "/placement".parse().unwrap();
        assert_eq!(prefix.rest_of("/placement"), Some("/"));
        assert_eq!(prefix.rest_of("/placement/"), Some("/"));
        assert_eq!(prefix.rest_of("/placement/traits"), Some("/traits"));
        assert_eq!(prefix.rest_of("/placements"), None);
        assert_eq!(prefix.rest_of("/traits"), None);
        assert_eq!(PathPrefix::default().rest_of("/traits"), Some("/traits"));
        assert_eq!(PathPrefix::default().rest_of("*"), None);
    }

    #[test]
    fn route_cannot_hide_paths_of_the_default_api() {
        for text in ["/north", "/north/placement/", "/v1.0/n_o~rth"] {
            assert!(text.parse::<RoutePrefix>().is_ok(), "{text}");
        }
        for text in [
            "",
            "/",
            "/traits",
            "/p/traits",
            "/traits/x",
            "/readyz",
            "/a//b",
            "north",
        ] {
            assert!(text.parse::<RoutePrefix>().is_err(), "{text}");
        }
    }

    #[test]
    fn host_is_lower_case_without_port() {
        for (text, host) in [
            ("South.Example", "south.example"),
            ("south.example.", "south.example"),
            ("10.0.0.1", "10.0.0.1"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(text.parse::<HostName>().unwrap().as_str(), host);
        }
        let long = "a".repeat(254);
        for text in [
            "", ".", "a:80", "[::1]:80", "[::1", "::1", "[x]", "a b", "a/b", "a@b", "*", "é",
            "a\n", "-", &long,
        ] {
            assert!(text.parse::<HostName>().is_err(), "{text}");
        }
    }

    #[test]
    fn routes_overlap_if_one_request_matches_both() {
        let prefix = |text: &str| Route::Prefix(text.parse().unwrap());
        let host = |text: &str| Route::Host(text.parse().unwrap());
        assert!(prefix("/north").meets(&prefix("/north/p")));
        assert!(prefix("/north/p").meets(&prefix("/north")));
        assert!(!prefix("/north").meets(&prefix("/northern")));
        assert!(host("a.example").meets(&host("A.example")));
        assert!(!host("a.example").meets(&prefix("/a")));
    }

    #[test]
    fn number_of_routes_is_limited() {
        let many = (0..33).map(|number| Route::Host(format!("h{number}").parse().unwrap()));
        assert!(Routes::try_from(many.clone().collect::<Vec<_>>()).is_err());
        assert!(Routes::try_from(many.take(32).collect::<Vec<_>>()).is_ok());
    }
}
