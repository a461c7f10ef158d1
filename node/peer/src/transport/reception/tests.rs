use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Either};
use parking_lot::Mutex;
use placement_base::net::{Net, TokioNet};
use placement_base::record::{RecordVersion, WireError};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use super::super::channel::{CallError, Channel, Extras};
use super::super::frame::{INTRODUCTION_BYTES_MAX, UNANSWERED, numbered};
use super::super::greeting::samples::{hello, welcome};
use super::super::handler::StreamedAppend;
use super::super::method::Method;
use super::super::reply::Forwarder;
use super::*;
use crate::tls::Link;
use crate::tls::fixtures::Authority;

const PATIENCE: Duration = Duration::from_secs(10);
/// The body of a write that is committed: the caller finds its outcome in the log.
const SEEN: &[u8] = b"seen";

/// A node that accepts all entries that it can decode, and keeps all writes that are not committed.
#[derive(Default)]
struct Follower {
    unreadable_calls: Mutex<Vec<(u64, WireError)>>,
    writes: Mutex<Vec<Forwarder>>,
    /// Whether callers were removed.
    removed: AtomicBool,
    damage: Arc<Damage>,
    appends: AtomicU64,
}

impl Follower {
    /// Number of the kept writes whose callers still wait.
    fn writes_under_way(&self) -> usize {
        let mut writes = self.writes.lock();
        writes.retain(|forwarder| !forwarder.has_given_up());
        writes.len()
    }
}

impl Handler for Follower {
    fn greet(&self, _: &Hello, _: u16) -> Result<Welcome, Denied> {
        Ok(welcome())
    }

    fn admits(&self, from: u64, method: Method) -> Result<(), Denied> {
        match self.removed.load(Ordering::Relaxed) {
            true => Err(Denied::Removed {
                node: from,
                index: 7,
            }),
            false if method == Method::Admin => Err(Denied::NotAMember {
                node: from,
                index: 7,
            }),
            false => Ok(()),
        }
    }

    fn clock(&self) -> i64 {
        7
    }

    fn call(
        &self,
        _: Caller,
        method: Method,
        body: Bytes,
    ) -> BoxFuture<'_, Result<Vec<u8>, Denied>> {
        assert_ne!(method, Method::Write, "writes are queued");
        Box::pin(async move { Ok(body.len().to_string().into_bytes()) })
    }

    fn write(
        self: Arc<Self>,
        _: u64,
        body: &[u8],
        forwarder: Forwarder,
    ) -> Option<BoxFuture<'static, ()>> {
        if body == SEEN {
            forwarder.committed()
        } else {
            self.writes.lock().push(forwarder)
        }
        None
    }

    fn stream_of(&self, append: &Bytes) -> Result<Option<u64>, WireError> {
        let number = append.first().ok_or(WireError::Empty)?;
        Ok((*number != 0).then_some(u64::from(*number)))
    }

    fn report_unreadable_call(&self, by: u64, error: &WireError) {
        self.unreadable_calls.lock().push((by, error.clone()));
    }

    fn append_stream(
        &self,
        _: u64,
        mut appends: mpsc::UnboundedReceiver<StreamedAppend>,
    ) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while let Some(append) = appends.recv().await {
                self.appends.fetch_add(1, Ordering::Relaxed);
                let index = match record::decode::<u64>(&append.body()[1..]) {
                    Ok(index) => index,
                    Err(error) => return append.unreadable(error),
                };
                let reply = append.into_reply();
                let answer = record::encode(reply.records, &index);
                reply.send(Ok(answer));
            }
        })
    }
}

async fn connect(follower: &Arc<Follower>, tasks: &Tasks) -> Channel {
    let (near, far) = tokio::io::duplex(1 << 20);
    receive(follower, far, tasks);
    welcomed(near, PATIENCE, tasks).await
}

fn receive(follower: &Arc<Follower>, stream: DuplexStream, tasks: &Tasks) {
    tasks.spawn(served(Gate::Plain, follower, stream, tasks));
}

