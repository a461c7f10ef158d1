//! The frames between nodes: length, kind, call, checksums, body.
//!
//! | bytes | field |
//! |---|---|
//! | 4 | length of the rest of the frame, big endian |
//! | 1 | [`Kind`] |
//! | 8 | number of the call, big endian; 0 without a call, and for a call that needs no answer |
//! | 8 | XXH3 of the body, big endian |
//! | 4 | the low half of the XXH3 of the 21 bytes before, big endian |
//! | rest | the body |
//!
//! The checksum of TCP has 16 bits, so it misses about one in 65,536 damaged segments. The length
//! of a frame is used only after the checksum of the head was verified. So a damaged length is an
//! error immediately, and the rest of a damaged frame is not read.
//!
//! The first frame of the caller is the hello, and the first frame of the called node is the answer
//! to it. They determine the version of all later frames.
//!
//! A long message is sent in pieces, so that urgent frames need not wait until all of it is sent.
//! The pieces are frames of kind [`Kind::Piece`] with the number of the call. The last frame has
//! the kind of the message and contains the rest of the body. In each direction, only one message
//! at a time is sent in pieces.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use placement_base::coverage::RarePath;
use placement_base::runtime::{self, Limits};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use xxhash_rust::xxh3::xxh3_64;

/// Maximum length of an accepted message, in bytes, whether or not it arrives in pieces. The
/// configuration limits commands and batches to much less.
pub(crate) const FRAME_BYTES_MAX: usize = 96 * 1024 * 1024;
/// Maximum length of a frame before the welcome, in bytes.
pub(crate) const UNWELCOMED_BYTES_MAX: usize = 4 * 1024;
/// Maximum length of a frame of an introduction, in bytes. The limit is low, because the caller may
/// not be a member.
pub(crate) const INTRODUCTION_BYTES_MAX: usize = 64 * 1024;
/// Length of a piece of a message in production, in bytes.
pub(crate) const PIECE_BYTES: usize = Limits::PRODUCT.piece;

/// The call number of calls that need no answer.
pub(crate) const UNANSWERED: u64 = 0;

/// Length of a piece of a message, in bytes. The messages of an introduction are short and never
/// sent in pieces.
pub(crate) fn piece_bytes(is_introduction: bool) -> usize {
    if is_introduction {
        FRAME_BYTES_MAX
    } else {
        runtime::limits().piece
    }
}

const LENGTH: usize = 4;
/// Bytes covered by the head's checksum: the length, the kind, the call, the body's checksum.
const CHECKED: usize = LENGTH + 1 + 8 + 8;
/// Bytes before the body.
const HEAD: usize = CHECKED + 4;

/// The error for a frame that does not match its checksums.
#[derive(Debug, thiserror::Error)]
#[error("a frame arrived damaged: the checksum of its {part} is wrong")]
pub(crate) struct Damaged {
    part: &'static str,
}

impl Damaged {
    /// Whether a damaged frame is the cause of this error.
    pub(super) fn is_cause_of(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }

    fn error(part: &'static str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, Self { part })
    }
}

fn head_checksum(checked: &[u8]) -> u32 {
    // The low half of the hash is a good 32-bit checksum.
    xxh3_64(checked) as u32
}

/// The kind of a frame. Numbers are never reused, and increase from 1 without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The first frame of the caller: a [`super::greeting::Hello`].
    Hello = 1,
    /// Accepts a hello: a [`super::greeting::Welcome`].
    Welcome = 2,
    /// Rejects a hello: a [`super::denied::Failure`].
    Refusal = 3,
    /// A call: the method's number, then its body.
    Request = 4,
    /// The result of a call.
    Response = 5,
    /// The failure of a call: a [`super::denied::Failure`].
    Failure = 6,
    /// Asks for a pong, to check whether the other side is alive.
    Ping = 7,
    /// Answer to a ping; the body is the wall clock in microseconds since 1970, big endian.
    Pong = 8,
    /// The caller sends no more appends of this stream. The call number is the number of the
    /// stream.
    StreamEnd = 9,
    /// A piece of a message. The message ends with the next frame of the same call and another
    /// kind.
    Piece = 10,
    /// The caller no longer waits for this call.
    GivenUp = 11,
    /// A compressed message ([`super::packing`]), sent only between regions.
    Packed = 12,
}

impl Kind {
    /// Whether the frame is sent before all queued frames, even between the pieces of a message.
    pub(crate) fn is_urgent(self) -> bool {
        matches!(self, Kind::Ping | Kind::Pong)
    }
}

/// The variant with this number, in an enum whose numbers increase from 1.
pub(super) fn numbered<T: DeserializeOwned>(number: u8) -> Option<T> {
    // Serde numbers variants from 0.
    let index = u32::from(number).checked_sub(1)?;
    let variant: Result<_, serde::de::value::Error> = T::deserialize(index.into_deserializer());
    variant.ok()
}

/// One message, or a piece of one.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) call: u64,
    pub(crate) body: Bytes,
}

impl Frame {
    pub(crate) fn new(kind: Kind, call: u64, body: impl Into<Bytes>) -> Self {
        Self {
            kind,
            call,
            body: body.into(),
        }
    }

    /// Bytes of memory that the frame needs in a queue.
    pub(super) fn queued_bytes(&self) -> usize {
        size_of::<Self>() + self.body.len()
    }

