//! Frames over a byte stream. One task writes the queued frames of a connection, several at a time.
//! Readers parse frames as bytes arrive.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::frame::{Frame, PIECE_BYTES};

/// Maximum number of queued frames in one write.
const GATHER_MAX: usize = 256;

/// A queue of frames to write. Writing ends when the last handle is dropped.
pub(super) struct Outbox {
    frames: mpsc::UnboundedSender<(Frame, Instant)>,
    urgent: mpsc::UnboundedSender<Frame>,
    waiting: Arc<QueueState>,
}

/// State of the frames that are not written yet.
#[derive(Default)]
struct QueueState {
    bytes: AtomicUsize,
    /// When the frame that is being written was queued.
    since: Mutex<Option<Instant>>,
}

impl QueueState {
    /// Records that the writing of a frame has begun.
    fn has_begun(&self, frame: &Frame) {
        self.bytes
            .fetch_sub(frame.queued_bytes(), Ordering::Relaxed);
    }
}

/// The frames to write.
pub(super) struct Queued {
    frames: mpsc::UnboundedReceiver<(Frame, Instant)>,
    urgent: mpsc::UnboundedReceiver<Frame>,
    waiting: Arc<QueueState>,
}

/// Creates a queue of frames.
pub(super) fn outbox() -> (Arc<Outbox>, Queued) {
    let (frames, queued_frames) = mpsc::unbounded_channel();
    let (urgent, queued_urgent) = mpsc::unbounded_channel();
    let waiting = Arc::<QueueState>::default();
    let queued = Queued {
        frames: queued_frames,
        urgent: queued_urgent,
        waiting: waiting.clone(),
    };
    let outbox = Outbox {
        frames,
        urgent,
        waiting,
    };
    (Arc::new(outbox), queued)
}

impl Outbox {
    /// Queues a frame. An urgent frame is sent before the others. Returns false if writing has
    /// ended.
    pub(super) fn send(&self, frame: Frame) -> bool {
        let bytes = frame.queued_bytes();
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        if frame.kind.is_urgent() {
            return self.urgent.send(frame).is_ok();
        }
        self.frames.send((frame, Instant::now())).is_ok()
    }

    /// Bytes of memory that the queued frames need.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.bytes.load(Ordering::Relaxed)
    }

    /// How long ago the frame that is being written was queued; zero if no frame is being written.
    pub(super) fn delay(&self) -> Duration {
        let since = *self.waiting.since.lock();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Writes queued frames until all handles of the outbox are dropped or the stream closes. Messages
/// longer than `piece_bytes` are sent in pieces. Just before a frame is sent, `prepare` converts
/// it, or drops it by returning `None`. `progress` is called when the stream accepts bytes again
/// after it was full. On a slow connection this shows, long before an answer arrives, that the
/// other side is alive.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    mut stream: W,
    mut queued: Queued,
    piece_bytes: usize,
    prepare: impl Fn(Frame) -> Option<Frame>,
    progress: impl Fn(),
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let mut frames = Vec::with_capacity(GATHER_MAX);
    loop {
        tokio::select! {
            biased;
            Some(frame) = queued.urgent.recv() => frames.push((frame, Instant::now())),
            taken = queued.frames.recv_many(&mut frames, GATHER_MAX) => if taken == 0 {
                break;
            },
        }
        for (frame, since) in frames.drain(..) {
            queued.waiting.has_begun(&frame);
            if !frame.kind.is_urgent() {
                *queued.waiting.since.lock() = Some(since);
            }
            let Some(frame) = prepare(frame) else {
                continue;
            };
            for piece in frame.pieces(piece_bytes) {
                piece.write(&mut buffer);
                if buffer.len() < PIECE_BYTES {
                    continue;
                }
                while let Ok(urgent) = queued.urgent.try_recv() {
                    queued.waiting.has_begun(&urgent);
                    urgent.write(&mut buffer);
                }
                write_out(&mut stream, &mut buffer, &progress).await?;
            }
        }
        write_out(&mut stream, &mut buffer, &progress).await?;
        stream.flush().await?;
        *queued.waiting.since.lock() = None;
    }
    stream.shutdown().await
}

async fn write_out<W: AsyncWrite + Unpin>(
    stream: &mut W,
    buffer: &mut BytesMut,
    progress: impl Fn(),
) -> io::Result<()> {
    while !buffer.is_empty() {
        let mut was_full = false;
        let written = poll_fn(|cx| {
            let written = Pin::new(&mut *stream).poll_write(cx, buffer);
            was_full |= written.is_pending();
            written
        });
        match written.await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            bytes => buffer.advance(bytes),
        }
        if was_full {
            progress();
        }
    }
    Ok(())
}

/// Writes one frame and flushes the stream.
pub(crate) async fn write_frame<W: AsyncWrite + Unpin>(
    stream: &mut W,
    frame: &Frame,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    frame.write(&mut buffer);
    stream.write_all(&buffer).await?;
    stream.flush().await
}

/// The next frame, of at most `bytes_max` bytes; `None` when the other side has closed.
/// Cancel-safe: bytes that were read stay in `buffer`.
pub(crate) async fn read_frame<R: AsyncRead + Unpin>(
    stream: &mut R,
    buffer: &mut BytesMut,
    bytes_max: usize,
) -> io::Result<Option<Frame>> {
    loop {
        if let Some(frame) = Frame::read(buffer, bytes_max)? {
            return Ok(Some(frame));
        }
        if !read_some(stream, buffer).await? {
            return if buffer.is_empty() {
                Ok(None)
            } else {
                Err(io::ErrorKind::UnexpectedEof.into())
            };
        }
    }
}

/// Reads some bytes; false when the other side has closed. Cancel-safe.
pub(super) async fn read_some<R: AsyncRead + Unpin>(
    stream: &mut R,
    buffer: &mut BytesMut,
) -> io::Result<bool> {
    buffer.reserve(16 * 1024);
    Ok(stream.read_buf(buffer).await? > 0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use bytes::Bytes;

    use super::super::frame::{FRAME_BYTES_MAX, Kind};
    use super::*;

    #[tokio::test]
    async fn urgent_frame_is_sent_between_the_pieces_of_a_long_one() {
        let (near, mut far) = tokio::io::duplex(PIECE_BYTES);
        let (outbox, queued) = outbox();
        let progress = Arc::new(AtomicBool::new(false));
        let progressed = progress.clone();
        let writing = placement_base::runtime::spawn(async move {
            let note = || progressed.store(true, Ordering::Relaxed);
            write_frames(near, queued, PIECE_BYTES, Some, note).await
        });
        assert!(outbox.send(Frame::new(Kind::Request, 1, vec![7; 40 * PIECE_BYTES])));
        // The path is full, and most of the message is not sent yet.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(outbox.delay() > Duration::ZERO);
        outbox.send(Frame::new(Kind::Ping, 0, Bytes::new()));
        drop(outbox);
        let mut buffer = BytesMut::new();
        let mut kinds = Vec::new();
        while let Some(frame) = read_frame(&mut far, &mut buffer, FRAME_BYTES_MAX)
            .await
            .unwrap()
        {
            kinds.push(frame.kind);
        }
        writing.await.unwrap().unwrap();
        let ping = kinds.iter().position(|kind| *kind == Kind::Ping).unwrap();
        assert!(ping < 5, "the ping is frame {ping}");
        assert_eq!(kinds.last(), Some(&Kind::Request));
        assert!(progress.load(Ordering::Relaxed));
    }
}
