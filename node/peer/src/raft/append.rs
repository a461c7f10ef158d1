//! Raft's AppendEntries between nodes: encoding and decoding of appends.

use bytes::{Buf, BufMut, Bytes};
use openraft::raft::AppendEntriesRequest;
use placement_base::runtime;
use placement_raft_store::wire::{self, RecordVersion, WireEntry, WireError, WireLogId, WireVote};
use placement_raft_store::{Entry, TypeConfig};
use serde::{Deserialize, Serialize};

use crate::transport::handler::StreamedAppend;
use crate::transport::reply::Reply;

/// Raft's AppendEntries without the entries, which follow it in the body.
#[derive(Debug, Serialize, Deserialize)]
struct AppendHead {
    vote: WireVote,
    previous: Option<WireLogId>,
    committed: Option<WireLogId>,
    entries: u32,
    /// The number of the stream: its requests are handled in the order in which they are sent.
    /// `None` for a request without a stream.
    stream: Option<u64>,
}

/// Encodes an append with as many of `entries` as fit into `bytes_max`, but at least one if there
/// are any. Returns the body and the number of entries in it.
pub(crate) fn encode_append(
    version: RecordVersion,
    request: &AppendEntriesRequest<TypeConfig>,
    entries: &[Entry],
    previous: Option<WireLogId>,
    stream: Option<u64>,
    bytes_max: usize,
) -> (Vec<u8>, usize) {
    let mut records: Vec<u8> = Vec::new();
    let mut taken = 0;
    for entry in entries {
        let start = records.len();
        records.put_u32(0);
        wire::encode_into(&mut records, version, &WireEntry::from(entry));
        if taken > 0 && records.len() > bytes_max {
            records.truncate(start);
            break;
        }
        let length = u32::try_from(records.len() - start - 4)
            .expect("an entry is not longer than the longest request body");
        records[start..start + 4].copy_from_slice(&length.to_be_bytes());
        taken += 1;
    }
    let head = AppendHead {
        vote: (&request.vote).into(),
        previous,
        committed: request.leader_commit.as_ref().map(WireLogId::from),
        entries: u32::try_from(taken).expect("openraft bounds the entries of a request"),
        stream,
    };
    let head = wire::encode(version, &head);
    let mut body = Vec::with_capacity(4 + head.len() + records.len());
    body.put_u32(u32::try_from(head.len()).expect("a head has few fields"));
    body.extend_from_slice(&head);
    body.extend_from_slice(&records);
    (body, taken)
}

/// An append of [`encode_append`] whose head is decoded, but not its entries.
#[derive(Debug)]
pub(crate) struct Append {
    head: AppendHead,
    entries: Bytes,
}

impl Append {
    /// Decodes the head, but not the entries.
    pub(crate) fn read(mut body: Bytes) -> Result<Self, WireError> {
        let head = wire::decode(&take(&mut body)?)?;
        Ok(Self {
            head,
            entries: body,
        })
    }

    /// Decodes the entries into openraft's request.
    pub(crate) fn into_request(self) -> Result<AppendEntriesRequest<TypeConfig>, WireError> {
        let (head, mut body) = (self.head, self.entries);
        let mut entries = Vec::with_capacity((head.entries as usize).min(4096));
        for _ in 0..head.entries {
            let entry: WireEntry = wire::decode(&take(&mut body)?)?;
            entries.push(entry.into_entry()?);
        }
        Ok(AppendEntriesRequest {
            vote: head.vote.into(),
            prev_log_id: head.previous.map(Into::into),
            entries,
            leader_commit: head.committed.map(Into::into),
        })
    }
}

fn take(body: &mut Bytes) -> Result<Bytes, WireError> {
    let short = || WireError::Damaged("the message ends early".to_owned());
    if body.len() < 4 {
        return Err(short());
    }
    let length = body.get_u32() as usize;
    if body.len() < length {
        return Err(short());
    }
    Ok(body.split_to(length))
}

/// The number of the stream that an encoded append belongs to; `None` for an append without a
/// stream, such as a heartbeat.
///
/// # Errors
/// The append cannot be decoded.
pub fn stream_of(append: Bytes) -> Result<Option<u64>, WireError> {
    Ok(Append::read(append)?.head.stream)
}

/// Decodes an append that has arrived. Returns `None` if it cannot be decoded: the append is then
/// answered with an error, and its stream must end.
pub async fn read(streamed: StreamedAppend) -> Option<(AppendEntriesRequest<TypeConfig>, Reply)> {
    let request = match Append::read(streamed.body()) {
        Ok(append) if append.entries.len() > runtime::limits().read_inline => {
            runtime::blocking(|| append.into_request()).await
        }
        Ok(append) => append.into_request(),
        Err(error) => Err(error),
    };
    match request {
        Ok(request) => Some((request, streamed.into_reply())),
        Err(error) => {
            streamed.unreadable(error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use openraft::entry::RaftEntry;
    use placement_raft_store::{Payload, Vote};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::transport::greeting::samples::check;

    #[test]
    fn head_is_decoded_as_it_was_encoded() {
        let id = WireLogId {
            term: 3,
            node: 2,
            index: 1,
        };
        for last in [None, Some(id)] {
            check(&[AppendHead {
                vote: WireVote {
                    term: 3,
                    node: 2,
                    committed: true,
                },
                previous: last,
                committed: last,
                entries: 2,
                stream: last.map(|id| id.index),
            }]);
        }
    }

    #[test]
    fn entry_of_a_newer_binary_and_a_damaged_one_are_errors() {
        let version = RecordVersion::NEWEST;
        let id = WireLogId {
            term: 1,
            node: 1,
            index: 7,
        };
        let request = AppendEntriesRequest {
            vote: Vote::new_committed(1, 1),
            prev_log_id: None,
            entries: vec![Entry::new(id.into(), Payload::Blank)],
            leader_commit: None,
        };
        let record = wire::encode(version, &WireEntry::from(&request.entries[0]));
        let (good, taken) =
            encode_append(version, &request, &request.entries, None, Some(5), 1 << 20);
        assert_eq!(taken, 1);
        let at = good.len() - record.len();
        let decode = |body: &[u8]| {
            let body = Bytes::copy_from_slice(body);
            assert_eq!(stream_of(body.clone()), Ok(Some(5)));
            Append::read(body).and_then(Append::into_request)
        };
        assert_eq!(decode(&good).unwrap().entries[0].log_id.index(), 7);
        let mut newer = good.clone();
        newer[at] = 99;
        assert_eq!(decode(&newer).unwrap_err(), WireError::Newer(99));
        // No record begins with this byte.
        let mut damaged = good;
        damaged[at + 1] = 0xc1;
        assert!(matches!(decode(&damaged), Err(WireError::Damaged(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
            let length = u32::try_from(bytes.len() / 2).unwrap().to_be_bytes();
            for body in [bytes.clone(), [&length[..], &bytes].concat()] {
                let _ = Append::read(body.into()).and_then(Append::into_request);
            }
        }
    }
}
