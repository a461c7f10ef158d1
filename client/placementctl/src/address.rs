//! The address of a service from its URL in a catalog.

use http::uri::Authority;

/// Splits a URL into an endpoint with a port, and a path. The scheme is http by default.
pub(crate) fn endpoint_and_path(url: &str) -> anyhow::Result<(String, String)> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let port = match (host.parse::<Authority>()?.port(), scheme) {
        (Some(_), _) => "",
        (None, "https") => ":443",
        (None, _) => ":80",
    };
    Ok((format!("{scheme}://{host}{port}"), format!("/{path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_a_catalog_get_a_port() {
        for (url, endpoint, path) in [
            (
                "https://cloud.example/identity/v3",
                "https://cloud.example:443",
                "/identity/v3",
            ),
            ("http://10.0.0.9:5000", "http://10.0.0.9:5000", "/"),
            ("cloud.example", "http://cloud.example:80", "/"),
        ] {
            let expected = (endpoint.to_owned(), path.to_owned());
            assert_eq!(endpoint_and_path(url).unwrap(), expected);
        }
        assert!(endpoint_and_path("http://").is_err());
    }
}
