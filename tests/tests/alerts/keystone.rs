//! Keystone that is down or slow, callers above their limits, and a log that is not read.

use std::convert::Infallible;
use std::fs;
use std::future::pending;
use std::io::{BufRead, BufReader};
use std::process::ChildStderr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use placement_client::{ApiRequest, Client};
use placement_tests::is_ready;
use placement_tests::layout::{NodePlace, initial_members};
use placement_tests::node_process::{NodeProcess, StartOptions};
use placement_tests::ports::Ports;
use placement_tests::prometheus::Job;
use placement_tests::wait::until;
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use uuid::Uuid;

use super::{Story, during, pause};

pub(super) const JOB: &str = "placementd-keystone";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Knows only the token of the node.
    Well,
    Fails,
    Hangs,
}

pub(super) struct Stage {
    node: NodeProcess,
    place: NodePlace,
    unread: ChildStderr,
    keystone: Arc<Mutex<Mood>>,
    _directory: TempDir,
    _ports: Ports,
}

fn config(address: &str, level: &str) -> String {
    format!(
        "[log]\nlevel = {level:?}\n[auth]\nstrategy = \"keystone\"\n[callers]\naddress_in_flight = 200\n\
         [keystone]\nauth_url = \"http://{address}\"\nusername = \"placement\"\npassword = \"hidden\"\n"
    )
}

impl Stage {
    pub(super) async fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let keystone = Arc::new(Mutex::new(Mood::Well));
        tokio::spawn(serve(listener, keystone.clone()));
        let directory = tempfile::tempdir().unwrap();
        let ports = Ports::claim(1);
        let place = NodePlace::new(directory.path(), ports.first(), 1);
        let file = directory.path().join("placementd.toml");
        placement_tests::private::write(&file, &config(&address, "trace")).unwrap();
        let options = StartOptions {
            initial_members: initial_members(std::slice::from_ref(&place)),
            config: Some(file.clone()),
            ..StartOptions::default()
        };
        let (node, unread) = NodeProcess::start_piped(&place, &options).unwrap();
        until("readiness", async || is_ready(&place).await).await;
        let quiet = config(&address, "error");
        fs::write(&file, quiet).unwrap();
        Self {
            node,
            place,
            unread,
            keystone,
            _directory: directory,
            _ports: ports,
        }
    }

    pub(super) fn job(&self) -> Job {
        Job::for_targets(JOB, vec![self.place.admin()])
    }

    pub(super) async fn play(self, story: Story<'_>) {
        let client = Client::new([self.place.api()]).unwrap();
        let client = client.with_patience(Duration::ZERO);
        // Each request waits up to 10 s for a hung Keystone: more are in flight than Keystone may
        // have at once, and more than one address may have.
        let asks = async || {
            for _ in 0..15 {
                // Each request has another token, so that none is cached.
                tokio::spawn(ask(client.clone(), Uuid::new_v4()));
            }
            pause(500).await;
        };
        for (mood, alerts) in [
            (Mood::Fails, &["PlacementKeystoneAway"][..]),
            (
                Mood::Hangs,
                &["PlacementKeystoneSlow", "PlacementCallersRefused"],
            ),
        ] {
            *self.keystone.lock() = mood;
            during(&asks, story.fires(alerts)).await;
            *self.keystone.lock() = Mood::Well;
            during(&asks, story.ended(alerts)).await;
        }

        let known = Uuid::new_v4();
        let crowds = async || {
            let asks = (0..20).map(|_| ask(client.clone(), known));
            futures::future::join_all(asks).await;
        };
        let crowd = ["PlacementLogLinesDropped"];
        during(crowds, story.fires(&crowd)).await;
        self.node.signal(Signal::HUP);
        let unread = self.unread;
        std::thread::spawn(move || BufReader::new(unread).lines().for_each(drop));
        story.ended(&crowd).await;
    }
}

async fn ask(client: Client, token: Uuid) {
    let client = client.with_token(&token.simple().to_string());
    let _ = client.request_once(ApiRequest::get("/traits")).await;
}

async fn serve(listener: TcpListener, mood: Arc<Mutex<Mood>>) {
    while let Ok((connection, _)) = listener.accept().await {
        let mood = mood.clone();
        let answers = service_fn(move |request| answer(request, *mood.lock()));
        let serving = http1::Builder::new().serve_connection(TokioIo::new(connection), answers);
        // A client may close the connection early.
        tokio::spawn(async move { drop(serving.await) });
    }
}

async fn answer(
    request: Request<Incoming>,
    mood: Mood,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if mood == Mood::Hangs {
        return pending().await;
    }
    let (status, body) = match (mood, request.method() == Method::POST) {
        (Mood::Fails, _) => (StatusCode::SERVICE_UNAVAILABLE, json!({})),
        (_, true) => (
            StatusCode::CREATED,
            json!({"token": {
                "user": {"id": "placement", "domain": {"id": "default"}},
                "roles": [{"name": "service"}],
                "expires_at": "2099-01-01T00:00:00Z",
            }}),
        ),
        (_, false) => (
            StatusCode::NOT_FOUND,
            json!({"error": {"code": 404, "title": "Not Found", "message": "Could not find token: ."}}),
        ),
    };
    let answer = Response::builder().status(status);
    let answer = answer.header("x-subject-token", "own");
    Ok(answer.body(Full::new(body.to_string().into())).unwrap())
}
