//! A link of so many bits a second between a node and those who call it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Bytes that go over it at once.
const PACKET_BYTES: usize = 4096;
/// How much of a second the system may hold at each end: a link has no room for a whole message.
const BUFFERED: u32 = 20;
/// What the system needs at least to work at all.
const BUFFER_BYTES_MIN: u32 = 4 * 1024;

fn buffer_bytes(bits_per_s: u32) -> u32 {
    (bits_per_s / 8 / BUFFERED).max(BUFFER_BYTES_MIN)
}

/// Carries connections from one address to another until it is dropped.
pub struct Link {
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Link {
    /// Takes connections at one address and carries them to the other, so many bits a second each way,
    /// all of them together.
    pub fn start(from: SocketAddr, to: SocketAddr, bits_per_s: u32) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.set_recv_buffer_size(buffer_bytes(bits_per_s))?;
        socket.bind(from)?;
        let listener = socket.listen(64)?;
        let [there, back] = [(); 2].map(|()| Arc::new(Wire::new(bits_per_s)));
        let serving = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (there, back) = (there.clone(), back.clone());
                tokio::spawn(async move {
                    // A connection that breaks is its ends' business.
                    let _ = carry(near, to, &there, &back, buffer_bytes(bits_per_s)).await;
                });
            }
        });
        Ok(Self { serving })
    }
}

async fn carry(
    near: TcpStream,
    to: SocketAddr,
    there: &Wire,
    back: &Wire,
    buffer_bytes: u32,
) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(buffer_bytes)?;
    socket.set_send_buffer_size(buffer_bytes)?;
    let far = socket.connect(to).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    // Either end's close closes both.
    tokio::select! {
        ended = there.carry(near_read, far_write) => ended,
        ended = back.carry(far_read, near_write) => ended,
    }
}

/// One direction, shared by all connections.
struct Wire {
    s_per_byte: f64,
    free_from: Mutex<Instant>,
}

impl Wire {
    fn new(bits_per_s: u32) -> Self {
        Self {
            s_per_byte: 8.0 / f64::from(bits_per_s),
            free_from: Mutex::new(Instant::now()),
        }
    }

    async fn carry(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut packet = vec![0; PACKET_BYTES];
        loop {
            let length = from.read(&mut packet).await?;
            if length == 0 {
                return Ok(());
            }
            let takes = Duration::from_secs_f64(length as f64 * self.s_per_byte);
            let through = {
                let mut free_from = self.free_from.lock().await;
                *free_from = (*free_from).max(Instant::now()) + takes;
                *free_from
            };
            // Short waits are gathered: timers count milliseconds.
            if through > Instant::now() + Duration::from_millis(2) {
                sleep_until(through).await;
            }
            to.write_all(&packet[..length]).await?;
        }
    }
}
