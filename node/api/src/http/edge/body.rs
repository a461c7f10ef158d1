//! Reads a request body within limits of size, pace and memory.

use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::admission::Memory;
use super::settings::{BODY_COST, GRACE, MIN_BYTES_PER_S};
use crate::http::errors::ApiError;

/// Maximum length of an unused body that is read and discarded so that the connection can be used
/// again.
const DISCARDED_MAX_BYTES: usize = 64 * 1024;

/// A body that is being received.
pub(super) struct Incoming {
    body: Body,
    /// The length from `Content-Length`.
    announced: Option<u64>,
    /// Deadline for the whole body.
    end: Instant,
    /// Deadline for the next data.
    due: Instant,
}

impl Incoming {
    /// Starts the clock: the client has `limit` to send the body.
    pub(super) fn new(body: Body, headers: &HeaderMap, limit: Duration) -> Self {
        let announced = headers.get(CONTENT_LENGTH);
        let now = Instant::now();
        Self {
            body,
            announced: announced.and_then(|value| value.to_str().ok()?.parse().ok()),
            end: now + limit,
            due: now + GRACE,
        }
    }

    /// Reads the whole body, at most `limit_bytes`.
    ///
    /// # Errors
    /// 413 if it is too long, 408 if it is too slow, 400 if it ends early, 503 if it exceeds the
    /// caller's share of memory.
    pub(super) async fn read(
        mut self,
        limit_bytes: usize,
        memory: &mut Memory,
    ) -> Result<Bytes, ApiError> {
        if self.body.is_end_stream() {
            return Ok(Bytes::new());
        }
        if self.exceeds(limit_bytes) {
            return Err(ApiError::body_too_large(limit_bytes));
        }
        let mut read = BytesMut::new();
        while let Some(data) = self.next().await? {
            let length = read.len() + data.len();
            if length > limit_bytes {
                return Err(ApiError::body_too_large(limit_bytes));
            }
            memory.grow_to(length)?;
            read.extend_from_slice(&data);
        }
        memory.grow_to(BODY_COST * read.len())?;
        Ok(read.freeze())
    }

    /// Discards the body. Returns whether it was read to its end; a body of more than
    /// [`DISCARDED_MAX_BYTES`] is not.
    ///
    /// # Errors
    /// 408 if it is too slow, 400 if it ends early.
    pub(super) async fn discard(mut self) -> Result<bool, ApiError> {
        if self.body.is_end_stream() {
            return Ok(true);
        }
        if self.exceeds(DISCARDED_MAX_BYTES) {
            return Ok(false);
        }
        let mut discarded = 0;
        while let Some(data) = self.next().await? {
            discarded += data.len();
            if discarded > DISCARDED_MAX_BYTES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn exceeds(&self, limit_bytes: usize) -> bool {
        (self.announced).is_some_and(|length| length > limit_bytes as u64)
    }

    /// The next data; `None` at the end. Received data extends the deadline, to at most [`GRACE`]
    /// from now.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let frame = timeout_at(self.due.min(self.end), self.body.frame()).await;
        match frame.map_err(|_| ApiError::body_too_slow())? {
            None => Ok(None),
            Some(Err(error)) => {
                tracing::debug!(%error, "request body ended early");
                let message = "The body ended early. Send the request again.";
                Err(ApiError::bad_request(message))
            }
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                let earned = Duration::from_secs(data.len() as u64) / MIN_BYTES_PER_S as u32;
                self.due = (self.due + earned).min(Instant::now() + GRACE);
                Ok(Some(data))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;

    use super::super::admission::Admission;
    use super::super::budget::Caller;
    use super::super::settings::ApiSettings;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A body with `first` bytes at once, and then `pieces` chunks of `then` bytes with a pause
    /// before each.
    fn body(first: usize, then: usize, pieces: usize, pause: Duration) -> Incoming {
        let sent = stream::unfold(0, move |nth| async move {
            let length = if nth == 0 { first } else { then };
            if nth > 0 {
                tokio::time::sleep(pause).await;
            }
            let piece = || {
                (
                    Ok::<_, Infallible>(Bytes::from(vec![b' '; length])),
                    nth + 1,
                )
            };
            (nth <= pieces).then(piece)
        });
        Incoming::new(Body::from_stream(sent), &HeaderMap::new(), LIMIT)
    }

    async fn read(body: Incoming) -> Result<usize, u16> {
        let admission = Admission::new(&ApiSettings::default());
        let mut memory = admission.body(Caller::default());
        let read = body.read(16 << 20, &mut memory).await;
        read.map(|read| read.len())
            .map_err(|error| error.status.as_u16())
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_comes_quickly_and_stops_is_given_up_after_the_grace() {
        let begun = Instant::now();
        let stops = body(15 << 20, 1, usize::MAX, LIMIT);
        assert_eq!(read(stops).await, Err(408));
        assert_eq!(begun.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_comes_byte_by_byte_is_given_up_after_the_grace() {
        let begun = Instant::now();
        let slow = body(15 << 20, 1, usize::MAX, GRACE / 10);
        assert_eq!(read(slow).await, Err(408));
        assert!(begun.elapsed() < GRACE + GRACE / 10);
    }

    #[tokio::test(start_paused = true)]
    async fn body_at_the_least_pace_is_read_and_no_longer_than_the_limit() {
        let second = Duration::from_secs(1);
        let rate = MIN_BYTES_PER_S as usize;
        assert_eq!(read(body(0, rate, 50, second)).await, Ok(50 * rate));
        let begun = Instant::now();
        assert_eq!(read(body(0, rate, 70, second)).await, Err(408));
        assert_eq!(begun.elapsed(), LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_no_one_reads_is_thrown_away_up_to_a_limit() {
        let no_time = Duration::ZERO;
        assert_eq!(body(60_000, 1, 5, no_time).discard().await.ok(), Some(true));
        let long = body(60_000, 60_000, usize::MAX, no_time);
        assert_eq!(long.discard().await.ok(), Some(false));
        let slow = body(1, 1, 9, LIMIT).discard().await;
        assert_eq!(slow.map_err(|error| error.status.as_u16()), Err(408));
    }
}
