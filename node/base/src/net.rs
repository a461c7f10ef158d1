//! The network as a trait: the binary uses TCP of the operating system, simulations use their own
//! network.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A byte stream in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection over any transport.
pub type BoxStream = Box<dyn Stream>;

/// Opens connections and listeners.
pub trait Net: Send + Sync {
    /// Listens on `address`, `host:port`; port 0 selects a free one.
    fn bind<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>>;

    /// Connects to `address`, `host:port`. This has no timeout.
    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>>;
}

/// Accepts connections on an address.
pub trait Listener: Send {
    /// The next connection and the address of its peer. Cancel-safe.
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>>;

    /// The address it listens on.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Time after which the next address of a name is tried in parallel.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);

/// Connects to the first address of a name that answers. The name is resolved each time, because
/// its addresses may change. An unresponsive address does not delay the others for long.
#[expect(clippy::disallowed_methods, reason = "this is the real world")]
async fn connect_to(
    resolve: impl Future<Output = io::Result<Vec<SocketAddr>>>,
) -> io::Result<TcpStream> {
    let mut left = resolve.await?.into_iter();
    let mut tried = FuturesUnordered::new();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    loop {
        if let Some(address) = left.next() {
            tried.push(TcpStream::connect(address));
        } else if tried.is_empty() {
            return Err(failed);
        }
        let answer = match left.len() {
            0 => tried.next().await,
            _ => match timeout(NEXT_ADDRESS, tried.next()).await {
                Ok(answer) => answer,
                Err(_) => continue,
            },
        };
        match answer {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => failed = error,
            None => {}
        }
    }
}

/// TCP sockets of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokioNet;

#[expect(clippy::disallowed_methods, reason = "this is the real world")]
impl Net for TokioNet {
    fn bind<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener = tokio::net::TcpListener::bind(address).await?;
            Ok(Box::new(listener) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        Box::pin(async move {
            let resolve = async { Ok(tokio::net::lookup_host(address).await?.collect()) };
            let stream = connect_to(resolve).await?;
            prepare(&stream)?;
            Ok(Box::new(stream) as BoxStream)
        })
    }
}

/// Idle time of a connection before the first keepalive probe.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Interval between keepalive probes.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(10);
/// Maximum time that sent data may stay unacknowledged.
const USER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum unsent bytes in the socket buffer: urgent data has to wait until they are sent.
const NOT_SENT_MAX: u32 = 32 * 1024;

/// Sets socket options: dead connections are closed, and small writes are sent without delay.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_EVERY);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    {
        socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
        socket.set_tcp_notsent_lowat(NOT_SENT_MAX)?;
    }
    Ok(())
}

impl Listener for tokio::net::TcpListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = tokio::net::TcpListener::accept(self).await?;
            prepare(&stream)?;
            Ok((Box::new(stream) as BoxStream, from))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        tokio::net::TcpListener::local_addr(self)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::net::TcpListener;

    use super::*;

    /// A host name whose addresses change.
    struct Moving(Mutex<Vec<SocketAddr>>);

    #[expect(clippy::disallowed_methods, reason = "this is the real world")]
    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    async fn reached(name: &Moving) -> io::Result<SocketAddr> {
        connect_to(async { Ok(name.0.lock().clone()) })
            .await?
            .peer_addr()
    }

    #[tokio::test]
    async fn a_name_is_resolved_again_and_all_its_addresses_are_tried() {
        let ((_first, first), (_second, second)) = (listener().await, listener().await);
        let closed = {
            let (gone, address) = listener().await;
            drop(gone);
            address
        };
        let name = Moving(Mutex::new(vec![first]));
        assert_eq!(reached(&name).await.unwrap(), first);
        *name.0.lock() = vec![closed, second];
        assert_eq!(reached(&name).await.unwrap(), second);
        // No host answers at this address, not even with an error.
        *name.0.lock() = vec!["192.0.2.1:9".parse().unwrap(), closed, first];
        let begun = tokio::time::Instant::now();
        let found = timeout(Duration::from_secs(30), reached(&name)).await;
        assert_eq!(found.unwrap().unwrap(), first);
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "the first address delayed the others"
        );
        for addresses in [vec![closed], vec![]] {
            *name.0.lock() = addresses;
            assert!(reached(&name).await.is_err());
        }
    }
}
