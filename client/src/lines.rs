//! A response that is received line by line and may be endless.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::error::Error;
use crate::transport::Body;

/// Maximum time without received data; then the stream fails. A node sends a line at least every
/// five seconds.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum length of a line: one log entry may change thousands of rows.
const LINE_BYTES_MAX: usize = 256 << 20;

/// Lines of a response, in the order of arrival.
pub struct Lines {
    body: Body,
    /// Received bytes after the last complete line. The first `looked` bytes are known to contain
    /// no line end.
    part: BytesMut,
    looked: usize,
}

impl Lines {
    pub(crate) fn new(body: Body) -> Self {
        let (part, looked) = (BytesMut::new(), 0);
        Self { body, part, looked }
    }

    /// The next line without its line end; `None` at the end of the response.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if the connection is lost or no data arrives for 30 s.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let mut unseen = self.part[self.looked..].iter();
            if let Some(at) = unseen.position(|byte| *byte == b'\n') {
                let mut line = self.part.split_to(self.looked + at + 1).freeze();
                line.truncate(line.len() - 1);
                self.looked = 0;
                return Ok(Some(line));
            }
            self.looked = self.part.len();
            let lost = |reason: String| Err(Error::lost(reason));
            match timeout(SILENCE, self.body.frame()).await {
                Err(_) => return lost(format!("no data for {SILENCE:?}")),
                Ok(Some(Err(error))) => return lost(error.to_string()),
                Ok(None) if self.part.is_empty() => return Ok(None),
                Ok(None) => return lost("the response ends within a line".to_owned()),
                Ok(Some(Ok(frame))) => {
                    (self.part).extend_from_slice(&frame.into_data().unwrap_or_default());
                }
            }
            if self.part.len() > LINE_BYTES_MAX {
                return lost(format!("a line exceeds {LINE_BYTES_MAX} bytes"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::iter;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::{Body as HttpBody, Frame};

    use super::*;

    /// A body in these pieces.
    struct Pieces(std::vec::IntoIter<Bytes>);

    impl HttpBody for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.next().map(Frame::data).map(Ok))
        }
    }

    async fn read(text: &str, piece: usize) -> (Vec<String>, bool) {
        let pieces: Vec<_> = text
            .as_bytes()
            .chunks(piece)
            .map(Bytes::copy_from_slice)
            .chain(iter::once(Bytes::new()))
            .collect();
        let body = Pieces(pieces.into_iter()).map_err(|never| match never {});
        let (mut lines, mut read) = (Lines::new(body.boxed()), Vec::new());
        loop {
            match lines.next().await {
                Ok(Some(line)) => read.push(String::from_utf8(line.to_vec()).unwrap()),
                ended => return (read, ended.is_ok()),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_read_from_pieces_of_any_size() {
        for piece in 1..20 {
            let (lines, is_whole) = read("{\"a\":1}\n\nlast\n", piece).await;
            assert_eq!(lines, ["{\"a\":1}", "", "last"]);
            assert!(is_whole);
            let (lines, is_whole) = read("first\nseco", piece).await;
            assert_eq!(lines, ["first"]);
            assert!(!is_whole);
        }
    }
}
