//! A connection with a minimum rate: a peer that reads an answer too slowly is cut off, and a peer
//! that is answered before it has sent everything gets time to read the answer.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use placement_api::http::{GRACE, MIN_BYTES_PER_S};
use placement_base::net::BoxStream;

/// How long further input is read after the answer.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum bytes of further input that are read.
const LINGER_MAX_BYTES: usize = 1024 * 1024;

/// Announcements of responses to a connection.
#[derive(Clone, Default)]
pub(super) struct ResponseAnnouncements(Arc<Flags>);

#[derive(Default)]
struct Flags {
    closes: AtomicBool,
    has_begun: AtomicBool,
}

impl ResponseAnnouncements {
    /// Announces that the connection is closed after this response, while its peer may still be
    /// sending.
    pub(super) fn close(&self) {
        self.0.closes.store(true, Ordering::Relaxed);
    }

    /// Announces a new response: from now on the peer's rate is measured for this response.
    pub(super) fn response(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
    }
}

/// A stream whose peer must read at least [`MIN_BYTES_PER_S`].
pub(super) struct PacedStream {
    stream: BoxStream,
    announced: ResponseAnnouncements,
    /// When this node began to wait for the peer to read.
    waiting: Option<Instant>,
    /// For this response: total duration of the earlier waits for the peer.
    waited: Duration,
    /// For this response: number of bytes that the peer has accepted.
    taken: u64,
    timer: Pin<Box<Sleep>>,
    /// Once the write side is closed: number of further input bytes that are read and discarded.
    ending: Option<usize>,
}

impl PacedStream {
    pub(super) fn new(stream: BoxStream, announced: ResponseAnnouncements) -> Self {
        Self {
            stream,
            announced,
            waiting: None,
            waited: Duration::ZERO,
            taken: 0,
            timer: Box::pin(sleep_until(Instant::now())),
            ending: None,
        }
    }

    /// Resets the counters if a response has begun.
    fn begin_response(&mut self) {
        let has_begun = &self.announced.0.has_begun;
        if has_begun.load(Ordering::Relaxed) {
            has_begun.store(false, Ordering::Relaxed);
            (self.waiting, self.waited, self.taken) = (None, Duration::ZERO, 0);
        }
    }

    /// Checks the time while the peer reads nothing.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.waiting.is_none() {
            let now = Instant::now();
            self.waiting = Some(now);
            let earned = Duration::from_secs(self.taken / MIN_BYTES_PER_S);
            let left = (GRACE + earned).saturating_sub(self.waited);
            self.timer.as_mut().reset(now + left);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(io::Error::new(
            ErrorKind::TimedOut,
            "the peer reads its answer too slowly",
        ))
    }

    /// Counts the bytes of a write that the peer has accepted.
    fn written(
        &mut self,
        cx: &mut Context<'_>,
        taken: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(taken) = taken else {
            return self.wait(cx).map(Err);
        };
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.taken += *taken.as_ref().unwrap_or(&0) as u64;
        Poll::Ready(taken)
    }

    /// Reads further input, so that the connection is not reset before the peer has read its
    /// answer.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let left_bytes = self.ending.get_or_insert_with(|| {
            self.timer.as_mut().reset(Instant::now() + LINGER);
            LINGER_MAX_BYTES
        });
        let mut space = [0; 4096];
        while *left_bytes > 0 && self.timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    *left_bytes = left_bytes.saturating_sub(buffer.filled().len());
                }
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.begin_response();
        let taken = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.written(cx, taken)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.begin_response();
        let taken = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.written(cx, taken)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.ending.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            if !self.announced.0.closes.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn paced(stream: DuplexStream) -> (PacedStream, ResponseAnnouncements) {
        let announced = ResponseAnnouncements::default();
        (
            PacedStream::new(Box::new(stream), announced.clone()),
            announced,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn peer_that_reads_nothing_is_cut_off() {
        let (here, _there) = duplex(64);
        let (mut paced, _) = paced(here);
        let begun = Instant::now();
        let error = paced.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_peer_is_cut_off_in_the_end() {
        let rate = MIN_BYTES_PER_S as usize;
        let answer = vec![0; 20 * rate];
        for (bytes_per_s, all) in [(rate / 2, false), (2 * rate, true)] {
            let (here, mut there) = duplex(64);
            let (mut paced, _) = paced(here);
            let slow = async {
                let mut taken = vec![0; bytes_per_s / 8];
                loop {
                    tokio::time::sleep(Duration::from_millis(125)).await;
                    if there.read_exact(&mut taken).await.is_err() {
                        return;
                    }
                }
            };
            let sent = tokio::select! {
                sent = paced.write_all(&answer) => sent,
                () = slow => panic!("the writer ends first"),
            };
            assert_eq!(sent.is_ok(), all, "{bytes_per_s}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_response_gives_a_later_one_no_more_time() {
        let (here, mut there) = duplex(64);
        let (mut paced, announced) = paced(here);
        let (mut taken, large) = (vec![0; 100_000], vec![0; 100_000]);
        let (sent, _) = tokio::join!(paced.write_all(&large), there.read_exact(&mut taken));
        sent.unwrap();
        announced.response();
        let begun = Instant::now();
        let error = paced.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_of_a_connection_does_not_count() {
        let (here, mut there) = duplex(64);
        let (mut paced, _) = paced(here);
        for _ in 0..3 {
            paced.write_all(&[0; 10]).await.unwrap();
            there.read_exact(&mut [0; 10]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn input_after_the_answer_is_read_for_a_while() {
        let (here, mut there) = duplex(64);
        let (mut paced, announced) = paced(here);
        announced.close();
        let sender = async {
            there.write_all(&[0; 10_000]).await.unwrap();
            drop(there);
        };
        let begun = Instant::now();
        tokio::join!(async { paced.shutdown().await.unwrap() }, sender);
        assert_eq!(begun.elapsed(), Duration::ZERO, "the sender has ended");
        let (here, _there) = duplex(64);
        let mut paced = PacedStream::new(Box::new(here), announced);
        paced.shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), LINGER, "this one goes on");
    }
}
