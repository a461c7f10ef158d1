//! Decides which browser requests are forwarded: only reads of pages that carry the right cookie.
//! The browser gets the cookie in exchange for the key in the printed address.

use std::net::SocketAddr;
use std::sync::Mutex;

use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, Method, Request, StatusCode};
use uuid::Uuid;

const NO_COOKIE: &str = "This browser has no valid cookie for this `placementctl web`. Its address works only once: \
                         restart the command and open the address that it prints.\n";
const NOT_A_READ: &str = "The pages are read-only: only GET and HEAD are allowed.\n";
const FOREIGN_HOST: &str = "Wrong host name. Open the address that `placementctl web` printed.\n";
const FOREIGN_PAGE: &str =
    "The request comes from another site. Enter the address in the address bar of the browser.\n";
const NO_PAGE: &str = "There is no such page. The pages begin at /web/.\n";
const BOUNDARY: &str = "Only paths below /web/ are forwarded.\n";

/// Decision about a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Forward this path with its query.
    Pass(String),
    /// Redirect to the first page, with this `Set-Cookie` unless the browser has the cookie.
    Enter(Option<String>),
    /// Refuse the request, with a reason.
    Refuse(StatusCode, &'static str),
}

/// Key and cookie of one process. Each is random and has more than 256 bits.
pub(super) struct Gate {
    hosts: [String; 2],
    /// `None` after its use.
    key: Mutex<Option<String>>,
    /// Its name contains the port, since browsers send cookies to all ports of a host.
    cookie: String,
}

impl Gate {
    pub(super) fn new(address: SocketAddr) -> Self {
        let port = address.port();
        Self {
            hosts: [address.to_string(), format!("localhost:{port}")],
            key: Mutex::new(Some(secret())),
            cookie: format!("placementctl-{port}={}", secret()),
        }
    }

    /// The key; empty after its use.
    pub(super) fn key(&self) -> String {
        let key = self.key.lock().expect("no panic while locked");
        key.clone().unwrap_or_default()
    }

    pub(super) fn judge<T>(&self, request: &Request<T>) -> Verdict {
        let (uri, headers) = (request.uri(), request.headers());
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return Verdict::Refuse(StatusCode::METHOD_NOT_ALLOWED, NOT_A_READ);
        }
        // Protects against DNS rebinding: a foreign page whose name resolves to this address sends
        // its own name as `Host`.
        let is_own = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        if uri.authority().is_some() || !only(headers, HOST.as_str()).is_some_and(is_own) {
            return Verdict::Refuse(StatusCode::MISDIRECTED_REQUEST, FOREIGN_HOST);
        }
        if comes_from_another_page(headers, is_own) {
            return Verdict::Refuse(StatusCode::FORBIDDEN, FOREIGN_PAGE);
        }
        if uri.path() == "/"
            && request.method() == Method::GET
            && let Some(key) = uri.query().and_then(|query| query.strip_prefix("key="))
            && self.takes(key)
        {
            let cookie = &self.cookie;
            let cookie = format!("{cookie}; HttpOnly; SameSite=Strict; Path=/");
            return Verdict::Enter(Some(cookie));
        }
        if !self.knows(headers) {
            return Verdict::Refuse(StatusCode::FORBIDDEN, NO_COOKIE);
        }
        match uri.path() {
            "/" => Verdict::Enter(None),
            path if leads_out(path) => Verdict::Refuse(StatusCode::NOT_FOUND, BOUNDARY),
            path if path == "/web" || path.starts_with("/web/") => {
                let target = uri.path_and_query();
                Verdict::Pass(target.map_or("/web", |target| target.as_str()).to_owned())
            }
            _ => Verdict::Refuse(StatusCode::NOT_FOUND, NO_PAGE),
        }
    }

    /// Accepts the key once.
    fn takes(&self, given: &str) -> bool {
        let mut key = self.key.lock().expect("no panic while locked");
        let is_it = key.as_ref().is_some_and(|key| is_same(key, given));
        if is_it {
            *key = None;
        }
        is_it
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        let mut all = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'));
        all.any(|cookie| is_same(&self.cookie, cookie.trim()))
    }
}

fn secret() -> String {
    [(); 3]
        .map(|()| Uuid::new_v4().simple().to_string())
        .concat()
}

/// Compares in constant time.
fn is_same(secret: &str, given: &str) -> bool {
    let pairs = secret.bytes().zip(given.bytes());
    let differ = pairs.fold(0, |differ, (one, other)| differ | (one ^ other));
    secret.len() == given.len() && differ == 0
}

/// The value of a header that occurs exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

/// Whether a page of another origin, such as another port of this machine, caused the request. Only
/// old browsers send neither header.
fn comes_from_another_page(headers: &HeaderMap, is_own: impl Fn(&str) -> bool) -> bool {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    let is_foreign = site.is_some_and(|site| ![&b"none"[..], b"same-origin"].contains(&site));
    let is_own = |origin: &str| origin.strip_prefix("http://").is_some_and(&is_own);
    is_foreign
        || headers.contains_key(ORIGIN) && !only(headers, ORIGIN.as_str()).is_some_and(is_own)
}

