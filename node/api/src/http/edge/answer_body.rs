//! The body of an answer. Until the client has received it, the request counts towards its caller's
//! limits and its memory stays reserved.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::admission::Memory;
use super::callers::Counted;

/// An answer of a few chunks.
pub(super) struct AnswerBody {
    pieces: VecDeque<Bytes>,
    remaining_bytes: u64,
    /// Each chunk of a long answer holds a clone, because the connection's task drops the body
    /// before the client has received the last chunk.
    _kept: MemoryHold,
}

enum MemoryHold {
    Short { _counted: Counted },
    Long { _both: Arc<(Counted, Memory)> },
}

/// A chunk of a long answer.
struct BodyChunk {
    bytes: Bytes,
    _kept: Arc<(Counted, Memory)>,
}

impl AsRef<[u8]> for BodyChunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AnswerBody {
    pub(super) fn new(pieces: Vec<Bytes>, counted: Counted, memory: Memory) -> Self {
        let mut pieces = VecDeque::from(pieces);
        let remaining_bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        let kept = if memory.is_free() {
            MemoryHold::Short { _counted: counted }
        } else {
            let both = Arc::new((counted, memory));
            for piece in &mut pieces {
                *piece = Bytes::from_owner(BodyChunk {
                    bytes: std::mem::take(piece),
                    _kept: Arc::clone(&both),
                });
            }
            MemoryHold::Long { _both: both }
        };
        Self {
            pieces,
            remaining_bytes,
            _kept: kept,
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.pieces.pop_front();
        self.remaining_bytes -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining_bytes)
    }
}
