//! Reading a body: no longer than is allowed, no slower than is borne, and only while there is memory.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::admission::Held;
use super::settings::{BODY_COST, MIN_BYTES_PER_S, RequestLimits};
use crate::http::errors::ApiError;

/// How long a client may take however little it sends.
const GRACE: Duration = Duration::from_secs(10);

/// Reads a body to its end.
///
/// # Errors
/// 413 if it is too long, 408 if it comes too slowly, 400 if it breaks off, 503 if others' bodies
/// take all the memory there is.
pub(super) async fn read(
    mut body: Body,
    headers: &HeaderMap,
    limits: &RequestLimits,
    held: &mut Held,
) -> Result<Bytes, ApiError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let limit = limits.body_bytes;
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: u64| length > limit as u64) {
        return Err(ApiError::body_too_large(limit));
    }
    let begun = Instant::now();
    let mut read = BytesMut::new();
    loop {
        let earned = Duration::from_secs(read.len() as u64 / MIN_BYTES_PER_S);
        let due = begun + limits.body_timeout.min(GRACE + earned);
        let frame = timeout_at(due, body.frame()).await;
        match frame.map_err(|_| ApiError::body_too_slow())? {
            None => return Ok(read.freeze()),
            Some(Err(error)) => {
                tracing::debug!(%error, "a body broke off");
                let message = "The body could not be read to its end. Send it again.";
                return Err(ApiError::bad_request(message));
            }
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                if read.len() + data.len() > limit {
                    return Err(ApiError::body_too_large(limit));
                }
                held.grow_to(BODY_COST * (read.len() + data.len()))?;
                read.extend_from_slice(&data);
            }
        }
    }
}
