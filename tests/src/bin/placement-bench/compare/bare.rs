//! A server that does nothing: axum with one fixed answer. What a request costs before a service has
//! done anything.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use clap::Args;
use http::header::CONTENT_TYPE;
use placement_tests::ports::Ports;
use tempfile::NamedTempFile;

use super::super::process_group::{Group, guarded};

/// Answers every request with the bytes of a file. `compare` starts it.
#[derive(Args)]
pub(in super::super) struct Options {
    #[arg(long)]
    listen: SocketAddr,

    #[arg(long)]
    body: PathBuf,
}

/// Serves until it is killed.
pub(in super::super) async fn serve(options: &Options) -> anyhow::Result<()> {
    let body = Bytes::from(std::fs::read(&options.body)?);
    let answer = move || async move { ([(CONTENT_TYPE, "application/json")], body) };
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    let listener = listener.tap_io(|stream| {
        // Without it the answer is as right, only later.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().fallback(answer)).await?;
    Ok(())
}

/// Such a server as a process of its own.
pub(super) struct Bare {
    group: Group,
    ports: Ports,
    _files: (NamedTempFile, NamedTempFile),
}

impl Bare {
    pub(super) async fn start(body: &[u8]) -> anyhow::Result<Self> {
        let (mut file, log) = (NamedTempFile::new()?, NamedTempFile::new()?);
        file.write_all(body)?;
        let ports = Ports::claim(1);
        let mut command = guarded(std::env::current_exe().context("where am I")?);
        command
            .args(["bare", "--listen", &format!("127.0.0.1:{}", ports.first())])
            .arg("--body")
            .arg(file.path());
        let group = Group::start(command, log.path().to_owned())?;
        group
            .wait_for_port(ports.first(), Duration::from_secs(10))
            .await?;
        Ok(Self {
            group,
            ports,
            _files: (file, log),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports.first()))
    }

    pub(super) fn cpu_time(&self) -> anyhow::Result<Duration> {
        self.group.cpu_time()
    }
}