/// Whether a path segment is `.` or `..`, in any encoding.
fn leads_out(path: &str) -> bool {
    let plain = path.to_ascii_lowercase().replace("%2e", ".");
    plain
        .split('/')
        .any(|segment| [".", ".."].contains(&segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST_SENT: (&str, &str) = ("host", "127.0.0.1:8780");

    fn gate() -> Gate {
        Gate::new("127.0.0.1:8780".parse().unwrap())
    }

    fn asked(gate: &Gate, method: &str, path: &str, headers: &[(&str, &str)]) -> Verdict {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        gate.judge(&request.body(()).unwrap())
    }

    fn status(verdict: Verdict) -> u16 {
        match verdict {
            Verdict::Pass(_) => 200,
            Verdict::Enter(_) => 303,
            Verdict::Refuse(status, why) => {
                assert!(why.ends_with(".\n"), "{why}");
                status.as_u16()
            }
        }
    }

    #[test]
    fn key_is_exchanged_once_for_a_cookie_that_opens_pages() {
        let gate = gate();
        let enter = format!("/?key={}", gate.key());
        assert!(gate.key().len() * 4 >= 256);
        let wrong = asked(&gate, "GET", "/?key=0", &[HOST_SENT]);
        assert_eq!(status(wrong), 403);
        // A HEAD request, such as for a preview, does not use up the key.
        assert_eq!(status(asked(&gate, "HEAD", &enter, &[HOST_SENT])), 403);
        let Verdict::Enter(Some(cookie)) = asked(&gate, "GET", &enter, &[HOST_SENT]) else {
            panic!("the key is not accepted");
        };
        assert!(
            cookie.contains("; HttpOnly; SameSite=Strict; Path=/"),
            "{cookie}"
        );
        assert_eq!(status(asked(&gate, "GET", &enter, &[HOST_SENT])), 403);
        let sent = cookie.split(';').next().unwrap();
        for (sent, expected) in [
            (format!("a=b; {sent}"), 200),
            (sent[..sent.len() - 1].to_owned(), 403),
            (sent.replace('=', "=0"), 403),
            ("placementctl-8780=".to_owned(), 403),
        ] {
            let answer = asked(&gate, "GET", "/web/?a=b", &[HOST_SENT, ("cookie", &sent)]);
            assert_eq!(status(answer), expected, "{sent}");
        }
        let other = asked(
            &super::Gate::new("127.0.0.1:8780".parse().unwrap()),
            "GET",
            "/web/",
            &[HOST_SENT, ("cookie", sent)],
        );
        assert_eq!(status(other), 403);
    }

    #[test]
    fn only_reads_of_pages_by_their_own_origin_are_passed_on() {
        let gate = gate();
        let cookie = ("cookie", &*gate.cookie.clone());
        for (method, path, headers, expected) in [
            ("GET", "/web", &[HOST_SENT][..], 200),
            ("HEAD", "/web/", &[("host", "LOCALHOST:8780")], 200),
            ("GET", "/", &[HOST_SENT], 303),
            (
                "GET",
                "/web/",
                &[HOST_SENT, ("sec-fetch-site", "none")],
                200,
            ),
            (
                "GET",
                "/web/",
                &[HOST_SENT, ("origin", "http://127.0.0.1:8780")],
                200,
            ),
            ("POST", "/web/", &[HOST_SENT], 405),
            ("DELETE", "/v1/members/1", &[HOST_SENT], 405),
            ("GET", "/v1/status", &[HOST_SENT], 404),
            ("GET", "/webs", &[HOST_SENT], 404),
            ("GET", "/web/../v1/backup", &[HOST_SENT], 404),
            ("GET", "/web/%2E%2e/v1/backup", &[HOST_SENT], 404),
            ("GET", "/web/", &[], 421),
            ("GET", "/web/", &[("host", "evil.example:8780")], 421),
            ("GET", "/web/", &[("host", "127.0.0.1:8781")], 421),
            ("GET", "/web/", &[HOST_SENT, HOST_SENT], 421),
            ("GET", "http://127.0.0.1:8780/web/", &[HOST_SENT], 421),
            (
                "GET",
                "/web/",
                &[HOST_SENT, ("sec-fetch-site", "cross-site")],
                403,
            ),
            (
                "GET",
                "/web/",
                &[HOST_SENT, ("sec-fetch-site", "same-site")],
                403,
            ),
            (
                "GET",
                "/web/",
                &[HOST_SENT, ("origin", "http://evil.example")],
                403,
            ),
            ("GET", "/web/", &[HOST_SENT, ("origin", "null")], 403),
        ] {
            let headers = [headers, &[cookie]].concat();
            let answer = asked(&gate, method, path, &headers);
            assert_eq!(status(answer), expected, "{method} {path} {headers:?}");
        }
    }
}
