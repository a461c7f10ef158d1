//! Links between nodes, with configurable delay and bandwidth, that can be cut in each direction.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::RwLock;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// Packet size of a link with limited bandwidth.
const PACKET_BYTES: usize = 4096;
/// Packet size of a link with unlimited bandwidth.
const BROAD_PACKET_BYTES: usize = 64 * 1024;
/// Bytes that may be in flight in one direction of a connection: a link with a long delay holds
/// many.
const UNDER_WAY_BYTES: usize = 64 * 1024 * 1024;
/// Socket buffers hold the data of 1/`BUFFERED` seconds, so that a whole message does not fit into
/// them.
const BUFFERED: u32 = 20;
/// The smallest buffer with which sockets work at all.
const BUFFER_BYTES_MIN: u32 = 4 * 1024;

fn buffer_bytes(bits_per_s: u32) -> u32 {
    (bits_per_s / 8 / BUFFERED).max(BUFFER_BYTES_MIN)
}

/// Direction from one node to another.
pub type Direction = (u64, u64);

/// Which directions are cut, and the delay of each. Data sent in a direction that is cut waits
/// until it is restored, as TCP retransmits lost data.
#[derive(Debug, Clone)]
pub struct Directions {
    cut: Arc<watch::Sender<BTreeSet<Direction>>>,
    delays: Arc<RwLock<BTreeMap<Direction, Duration>>>,
}

impl Default for Directions {
    fn default() -> Self {
        Self {
            cut: Arc::new(watch::Sender::new(BTreeSet::new())),
            delays: Arc::default(),
        }
    }
}

impl Directions {
    /// Cuts these directions, until [`Directions::heal`].
    pub fn cut(&self, ways: impl IntoIterator<Item = Direction>) {
        self.cut.send_modify(|cut| cut.extend(ways));
    }

    /// Restores all directions that were cut.
    pub fn heal(&self) {
        self.cut.send_modify(BTreeSet::clear);
    }

    /// Sets delays, from now on: data arrive later by the delay, in order.
    pub fn set_delays(&self, delays: impl IntoIterator<Item = (Direction, Duration)>) {
        self.delays.write().extend(delays);
    }

    fn delay(&self, way: Direction) -> Duration {
        self.delays.read().get(&way).copied().unwrap_or_default()
    }

    async fn open(&self, way: Direction) {
        let is_open = |cut: &BTreeSet<Direction>| !cut.contains(&way);
        // The sender lives as long as `self`.
        let _ = self.cut.subscribe().wait_for(is_open).await;
    }
}

/// Finds the node that holds the first endpoint of a local connection.
pub type NodeLookup = Arc<dyn Fn([SocketAddr; 2]) -> Option<u64> + Send + Sync>;

/// Relays connections from one address to another until dropped.
pub struct Link {
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Link {
    /// Accepts connections at one address and relays them to the node at the other. All of them
    /// share a bandwidth of `bits_per_s` in each direction; `None` does not limit it.
    pub fn start(
        from: SocketAddr,
        to: (u64, SocketAddr),
        bits_per_s: Option<u32>,
        ways: &Directions,
        who_has: NodeLookup,
    ) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        if let Some(bits_per_s) = bits_per_s {
            socket.set_recv_buffer_size(buffer_bytes(bits_per_s))?;
        }
        socket.bind(from)?;
        let listener = socket.listen(64)?;
        let wires = [(); 2].map(|()| Arc::new(Wire::new(bits_per_s)));
        let ways = ways.clone();
        let serving = tokio::spawn(async move {
            while let Ok((near, caller)) = listener.accept().await {
                // The caller has closed the connection already.
                let Some(caller) = who_has([caller, from]) else {
                    continue;
                };
                let (wires, ways) = (wires.clone(), ways.clone());
                tokio::spawn(async move {
                    // The ends of a connection handle its failure.
                    let _ = carry((caller, near), to, wires, &ways, bits_per_s).await;
                });
            }
        });
        Ok(Self { serving })
    }
}

