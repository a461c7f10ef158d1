//! The first messages of the two sides of a connection, hello and welcome. They determine the
//! protocol version of all later messages.

use placement_base::record::RecordVersion;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The protocol versions that this binary supports. The feature `rehearsal` adds one version.
pub(crate) const VERSIONS: std::ops::RangeInclusive<u16> =
    1..=if cfg!(feature = "rehearsal") { 2 } else { 1 };

/// The record version that belongs to a protocol version.
pub(crate) fn records(protocol: u16) -> RecordVersion {
    match protocol {
        0..=1 => RecordVersion::FIRST,
        _ => RecordVersion::NEWEST,
    }
}

/// The first message of a caller. The hello and the welcome have named fields, because the version
/// is not known yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    /// Oldest protocol version that the caller supports.
    pub oldest: u16,
    /// Newest protocol version that the caller supports.
    pub newest: u16,
    /// The caller's cluster, if it belongs to one.
    pub cluster: Option<Uuid>,
    /// The caller's node id.
    pub from: u64,
    /// The node that it wants to call; `None` if it knows only an address.
    pub to: Option<u64>,
    /// Whether this is only an introduction, in which caller and called node may belong to
    /// different clusters.
    pub introduction: bool,
    /// The highest feature level that the caller supports.
    pub level: u32,
    /// The caller's region. Messages between regions are compressed.
    pub region: String,
}

/// The answer to a hello.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol version that both sides use from now on.
    pub version: u16,
    /// Id of the called node.
    pub node: u64,
    /// The highest feature level that the called node supports.
    pub level: u32,
    /// Region of the called node.
    pub region: String,
}

/// Greetings of nodes 1 and 2.
#[cfg(test)]
pub(crate) mod samples {
    use std::fmt::Debug;

    use placement_base::record;
    use serde::de::DeserializeOwned;

    use super::*;

    pub(crate) fn hello() -> Hello {
        Hello {
            oldest: *VERSIONS.start(),
            newest: *VERSIONS.end(),
            cluster: None,
            from: 1,
            to: Some(2),
            introduction: false,
            level: 1,
            region: String::new(),
        }
    }

    pub(crate) fn welcome() -> Welcome {
        Welcome {
            version: *VERSIONS.end(),
            node: 2,
            level: 1,
            region: String::new(),
        }
    }

    /// Checks that each message is decoded from both of its encodings.
    pub(crate) fn check<T: Serialize + DeserializeOwned + Debug>(messages: &[T]) {
        for message in messages {
            let written = [RecordVersion::FIRST, RecordVersion::NEWEST]
                .map(|version| record::encode(version, message))
                .into_iter()
                .chain([record::encode_named(message)]);
            for bytes in written {
                let read: T = record::decode(&bytes).unwrap();
                assert_eq!(format!("{read:?}"), format!("{message:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use placement_base::record;

    use super::samples::check;
    use super::*;

    #[test]
    fn greetings_are_decoded_as_they_were_encoded() {
        for cluster in [None, Some(Uuid::from_u128(7))] {
            check(&[Hello {
                cluster,
                to: None,
                introduction: true,
                region: "north".to_owned(),
                ..samples::hello()
            }]);
        }
        check(&[samples::hello()]);
        check(&[samples::welcome()]);
    }

    /// A later version may add fields to the first message of a connection.
    #[test]
    fn hello_with_fields_of_a_later_version_is_read() {
        #[derive(Serialize)]
        struct Later {
            later: Vec<u16>,
            #[serde(flatten)]
            hello: Hello,
        }
        let later = Later {
            later: vec![5],
            hello: Hello {
                newest: 9,
                from: 4,
                ..samples::hello()
            },
        };
        let hello: Hello = record::decode(&record::encode_named(&later)).unwrap();
        assert_eq!((hello.newest, hello.from), (9, 4));
    }
}
