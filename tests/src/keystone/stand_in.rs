//! A made-up Keystone at a port of this machine, which starts at once, hangs and fails on request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use parking_lot::Mutex;

use super::identities::Identities;
use crate::http_server::HttpServer;

/// Behaviour of the stand-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Answers as Keystone does.
    Well,
    /// Answers each request with 503.
    Fails,
    /// Answers no request until its mood changes.
    Hangs,
}

/// A made-up Keystone; stopped when dropped.
pub struct StandIn {
    shared: Arc<Shared>,
    server: HttpServer,
}

struct Shared {
    identities: Identities,
    mood: Mutex<Mood>,
    /// Requests that have arrived while it hangs.
    waiting: AtomicUsize,
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let hangs = || *self.mood.lock() == Mood::Hangs;
        self.waiting.fetch_add(hangs().into(), Ordering::Relaxed);
        while hangs() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if *self.mood.lock() == Mood::Fails {
            let mut answer = Response::default();
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return answer;
        }
        self.identities.answer(request).await
    }
}

impl StandIn {
    /// Starts a Keystone with the service user `placement` and with these users, who have one role
    /// each.
    pub async fn start(users: &[(&str, &str)]) -> io::Result<Self> {
        let users = [&[("placement", "service")], users].concat();
        let never = "2099-01-01T00:00:00Z".to_owned();
        let shared = Arc::new(Shared {
            identities: Identities::new(&users, never, |_| None),
            mood: Mutex::new(Mood::Well),
            waiting: AtomicUsize::default(),
        });
        let answering = shared.clone();
        let server = HttpServer::start(move |request| {
            let answering = answering.clone();
            async move { answering.answer(request).await }
        })
        .await?;
        Ok(Self { shared, server })
    }

    /// Sections `[auth]` and `[keystone]` of nodes that use it. The caller may append keys to the
    /// latter.
    pub fn config(&self) -> String {
        format!(
            "[auth]\nstrategy = \"keystone\"\n[keystone]\nauth_url = \"http://{}\"\n\
             username = \"placement\"\npassword = \"password of placement\"\n",
            self.address()
        )
    }

    /// Address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Its users and tokens.
    pub fn identities(&self) -> &Identities {
        &self.shared.identities
    }

    /// Valid tokens of a user.
    pub fn tokens_of(&self, user: &str) -> Vec<String> {
        let tokens = self.shared.identities.tokens.lock();
        let own = tokens.iter().filter(|(_, own)| *own == user);
        own.map(|(token, _)| token.clone()).collect()
    }

    /// Changes how it answers from now on.
    pub fn set(&self, mood: Mood) {
        *self.shared.mood.lock() = mood;
    }

    /// Number of requests that have arrived while it hung.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }

    /// Closes its port: connections are refused.
    pub fn stop(&self) {
        self.server.stop();
    }
}
