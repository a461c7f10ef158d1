//! Addresses of pages and of API requests.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Characters to escape in a path segment (RFC 3986 section 2.3).
const UNRESERVED: &AsciiSet = &(NON_ALPHANUMERIC.remove(b'-').remove(b'_'))
    .remove(b'.')
    .remove(b'~');
/// Characters to escape in a parameter; the separators of the API are not special in a query.
const IN_PARAMETERS: &AsciiSet = &UNRESERVED.remove(b':').remove(b',').remove(b'!');
/// Characters to escape in a complete query.
const IN_QUERIES: &AsciiSet = &(IN_PARAMETERS.remove(b'=').remove(b'&'))
    .remove(b'%')
    .remove(b'+');

/// Parsed address of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PageAddress {
    /// Decoded path segments below `/web`.
    pub(crate) segments: Vec<String>,
    parameters: Vec<(String, String)>,
}

impl PageAddress {
    /// Parses a path with its query; `None` if it is not below `/web`.
    pub(crate) fn parse(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let below = path.strip_prefix("/web")?;
        if !below.is_empty() && !below.starts_with('/') {
            return None;
        }
        let segments = below.split('/').filter(|one| !one.is_empty());
        let pairs = query
            .split('&')
            .filter(|one| !one.is_empty())
            .map(|one| one.split_once('=').unwrap_or((one, "")));
        Some(Self {
            segments: segments.map(decoded).collect(),
            parameters: pairs
                .map(|(key, value)| (form_decoded(key), form_decoded(value)))
                .collect(),
        })
    }

    /// The trimmed value of a parameter; empty if missing. The first occurrence counts.
    pub(crate) fn parameter(&self, name: &str) -> &str {
        let mut given = self.parameters.iter();
        let found = given.find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.trim())
    }

    /// Whether the local state of the node is requested, which needs no quorum.
    pub(crate) fn is_local(&self) -> bool {
        self.parameter("local") == "true"
    }

    /// The first row to show; 0 if missing or invalid.
    pub(crate) fn offset(&self) -> usize {
        self.parameter("from").parse().unwrap_or_default()
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn form_decoded(text: &str) -> String {
    decoded(&text.replace('+', " "))
}

pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

/// The escaped query. `given` is a query, or a URI with a query after its `?`.
pub(crate) fn whole_query(given: &str) -> String {
    let query = given.split_once('?').map_or(given, |(_, query)| query);
    utf8_percent_encode(query.trim(), IN_QUERIES).to_string()
}

/// A path with the parameters that are not empty.
pub(crate) fn with_query(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let pairs: Vec<String> = given
        .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, IN_PARAMETERS)))
        .collect();
    match pairs.as_slice() {
        [] => path.to_owned(),
        pairs => format!("{path}?{}", pairs.join("&")),
    }
}

/// Name of the partition of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition(pub(crate) String);

impl Partition {
    /// A path of the API of the partition.
    pub(crate) fn api(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let path = format!("/v1/placement/{}{path}", encoded(&self.0));
        with_query(&path, parameters)
    }

    /// The same path at another node.
    pub(crate) fn api_of(&self, node: u64, path: &str, parameters: &[(&str, &str)]) -> String {
        let own = self.api(path, parameters);
        own.replacen("/v1/", &format!("/v1/nodes/{node}/"), 1)
    }

    /// A page of the partition.
    pub(crate) fn page(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let path = format!("/web/placement/{}/{path}", encoded(&self.0));
        with_query(&path, parameters)
    }

    pub(crate) fn provider_page(&self, uuid: &str) -> String {
        self.page(&format!("providers/{}", encoded(uuid)), &[])
    }

    pub(crate) fn consumer_page(&self, uuid: &str) -> String {
        self.page(&format!("consumers/{}", encoded(uuid)), &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_decoded_once() {
        let target = PageAddress::parse("/web/placement/a%2Fb/providers?name=c+d%252B&x&name=e")
            .expect("it is below /web");
        assert_eq!(target.segments, ["placement", "a/b", "providers"]);
        assert_eq!(target.parameter("name"), "c d%2B");
        assert_eq!((target.parameter("x"), target.parameter("y")), ("", ""));
        for other in ["/", "/webs", "/v1/status", ""] {
            assert_eq!(PageAddress::parse(other), None, "{other}");
        }
    }

    #[test]
    fn names_stay_within_their_segment_and_parameter() {
        let partition = Partition("../a?b#".to_owned());
        let path = partition.api("/traits", &[("name", "a&b=c d"), ("empty", "")]);
        assert_eq!(
            path,
            "/v1/placement/..%2Fa%3Fb%23/traits?name=a%26b%3Dc%20d"
        );
        let path = partition.api_of(2, "/traits", &[]);
        assert_eq!(path, "/v1/nodes/2/placement/..%2Fa%3Fb%23/traits");
    }

    #[test]
    fn queries_are_taken_out_of_uris() {
        let given = "/allocation_candidates?resources=VCPU%3A1&required=!A b\r\n<#'";
        assert_eq!(
            whole_query(given),
            "resources=VCPU%3A1&required=!A%20b%0D%0A%3C%23%27"
        );
    }
}
