//! The requests of an HTTP/2 connection that are being answered. Over HTTP/1 there is one at a time, and hyper
//! itself ends a connection that has none for long.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// How many there are.
#[derive(Clone)]
pub(super) struct UnderWay(Arc<Mutex<Count>>);

struct Count {
    requests: usize,
    /// When the last one ended.
    idle_since: Instant,
}

/// One of them, until it is dropped.
pub(super) struct Answering(UnderWay);

impl UnderWay {
    pub(super) fn none() -> Self {
        Self(Arc::new(Mutex::new(Count {
            requests: 0,
            idle_since: Instant::now(),
        })))
    }

    /// One more, and whether it is the only one.
    pub(super) fn begin(&self) -> (Answering, bool) {
        let mut count = self.0.lock();
        count.requests += 1;
        (Answering(self.clone()), count.requests == 1)
    }

    /// Waits until there was none for so long.
    pub(super) async fn idle_for(&self, limit: Duration) {
        loop {
            let idle = {
                let count = self.0.lock();
                match count.requests {
                    0 => count.idle_since.elapsed(),
                    _ => Duration::ZERO,
                }
            };
            if idle >= limit {
                return;
            }
            sleep(limit - idle).await;
        }
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let mut count = self.0.0.lock();
        count.requests -= 1;
        count.idle_since = Instant::now();
    }
}

impl Answering {
    /// A body with whose last byte this ends.
    pub(super) fn until_sent(self, body: Body) -> Body {
        // The closure lives as long as the body.
        Body::new(body.map_err(move |error| {
            let _ = &self;
            error
        }))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::HttpBody;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn connection_is_idle_from_the_end_of_its_last_answer() {
        let under_way = UnderWay::none();
        let begun = Instant::now();
        under_way.idle_for(LIMIT).await;
        assert_eq!(begun.elapsed(), LIMIT);

        let (one, is_first) = under_way.begin();
        let (other, is_second) = under_way.begin();
        assert!(is_first && !is_second);
        let body = one.until_sent(Body::from("answer"));
        assert_eq!(body.size_hint().exact(), Some(6));
        drop(other);
        let begun = Instant::now();
        let sent = async {
            sleep(4 * LIMIT).await;
            drop(body);
        };
        tokio::join!(sent, under_way.idle_for(LIMIT));
        assert_eq!(begun.elapsed(), 5 * LIMIT);
    }
}
