//! An axum server with one fixed answer: shows what a request costs before a service does any work.
//! The target for reads is a share of its rate, as absolute rates depend on the machine.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use axum::Router;
use axum::serve::ListenerExt as _;
use clap::Args;
use placement_tests::ports::Ports;
use tempfile::NamedTempFile;

use crate::process_group::{Group, guarded};

/// Answers every request with the content of a file. `compare` starts it.
#[derive(Args)]
pub(crate) struct Options {
    #[arg(long)]
    listen: SocketAddr,

    #[arg(long)]
    body: PathBuf,
}

/// Serves until it is killed.
pub(crate) async fn serve(options: &Options) -> anyhow::Result<()> {
    let body = std::fs::read_to_string(&options.body)?;
    let answer = move || async move { ([("content-type", "application/json")], body) };
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    let listener = listener.tap_io(|stream| {
        // Without TCP_NODELAY the answer is correct, but arrives later.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().fallback(answer)).await?;
    Ok(())
}

/// The server of [`serve`] as a separate process.
pub(crate) struct Axum {
    group: Group,
    ports: Ports,
    _files: [NamedTempFile; 2],
}

impl Axum {
    pub(crate) async fn start(body: &[u8]) -> anyhow::Result<Self> {
        let (mut file, log) = (NamedTempFile::new()?, NamedTempFile::new()?);
        file.write_all(body)?;
        let ports = Ports::claim(1);
        let program = std::env::current_exe().context("this program has no path")?;
        let mut command = guarded(&program.to_string_lossy());
        command
            .args(["bare", "--listen", &format!("127.0.0.1:{}", ports.first())])
            .arg("--body")
            .arg(file.path());
        let group = Group::start(command, log.path().to_owned())?;
        group.wait_for_port(ports.first()).await?;
        Ok(Self {
            group,
            ports,
            _files: [file, log],
        })
    }

    pub(crate) fn servers(&self) -> Vec<String> {
        vec![format!("http://127.0.0.1:{}", self.ports.first())]
    }

    pub(crate) fn pid(&self) -> u32 {
        self.group.pid()
    }
}
