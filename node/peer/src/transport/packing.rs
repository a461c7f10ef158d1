//! Compresses long messages between regions with LZ4, if that makes them shorter. The two sides
//! announce their regions in the hello and the welcome.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use parking_lot::Mutex;

use super::frame::{FRAME_BYTES_MAX, Frame, Kind, invalid, numbered};

/// Minimum length of a body that is compressed, in bytes. Shorter bodies contain too little
/// repetition.
const WORTHWHILE_BYTES: usize = 256;
/// Length of the head of a packed message, in bytes: the kind of the message and the length of its
/// body.
const HEAD: usize = 1 + 4;
/// Maximum compression ratio of LZ4. A message that claims a higher ratio is invalid, and no memory
/// is allocated for it.
const RATIO_MAX: usize = 255;

/// Compresses a message, if that makes it shorter by at least an eighth.
pub(super) fn pack(frame: Frame) -> Frame {
    let length = frame.body.len();
    if length < WORTHWHILE_BYTES {
        return frame;
    }
    let mut packed = BytesMut::zeroed(HEAD + get_maximum_output_size(length));
    let Ok(bytes) = compress_into(&frame.body, &mut packed[HEAD..]) else {
        return frame;
    };
    if HEAD + bytes > length - length / 8 {
        return frame;
    }
    packed.truncate(HEAD + bytes);
    let mut head = &mut packed[..HEAD];
    head.put_u8(frame.kind as u8);
    head.put_u32(u32::try_from(length).expect("the maximum length of a message fits in 32 bits"));
    Frame::new(Kind::Packed, frame.call, packed)
}

/// Decompresses a message. Fails if it is damaged or too long.
pub(super) fn unpack(mut frame: Frame) -> io::Result<Frame> {
    if frame.body.len() < HEAD {
        return Err(invalid("a packed message that ends early"));
    }
    let kind = numbered(frame.body.get_u8())
        .filter(|kind| matches!(kind, Kind::Request | Kind::Response))
        .ok_or_else(|| invalid("a packed message of a kind that is never packed"))?;
    let length = frame.body.get_u32() as usize;
    if length > FRAME_BYTES_MAX || length > frame.body.len().saturating_mul(RATIO_MAX) {
        return Err(invalid("a packed message whose stated length is too large"));
    }
    let mut body = vec![0; length];
    match decompress_into(&frame.body, &mut body) {
        Ok(bytes) if bytes == length => Ok(Frame::new(kind, frame.call, Bytes::from(body))),
        _ => Err(invalid("a packed message that is damaged")),
    }
}

/// Counts the bytes of the messages sent to one node.
#[derive(Debug, Default)]
pub struct Sent {
    /// Sum of the bytes before packing.
    plain: AtomicU64,
    /// Sum of the bytes as sent.
    packed: AtomicU64,
}

impl Sent {
    /// Counts a message, by its bytes before and after packing.
    pub(super) fn note(&self, plain: usize, packed: usize) {
        self.plain.fetch_add(plain as u64, Ordering::Relaxed);
        self.packed.fetch_add(packed as u64, Ordering::Relaxed);
    }

    /// Sum of the bytes before packing, and sum of the bytes as sent.
    pub fn bytes(&self) -> (u64, u64) {
        let [plain, packed] = [&self.plain, &self.packed].map(|one| one.load(Ordering::Relaxed));
        (plain, packed)
    }
}

/// Bytes sent to each node.
#[derive(Debug, Default)]
pub struct Traffic(Mutex<BTreeMap<u64, Arc<Sent>>>);

impl Traffic {
    /// The counters of one node.
    pub(crate) fn to(&self, node: u64) -> Arc<Sent> {
        self.0.lock().entry(node).or_default().clone()
    }

    /// The counters of all nodes.
    pub fn all(&self) -> BTreeMap<u64, Arc<Sent>> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(body: Vec<u8>) -> Frame {
        Frame::new(Kind::Request, 7, body)
    }

    #[test]
    fn repetitive_message_is_packed_and_unpacked() {
        for length in [0, 1, WORTHWHILE_BYTES, 5000, 3_000_000] {
            let body: Vec<u8> = (0..length).map(|n| (n % 50) as u8).collect();
            let packed = pack(message(body.clone()));
            let is_long = length >= WORTHWHILE_BYTES;
            assert_eq!(packed.kind == Kind::Packed, is_long, "{length}");
            let back = if is_long {
                unpack(packed).unwrap()
            } else {
                packed
            };
            assert_eq!((back.kind, back.call), (Kind::Request, 7));
            assert_eq!(&back.body[..], body);
        }
    }

    #[test]
    fn incompressible_message_is_sent_plain() {
        let mut seed = 1u64;
        let mut noise = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        };
        let body: Vec<u8> = (0..4096).map(|_| noise()).collect();
        assert_eq!(pack(message(body)).kind, Kind::Request);
    }

    #[test]
    fn decompression_bomb_is_an_error_and_gets_no_memory() {
        let packed = |body: &[u8]| unpack(Frame::new(Kind::Packed, 1, body.to_vec()));
        let request = Kind::Request as u8;
        let bomb = |length: usize| {
            let length = u32::try_from(length).unwrap().to_be_bytes();
            [&[request], &length[..], &[0; 100]].concat()
        };
        for body in [
            &[][..],
            &[request, 0, 0],
            &bomb(FRAME_BYTES_MAX + 1),
            &bomb(100 * RATIO_MAX + 1),
            &bomb(100 * RATIO_MAX),
            // A nested message would allow endless recursion.
            &[Kind::Packed as u8, 0, 0, 0, 1, 0x10, 7],
            &[Kind::Piece as u8, 0, 0, 0, 1, 0x10, 7],
            &[99, 0, 0, 0, 1, 0x10, 7],
        ] {
            packed(body).unwrap_err();
        }
        assert_eq!(
            &packed(&[request, 0, 0, 0, 1, 0x10, 7]).unwrap().body[..],
            [7]
        );
    }
}