/// Serves one connection to its end.
fn served(
    gate: Gate,
    follower: &Arc<Follower>,
    stream: DuplexStream,
    tasks: &Tasks,
) -> impl Future<Output = ()> + use<> {
    let address = SocketAddr::from(([192, 0, 2, 1], 8779));
    let damage = follower.damage.clone();
    let reception = Reception::new(gate, follower.clone(), damage, tasks.clone());
    async move {
        let permit = reception.unwelcomed.permit();
        let _ = reception
            .connection(Box::new(stream), address, permit)
            .await;
    }
}

async fn welcomed(stream: DuplexStream, silence: Duration, tasks: &Tasks) -> Channel {
    let hello = hello();
    let opened = Channel::open(Box::new(stream), &hello, silence, Extras::default(), tasks).await;
    opened.unwrap().0
}

/// Sends these bytes to a node, which answers them or closes the connection. A panic would fail the
/// test.
async fn sent(bytes: &[u8], welcomed_first: bool) {
    let tasks = Tasks::on_current_runtime();
    let follower: Arc<Follower> = Arc::default();
    let (mut near, far) = tokio::io::duplex(1 << 20);
    let served = served(Gate::Plain, &follower, far, &tasks);
    let peer = async {
        if welcomed_first {
            let hello = record::encode_named(&hello());
            let frame = Frame::new(Kind::Hello, 0, hello);
            near.write_all(&encoded(&frame)).await.unwrap();
        }
        // The connection may be closed by then.
        let _ = near.write_all(bytes).await;
        let _ = near.shutdown().await;
        let _ = near.read_to_end(&mut Vec::new()).await;
    };
    let _ = tokio::join!(served, peer);
    tasks.stop().await;
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame.write(&mut bytes);
    bytes.to_vec()
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_bytes_of_an_unauthenticated_peer_are_survived(bytes in vec(any::<u8>(), 0..600)) {
        run(sent(&bytes, false));
    }

    #[test]
    fn any_frames_after_a_hello_are_survived(
        frames in vec((1..13_u8, 0..4_u64, 0..16_u8, vec(any::<u8>(), 0..200)), 0..12),
        noise in vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = Vec::new();
        for (kind, call, method, body) in frames {
            let kind = numbered(kind).expect("these kinds exist");
            let body = [&[method], &body[..]].concat();
            bytes.extend(encoded(&Frame::new(kind, call, body)));
        }
        bytes.extend(noise);
        run(sent(&bytes, true));
    }
}

/// A network on which the follower is reached by TLS.
struct Secured {
    follower: Arc<Follower>,
    gate: Gate,
    tasks: Tasks,
}

impl Net for Secured {
    fn bind<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        unreachable!("this test does not listen")
    }

    fn connect<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let served = served(self.gate.clone(), &self.follower, far, &self.tasks);
        self.tasks.spawn(served);
        Box::pin(async move { Ok(Box::new(near) as BoxStream) })
    }
}

#[tokio::test]
async fn certificate_is_valid_for_its_own_node_only() {
    let tasks = Tasks::on_current_runtime();
    let authority = Authority::new();
    let net = Arc::new(Secured {
        follower: Arc::default(),
        gate: Gate::Tls {
            certificates: authority.node(2),
            plain_too: false,
        },
        tasks: tasks.clone(),
    });
    // All of them claim to be node 1.
    let others = Authority::new();
    for (certificates, to, welcome) in [
        (authority.node(1), Some(2), true),
        (authority.node(1), None, true),
        (authority.node(1), Some(3), false),
        (authority.node(3), Some(2), false),
        (others.node(1), Some(2), false),
    ] {
        let link = Link::new(net.clone(), Some(certificates));
        let connected = link.connect("node 2", to).await;
        let opened = match connected {
            Ok((stream, _)) => Channel::open(stream, &hello(), PATIENCE, Extras::default(), &tasks)
                .await
                .ok(),
            Err(_) => None,
        };
        assert_eq!(opened.is_some(), welcome, "to {to:?}");
    }
    let plain = Link::new(net, None).connect("node 2", Some(2)).await;
    let (stream, _) = plain.unwrap();
    assert!(
        Channel::open(stream, &hello(), PATIENCE, Extras::default(), &tasks)
            .await
            .is_err()
    );
    tasks.stop().await;
}

