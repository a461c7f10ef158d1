//! The successful answer of a handler.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use placement_model::types::Timestamp;
use serde::Serialize;

use crate::http::errors::to_json;

/// A response before the common headers are written.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Always a 2xx status.
    pub(crate) status: StatusCode,
    /// JSON in one or several chunks; empty if there is no body.
    pub(crate) body: Vec<Bytes>,
    /// A streamed body, instead of `body`.
    pub(crate) stream: Option<Stream>,
    /// Path of the created resource below the API's own path, for `location`.
    pub(crate) location: Option<String>,
    /// `last-modified` and `cache-control`, from microversion 1.15.
    pub(crate) caching: Option<Caching>,
}

/// A body that is written while the client reads it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) content_type: &'static str,
    pub(crate) body: Body,
    /// Time limit for the client to receive the whole body.
    pub(crate) within: Duration,
}

/// The headers for caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// `cache-control: no-cache` alone.
    NoDate,
    /// `cache-control: no-cache` and this `last-modified`.
    At(SystemTime),
}

impl Answer {
    /// 200 with a body.
    pub(crate) fn json(body: &impl Serialize) -> Self {
        Self::chunks(vec![to_json(body)])
    }

    /// 200 with a body that is JSON already, in chunks.
    pub(crate) fn chunks(body: Vec<Bytes>) -> Self {
        Self {
            body,
            ..Self::default()
        }
    }

    /// 200 with a streamed body, which caches must not store.
    pub(crate) fn stream(stream: Stream) -> Self {
        Self {
            stream: Some(stream),
            caching: Some(Caching::NoDate),
            ..Self::default()
        }
    }

    /// 201 without a body.
    pub(crate) fn created() -> Self {
        Self {
            status: StatusCode::CREATED,
            ..Self::default()
        }
    }

    /// 204 without a body.
    pub(crate) fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            ..Self::default()
        }
    }

    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Sets the path of the created resource.
    pub(crate) fn location(self, path: String) -> Self {
        Self {
            location: Some(path),
            ..self
        }
    }

    /// Sets the headers for caches.
    pub(crate) fn caching(self, caching: Caching) -> Self {
        Self {
            caching: Some(caching),
            ..self
        }
    }

    /// Sets the modification time, clamped to the range of the header: years of four digits. A
    /// restored backup may contain other years.
    pub(crate) fn modified(self, at: Timestamp) -> Self {
        let micros = at.clamp(Timestamp(0), Timestamp::LAST).0.unsigned_abs();
        self.caching(Caching::At(UNIX_EPOCH + Duration::from_micros(micros)))
    }
}
