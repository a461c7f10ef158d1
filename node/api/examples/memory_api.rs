//! Serves the API over a state in memory, for manual tests and for comparison with other servers:
//!
//!     cargo run -p placement-api --example memory_api -- 127.0.0.1:8778
//!
//! `--policy FILE`, `--old-defaults` and `--cors ORIGIN` override the configuration. `DELETE
//! /__state` empties the state, so that a test suite can start again.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test or a demonstration, in the real world"
)]

#[path = "../tests/support/memory.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod memory;

use std::sync::{Arc, RwLock};

use axum::extract::Request;
use memory::Memory;
use placement_api::http::{Api, ApiSettings, Service};
use placement_audit::Audit;
use placement_base::world::RealWorld;

fn settings() -> ApiSettings {
    let mut settings = ApiSettings::default();
    let mut arguments = std::env::args().skip(2);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--policy" => settings.policy.file = arguments.next().map(Into::into),
            "--old-defaults" => settings.policy.enforce_new_defaults = false,
            "--cors" => settings.cors.allowed_origin.extend(arguments.next()),
            other => panic!("unknown argument {other}"),
        }
    }
    settings
}

fn api() -> Service {
    let (memory, world) = (Arc::new(Memory::new()), Arc::new(RealWorld::default()));
    let settings = settings();
    Service::new(Api {
        write: memory.clone(),
        read: memory.clone(),
        ledger: memory.clone(),
        readiness: memory,
        clock: world.clone(),
        ids: world.clone(),
        offload: world.clone(),
        background: world,
        keystone: None,
        policy: Arc::new(placement_api::http::read_policy(&settings.policy).unwrap()),
        audit: Audit::off(),
        settings,
    })
}

#[tokio::main]
async fn main() {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8778".to_owned());
    let current = Arc::new(RwLock::new(api()));
    let app = axum::Router::new().fallback(move |request: Request| {
        let current = current.clone();
        async move {
            if request.method() == http::Method::DELETE && request.uri().path() == "/__state" {
                *current.write().unwrap() = api();
            }
            let app = current.read().unwrap().clone();
            app.respond(request, None).await.response
        }
    });
    let listener = tokio::net::TcpListener::bind(&address).await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    axum::serve(listener, app).await.unwrap();
}