/// Transfers `bytes_per_s` bytes per second, with a small buffer.
async fn thin_path(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    bytes_per_s: usize,
) {
    const EVERY: Duration = Duration::from_millis(5);
    let mut bytes = vec![0; bytes_per_s / 200];
    loop {
        let Ok(length @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        sleep(EVERY).await;
        if to.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slow_upload_keeps_its_connection() {
    const SILENCE: Duration = Duration::from_millis(300);
    let (follower, tasks) = (Arc::default(), Tasks::default());
    let (near, near_end) = tokio::io::duplex(64 * 1024);
    let (far_end, far) = tokio::io::duplex(64 * 1024);
    let (near_read, near_write) = tokio::io::split(near_end);
    let (far_read, far_write) = tokio::io::split(far_end);
    tasks.spawn(thin_path(near_read, far_write, 2 << 20));
    tasks.spawn(thin_path(far_read, near_write, 2 << 20));
    receive(&follower, far, &tasks);
    let channel = welcomed(near, SILENCE, &tasks).await;
    let begun = Instant::now();
    let body = vec![7; 3 << 20];
    let answer = channel.call(Method::Probe, &body, PATIENCE).await.unwrap();
    assert_eq!(answer, body.len().to_string().as_bytes());
    assert!(begun.elapsed() > 3 * SILENCE, "the path is not thin");
}

#[tokio::test]
async fn write_ends_when_it_is_given_up_or_its_connection_is_closed() {
    let (follower, tasks) = (Arc::default(), Tasks::default());
    let under_way = async |count| {
        let begun = Instant::now();
        while Follower::writes_under_way(&follower) != count {
            assert!(begun.elapsed() < PATIENCE, "not {count} writes under way");
            sleep(Duration::from_millis(2)).await;
        }
    };
    let (near, far) = tokio::io::duplex(1 << 20);
    receive(&follower, far, &tasks);
    let connection = Tasks::default();
    let channel = welcomed(near, PATIENCE, &connection).await;
    let kept = channel.begin(Method::Write, &[]).unwrap();
    let given_up = channel.begin(Method::Write, &[]).unwrap();
    under_way(2).await;
    drop(given_up);
    under_way(1).await;
    connection.stop().await;
    under_way(0).await;
    drop(kept);
}

#[tokio::test]
async fn write_that_is_refused_or_dropped_is_answered() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::default());
    let channel = connect(&follower, &tasks).await;
    let mut refused = channel.begin(Method::Write, &[]).unwrap();
    let mut dropped = channel.begin(Method::Write, &[]).unwrap();
    // When this call is answered, the calls before it have been queued.
    channel.call(Method::Probe, &[], PATIENCE).await.unwrap();
    let mut writes = std::mem::take(&mut *follower.writes.lock()).into_iter();
    let first = writes.next().unwrap();
    first.refuse(Ok("not the leader"));
    let refused: String = record::decode(&refused.wait().await.unwrap()).unwrap();
    assert_eq!(refused, "not the leader");
    drop(writes);
    assert!(matches!(dropped.wait().await, Err(CallError::Failed(_))));
}

#[tokio::test]
async fn write_with_a_known_outcome_is_neither_answered_nor_given_up() {
    let (follower, tasks) = (Arc::default(), Tasks::default());
    let channel = connect(&follower, &tasks).await;
    let mut committed = channel.begin(Method::Write, SEEN).unwrap();
    let known = async {
        while Follower::writes_under_way(&follower) != 1 {
            sleep(Duration::from_millis(2)).await;
        }
    };
    let seen = channel.call_unless(Method::Write, &[], PATIENCE, known);
    assert!(matches!(seen.await, Ok(Either::Left(()))));
    // When this call is answered, the calls before it have arrived.
    channel.call(Method::Probe, &[], PATIENCE).await.unwrap();
    assert!(committed.wait().now_or_never().is_none());
    assert_eq!(follower.writes_under_way(), 1);
    assert!(!channel.is_closed());
}

#[tokio::test]
async fn silent_unauthenticated_connections_do_not_block_members() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::default());
    let listener = TokioNet.bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let damage = Arc::default();
    tasks.spawn(serve(
        listener,
        Gate::Plain,
        follower,
        damage,
        tasks.clone(),
    ));
    let mut silent = Vec::new();
    for _ in 0..3 * UNWELCOMED_MAX {
        silent.push(TokioNet.connect(&address).await.unwrap());
    }
    // The oldest connections must be closed long before the deadline of their hello.
    let begun = Instant::now();
    let mut byte = [0];
    for gone in silent.iter_mut().take(UNWELCOMED_MAX) {
        assert!(!matches!(gone.read(&mut byte).await, Ok(1..)));
    }
    assert!(begun.elapsed() < HELLO / 2, "they are closed too late");

    let stream = TokioNet.connect(&address).await.unwrap();
    let hello = hello();
    Channel::open(stream, &hello, PATIENCE, Extras::default(), &tasks)
        .await
        .unwrap();
    // An unauthenticated peer may only send short frames.
    let mut peer = TokioNet.connect(&address).await.unwrap();
    let length = (UNWELCOMED_BYTES_MAX as u32 + 1).to_be_bytes();
    peer.write_all(&length).await.unwrap();
    assert!(!matches!(peer.read(&mut byte).await, Ok(1..)));
}

