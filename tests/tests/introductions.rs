//! The peer listener without TLS: anyone can connect and introduce a node.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use placement_tests::cluster::Cluster;
use placement_tests::process_cost::{forget_peak, memory};
use xxhash_rust::xxh3::xxh3_64;

const HELLO: u8 = 1;
const REQUEST: u8 = 4;
const PIECE: u8 = 10;
const ANNOUNCED: usize = 90 << 20;

/// Header of a frame with this body.
fn head(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(21 + body.len()).unwrap().to_be_bytes();
    let checked = [&length[..], &[kind], &[0; 8], &xxh3_64(body).to_be_bytes()].concat();
    let checksum = xxh3_64(&checked) as u32;
    [&checked[..], &checksum.to_be_bytes()].concat()
}

/// Hello of a node that only introduces itself: a record with named fields (MessagePack).
fn hello() -> Vec<u8> {
    let key = |name: &str| {
        let length = u8::try_from(name.len()).unwrap();
        [&[0xa0 + length], name.as_bytes()].concat()
    };
    let fields: [(&str, u8); 8] = [
        ("oldest", 1),
        ("newest", 1),
        ("cluster", 0xc0),
        ("from", 9),
        ("to", 0xc0),
        ("introduction", 0xc3),
        ("level", 1),
        ("region", 0xa0),
    ];
    let mut record = vec![1, 0x80 + 8];
    for (name, value) in fields {
        record.extend(key(name));
        record.push(value);
    }
    record
}

/// Sends as much of the frames as the node accepts, then single bytes at intervals.
fn announce(address: &str, kind: u8) -> usize {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let hello = hello();
    stream.write_all(&head(HELLO, &hello)).unwrap();
    stream.write_all(&hello).unwrap();
    let mut welcome = [0; 5];
    stream.read_exact(&mut welcome).unwrap();
    assert_eq!(welcome[4], 2, "the introduction is refused");
    let body = vec![7; ANNOUNCED];
    let head = head(kind, &body);
    let mut sent = 0;
    // A piece that the node keeps, and a frame that never ends.
    for bytes in [&body[..], &body[..ANNOUNCED - 1]] {
        for part in head.chunks(64).chain(bytes.chunks(1 << 20)) {
            if stream.write_all(part).is_err() {
                return sent;
            }
            sent += part.len();
        }
    }
    for _ in 0..5 {
        std::thread::sleep(Duration::from_secs(1));
        if stream.write_all(&[0]).is_err() {
            break;
        }
    }
    sent
}

#[tokio::test]
async fn introductions_use_little_memory_and_do_not_block_members() {
    const CONNECTIONS: usize = 24;
    let mut cluster = Cluster::start(1).await.unwrap();
    let pid = cluster.process(1).pid();
    let address = cluster.place(1).peer();
    forget_peak(pid).unwrap();
    let before = memory(pid).unwrap().resident;
    let hostile: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let address = address.clone();
            let kind = if number % 2 == 0 { REQUEST } else { PIECE };
            std::thread::spawn(move || announce(&address, kind))
        })
        .collect();
    let place = cluster.add_place();
    cluster.admit(place.id).await.unwrap();
    cluster.start_node(place.id).unwrap();
    cluster.wait_ready(place.id).await.unwrap();
    for connection in hostile {
        connection.join().unwrap();
    }
    let grown = memory(pid).unwrap().peak.saturating_sub(before);
    assert!(grown < 128 << 20, "{} MiB more", grown >> 20);
}
