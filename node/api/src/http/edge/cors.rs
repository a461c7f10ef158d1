//! Cross-origin requests: which web pages may call the API.
//! Source: the W3C recommendation on cross-origin resource sharing, sections 6.1 and 6.2.

use axum::body::Body;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY,
};
use http::{HeaderMap, Method, Response};

use super::headers;
use super::settings::CorsSettings;

/// Request headers that pages may send. The first eight are always allowed.
const ALLOWED_HEADERS: &str = "accept,accept-language,content-type,cache-control,content-language,expires,\
    last-modified,pragma,X-Auth-Token,X-Openstack-Request-Id,X-Identity-Status,X-Roles,X-Service-Catalog,\
    X-User-Id,X-Tenant-Id,OpenStack-API-Version";
/// Headers of responses that pages may read.
const EXPOSED_HEADERS: &str =
    "X-Auth-Token,X-Openstack-Request-Id,X-Subject-Token,X-Service-Token,OpenStack-API-Version";
/// Methods that pages may use: all methods of the API.
const METHODS: [&str; 5] = ["GET", "PUT", "POST", "DELETE", "PATCH"];
/// How long a browser may cache a preflight answer, in seconds; upstream's value.
const MAX_AGE_S: &str = "3600";

/// Adds the CORS headers to a response. Does nothing if no origin is allowed.
pub(crate) fn decorate(
    settings: &CorsSettings,
    method: &Method,
    request: &HeaderMap,
    response: &mut Response<Body>,
) {
    if settings.allowed_origin.is_empty() {
        return;
    }
    let origin = permitted_origin(settings, request);
    if method == Method::OPTIONS {
        // The status of OPTIONS is always 200; a browser reads missing CORS headers as a refusal.
        // An error is replaced as a whole, as its headers belong to another status.
        if !response.status().is_success() {
            *response = Response::new(Body::empty());
        }
        preflight(origin, request, response.headers_mut());
    } else if let Some(origin) = origin {
        let headers = response.headers_mut();
        let vary = headers::text(headers, "vary");
        let vary = vary.map_or("Origin".to_owned(), |vary| format!("{vary},Origin"));
        headers::put(headers, VARY, &vary);
        permit(headers, &origin);
        headers::put(headers, ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    }
}

/// Answers a preflight request: adds the CORS headers if the origin, the method and all headers are
/// allowed.
fn preflight(origin: Option<String>, request: &HeaderMap, headers: &mut HeaderMap) {
    let method = headers::text(request, "access-control-request-method");
    let (Some(origin), Some(method)) = (origin, method) else {
        return;
    };
    let header = headers::text(request, "access-control-request-headers").unwrap_or_default();
    let asked: Vec<&str> = header
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let permitted = |name: &&str| {
        let mut known = ALLOWED_HEADERS.split(',');
        known.any(|known| known.eq_ignore_ascii_case(name))
    };
    if !METHODS.contains(&&*method) || !asked.iter().all(permitted) {
        return;
    }
    headers::put(headers, VARY, "Origin");
    permit(headers, &origin);
    headers::put(headers, ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    headers::put(headers, ACCESS_CONTROL_ALLOW_METHODS, &method);
    if !asked.is_empty() {
        headers::put(headers, ACCESS_CONTROL_ALLOW_HEADERS, &asked.join(","));
    }
}

fn permitted_origin(settings: &CorsSettings, request: &HeaderMap) -> Option<String> {
    let origin = headers::text(request, "origin")?.into_owned();
    if settings.allowed_origin.contains(&origin) {
        return Some(origin);
    }
    let any = settings.allowed_origin.iter().any(|allowed| allowed == "*");
    any.then(|| "*".to_owned())
}

fn permit(headers: &mut HeaderMap, origin: &str) {
    headers::put(headers, ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers::put(headers, ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://horizon.example";

    fn settings(allowed_origin: &str) -> CorsSettings {
        CorsSettings {
            allowed_origin: vec![allowed_origin.to_owned()],
        }
    }

    fn sent(headers: &[(&str, &str)]) -> HeaderMap {
        let mut found = HeaderMap::new();
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            found.insert(name, value.parse().unwrap());
        }
        found
    }

    fn answer(status: u16) -> Response<Body> {
        let answer = Response::builder()
            .status(status)
            .header(VARY, "openstack-api-version");
        answer.header("allow", "GET").body(Body::empty()).unwrap()
    }

    fn decorated(
        settings: &CorsSettings,
        method: &Method,
        request: &HeaderMap,
        mut response: Response<Body>,
    ) -> Response<Body> {
        decorate(settings, method, request, &mut response);
        response
    }

    fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
        Some(response.headers().get(name)?.to_str().unwrap())
    }

    #[test]
    fn a_page_of_an_allowed_origin_may_read_the_answer() {
        let request = sent(&[("origin", PAGE)]);
        let response = decorated(&settings(PAGE), &Method::GET, &request, answer(200));
        assert_eq!(header(&response, "access-control-allow-origin"), Some(PAGE));
        assert_eq!(
            header(&response, "access-control-allow-credentials"),
            Some("true")
        );
        assert_eq!(
            header(&response, "access-control-expose-headers"),
            Some(EXPOSED_HEADERS)
        );
        assert_eq!(
            header(&response, "vary"),
            Some("openstack-api-version,Origin")
        );
    }

    #[test]
    fn other_origins_get_no_cors_headers() {
        let others = [sent(&[("origin", "https://elsewhere.example")]), sent(&[])];
        for request in others {
            let response = decorated(&settings(PAGE), &Method::GET, &request, answer(200));
            assert_eq!(header(&response, "access-control-allow-origin"), None);
            assert_eq!(header(&response, "vary"), Some("openstack-api-version"));
        }
        let request = sent(&[("origin", PAGE)]);
        let off = CorsSettings::default();
        let response = decorated(&off, &Method::OPTIONS, &request, answer(405));
        assert_eq!(response.status(), 405);
    }

    #[test]
    fn a_star_allows_every_origin() {
        let request = sent(&[("origin", PAGE)]);
        let response = decorated(&settings("*"), &Method::GET, &request, answer(200));
        assert_eq!(header(&response, "access-control-allow-origin"), Some("*"));
    }

    fn preflight(headers: &[(&str, &str)]) -> Response<Body> {
        decorated(
            &settings(PAGE),
            &Method::OPTIONS,
            &sent(headers),
            answer(405),
        )
    }

    #[test]
    fn a_preflight_is_answered_with_what_was_asked_for() {
        let response = preflight(&[
            ("origin", PAGE),
            ("access-control-request-method", "PUT"),
            (
                "access-control-request-headers",
                "x-auth-token, Content-Type",
            ),
        ]);
        assert_eq!(response.status(), 200);
        assert_eq!(header(&response, "allow"), None);
        assert_eq!(header(&response, "vary"), Some("Origin"));
        assert_eq!(
            header(&response, "access-control-allow-methods"),
            Some("PUT")
        );
        let allowed = header(&response, "access-control-allow-headers");
        assert_eq!(allowed, Some("x-auth-token,Content-Type"));
        assert_eq!(header(&response, "access-control-max-age"), Some("3600"));
    }

    #[test]
    fn a_preflight_for_what_is_not_allowed_has_no_permission() {
        let method = ("access-control-request-method", "PUT");
        for asked in [
            vec![("origin", "https://elsewhere.example"), method],
            vec![("origin", PAGE)],
            vec![("origin", PAGE), ("access-control-request-method", "BREW")],
            vec![
                ("origin", PAGE),
                method,
                ("access-control-request-headers", "x-other"),
            ],
        ] {
            let response = preflight(&asked);
            assert_eq!(response.status(), 200, "{asked:?}");
            assert_eq!(
                header(&response, "access-control-allow-origin"),
                None,
                "{asked:?}"
            );
        }
    }
}
