//! Records to a syslog: one datagram each, by RFC 5424, to the socket of this machine or by UDP (RFC 5426).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process;

use super::record::rfc3339;
use super::sink::Sink;

/// Facility 13, "log audit"; severity 6, informational.
const PRIORITY: u8 = 13 * 8 + 6;

pub(super) struct Syslog {
    place: Place,
    /// Made anew after a failure: the daemon may have been restarted.
    socket: Option<Socket>,
    host: String,
}

enum Place {
    Local(PathBuf),
    /// `host:port`.
    Elsewhere(String),
}

enum Socket {
    Local(UnixDatagram),
    Udp(UdpSocket),
}

impl Syslog {
    pub(super) fn local(path: &Path) -> Self {
        Self::at(Place::Local(path.to_owned()))
    }

    pub(super) fn udp(address: &str) -> Self {
        Self::at(Place::Elsewhere(address.to_owned()))
    }

    fn at(place: Place) -> Self {
        let name = rustix::system::uname();
        let host = name.nodename().to_string_lossy().into_owned();
        let is_plain = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
        Self {
            place,
            socket: None,
            host: if is_plain { host } else { "-".to_owned() },
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => self.place.connect()?,
        };
        match &socket {
            Socket::Local(socket) => socket.send(message)?,
            Socket::Udp(socket) => socket.send(message)?,
        };
        self.socket = Some(socket);
        Ok(())
    }
}

impl Place {
    fn connect(&self) -> io::Result<Socket> {
        match self {
            Self::Local(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                Ok(Socket::Local(socket))
            }
            Self::Elsewhere(address) => {
                let address = (address.to_socket_addrs()?.next()).ok_or(io::ErrorKind::NotFound)?;
                let any: IpAddr = match address {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                let socket = UdpSocket::bind((any, 0))?;
                socket.connect(address)?;
                Ok(Socket::Udp(socket))
            }
        }
    }
}

impl Sink for Syslog {
    fn write(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
            let message = message(&self.host, process::id(), &lines[..end]);
            // What a daemon that was restarted has not taken is sent once more.
            self.send(&message).or_else(|_| self.send(&message))?;
            lines.drain(..=end);
        }
        Ok(())
    }
}

/// The time is that of sending; the record has its own.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing is audited in simulations"
)]
fn message(host: &str, process: u32, record: &[u8]) -> Vec<u8> {
    let time = rfc3339(microseconds(std::time::SystemTime::now()));
    let mut message = format!("<{PRIORITY}>1 {time} {host} placementd {process} audit - ");
    // What is JSON is UTF-8, and a record begins with a brace: no mark for that is needed.
    message.push_str(&String::from_utf8_lossy(record));
    message.into_bytes()
}

/// RFC 5424, section 6.2.3, allows no more digits.
fn microseconds(time: std::time::SystemTime) -> std::time::SystemTime {
    let since = time
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let micros = u64::try_from(since.as_micros()).unwrap_or(u64::MAX);
    std::time::UNIX_EPOCH + std::time::Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use regex_lite::Regex;

    use super::*;

    /// Source: RFC 5424, section 6.
    fn check(message: &[u8], record: &str) {
        let message = std::str::from_utf8(message).unwrap();
        let form = Regex::new(
            r"^<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z \S+ placementd \d+ audit - (.*)$",
        );
        let found = form.unwrap().captures(message);
        assert_eq!(found.expect(message).get(2).unwrap().as_str(), record);
    }

    #[test]
    fn a_local_syslog_gets_each_record_also_after_it_was_restarted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut syslog = Syslog::local(&path);
        let mut lines = b"{\"a\":1}\n{\"b\":2}\n".to_vec();
        assert!(syslog.write(&mut lines).is_err());
        assert_eq!(lines.len(), 16, "nothing was taken");

        let daemon = UnixDatagram::bind(&path).unwrap();
        syslog.write(&mut lines).unwrap();
        assert!(lines.is_empty());
        let mut buffer = [0; 512];
        for record in [r#"{"a":1}"#, r#"{"b":2}"#] {
            let bytes = daemon.recv(&mut buffer).unwrap();
            check(&buffer[..bytes], record);
        }

        drop(daemon);
        std::fs::remove_file(&path).unwrap();
        let daemon = UnixDatagram::bind(&path).unwrap();
        syslog.write(&mut b"{\"c\":3}\n".to_vec()).unwrap();
        let bytes = daemon.recv(&mut buffer).unwrap();
        check(&buffer[..bytes], r#"{"c":3}"#);
    }

    #[test]
    fn a_syslog_elsewhere_gets_each_record() {
        let daemon = UdpSocket::bind("127.0.0.1:0").unwrap();
        daemon
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let address = daemon.local_addr().unwrap().to_string();
        let mut syslog = Syslog::udp(&address);
        syslog.write(&mut b"{\"a\":1}\n".to_vec()).unwrap();
        let mut buffer = [0; 512];
        let bytes = daemon.recv(&mut buffer).unwrap();
        check(&buffer[..bytes], r#"{"a":1}"#);
    }
}
