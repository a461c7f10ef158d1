//! The network of a node, on top of turmoil.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use placement_base::net::{BoxStream, Listener, Net};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use turmoil::net::TcpStream;

thread_local! {
    static CONNECTIONS: RefCell<BTreeMap<String, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Largest number of connection attempts to one address by the nodes of this thread since the last
/// call.
pub fn connections() -> u64 {
    CONNECTIONS.take().into_values().max().unwrap_or_default()
}

/// Turmoil's TCP. Unlike real TCP it does not retransmit lost segments: a connection that lost a
/// segment stays silent forever, and only timeouts end it.
#[derive(Debug, Clone, Default)]
pub struct TurmoilNet {
    bandwidth: Bandwidth,
}

/// Outgoing bandwidth of each connection of a machine. Clones share the setting.
#[derive(Debug, Clone, Default)]
pub struct Bandwidth(Arc<AtomicU64>);

impl Bandwidth {
    /// Sets it in bytes per second; 0 is unlimited.
    pub fn set(&self, bytes_per_s: u64) {
        self.0.store(bytes_per_s, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TurmoilNet {
    /// The network of a machine with this bandwidth.
    pub fn new(bandwidth: Bandwidth) -> Self {
        Self { bandwidth }
    }

    fn stream(&self, stream: TcpStream) -> BoxStream {
        Box::new(Paced {
            stream,
            bandwidth: self.bandwidth.clone(),
            waits: None,
        })
    }
}

impl Net for TurmoilNet {
    fn bind<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener = turmoil::net::TcpListener::bind(address).await?;
            let net = self.clone();
            Ok(Box::new(TurmoilListener { listener, net }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        Box::pin(async move {
            CONNECTIONS.with_borrow_mut(|tried| {
                *tried.entry(address.to_owned()).or_default() += 1;
            });
            let stream = TcpStream::connect(address).await?;
            Ok(self.stream(stream))
        })
    }
}

struct TurmoilListener {
    listener: turmoil::net::TcpListener,
    net: TurmoilNet,
}

impl Listener for TurmoilListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = self.listener.accept().await?;
            Ok((self.net.stream(stream), from))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Bytes per write on a connection with limited bandwidth.
const PIECE: usize = 256;

/// A connection that waits after each write for its transmission time.
struct Paced {
    stream: TcpStream,
    bandwidth: Bandwidth,
    waits: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(waits) = self.waits.as_mut() {
            ready!(waits.as_mut().poll(context));
            self.waits = None;
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth == 0 {
            return Pin::new(&mut self.stream).poll_write(context, bytes);
        }
        let piece = &bytes[..bytes.len().min(PIECE)];
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, piece))?;
        let takes = Duration::from_secs(written as u64) / u32::try_from(bandwidth).unwrap_or(1);
        self.waits = Some(Box::pin(sleep(takes)));
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
