//! Who may give orders over the network: anyone with an operator's certificate, or, where TLS is off, anyone who
//! is on this machine and is no web page in somebody's browser.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode};

use super::error;
use crate::tls::Shown;

/// How operators come in over the network.
#[derive(Clone)]
pub(crate) struct NetworkDoor {
    is_tls: bool,
    /// The names, but for addresses, under which it is reached.
    names: Arc<[String]>,
}

impl NetworkDoor {
    /// `addresses` are those listened on and advertised, `host:port`.
    pub(crate) fn new(is_tls: bool, addresses: &[&str]) -> Self {
        let host = |address: &&str| {
            let parsed: Authority = address.parse().ok()?;
            Some(parsed.host().to_ascii_lowercase())
        };
        let names = addresses.iter().filter_map(host);
        Self {
            is_tls,
            names: names.chain(["localhost".to_owned()]).collect(),
        }
    }

    /// Whether a request may go on; if not, the answer.
    fn refuses(&self, parts: &Parts) -> Option<(StatusCode, String)> {
        let is_operator = (parts.extensions.get::<Shown>()).is_some_and(Shown::is_of_an_operator);
        if self.is_tls && !is_operator {
            let detail =
                "the certificate is no operator's: it must be for admin.placement.internal";
            return Some((StatusCode::FORBIDDEN, detail.to_owned()));
        }
        if parts.headers.contains_key(ORIGIN) {
            let detail = "this is no place for web pages: the request has an Origin";
            return Some((StatusCode::FORBIDDEN, detail.to_owned()));
        }
        // A page whose own name leads here would be asked for by that name.
        if let Some(host) = self.strange_host(parts) {
            let detail = format!(
                "{host:?} is no name of this node: use its address, or name it in admin.advertise"
            );
            return Some((StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let bare = |value: &str| value.split(';').next().map(|kind| kind.trim().to_owned());
        let kind = parts.headers.get(CONTENT_TYPE);
        let kind = kind.map(|value| value.to_str().ok().and_then(bare).unwrap_or_default());
        if parts.method == Method::POST
            && kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("application/json"))
        {
            let detail = "the body is not application/json";
            return Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, detail.to_owned()));
        }
        None
    }

    fn strange_host(&self, parts: &Parts) -> Option<String> {
        let host = match parts.uri.host() {
            Some(host) => host.to_owned(),
            None => {
                let named = parts.headers.get(HOST)?.to_str().unwrap_or("?");
                let parsed = named.parse::<Authority>();
                parsed.map_or_else(|_| named.to_owned(), |named| named.host().to_owned())
            }
        };
        let bare = host.trim_matches(['[', ']']);
        let is_known = bare.parse::<IpAddr>().is_ok()
            || (self.names.iter()).any(|name| name.eq_ignore_ascii_case(&host));
        (!is_known).then_some(host)
    }
}

/// Lets requests through that may give orders.
pub(crate) async fn enter(
    State(door): State<NetworkDoor>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    match door.refuses(&parts) {
        Some((status, detail)) => error(status, &detail),
        None => next.run(Request::from_parts(parts, body)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let door = NetworkDoor::new(false, &["10.0.0.1:18780", "ctl1.example:18780"]);
        door.refuses(&parts).map(|(status, _)| status)
    }

    #[test]
    fn an_operator_on_this_machine_is_let_in() {
        let json = ("content-type", "application/json; charset=utf-8");
        for host in [
            "10.0.0.1:18780",
            "localhost:18780",
            "CTL1.example:18780",
            "[::1]:1",
            "127.0.0.1",
        ] {
            assert_eq!(
                asked("POST", "/v1/leader", &[("host", host), json]),
                None,
                "{host}"
            );
        }
        assert_eq!(asked("GET", "/v1/status", &[]), None);
        assert_eq!(asked("POST", "/v1/drain", &[("host", "[::1]:1")]), None);
    }

    #[test]
    fn a_web_page_is_not() {
        let host = ("host", "127.0.0.1:18780");
        let text = ("content-type", "text/plain");
        let origin = ("origin", "http://evil.example");
        let refused = |headers: &[_]| asked("POST", "/v1/leader", headers);
        assert_eq!(
            refused(&[host, text]),
            Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        assert_eq!(refused(&[host, origin]), Some(StatusCode::FORBIDDEN));
        let rebound = asked("GET", "/v1/status", &[("host", "evil.example:18780")]);
        assert_eq!(rebound, Some(StatusCode::MISDIRECTED_REQUEST));
        let absolute = asked("GET", "http://evil.example/v1/status", &[host]);
        assert_eq!(absolute, Some(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn over_tls_without_an_operators_certificate_nobody_is() {
        let (parts, ()) = Request::new(()).into_parts();
        let door = NetworkDoor::new(true, &[]);
        let refused = door.refuses(&parts).map(|(status, _)| status);
        assert_eq!(refused, Some(StatusCode::FORBIDDEN));
    }
}
