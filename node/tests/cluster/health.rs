use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use placement_base::net::{BoxStream, Listener, Net, TokioNet};
use tokio::net::TcpStream;

use crate::fixture::{cluster_of, eventually, machines};

/// A network on which one address panics on demand.
struct Breaking {
    address: String,
    broken: Arc<AtomicBool>,
}

struct BreakingListener {
    inner: Box<dyn Listener>,
    broken: Arc<AtomicBool>,
}

impl Net for Breaking {
    fn bind<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let inner = TokioNet.bind(address).await?;
            if address != self.address {
                return Ok(inner);
            }
            let broken = self.broken.clone();
            Ok(Box::new(BreakingListener { inner, broken }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<BoxStream>> {
        TokioNet.connect(address)
    }
}

impl Listener for BreakingListener {
    fn accept(&mut self) -> BoxFuture<'_, io::Result<(BoxStream, SocketAddr)>> {
        Box::pin(async move {
            let accepted = self.inner.accept().await;
            assert!(!self.broken.load(Ordering::Relaxed), "broken on demand");
            accepted
        })
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

/// In this process a panic does not end everything, so the remaining node can be examined.
#[tokio::test(flavor = "multi_thread")]
async fn node_without_a_vital_task_is_not_ready_and_names_the_task() {
    let broken = Arc::new(AtomicBool::new(false));
    let mut machines = machines(1);
    machines[0].env.net = Arc::new(Breaking {
        address: machines[0].config.peer.listen.clone(),
        broken: broken.clone(),
    });
    let machines = cluster_of(machines).await;
    machines[0].create(1).await;
    assert_eq!(machines[0].api("GET", "/readyz", "").await.0, 200);
    broken.store(true, Ordering::Relaxed);
    TcpStream::connect(&machines[0].config.peer.listen)
        .await
        .unwrap();
    let failure = eventually("a node that says what it lacks", || {
        machines[0].node().status().storage_failure
    });
    let words = "listening to other nodes has ended";
    assert!(failure.await.contains(words));
    let (status, body) = machines[0].api("GET", "/readyz", "").await;
    assert_eq!(status, 503, "{body}");
    assert!(body.contains(words), "{body}");
}
