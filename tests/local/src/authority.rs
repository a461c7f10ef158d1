//! The authority of a cluster and its certificates, made by `placementctl tls`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use placement_client::Trust;

use crate::binaries;

/// A directory with an authority and what it vouches for.
#[derive(Debug, Clone)]
pub struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// A new one.
    pub fn new(directory: &Path) -> anyhow::Result<Self> {
        let authority = Self {
            directory: directory.to_owned(),
        };
        authority.tls(&["init"])?;
        Ok(authority)
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Has it vouch for a node for so many days.
    pub fn node(&self, id: u64, days: u32) -> anyhow::Result<()> {
        let (id, days) = (id.to_string(), days.to_string());
        let hosts = ["--host", "127.0.0.1", "--host", "localhost"];
        self.tls(&[&["issue", "node", &id, "--days", &days], &hosts[..]].concat())
    }

    /// Renews what it has issued for a node.
    pub fn renew_node(&self, id: u64, days: u32) -> anyhow::Result<()> {
        let (id, days) = (id.to_string(), days.to_string());
        self.tls(&["renew", "node", &id, "--days", &days])
    }

    /// Has it vouch for an operator.
    pub fn operator(&self, name: &str) -> anyhow::Result<()> {
        self.tls(&["issue", "admin", name])
    }

    /// What a client trusts that has the certificate of this name, or none.
    pub fn trust(&self, name: Option<&str>) -> Trust {
        let file = |name: String| self.directory.join(name);
        Trust {
            ca_file: Some(file("ca.pem".to_owned())),
            certificate: name
                .map(|name| (file(format!("{name}.pem")), file(format!("{name}-key.pem")))),
        }
    }

    /// The flags with which a node uses the certificate that was made for `id`.
    pub fn flags(&self, id: u64) -> Vec<String> {
        let file = |name: String| self.directory.join(name).display().to_string();
        vec![
            "--tls-ca-file".to_owned(),
            file("ca.pem".to_owned()),
            "--tls-cert-file".to_owned(),
            file(format!("node-{id}.pem")),
            "--tls-key-file".to_owned(),
            file(format!("node-{id}-key.pem")),
        ]
    }

    fn tls(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let made = Command::new(binaries::placementctl()?)
            .arg("tls")
            .args(arguments)
            .arg("--dir")
            .arg(&self.directory)
            .output()
            .context("cannot start placementctl")?;
        ensure!(
            made.status.success(),
            "placementctl tls {arguments:?}: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        Ok(())
    }
}
