//! Reassembles messages from the frames of a connection.

use std::io;

use bytes::BytesMut;

use super::frame::{FRAME_BYTES_MAX, Frame, INTRODUCTION_BYTES_MAX, Kind, invalid};
use super::packing::unpack;

/// Joins the pieces of messages, and decompresses messages.
pub(crate) struct Joiner {
    /// The call number of an incomplete message, and the pieces that have arrived.
    begun: Option<(u64, BytesMut)>,
    /// Whether the connection is an introduction. Then the other side may not be a member, so its
    /// messages must be short, and neither in pieces nor compressed.
    is_introduction: bool,
}

impl Joiner {
    /// `is_introduction` distinguishes introductions from connections of members.
    pub(crate) fn new(is_introduction: bool) -> Self {
        Self {
            begun: None,
            is_introduction,
        }
    }

    /// Takes the next complete message out of `input`; `None` if it is incomplete.
    pub(crate) fn next(&mut self, input: &mut BytesMut) -> io::Result<Option<Frame>> {
        let bytes_max = if self.is_introduction {
            INTRODUCTION_BYTES_MAX
        } else {
            FRAME_BYTES_MAX
        };
        while let Some(frame) = Frame::read(input, bytes_max)? {
            if let Some(message) = self.take(frame)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Adds the next frame. Returns the message that it completes, if any.
    fn take(&mut self, frame: Frame) -> io::Result<Option<Frame>> {
        if self.is_introduction && matches!(frame.kind, Kind::Piece | Kind::Packed) {
            return Err(invalid(format!(
                "a {:?} frame in an introduction, which allows neither pieces nor compression",
                frame.kind
            )));
        }
        match self.join(frame)? {
            Some(packed) if packed.kind == Kind::Packed => unpack(packed).map(Some),
            message => Ok(message),
        }
    }

    fn join(&mut self, mut frame: Frame) -> io::Result<Option<Frame>> {
        // Urgent frames may arrive between the pieces.
        if frame.kind.is_urgent() {
            return Ok(Some(frame));
        }
        let is_piece = frame.kind == Kind::Piece;
        let Some((call, mut bytes)) = self.begun.take() else {
            if is_piece {
                self.begun = Some((frame.call, BytesMut::from(frame.body)));
                return Ok(None);
            }
            return Ok(Some(frame));
        };
        if call != frame.call {
            return Err(invalid(format!(
                "a {:?} frame arrived between the pieces of another message",
                frame.kind
            )));
        }
        if bytes.len() + frame.body.len() > FRAME_BYTES_MAX {
            return Err(invalid(format!(
                "the pieces of a message have more than {FRAME_BYTES_MAX} bytes"
            )));
        }
        bytes.extend_from_slice(&frame.body);
        if is_piece {
            self.begun = Some((call, bytes));
            return Ok(None);
        }
        frame.body = bytes.freeze();
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::packing::pack;
    use super::*;

    fn joined(frames: impl IntoIterator<Item = Frame>) -> io::Result<Vec<Frame>> {
        let mut joiner = Joiner::new(false);
        let mut messages = Vec::new();
        for frame in frames {
            messages.extend(joiner.take(frame)?);
        }
        Ok(messages)
    }

    #[test]
    fn long_message_is_joined_from_pieces_with_urgent_frames_between() {
        for length in [0, 1, 7, 8, 9, 16, 17] {
            let body: Vec<u8> = (0..length).collect();
            let mut frames: Vec<_> = Frame::new(Kind::Request, 5, body.clone())
                .pieces(8)
                .collect();
            assert_eq!(frames.len(), usize::from(length.saturating_sub(1) / 8) + 1);
            frames.insert(frames.len() - 1, Frame::new(Kind::Ping, 0, Bytes::new()));
            frames.push(Frame::new(Kind::Request, 6, vec![1]));
            let messages = joined(frames).unwrap();
            let kinds: Vec<_> = messages.iter().map(|frame| frame.kind).collect();
            assert_eq!(kinds, [Kind::Ping, Kind::Request, Kind::Request]);
            assert_eq!((messages[1].call, &messages[1].body[..]), (5, &body[..]));
            assert_eq!((messages[2].call, &messages[2].body[..]), (6, &[1][..]));
        }
    }

    #[test]
    fn pieces_of_different_messages_are_an_error() {
        let piece = |call| Frame::new(Kind::Piece, call, vec![0; 8]);
        joined([piece(1), piece(2)]).unwrap_err();
        joined([piece(1), Frame::new(Kind::Request, 2, vec![0])]).unwrap_err();
    }

    #[test]
    fn pieces_of_a_message_that_is_too_long_are_an_error() {
        let half = FRAME_BYTES_MAX / 2;
        let message = |rest| {
            let first = Frame::new(Kind::Piece, 1, vec![0; half]);
            joined([first, Frame::new(Kind::Request, 1, vec![0; rest])])
        };
        assert!(message(half).is_ok());
        assert!(message(half + 1).is_err());
    }

    #[test]
    fn packed_message_is_joined_and_unpacked() {
        let body: Vec<u8> = (0..100_000u32)
            .flat_map(|n| (n / 3).to_be_bytes())
            .collect();
        let packed = pack(Frame::new(Kind::Request, 5, body.clone()));
        assert_eq!(packed.kind, Kind::Packed);
        let messages = joined(packed.pieces(1000)).unwrap();
        assert_eq!((messages.len(), messages[0].kind), (1, Kind::Request));
        assert_eq!(&messages[0].body[..], body);
    }
}
