//! Cross-origin requests: which web pages may call the API.
//! Source: the W3C recommendation on cross-origin resource sharing, sections 6.1 and 6.2.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    CONTENT_TYPE, HeaderName, HeaderValue, VARY,
};
use http::{HeaderMap, Method, Response, StatusCode};

use axum::body::Body;

use super::headers;
use super::settings::CorsSettings;

/// Request headers that need no permission.
const SIMPLE_HEADERS: [&str; 8] = [
    "accept",
    "accept-language",
    "content-type",
    "cache-control",
    "content-language",
    "expires",
    "last-modified",
    "pragma",
];

/// Adds to a response what a browser wants to know. Without allowed origins, nothing.
pub(in crate::http) fn decorate(
    settings: &CorsSettings,
    method: &Method,
    request: &HeaderMap,
    response: Response<Body>,
) -> Response<Body> {
    if settings.allowed_origin.is_empty() {
        return response;
    }
    if method == Method::OPTIONS {
        return preflight(settings, request, response);
    }
    let mut response = response;
    if let Some(origin) = permitted_origin(settings, request) {
        let exposed = settings.expose_headers.join(",");
        let headers = response.headers_mut();
        let vary = headers::text(headers, "vary");
        put(
            headers,
            VARY,
            &vary.map_or("Origin".to_owned(), |vary| format!("{vary},Origin")),
        );
        permit(settings, headers, &origin);
        if !exposed.is_empty() {
            put(headers, ACCESS_CONTROL_EXPOSE_HEADERS, &exposed);
        }
    }
    response
}

/// The browser asks before it sends the real request. Whatever the API thinks of OPTIONS, the
/// answer is 200; without the permitting headers it means no.
fn preflight(
    settings: &CorsSettings,
    request: &HeaderMap,
    response: Response<Body>,
) -> Response<Body> {
    let mut response = response;
    if !response.status().is_success() {
        *response.status_mut() = StatusCode::OK;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_TYPE);
        response.headers_mut().remove(http::header::ALLOW);
    }
    let Some(origin) = permitted_origin(settings, request) else {
        return response;
    };
    let Some(method) = headers::text(request, "access-control-request-method") else {
        return response;
    };
    let asked = headers::text(request, "access-control-request-headers").unwrap_or_default();
    let asked: Vec<&str> = asked
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let permitted = |name: &&str| {
        SIMPLE_HEADERS
            .iter()
            .any(|simple| simple.eq_ignore_ascii_case(name))
            || settings
                .allow_headers
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(name))
    };
    if !settings.allow_methods.contains(&method) || !asked.iter().all(permitted) {
        return response;
    }
    let headers = response.headers_mut();
    put(headers, VARY, "Origin");
    permit(settings, headers, &origin);
    if let Some(seconds) = settings.max_age_s.filter(|seconds| *seconds > 0) {
        put(headers, ACCESS_CONTROL_MAX_AGE, &seconds.to_string());
    }
    put(headers, ACCESS_CONTROL_ALLOW_METHODS, &method);
    if !asked.is_empty() {
        put(headers, ACCESS_CONTROL_ALLOW_HEADERS, &asked.join(","));
    }
    response
}

fn permitted_origin(settings: &CorsSettings, request: &HeaderMap) -> Option<String> {
    let origin = headers::text(request, "origin")?;
    if settings.allowed_origin.contains(&origin) {
        return Some(origin);
    }
    let any = settings.allowed_origin.iter().any(|allowed| allowed == "*");
    any.then(|| "*".to_owned())
}

fn permit(settings: &CorsSettings, headers: &mut HeaderMap, origin: &str) {
    put(headers, ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if settings.allow_credentials {
        put(headers, ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
