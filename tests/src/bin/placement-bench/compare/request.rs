//! What is asked of a service, as wrk and the generators of ours both send it.

use std::net::SocketAddr;

use placement_client::MICROVERSION_DEFAULT;
use uuid::Uuid;

/// Stands for a UUID in a path that is another one each time.
pub(super) const FRESH: &str = "@";

/// A request without its headers.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: &'static str,
    /// With query; may have one [`FRESH`].
    pub(super) path: String,
    /// JSON, or nothing.
    pub(super) body: String,
}

/// What every request has.
pub(super) fn headers() -> Vec<(&'static str, String)> {
    vec![
        ("X-Auth-Token", "admin".to_owned()),
        (
            "OpenStack-API-Version",
            format!("placement {MICROVERSION_DEFAULT}"),
        ),
        ("Content-Type", "application/json".to_owned()),
    ]
}

impl Request {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET",
            path: path.into(),
            body: String::new(),
        }
    }

    pub(super) fn put(path: impl Into<String>, body: String) -> Self {
        Self {
            method: "PUT",
            path: path.into(),
            body,
        }
    }

    /// The bytes of it for this server.
    pub(super) fn bytes(&self, server: SocketAddr) -> Vec<u8> {
        let Self { method, path, body } = self;
        let path = match path.split_once(FRESH) {
            Some((before, after)) => format!("{before}{}{after}", Uuid::new_v4()),
            None => path.clone(),
        };
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {server}\r\n");
        for (name, value) in headers() {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text += "\r\n";
        text += body;
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_uuid_is_another_one_each_time() {
        let request = Request::put(format!("/allocations/{FRESH}"), "{}".to_owned());
        let server = SocketAddr::from(([127, 0, 0, 1], 80));
        let bytes = || String::from_utf8(request.bytes(server)).expect("text");
        let (one, other) = (bytes(), bytes());
        assert_ne!(one, other);
        assert_eq!(one.len(), other.len());
        assert!(one.ends_with("\r\nContent-Length: 2\r\n\r\n{}"), "{one}");
    }
}
