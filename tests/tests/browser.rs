//! An HTTP client that behaves like a browser.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// Content type of forms.
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A browser that shows the web pages of one host.
pub(crate) struct Browser {
    pub(crate) host: String,
    /// Value of its `Cookie` header.
    pub(crate) cookie: String,
    runtime: Handle,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

/// Sends a request over a separate connection, which is closed when this future completes or is
/// dropped.
async fn exchange(host: String, request: Request<Full<Bytes>>) -> Answer {
    let stream = TcpStream::connect(host).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let answer = async move {
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    };
    // A node that refuses a request may close the connection early.
    futures::join!(answer, connection).0
}

impl Browser {
    pub(crate) fn at(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            cookie: String::new(),
            runtime: Handle::current(),
        }
    }

    /// Sends a request with these headers, and with `Host` unless they include one; returns the
    /// answer.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let answer = self.begin(method, path, headers, body);
        block_in_place(|| self.runtime.block_on(answer))
    }

    /// A request that the browser abandons if the future is dropped.
    pub(crate) fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("Connection", "close");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if headers.iter().all(|(name, _)| *name != "Host") {
            request = request.header("Host", &self.host);
        }
        let body = Full::from(body.to_owned());
        exchange(self.host.clone(), request.body(body).unwrap())
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[("Cookie", &self.cookie)], "")
    }

    /// Sends a form as a page of the site does.
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        let origin = format!("http://{}", self.host);
        let headers = [
            ("Origin", &*origin),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", FORM),
            ("Cookie", &*self.cookie),
        ];
        self.send("POST", path, &headers, body)
    }

    pub(crate) fn log_in(&mut self, form: &str) -> Answer {
        let answer = self.post("/login", form);
        self.keep_cookie(&answer);
        answer
    }

    /// Sends the cookie of this answer, if it has one, with all further requests.
    pub(crate) fn keep_cookie(&mut self, answer: &Answer) {
        if let Some((cookie, _)) = answer.header("set-cookie").split_once(';') {
            cookie.clone_into(&mut self.cookie);
        }
    }

    /// Whether the browser is logged in.
    pub(crate) fn is_in(&self) -> bool {
        let answer = self.get("/web/topology");
        assert!(
            answer.status == 200 || (answer.status, answer.header("location")) == (303, "/login"),
            "{answer:?}"
        );
        answer.status == 200
    }
}
