//! Frames over a byte stream: one task writes what is queued, together; readers parse as they go.

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::frame::Frame;

/// How many queued frames are gathered into one write.
const GATHER_MAX: usize = 256;
/// Memory of a write buffer that is kept, in bytes.
const BUFFER_KEPT: usize = 1024 * 1024;

/// Writes queued frames until the queue or the stream closes.
pub(super) async fn write_frames<W: AsyncWrite + Unpin>(
    mut stream: W,
    mut queue: mpsc::UnboundedReceiver<Frame>,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let mut frames = Vec::with_capacity(GATHER_MAX);
    while queue.recv_many(&mut frames, GATHER_MAX).await > 0 {
        for frame in frames.drain(..) {
            frame.write(&mut buffer);
        }
        stream.write_all(&buffer).await?;
        stream.flush().await?;
        if buffer.capacity() > BUFFER_KEPT {
            buffer = BytesMut::new();
        }
        buffer.clear();
    }
    stream.shutdown().await
}

/// Writes one frame at once.
pub(super) async fn write_frame<W: AsyncWrite + Unpin>(
    stream: &mut W,
    frame: &Frame,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    frame.write(&mut buffer);
    stream.write_all(&buffer).await?;
    stream.flush().await
}

/// The next frame; `None` when the other side has closed. Cancel-safe: what was read stays in
/// `buffer`.
pub(super) async fn read_frame<R: AsyncRead + Unpin>(
    stream: &mut R,
    buffer: &mut BytesMut,
) -> io::Result<Option<Frame>> {
    loop {
        if let Some(frame) = Frame::read(buffer)? {
            return Ok(Some(frame));
        }
        if !read_some(stream, buffer).await? {
            return match buffer.is_empty() {
                true => Ok(None),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
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