#[tokio::test]
async fn connection_of_a_removed_node_is_refused_and_closed() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::default());
    let channel = connect(&follower, &tasks).await;
    let order = channel.call(Method::Admin, &[], PATIENCE).await;
    assert!(
        matches!(order, Err(CallError::Failed(_))),
        "not known as a member: {order:?}"
    );
    channel.call(Method::Probe, &[], PATIENCE).await.unwrap();
    follower.removed.store(true, Ordering::Relaxed);
    for method in [Method::Append, Method::Vote, Method::Operate, Method::Write] {
        let channel = if channel.is_closed() {
            connect(&follower, &tasks).await
        } else {
            channel.clone()
        };
        let refused = channel.call(method, &[], PATIENCE).await.unwrap_err();
        let CallError::Removed(words) = refused else {
            panic!("{method:?}: {refused:?}")
        };
        assert!(words.starts_with("node 1 was removed"), "{words}");
        let begun = Instant::now();
        while !channel.is_closed() {
            assert!(begun.elapsed() < PATIENCE, "the connection is kept");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn http_request_gets_an_answer_that_names_the_port() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::on_current_runtime());
    let (mut near, far) = tokio::io::duplex(1 << 16);
    receive(&follower, far, &tasks);
    let request = b"GET /v1/status HTTP/1.1\r\nhost: 10.0.0.1:18779\r\n\r\n";
    near.write_all(request).await.unwrap();
    let mut answer = String::new();
    near.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 "), "{head}");
    assert!(
        head.ends_with(&format!("\r\nContent-Length: {}", body.len())),
        "{head}"
    );
    assert!(
        body.starts_with("This is the port for other nodes."),
        "{body}"
    );
}

