//! Notifications of a node to a supervisor such as systemd: started, alive, reloading, stopping.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use placement_tests::cluster::Cluster;
use placement_tests::wait::PATIENCE;
use rustix::process::Signal;

/// The notification socket, as systemd provides it.
struct Supervisor {
    socket: UnixDatagram,
    messages: Vec<String>,
}

impl Supervisor {
    fn new(cluster: &mut Cluster, watchdog: Duration) -> Self {
        let path = cluster.directory().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let poll = Duration::from_millis(100);
        socket.set_read_timeout(Some(poll)).unwrap();
        cluster.options_mut().environment = vec![
            ("NOTIFY_SOCKET".to_owned(), path.display().to_string()),
            ("WATCHDOG_USEC".to_owned(), watchdog.as_micros().to_string()),
        ];
        let messages = Vec::new();
        Self { socket, messages }
    }

    /// Waits for this message and drops those before it.
    fn receives(&mut self, wanted: &str) {
        let started = Instant::now();
        let mut buffer = [0; 4096];
        loop {
            let mut messages = self.messages.iter();
            if let Some(at) = messages.position(|line| line.starts_with(wanted)) {
                self.messages.drain(..=at);
                return;
            }
            let messages = &self.messages;
            assert!(started.elapsed() < PATIENCE, "no {wanted}: {messages:?}");
            if let Ok(length) = self.socket.recv(&mut buffer) {
                let received = std::str::from_utf8(&buffer[..length]).unwrap();
                self.messages.extend(received.lines().map(str::to_owned));
            }
        }
    }
}

#[tokio::test]
async fn supervisor_is_notified_of_state_changes() {
    let mut cluster = Cluster::prepare(3, "").unwrap();
    let mut systemd = Supervisor::new(&mut cluster, Duration::from_secs(3));
    // A node without a cluster listens and is alive but not ready: a restart would not help.
    cluster.start_node(1).unwrap();
    systemd.receives("READY=1");
    systemd.receives("STATUS=this node does not belong to a cluster yet");
    systemd.receives("WATCHDOG=1");
    systemd.receives("WATCHDOG=1");

    cluster.options_mut().environment.clear();
    cluster.start_node(2).unwrap();
    cluster.start_node(3).unwrap();
    systemd.receives("STATUS=ready");

    cluster.process(1).signal(Signal::HUP);
    systemd.receives("RELOADING=1");
    systemd.receives("MONOTONIC_USEC=");
    systemd.receives("READY=1");

    cluster.process(1).signal(Signal::TERM);
    systemd.receives("STOPPING=1");
    let ended = cluster.process(1).wait(PATIENCE).unwrap();
    assert!(ended.success(), "{}", cluster.log(1, 20));
}
