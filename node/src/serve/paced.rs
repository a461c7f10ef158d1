//! A connection whose peer has to keep up: who takes an answer too slowly is cut off, and who is
//! answered before it has sent all gets the time to read the answer.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use placement_api::net::BoxStream;

/// How long a peer may keep this node waiting, however little it takes.
const GRACE: Duration = Duration::from_secs(10);
/// How long what a peer still sends is read after it was answered.
const LINGER: Duration = Duration::from_secs(1);
/// How much of it.
const LINGER_MAX_BYTES: usize = 1024 * 1024;

/// How fast a peer has to take what it is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) min_bytes_per_s: u64,
}

/// Said before a connection is closed whose peer may still be sending.
#[derive(Clone, Default)]
pub(super) struct Linger(Arc<AtomicBool>);

impl Linger {
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Marks the beginning of a response: only what the peer takes of it counts from then on.
#[derive(Clone, Default)]
pub(super) struct Patience(Arc<AtomicBool>);

impl Patience {
    pub(super) fn renew(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A stream with a pace.
pub(super) struct Paced {
    stream: BoxStream,
    pace: Pace,
    linger: Linger,
    patience: Patience,
    /// Since when this node waits for the peer to take something.
    waiting: Option<Instant>,
    /// How long it has waited before, and how many bytes the peer has taken, of this response.
    waited: Duration,
    taken: u64,
    timer: Pin<Box<Sleep>>,
    ending: Option<Ending>,
}

/// The write side is closed; what comes is thrown away.
struct Ending {
    left_bytes: usize,
}

impl Paced {
    pub(super) fn new(stream: BoxStream, pace: Pace, linger: Linger, patience: Patience) -> Self {
        Self {
            stream,
            pace,
            linger,
            patience,
            waiting: None,
            waited: Duration::ZERO,
            taken: 0,
            timer: Box::pin(sleep_until(Instant::now())),
            ending: None,
        }
    }

    /// Forgets what was before the response that has begun, if one has.
    fn begin_response(&mut self) {
        if self.patience.0.load(Ordering::Relaxed) {
            self.patience.0.store(false, Ordering::Relaxed);
            (self.waiting, self.waited, self.taken) = (None, Duration::ZERO, 0);
        }
    }

    /// Looks at the clock while the peer takes nothing.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.waiting.is_none() {
            let now = Instant::now();
            self.waiting = Some(now);
            let earned = Duration::from_secs(self.taken / self.pace.min_bytes_per_s);
            let left = (GRACE + earned).saturating_sub(self.waited);
            self.timer.as_mut().reset(now + left);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(io::Error::new(
            ErrorKind::TimedOut,
            "the peer takes its answer too slowly",
        ))
    }

    fn took(&mut self, bytes: usize) {
        if let Some(since) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.taken += bytes as u64;
    }

    /// Reads what the peer still sends, so that it is not told of a broken connection before it has
    /// read its answer.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ending = self.ending.get_or_insert_with(|| {
            self.timer.as_mut().reset(Instant::now() + LINGER);
            Ending {
                left_bytes: LINGER_MAX_BYTES,
            }
        });
        let mut space = [0; 4096];
        while ending.left_bytes > 0 && self.timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {
                    ending.left_bytes = ending.left_bytes.saturating_sub(buffer.filled().len());
                }
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.begin_response();
        match Pin::new(&mut self.stream).poll_write(cx, bytes) {
            Poll::Pending => self.wait(cx).map(Err),
            Poll::Ready(taken) => {
                self.took(*taken.as_ref().unwrap_or(&0));
                Poll::Ready(taken)
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.begin_response();
        match Pin::new(&mut self.stream).poll_write_vectored(cx, bytes) {
            Poll::Pending => self.wait(cx).map(Err),
            Poll::Ready(taken) => {
                self.took(*taken.as_ref().unwrap_or(&0));
                Poll::Ready(taken)
            }
        }
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
            if !self.linger.0.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
        }
        self.poll_linger(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const PACE: Pace = Pace {
        min_bytes_per_s: 1024,
    };

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_off() {
        let (here, _there) = duplex(64);
        let mut paced = Paced::new(Box::new(here), PACE, Linger::default(), Patience::default());
        let begun = Instant::now();
        let error = paced.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_little_at_a_time_is_cut_off_in_the_end() {
        for (bytes_per_s, all) in [(512, false), (2048, true)] {
            let (here, mut there) = duplex(64);
            let mut paced =
                Paced::new(Box::new(here), PACE, Linger::default(), Patience::default());
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
                sent = paced.write_all(&[0; 100_000]) => sent,
                () = slow => panic!("the writer ends first"),
            };
            assert_eq!(sent.is_ok(), all, "{bytes_per_s}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_taken_before_gives_a_later_response_no_more_time() {
        let (here, mut there) = duplex(64);
        let patience = Patience::default();
        let mut paced = Paced::new(Box::new(here), PACE, Linger::default(), patience.clone());
        let (mut taken, large) = (vec![0; 100_000], vec![0; 100_000]);
        let (sent, _) = tokio::join!(paced.write_all(&large), there.read_exact(&mut taken));
        sent.unwrap();
        patience.renew();
        let begun = Instant::now();
        let error = paced.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_not_waited_for() {
        let (here, mut there) = duplex(64);
        let mut paced = Paced::new(Box::new(here), PACE, Linger::default(), Patience::default());
        for _ in 0..3 {
            paced.write_all(&[0; 10]).await.unwrap();
            there.read_exact(&mut [0; 10]).await.unwrap();
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_the_answer_is_read_for_a_while() {
        let linger = Linger::default();
        let (here, mut there) = duplex(64);
        let mut paced = Paced::new(Box::new(here), PACE, linger.clone(), Patience::default());
        linger.begin();
        let sender = async {
            there.write_all(&[0; 10_000]).await.unwrap();
            drop(there);
        };
        let begun = Instant::now();
        tokio::join!(async { paced.shutdown().await.unwrap() }, sender);
        assert_eq!(begun.elapsed(), Duration::ZERO, "the sender has ended");
        let (here, _there) = duplex(64);
        let mut paced = Paced::new(Box::new(here), PACE, linger, Patience::default());
        paced.shutdown().await.unwrap();
        assert_eq!(begun.elapsed(), LINGER, "this one goes on");
    }
}
