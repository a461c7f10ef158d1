//! What a supervisor such as systemd is told of a node: that it listens, lives, reads its configuration again, stops.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use placement_tests::cluster::Cluster;
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// The socket at which systemd listens.
struct Supervisor {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Supervisor {
    fn of(cluster: &mut Cluster, watchdog: Duration) -> Self {
        let path = cluster.directory().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let poll = Duration::from_millis(100);
        socket.set_read_timeout(Some(poll)).unwrap();
        cluster.options_mut().environment = vec![
            ("NOTIFY_SOCKET".to_owned(), path.display().to_string()),
            ("WATCHDOG_USEC".to_owned(), watchdog.as_micros().to_string()),
        ];
        let heard = Vec::new();
        Self { socket, heard }
    }

    /// Listens until this is said, and forgets what was said up to then.
    fn hears(&mut self, wanted: &str) {
        let started = Instant::now();
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = self.heard.iter().position(|line| line.starts_with(wanted)) {
                self.heard.drain(..=at);
                return;
            }
            assert!(started.elapsed() < LIMIT, "no {wanted}: {:?}", self.heard);
            if let Ok(length) = self.socket.recv(&mut buffer) {
                let said = std::str::from_utf8(&buffer[..length]).unwrap();
                self.heard.extend(said.lines().map(str::to_owned));
            }
        }
    }
}

#[tokio::test]
async fn a_supervisor_is_told_how_a_node_is() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    let mut systemd = Supervisor::of(&mut cluster, Duration::from_secs(3));
    // Alone it listens and lives, and is not ready: to start it again would not help.
    cluster.start_node(1).unwrap();
    systemd.hears("READY=1");
    systemd.hears("STATUS=this node does not belong to a cluster yet");
    systemd.hears("WATCHDOG=1");
    systemd.hears("WATCHDOG=1");

    cluster.options_mut().environment.clear();
    cluster.start_node(2).unwrap();
    cluster.start_node(3).unwrap();
    systemd.hears("STATUS=ready");

    cluster.process(1).signal(Signal::HUP);
    systemd.hears("RELOADING=1");
    systemd.hears("MONOTONIC_USEC=");
    systemd.hears("READY=1");

    cluster.process(1).signal(Signal::TERM);
    systemd.hears("STOPPING=1");
    let ended = cluster.process(1).wait(LIMIT).unwrap();
    assert!(ended.success(), "{}", cluster.log(1, 20));
}