    /// The frames in which the message is sent: pieces, then a frame with the rest of the body.
    pub(crate) fn pieces(self, piece_bytes: usize) -> impl Iterator<Item = Self> {
        if self.body.len() > piece_bytes {
            RarePath::SentInPieces.ran();
        }
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let frame = rest.as_mut()?;
            if frame.body.len() <= piece_bytes {
                return rest.take();
            }
            let piece = frame.body.split_to(piece_bytes);
            Some(Self::new(Kind::Piece, frame.call, piece))
        })
    }

    /// Appends the frame to `out`.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        out.reserve(HEAD + self.body.len());
        let length = u32::try_from(HEAD - LENGTH + self.body.len())
            .expect("the maximum length of a message fits in 32 bits");
        let begun = out.len();
        out.put_u32(length);
        out.put_u8(self.kind as u8);
        out.put_u64(self.call);
        out.put_u64(xxh3_64(&self.body));
        out.put_u32(head_checksum(&out[begun..]));
        out.put_slice(&self.body);
    }

    /// Takes the first complete frame out of `input`; `None` if it is incomplete.
    ///
    /// # Errors
    /// The frame is longer than `bytes_max`, of an unknown kind, or [`Damaged`].
    pub(crate) fn read(input: &mut BytesMut, bytes_max: usize) -> io::Result<Option<Self>> {
        let Some(length) = input.first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if !(HEAD - LENGTH..=bytes_max).contains(&length) {
            return Err(invalid(format!(
                "a frame of {length} bytes; the maximum is {bytes_max}"
            )));
        }
        if input.len() < HEAD {
            return Ok(None);
        }
        let (checked, mut checksum) = input[..HEAD].split_at(CHECKED);
        if head_checksum(checked) != checksum.get_u32() {
            return Err(Damaged::error("head"));
        }
        if input.len() < LENGTH + length {
            input.reserve(LENGTH + length - input.len());
            return Ok(None);
        }
        input.advance(LENGTH);
        let mut frame = input.split_to(length).freeze();
        let number = frame.get_u8();
        let call = frame.get_u64();
        let checksum = frame.get_u64();
        frame.advance(HEAD - CHECKED);
        if xxh3_64(&frame) != checksum {
            return Err(Damaged::error("body"));
        }
        let kind =
            numbered(number).ok_or_else(|| invalid(format!("a frame of unknown kind {number}")))?;
        Ok(Some(Self {
            kind,
            call,
            body: frame,
        }))
    }
}

pub(super) fn invalid(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

#[cfg(test)]
mod tests {
    use super::super::method::Method;
    use super::*;

    #[test]
    fn frames_are_read_whole_from_any_cuts_of_the_bytes() {
        let mut bytes = BytesMut::new();
        let kinds: Vec<Kind> = (1..=12).filter_map(numbered).collect();
        for kind in &kinds {
            Frame::new(*kind, 7, vec![1, 2, 3]).write(&mut bytes);
        }
        let mut input = BytesMut::new();
        let mut read = Vec::new();
        for byte in bytes {
            input.put_u8(byte);
            while let Some(frame) = Frame::read(&mut input, FRAME_BYTES_MAX).unwrap() {
                assert_eq!((frame.call, &frame.body[..]), (7, &[1, 2, 3][..]));
                read.push(frame.kind);
            }
        }
        assert_eq!(read, kinds);
        assert!(input.is_empty());
    }

    #[test]
    fn each_number_names_one_variant() {
        for number in 0..=u8::MAX {
            let kind = numbered(number).map(|kind: Kind| kind as u8);
            assert_eq!(kind, (1..=12).contains(&number).then_some(number));
            let method = numbered(number).map(|method: Method| method as u8);
            assert_eq!(method, (1..=18).contains(&number).then_some(number));
        }
    }

    #[test]
    fn invalid_frame_is_an_error_and_reserves_no_memory() {
        for bytes in [[0xff; HEAD], [0; HEAD], [1; HEAD]] {
            let mut input = BytesMut::from(&bytes[..]);
            let error = Frame::read(&mut input, FRAME_BYTES_MAX).unwrap_err();
            assert!(input.capacity() < 1024, "{error}");
        }
        // A valid checksum with a kind that no version has.
        let mut bytes = BytesMut::new();
        Frame::new(Kind::Pong, 0, Bytes::new()).write(&mut bytes);
        bytes[LENGTH] = 99;
        let checksum = head_checksum(&bytes[..CHECKED]);
        bytes[CHECKED..HEAD].copy_from_slice(&checksum.to_be_bytes());
        let error = Frame::read(&mut bytes, FRAME_BYTES_MAX).unwrap_err();
        assert!(error.to_string().contains("unknown kind 99"), "{error}");
    }

    #[test]
    fn each_damaged_bit_is_an_error_at_once() {
        for body in [vec![], vec![0], (0..100).collect::<Vec<u8>>()] {
            let mut whole = BytesMut::new();
            Frame::new(Kind::Request, 7, body).write(&mut whole);
            for bit in 0..8 * whole.len() {
                let mut damaged = whole.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let read = Frame::read(&mut damaged, FRAME_BYTES_MAX);
                let error = read.expect_err("a damaged frame is read");
                let is_length = bit / 8 < LENGTH;
                assert!(is_length || Damaged::is_cause_of(&error), "{bit}: {error}");
            }
            assert!(Frame::read(&mut whole, FRAME_BYTES_MAX).unwrap().is_some());
        }
    }
}
