//! Three nodes of etcd with its default configuration, and puts by h2load, since a unary gRPC call
//! is a POST over HTTP/2. Alternatives are not used: `etcdctl check perf` limits its own rate, and
//! etcd's JSON gateway costs more than gRPC.
//!
//! The rate of writes depends on the disk of the machine. So the targets for writes are ratios to
//! etcd, which also replicates a log by Raft and syncs it before an answer.

use std::time::Duration;

use anyhow::{Context, ensure};
use placement_client::{ApiRequest, Client};
use placement_tests::ports::{BLOCK, Ports};
use tempfile::TempDir;

use crate::load::{Asking, Sample, on_its_core, shared};
use crate::process_group::{Group, guarded};
use crate::{progress, value_of};

const NODES: u16 = 3;
const VALUE_BYTES: usize = 1024;

pub(crate) struct Etcd {
    nodes: Vec<Group>,
    ports: Ports,
    directory: TempDir,
}

impl Etcd {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        progress("starting three nodes of etcd");
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("put"), put())?;
        let ports = Ports::claim(NODES);
        let peer = |node| format!("http://127.0.0.1:{}", ports.first() + node * BLOCK + 1);
        let members: Vec<_> = (0..NODES)
            .map(|nth| format!("n{nth}={}", peer(nth)))
            .collect();
        let mut nodes = Vec::new();
        for nth in 0..NODES {
            let name = format!("n{nth}");
            let api = format!("http://127.0.0.1:{}", ports.first() + nth * BLOCK);
            let mut command = guarded("etcd");
            command
                .args(["--name", &name, "--logger", "zap"])
                .arg("--data-dir")
                .arg(directory.path().join(&name))
                .args(["--listen-client-urls", &api])
                .args(["--advertise-client-urls", &api])
                .args(["--listen-peer-urls", &peer(nth)])
                .args(["--initial-advertise-peer-urls", &peer(nth)])
                .args(["--initial-cluster", &members.join(",")]);
            nodes.push(Group::start(
                command,
                directory.path().join(format!("{name}.log")),
            )?);
        }
        let etcd = Self {
            nodes,
            ports,
            directory,
        };
        for (node, port) in etcd.nodes.iter().zip(etcd.clients()) {
            node.wait_for_port(port).await?;
            // etcd reports itself healthy once it has a leader.
            let client = Client::new([format!("http://127.0.0.1:{port}")])?;
            while client
                .request_once(ApiRequest::get("/health"))
                .await?
                .status
                != 200
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Ok(etcd)
    }

    /// Client ports of the nodes.
    fn clients(&self) -> impl Iterator<Item = u16> {
        let first = self.ports.first();
        (0..NODES).map(move |nth| first + nth * BLOCK)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.nodes.iter().map(Group::pid).collect()
    }

    /// Runs puts of 1 KiB under one key, the default of etcd's own benchmark, over `connections`
    /// connections to these nodes.
    pub(crate) async fn puts(
        &self,
        asking: Asking,
        connections: usize,
        seconds: u64,
    ) -> anyhow::Result<Sample> {
        let mut ports = Vec::new();
        for port in self.clients() {
            if asking == Asking::All || (asking == Asking::Leader) == leads(port).await? {
                ports.push(port);
            }
        }
        let before = self.puts_so_far().await?;
        let shared = shared(&ports, connections);
        let loads = shared.map(|(port, share)| self.h2load(*port, share, seconds));
        let mut latencies = futures::future::try_join_all(loads).await?.concat();
        latencies.sort_unstable();
        let (answers, puts) = (latencies.len(), self.puts_so_far().await? - before);
        ensure!(
            puts >= answers as f64,
            "{answers} answers, but only {puts} puts"
        );
        let at =
            |share: f64| latencies[((answers - 1) as f64 * share).round() as usize] as f64 / 1e3;
        Ok(Sample {
            requests: answers as f64,
            per_second: answers as f64 / seconds as f64,
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            ..Sample::default()
        })
    }

    /// Runs h2load and returns the latencies in microseconds.
    async fn h2load(&self, port: u16, share: usize, seconds: u64) -> anyhow::Result<Vec<u64>> {
        let log = self.directory.path().join(format!("h2load-{port}"));
        let output = on_its_core("h2load")?
            .args(["-m1", "-d", "put"])
            .args(["-H", "content-type: application/grpc", "-H", "te: trailers"])
            .arg(format!("-c{share}"))
            .arg(format!("-D{seconds}"))
            .arg(format!("--log-file={}", log.display()))
            .arg(format!("http://127.0.0.1:{port}/etcdserverpb.KV/Put"))
            .current_dir(self.directory.path())
            .output()
            .await
            .context("taskset does not start")?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let lines = std::fs::read_to_string(&log)?;
        std::fs::remove_file(&log)?;
        // Start, HTTP status and duration in microseconds of each request.
        let took: Vec<u64> = lines
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                ensure!(
                    fields.len() >= 3 && fields[1] == "200",
                    "a put failed: {line}"
                );
                Ok(fields[2].parse()?)
            })
            .collect::<anyhow::Result<_>>()?;
        ensure!(
            output.status.success() && !took.is_empty(),
            "h2load failed: {printed}"
        );
        Ok(took)
    }

    /// Number of puts so far, from the node that has applied the most. The number of answers is not
    /// enough, because a failed put is also answered with 200.
    async fn puts_so_far(&self) -> anyhow::Result<f64> {
        let counts = self
            .clients()
            .map(|port| metric(port, "etcd_mvcc_put_total"));
        let counts = futures::future::try_join_all(counts).await?;
        Ok(counts.into_iter().fold(0.0, f64::max))
    }
}

async fn leads(port: u16) -> anyhow::Result<bool> {
    Ok(metric(port, "etcd_server_is_leader").await? > 0.0)
}

async fn metric(port: u16, name: &str) -> anyhow::Result<f64> {
    let client = Client::new([format!("http://127.0.0.1:{port}")])?;
    let answer = client.call(ApiRequest::get("/metrics")).await?;
    let text = String::from_utf8(answer.body.to_vec())?;
    value_of(&text, name)?.with_context(|| format!("etcd has no {name}"))
}

/// A `PutRequest` of `etcdserverpb` in protocol buffers, after gRPC's five-byte prefix (not
/// compressed; length).
fn put() -> Vec<u8> {
    let mut message = vec![0x0a, 16];
    message.extend([b'k'; 16]);
    message.extend([
        0x12,
        (VALUE_BYTES % 128) as u8 | 0x80,
        (VALUE_BYTES / 128) as u8,
    ]);
    message.extend([7; VALUE_BYTES]);
    let length = message.len() as u32;
    [&[0][..], &length.to_be_bytes(), &message].concat()
}
