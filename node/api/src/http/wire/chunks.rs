//! JSON of any length, written directly into the chunks of a body.

use bytes::Bytes;
use serde::Serialize;
use uuid::Uuid;

/// Size in bytes at which a chunk is closed. Closed chunks are never copied, unlike the content of
/// a single growing buffer.
const CHUNK_BYTES: usize = 64 * 1024;
/// Spare capacity for the item that reaches the limit.
const ITEM_BYTES: usize = 4 * 1024;
/// Initial capacity. Most answers fit; growing by doubling would take as long as writing.
const FIRST_BYTES: usize = 16 * 1024;

/// A body in progress.
#[derive(Default)]
pub(crate) struct Chunks {
    closed: Vec<Bytes>,
    closed_bytes: usize,
    open: Vec<u8>,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Self {
            open: Vec::with_capacity(FIRST_BYTES),
            ..Self::default()
        }
    }

    /// The buffer for the next item; an item is never split.
    pub(crate) fn item(&mut self) -> &mut Vec<u8> {
        if self.open.len() >= CHUNK_BYTES {
            let next = Vec::with_capacity(CHUNK_BYTES + ITEM_BYTES);
            let full = std::mem::replace(&mut self.open, next);
            self.closed_bytes += full.len();
            self.closed.push(full.into());
        }
        &mut self.open
    }

    /// Writes items with commas between them.
    pub(crate) fn put_each<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut put_item: impl FnMut(&mut Vec<u8>, T),
    ) {
        for (position, item) in items.into_iter().enumerate() {
            let json = self.item();
            if position > 0 {
                json.push(b',');
            }
            put_item(json, item);
        }
    }

    /// Number of bytes written.
    pub(crate) fn bytes(&self) -> usize {
        self.closed_bytes + self.open.len()
    }

    /// Returns the chunks of the body.
    pub(crate) fn finish(mut self) -> Vec<Bytes> {
        self.closed.push(self.open.into());
        self.closed
    }
}

/// Writes a value as JSON.
pub(crate) fn put(json: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(json, value)
        .expect("our own types have string keys, and writing to memory succeeds");
}

/// Writes an integer as JSON.
pub(crate) fn put_integer(json: &mut Vec<u8>, integer: impl itoa::Integer) {
    let mut buffer = itoa::Buffer::new();
    json.extend_from_slice(buffer.format(integer).as_bytes());
}

/// Length in bytes of a UUID as a JSON string.
pub(crate) const QUOTED_UUID_BYTES: usize = 38;

/// Writes a UUID as a JSON string.
pub(crate) fn put_uuid(json: &mut Vec<u8>, uuid: &Uuid) {
    let mut text = [b'"'; QUOTED_UUID_BYTES];
    quote_uuid(&mut text, uuid);
    json.extend_from_slice(&text);
}

/// Writes a UUID between the quotes of a JSON string at `text`.
pub(crate) fn quote_uuid(text: &mut [u8], uuid: &Uuid) {
    uuid.as_hyphenated().encode_lower(&mut text[1..]);
}

/// Writes items with commas between them.
pub(crate) fn put_each<T>(
    json: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut put_item: impl FnMut(&mut Vec<u8>, T),
) {
    for (position, item) in items.into_iter().enumerate() {
        if position > 0 {
            json.push(b',');
        }
        put_item(json, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_whole_and_in_order() {
        let mut chunks = Chunks::new();
        let items: Vec<Vec<u8>> = (0..200_u8).map(|number| vec![number; 1_000]).collect();
        for item in &items {
            chunks.item().extend_from_slice(item);
        }
        assert_eq!(chunks.bytes(), 200_000);
        let pieces = chunks.finish();
        assert!(pieces.len() > 2);
        assert!(pieces.iter().all(|piece| piece.len() % 1_000 == 0));
        assert_eq!(pieces.concat(), items.concat());
    }
}