#[tokio::test]
async fn damaged_frame_closes_the_connection_unread() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::on_current_runtime());
    let body = append(RecordVersion::NEWEST, 0);
    let call = [&[Method::Append as u8], &body[..]].concat();
    let call = encoded(&Frame::new(Kind::Request, 1, call));
    let mut hello_frame = encoded(&Frame::new(Kind::Hello, 0, record::encode_named(&hello())));
    for bit in (0..8 * call.len()).step_by(5) {
        let (mut near, far) = tokio::io::duplex(1 << 16);
        receive(&follower, far, &tasks);
        near.write_all(&hello_frame).await.unwrap();
        let mut damaged = call.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        near.write_all(&damaged).await.unwrap();
        // The other side sends the welcome only and closes the connection.
        let mut answers = Vec::new();
        let ended = timeout(PATIENCE, near.read_to_end(&mut answers)).await;
        ended.expect("the connection is kept").unwrap();
        let mut answers = BytesMut::from(&answers[..]);
        let welcome = Frame::read(&mut answers, UNWELCOMED_BYTES_MAX).unwrap();
        assert_eq!(welcome.unwrap().kind, Kind::Welcome);
        assert!(answers.is_empty(), "bit {bit}");
    }
    assert_eq!(follower.appends.load(Ordering::Relaxed), 0);
    let damaged = follower.damage.frames();
    assert!(damaged > call.len() as u64, "{damaged}");

    // A damaged hello.
    *hello_frame.last_mut().unwrap() ^= 1;
    let (mut near, far) = tokio::io::duplex(1 << 16);
    receive(&follower, far, &tasks);
    near.write_all(&hello_frame).await.unwrap();
    assert_eq!(near.read_to_end(&mut Vec::new()).await.unwrap(), 0);
    assert_eq!(follower.damage.frames(), damaged + 1);

    // A damaged answer.
    let (near, mut far) = tokio::io::duplex(1 << 16);
    let welcome = record::encode_named(&welcome());
    write_frame(&mut far, &Frame::new(Kind::Welcome, 0, welcome))
        .await
        .unwrap();
    let extras = Extras::default();
    let damage = extras.damage.clone();
    let opened = Channel::open(Box::new(near), &hello(), PATIENCE, extras, &tasks).await;
    let (channel, _) = opened.unwrap();
    let mut answer = encoded(&Frame::new(Kind::Response, 1, vec![1, 2, 3]));
    *answer.last_mut().unwrap() ^= 1;
    let mut call = channel.begin(Method::Probe, &[]).unwrap();
    far.write_all(&answer).await.unwrap();
    let lost = call.wait().await.unwrap_err();
    assert!(lost.to_string().contains("arrived damaged"), "{lost}");
    assert_eq!(damage.frames(), 1);
    tasks.stop().await;
}

/// A welcomed connection for an introduction.
async fn introduced(follower: &Arc<Follower>, tasks: &Tasks) -> DuplexStream {
    let hello = Hello {
        introduction: true,
        ..hello()
    };
    greeted(follower, hello, tasks).await
}

async fn greeted(follower: &Arc<Follower>, hello: Hello, tasks: &Tasks) -> DuplexStream {
    let (mut near, far) = tokio::io::duplex(16 * 1024);
    receive(follower, far, tasks);
    let hello = record::encode_named(&hello);
    write_frame(&mut near, &Frame::new(Kind::Hello, 0, hello))
        .await
        .unwrap();
    let mut buffer = BytesMut::new();
    let welcome = read_frame(&mut near, &mut buffer, UNWELCOMED_BYTES_MAX).await;
    assert_eq!(welcome.unwrap().unwrap().kind, Kind::Welcome);
    near
}

#[tokio::test]
async fn introduction_takes_little_memory_whatever_it_announces() {
    const ANNOUNCED: usize = 90 << 20;
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::on_current_runtime());
    let begun = |kind: Kind| {
        let frame = encoded(&Frame::new(kind, 1, vec![0; ANNOUNCED]));
        frame[..1 << 20].to_vec()
    };
    let piece = encoded(&Frame::new(Kind::Piece, 1, vec![0; 1024]));
    for (what, bytes) in [
        ("a long call", begun(Kind::Request)),
        ("a long piece", begun(Kind::Piece)),
        ("short pieces without end", piece.repeat(1024)),
    ] {
        let mut near = introduced(&follower, &tasks).await;
        let mut taken = 0;
        while let Ok(more @ 1..) = near.write(&bytes[taken..]).await {
            taken += more;
        }
        assert!(taken <= 2 * INTRODUCTION_BYTES_MAX, "{what}: {taken} bytes");
    }
    // A short call is answered.
    let mut near = introduced(&follower, &tasks).await;
    let call = Frame::new(Kind::Request, 1, vec![Method::Probe as u8, 7, 7]);
    write_frame(&mut near, &call).await.unwrap();
    let answer = read_frame(&mut near, &mut BytesMut::new(), UNWELCOMED_BYTES_MAX).await;
    assert_eq!(&answer.unwrap().unwrap().body[..], b"2");
    tasks.stop().await;
}

