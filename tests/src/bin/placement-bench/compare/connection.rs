//! One connection that blocks: the cheapest client there is. Its thread wakes once for an answer, and
//! no task hands it over.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Room for the head of an answer.
const HEAD_MAX_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// A connection to one server, made when it is first needed and again after the server closed it.
pub(super) struct Connection {
    server: SocketAddr,
    timeout: Duration,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

struct Head {
    bytes: usize,
    status: u16,
    body: BodyLength,
    closes: bool,
}

enum BodyLength {
    Known(usize),
    Chunked,
}

impl Connection {
    /// An answer that takes longer than `timeout` is an error.
    pub(super) fn new(server: SocketAddr, timeout: Duration) -> Self {
        Self {
            server,
            timeout,
            stream: None,
            buffer: Vec::new(),
        }
    }

    pub(super) fn server(&self) -> SocketAddr {
        self.server
    }

    /// Sends a whole request and waits for the whole answer.
    pub(super) fn ask(&mut self, request: &[u8]) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect_timeout(&self.server, self.timeout)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(self.timeout))?;
                stream
            }
        };
        stream.write_all(request)?;
        self.buffer.clear();
        let head = loop {
            if let Some(head) = Head::parse(&self.buffer)? {
                break head;
            }
            self.read_more(&mut stream)?;
        };
        self.buffer.drain(..head.bytes);
        let body = match head.body {
            BodyLength::Known(length) => {
                while self.buffer.len() < length {
                    self.read_more(&mut stream)?;
                }
                self.buffer.drain(..length).collect()
            }
            BodyLength::Chunked => self.read_chunks(&mut stream)?,
        };
        if !head.closes {
            self.stream = Some(stream);
        }
        let status = head.status;
        Ok(Answer { status, body })
    }

    fn read_chunks(&mut self, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            match httparse::parse_chunk_size(&self.buffer).map_err(|_| broken("a chunk's size"))? {
                httparse::Status::Partial => self.read_more(stream)?,
                httparse::Status::Complete((line, length)) => {
                    let length = usize::try_from(length).map_err(|_| broken("a chunk's size"))?;
                    // The chunk and the line's end behind it.
                    while self.buffer.len() < line + length + 2 {
                        self.read_more(stream)?;
                    }
                    body.extend_from_slice(&self.buffer[line..line + length]);
                    self.buffer.drain(..line + length + 2);
                    if length == 0 {
                        return Ok(body);
                    }
                }
            }
        }
    }

    fn read_more(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        let from = self.buffer.len();
        self.buffer.resize(from + (64 << 10), 0);
        let read = loop {
            match stream.read(&mut self.buffer[from..]) {
                // A signal ends a read with a timeout, also one whose handler asks for the contrary.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.buffer.truncate(from + read);
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl Head {
    /// `None`: not all of it has come yet.
    fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(bytes).map_err(|_| broken("the head"))?;
        let httparse::Status::Complete(length) = parsed else {
            return match bytes.len() > HEAD_MAX_BYTES {
                true => Err(broken("the head's length")),
                false => Ok(None),
            };
        };
        let header = |name: &str| {
            let found =
                (response.headers.iter()).find(|one| one.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(found.value).ok()
        };
        let says = |name, word: &str| header(name).is_some_and(|is| is.eq_ignore_ascii_case(word));
        let status = response.code.ok_or_else(|| broken("the status"))?;
        let body = match header("content-length") {
            Some(length) => {
                BodyLength::Known(length.parse().map_err(|_| broken("content-length"))?)
            }
            None if says("transfer-encoding", "chunked") => BodyLength::Chunked,
            None if status == 204 || status == 304 => BodyLength::Known(0),
            None => return Err(broken("the body's length")),
        };
        Ok(Some(Self {
            bytes: length,
            status,
            body,
            closes: says("connection", "close"),
        }))
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is not HTTP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each request of one connection after the other with the next of these.
    fn server(answers: &'static [&'static [u8]]) -> SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            let mut rest = answers.iter();
            while let Ok((mut stream, _)) = listener.accept() {
                let mut request = [0; 1000];
                while stream.read(&mut request).is_ok_and(|read| read > 0) {
                    let Some(answer) = rest.next() else { return };
                    // In two pieces, so that it comes in two.
                    let (first, second) = answer.split_at(answer.len() / 2);
                    let _ = stream.write_all(first);
                    std::thread::sleep(Duration::from_millis(10));
                    let _ = stream.write_all(second);
                    if answer.windows(5).any(|some| some == b"close") {
                        break;
                    }
                }
            }
        });
        address
    }

    #[test]
    fn answers_are_read_whole_however_their_length_is_told() {
        let address = server(&[
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
            b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}",
        ]);
        let mut connection = Connection::new(address, Duration::from_secs(5));
        let mut ask = || {
            let answer = connection
                .ask(b"GET / HTTP/1.1\r\n\r\n")
                .expect("an answer");
            (answer.status, String::from_utf8(answer.body).expect("text"))
        };
        assert_eq!(ask(), (200, "hello".to_owned()));
        assert_eq!(ask(), (200, "hello".to_owned()));
        assert_eq!(ask(), (204, String::new()));
        assert_eq!(ask(), (409, "{}".to_owned()));
    }
}
