//! The successful answer of a handler.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use placement_model::types::Timestamp;
use serde::Serialize;

use crate::http::errors::to_json;

/// A response before its common headers are written.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// 2xx.
    pub(crate) status: StatusCode,
    /// JSON in one piece or in several, or nothing.
    pub(crate) body: Vec<Bytes>,
    /// A body that comes bit by bit.
    pub(crate) stream: Option<Stream>,
    /// Path of what was created, below the API's own, for `location`.
    pub(crate) location: Option<String>,
    /// `last-modified` and `cache-control`, from 1.15.
    pub(crate) caching: Option<Caching>,
}

/// A body that comes bit by bit.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) content_type: &'static str,
    pub(crate) body: Body,
    /// How long its client may take for all of it.
    pub(crate) within: Duration,
}

/// The headers for caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caching {
    /// `cache-control: no-cache` alone.
    NoDate,
    /// Modified at this time.
    At(SystemTime),
}

impl Answer {
    /// 200 with a body.
    pub(crate) fn json(body: &impl Serialize) -> Self {
        Self::chunks(vec![to_json(body)])
    }

    /// 200 with a body that is JSON already, in pieces.
    pub(crate) fn chunks(body: Vec<Bytes>) -> Self {
        Self {
            body,
            ..Self::default()
        }
    }

    /// 200 with a body that comes bit by bit; it is not to be kept.
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

    /// 204.
    pub(crate) fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            ..Self::default()
        }
    }

    /// The same with another status.
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The same with the path of what was created.
    pub(crate) fn location(self, path: String) -> Self {
        Self {
            location: Some(path),
            ..self
        }
    }

    /// The same with headers for caches.
    pub(crate) fn caching(self, caching: Caching) -> Self {
        Self {
            caching: Some(caching),
            ..self
        }
    }

    /// The same, modified at this time of the model's. A header has room for years of four digits;
    /// a backup may have brought others.
    pub(crate) fn modified(self, at: Timestamp) -> Self {
        let micros = at.clamp(Timestamp(0), Timestamp::LAST).0.unsigned_abs();
        self.caching(Caching::At(UNIX_EPOCH + Duration::from_micros(micros)))
    }
}
