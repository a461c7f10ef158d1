//! Authorization of operators over the network: by an operator's certificate or, with TLS off, any
//! client on this machine except web pages in a browser.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{Method, Request, StatusCode};

use super::{Failed, HandlerResult, failed, media_type};
use placement_peer::tls::PeerCertificate;

/// Access control of the admin listener.
#[derive(Clone)]
pub(crate) struct NetworkListener {
    is_tls: bool,
    /// The host names, without addresses, of this listener.
    names: Arc<[String]>,
}

impl NetworkListener {
    /// `addresses` are the listening and the advertised address, `host:port`.
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

    /// Checks that a request is authorized; the error is the response.
    fn admit<T>(&self, request: &Request<T>) -> Result<(), Failed> {
        let certificate = request.extensions().get::<PeerCertificate>();
        if self.is_tls && !certificate.is_some_and(PeerCertificate::belongs_to_operator) {
            let detail = "the certificate does not belong to an operator: it must be for \
                admin.placement.internal";
            return Err(failed(StatusCode::FORBIDDEN, detail));
        }
        if request.headers().contains_key(ORIGIN) {
            let detail = "web pages may not use this listener: the request has an Origin";
            return Err(failed(StatusCode::FORBIDDEN, detail));
        }
        // Protects against DNS rebinding: a page whose name resolves to this address sends that
        // name.
        if let Some(host) = self.unknown_host(request) {
            let detail = format!(
                "{host:?} is not a name of this node: use its address, or set it in admin.advertise"
            );
            return Err(failed(StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let kind = media_type(request.headers());
        let may_be_json = kind.is_none_or(|kind| kind == "application/json");
        if request.method() == Method::POST && !may_be_json {
            let detail = "the body is not application/json";
            return Err(failed(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        Ok(())
    }

    fn unknown_host<T>(&self, request: &Request<T>) -> Option<String> {
        let host = match request.uri().host() {
            Some(host) => host.to_owned(),
            None => {
                let named = request.headers().get(HOST)?.to_str().unwrap_or("?");
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

/// Middleware that passes authorized requests on.
pub(crate) async fn enter(
    State(listener): State<NetworkListener>,
    request: Request<Body>,
    next: Next,
) -> HandlerResult {
    listener.admit(&request)?;
    Ok(next.run(request).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(admitted: Result<(), Failed>) -> Option<StatusCode> {
        admitted.err().map(|Failed(answer)| answer.status())
    }

    fn asked(method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<StatusCode> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let listener = NetworkListener::new(false, &["10.0.0.1:18780", "ctl1.example:18780"]);
        status(listener.admit(&request.body(()).unwrap()))
    }

    #[test]
    fn operator_on_this_machine_is_admitted() {
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
    fn web_page_is_refused() {
        let host = ("host", "127.0.0.1:18780");
        let text = ("content-type", "text/plain");
        let origin = ("origin", "http://evil.example");
        let refused = |headers: &[_]| asked("POST", "/v1/leader", headers);
        assert_eq!(
            refused(&[host, text]),
            Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        assert_eq!(
            refused(&[host, ("content-type", "")]),
            Some(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        );
        assert_eq!(refused(&[host, origin]), Some(StatusCode::FORBIDDEN));
        let rebound = asked("GET", "/v1/status", &[("host", "evil.example:18780")]);
        assert_eq!(rebound, Some(StatusCode::MISDIRECTED_REQUEST));
        let absolute = asked("GET", "http://evil.example/v1/status", &[host]);
        assert_eq!(absolute, Some(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn tls_client_without_an_operators_certificate_is_refused() {
        let listener = NetworkListener::new(true, &[]);
        let refused = status(listener.admit(&Request::new(())));
        assert_eq!(refused, Some(StatusCode::FORBIDDEN));
    }
}
