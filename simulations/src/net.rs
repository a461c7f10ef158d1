//! The node's network, carried by turmoil.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;

use futures::future::BoxFuture;
use placement_node::env::{BoxStream, Listener, Net};

thread_local! {
    static CONNECTIONS: Cell<u64> = const { Cell::new(0) };
}

/// How many connections the nodes of this thread have tried to make since this was last asked.
pub fn connections() -> u64 {
    CONNECTIONS.take()
}

/// Turmoil's TCP. Unlike the real one it never sends a lost segment again: a connection that lost
/// one is silent for ever, and only deadlines get anybody out of that.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurmoilNet;

impl Net for TurmoilNet {
    fn bind<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let listener = turmoil::net::TcpListener::bind(address).await?;
            Ok(Box::new(TurmoilListener(listener)) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        Box::pin(async move {
            CONNECTIONS.set(CONNECTIONS.get() + 1);
            let stream = turmoil::net::TcpStream::connect(address).await?;
            Ok(Box::new(stream) as BoxStream)
        })
    }
}

struct TurmoilListener(turmoil::net::TcpListener);

impl Listener for TurmoilListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        Box::pin(async move {
            let (stream, from) = self.0.accept().await?;
            Ok((Box::new(stream) as BoxStream, from))
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
