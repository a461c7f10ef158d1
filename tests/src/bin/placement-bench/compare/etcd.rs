//! Three nodes of etcd, and the smallest client of its gRPC: one unary call, written by hand over HTTP/2,
//! since etcd's own `etcdctl check perf` holds back at rates of its choice, and its JSON gateway costs
//! more than gRPC.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use placement_tests::load::{self, Measured};
use placement_tests::ports::{BLOCK, Ports};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::super::process_group::{Group, guarded};
use super::super::progress;

const NODES: u16 = 3;
const VALUE_BYTES: usize = 1024;
const READY_LIMIT: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_millis(500);

/// A cluster with etcd's default configuration; gone when this is dropped.
pub(super) struct Etcd {
    nodes: Vec<Group>,
    ports: Ports,
    _directory: TempDir,
}

/// How clients share connections. etcd's own benchmark leaves this to its caller, and which is faster
/// depends on the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// A connection for each client.
    Each,
    /// One connection to each node, for all its clients.
    All,
}

/// A connection, and who it speaks to.
#[derive(Clone)]
struct Channel {
    sender: SendRequest<Bytes>,
    uri: String,
}

impl Etcd {
    pub(super) async fn start() -> anyhow::Result<Self> {
        progress("starting three nodes of etcd");
        let directory = tempfile::Builder::new()
            .prefix("placement-etcd-")
            .tempdir()?;
        let ports = Ports::claim(NODES);
        let peer = |node| format!("http://127.0.0.1:{}", ports.first() + node * BLOCK + 1);
        let members: Vec<_> = (0..NODES)
            .map(|nth| format!("n{nth}={}", peer(nth)))
            .collect();
        let mut nodes = Vec::new();
        for nth in 0..NODES {
            let api = format!("http://127.0.0.1:{}", ports.first() + nth * BLOCK);
            let mut command = guarded("etcd");
            command
                .args(["--name", &format!("n{nth}"), "--logger", "zap"])
                .arg("--data-dir")
                .arg(directory.path().join(format!("n{nth}")))
                .args(["--listen-client-urls", &api])
                .args(["--advertise-client-urls", &api])
                .args(["--listen-peer-urls", &peer(nth)])
                .args(["--initial-advertise-peer-urls", &peer(nth)])
                .args(["--initial-cluster", &members.join(",")]);
            let log = directory.path().join(format!("n{nth}.log"));
            let node =
                Group::start(command, log).context("etcd is in the Debian package etcd-server")?;
            nodes.push(node);
        }
        let etcd = Self {
            nodes,
            ports,
            _directory: directory,
        };
        etcd.wait_ready().await?;
        Ok(etcd)
    }

    async fn wait_ready(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        for (node, address) in self.nodes.iter().zip(self.addresses()) {
            node.wait_for_port(address.port(), READY_LIMIT).await?;
            while let Err(error) = put_once(address).await {
                if started.elapsed() > READY_LIMIT {
                    bail!("etcd takes no puts: {error:#}\n{}", node.log_tail());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        let first = self.ports.first();
        (0..NODES).map(move |nth| SocketAddr::from(([127, 0, 0, 1], first + nth * BLOCK)))
    }

    /// Processor time of all nodes so far.
    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        self.nodes.iter().map(Group::cpu_time).sum()
    }

    /// Puts of new keys with values of 1 KiB, by so many clients, spread over all nodes.
    pub(super) async fn puts(
        &self,
        clients: usize,
        duration: Duration,
        sharing: Sharing,
    ) -> anyhow::Result<Measured> {
        let mut nodes = Vec::new();
        for address in self.addresses() {
            nodes.push(Channel::open(address).await?);
        }
        let mut channels = Vec::new();
        for client in 0..clients {
            let node = client % nodes.len();
            channels.push(match sharing {
                Sharing::All => nodes[node].clone(),
                Sharing::Each => {
                    let address = self.addresses().nth(node).expect("one of the nodes");
                    Channel::open(address).await?
                }
            });
        }
        let work = move |client: usize| {
            let channel = channels[client].clone();
            async move { channel.put().await }
        };
        let measured = load::run(clients, WARM_UP, duration, work).await;
        ensure!(
            measured.errors == 0 && measured.calls > 0,
            "{} puts of etcd failed: this run says nothing",
            measured.errors
        );
        Ok(measured)
    }
}

async fn put_once(address: SocketAddr) -> anyhow::Result<()> {
    let channel = Channel::open(address).await?;
    tokio::time::timeout(Duration::from_secs(5), channel.put()).await?
}

impl Channel {
    async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = h2::client::handshake(stream).await?;
        tokio::spawn(async move {
            // What becomes of it, the calls tell.
            let _ = connection.await;
        });
        let uri = format!("http://{address}/etcdserverpb.KV/Put");
        Ok(Self { sender, uri })
    }

    /// One put of a new key, to its end.
    async fn put(self) -> anyhow::Result<()> {
        let request = http::Request::post(&self.uri)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let mut sender = self.sender.ready().await?;
        let (response, mut body) = sender.send_request(request, false)?;
        let key: [u8; 16] = rand::random();
        body.send_data(put_message(&key, &[7; VALUE_BYTES]), true)?;
        let response = response.await?;
        if let Some(status) = response.headers().get("grpc-status") {
            bail!("etcd answered grpc-status {status:?}");
        }
        let mut answer = response.into_body();
        while let Some(data) = answer.data().await {
            let length = data?.len();
            answer.flow_control().release_capacity(length)?;
        }
        let trailers = answer.trailers().await?.context("no trailers")?;
        let status = trailers.get("grpc-status").context("no grpc-status")?;
        ensure!(status == "0", "etcd answered grpc-status {status:?}");
        Ok(())
    }
}

/// A `PutRequest` of `etcdserverpb`, with gRPC's five bytes before it: not compressed, and the length.
fn put_message(key: &[u8], value: &[u8]) -> Bytes {
    let mut message = vec![0; 5];
    for (tag, field) in [(1, key), (2, value)] {
        // Wire type 2: bytes with their length before them.
        message.push(tag << 3 | 2);
        let mut length = field.len();
        while length >= 0x80 {
            message.push(length as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend_from_slice(field);
    }
    let length = u32::try_from(message.len() - 5).expect("a short message");
    message[1..5].copy_from_slice(&length.to_be_bytes());
    message.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_is_written_as_protocol_buffers_have_it() {
        let message = put_message(b"k", &[7; 300]);
        assert_eq!(message[..5], [0, 0, 0, 1, 50]);
        assert_eq!(message[5..11], [0x0a, 1, b'k', 0x12, 0xac, 0x02]);
        assert_eq!(message.len(), 5 + 3 + 3 + 300);
    }
}