async fn carry(
    (caller, near): (u64, TcpStream),
    (called, to): (u64, SocketAddr),
    [there, back]: [Arc<Wire>; 2],
    ways: &Directions,
    bits_per_s: Option<u32>,
) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    if let Some(bits_per_s) = bits_per_s {
        socket.set_recv_buffer_size(buffer_bytes(bits_per_s))?;
        socket.set_send_buffer_size(buffer_bytes(bits_per_s))?;
    }
    // The TCP handshake takes one round trip before any data.
    sleep(ways.delay((caller, called)) + ways.delay((called, caller))).await;
    let far = socket.connect(to).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    // A close at either end closes both connections.
    tokio::select! {
        ended = there.carry(near_read, far_write, ways, (caller, called)) => ended,
        ended = back.carry(far_read, near_write, ways, (called, caller)) => ended,
    }
}

/// One direction, shared by all connections.
struct Wire {
    /// `None` does not limit the bandwidth.
    s_per_byte: Option<f64>,
    free_from: Mutex<Instant>,
}

impl Wire {
    fn new(bits_per_s: Option<u32>) -> Self {
        Self {
            s_per_byte: bits_per_s.map(|bits_per_s| 8.0 / f64::from(bits_per_s)),
            free_from: Mutex::new(Instant::now()),
        }
    }

    async fn carry(
        &self,
        from: impl AsyncRead + Unpin,
        to: impl AsyncWrite + Unpin,
        ways: &Directions,
        way: Direction,
    ) -> io::Result<()> {
        let (queue, queued) = mpsc::unbounded_channel();
        let room = Semaphore::new(UNDER_WAY_BYTES);
        let (taken, brought) = tokio::join!(
            self.take(from, ways, way, queue, &room),
            deliver(to, ways, way, queued, &room),
        );
        taken.and(brought)
    }

    /// Reads data and queues them with the time of their arrival.
    async fn take(
        &self,
        mut from: impl AsyncRead + Unpin,
        ways: &Directions,
        way: Direction,
        queue: mpsc::UnboundedSender<(Instant, Bytes)>,
        room: &Semaphore,
    ) -> io::Result<()> {
        let packet_bytes = match self.s_per_byte {
            Some(_) => PACKET_BYTES,
            None => BROAD_PACKET_BYTES,
        };
        loop {
            let mut packet = BytesMut::with_capacity(packet_bytes);
            if from.read_buf(&mut packet).await? == 0 {
                return Ok(());
            }
            if let Some(s_per_byte) = self.s_per_byte {
                let takes = Duration::from_secs_f64(packet.len() as f64 * s_per_byte);
                let through = {
                    let mut free_from = self.free_from.lock().await;
                    *free_from = (*free_from).max(Instant::now()) + takes;
                    *free_from
                };
                // Timers count milliseconds, so short waits are accumulated.
                if through > Instant::now() + Duration::from_millis(2) {
                    sleep_until(through).await;
                }
            }
            ways.open(way).await;
            let bytes = u32::try_from(packet.len()).map_err(io::Error::other)?;
            // The room is released when the packet arrives.
            (room.acquire_many(bytes).await)
                .map_err(io::Error::other)?
                .forget();
            let arrives = Instant::now() + ways.delay(way);
            if queue.send((arrives, packet.freeze())).is_err() {
                return Ok(());
            }
        }
    }
}

/// Delivers queued data when they arrive.
async fn deliver(
    mut to: impl AsyncWrite + Unpin,
    ways: &Directions,
    way: Direction,
    mut queued: mpsc::UnboundedReceiver<(Instant, Bytes)>,
    room: &Semaphore,
) -> io::Result<()> {
    while let Some((arrives, packet)) = queued.recv().await {
        if arrives > Instant::now() {
            sleep_until(arrives).await;
        }
        ways.open(way).await;
        to.write_all(&packet).await?;
        room.add_permits(packet.len());
    }
    Ok(())
}