#[tokio::test]
async fn caller_that_reads_no_answers_is_not_read_further() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::on_current_runtime());
    let mut near = introduced(&follower, &tasks).await;
    let pings = encoded(&Frame::new(Kind::Ping, 0, Bytes::new())).repeat(1 << 20);
    let mut taken = 0;
    let patience = Duration::from_millis(300);
    while let Ok(Ok(more @ 1..)) = timeout(patience, near.write(&pings[taken..])).await {
        taken += more;
    }
    assert!(taken <= 4 * INTRODUCTION_BYTES_MAX, "{taken} bytes");
    tasks.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_introduction_ends_at_its_deadline() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::on_current_runtime());
    for (calls_first, ends_after) in [(false, HELLO), (true, INTRODUCTION)] {
        let mut near = introduced(&follower, &tasks).await;
        let begun = Instant::now();
        if calls_first {
            let call = Frame::new(Kind::Request, 1, vec![Method::Probe as u8]);
            write_frame(&mut near, &call).await.unwrap();
        }
        // The head of a call that never ends, one byte per second.
        let mut bytes = encoded(&Frame::new(Kind::Request, 2, vec![0; 60_000])).into_iter();
        while near.write_u8(bytes.next().unwrap()).await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
        let took = begun.elapsed();
        assert!(took >= ends_after && took < ends_after + HELLO, "{took:?}");
    }
    tasks.stop().await;
}

/// Index of the only entry of each append in these tests.
const INDEX: u64 = 7;
/// Offset of the record of the entry in an append.
const ENTRY: usize = 1;

/// An append as [`Follower`] reads it: the number of its stream, or 0, and a record of one entry.
fn append(version: RecordVersion, stream: u8) -> Vec<u8> {
    let mut body = vec![stream];
    record::encode_into(&mut body, version, &INDEX);
    body
}

#[tokio::test]
async fn call_that_needs_no_answer_gets_none() {
    let (follower, tasks) = (Arc::<Follower>::default(), Tasks::on_current_runtime());
    let mut near = greeted(&follower, hello(), &tasks).await;
    let body = append(RecordVersion::FIRST, 7);
    let body = [&[Method::Append as u8], &body[..]].concat();
    for call in [UNANSWERED, UNANSWERED, 1] {
        let frame = Frame::new(Kind::Request, call, body.clone());
        write_frame(&mut near, &frame).await.unwrap();
    }
    // The calls are handled in order.
    let answer = read_frame(&mut near, &mut BytesMut::new(), UNWELCOMED_BYTES_MAX).await;
    assert_eq!(answer.unwrap().unwrap().call, 1);
    assert_eq!(follower.appends.load(Ordering::Relaxed), 3);
    tasks.stop().await;
}

async fn send(channel: &Channel, body: &[u8]) -> Result<u64, CallError> {
    let answer = channel.call(Method::Append, body, PATIENCE).await?;
    Ok(record::decode(&answer).unwrap())
}

#[tokio::test]
async fn entry_of_a_newer_binary_is_reported_to_both_sides() {
    let (follower, tasks) = (Arc::default(), Tasks::default());
    let channel = connect(&follower, &tasks).await;
    let good = append(channel.records(), 0);
    let mut newer = good.clone();
    newer[ENTRY] = 99;
    let refused = send(&channel, &newer).await.unwrap_err();
    assert!(matches!(refused, CallError::Unreadable(_)), "{refused:?}");
    assert!(refused.to_string().contains("version 99"), "{refused}");
    assert_eq!(
        *follower.unreadable_calls.lock(),
        [(1, WireError::Newer(99))]
    );
}

#[tokio::test]
async fn damaged_entry_closes_the_connection_and_is_sent_again() {
    let (follower, tasks) = (Arc::default(), Tasks::default());
    let channel = connect(&follower, &tasks).await;
    let good = append(channel.records(), 0);
    assert!(send(&channel, &good).await.is_ok());
    let mut damaged = good.clone();
    // No record begins with this byte.
    damaged[ENTRY + 1] = 0xc1;
    let refused = send(&channel, &damaged).await.unwrap_err();
    assert!(matches!(refused, CallError::Unreadable(_)), "{refused:?}");
    let begun = Instant::now();
    while !channel.is_closed() {
        assert!(begun.elapsed() < PATIENCE, "the connection is kept");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let channel = connect(&follower, &tasks).await;
    assert_eq!(send(&channel, &good).await, Ok(INDEX));
    assert!(
        follower.unreadable_calls.lock().is_empty(),
        "damage is not a call of a newer binary"
    );
}
