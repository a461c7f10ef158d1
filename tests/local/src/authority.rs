//! A cluster's certificate authority and its certificates, created by `placementctl tls`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use placement_client::Trust;

use crate::binaries;

/// A directory with a certificate authority and the certificates it has issued.
#[derive(Debug, Clone)]
pub struct Authority {
    directory: PathBuf,
}

impl Authority {
    /// Creates an authority in this directory.
    pub fn new(directory: &Path) -> anyhow::Result<Self> {
        let authority = Self {
            directory: directory.to_owned(),
        };
        authority.tls(&["init"])?;
        Ok(authority)
    }

    /// Directory of the certificates and keys.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Issues a certificate for a node, valid for `days` days.
    pub fn node(&self, id: u64, days: u32) -> anyhow::Result<()> {
        let (id, days) = (id.to_string(), days.to_string());
        let hosts = ["--host", "127.0.0.1", "--host", "localhost"];
        self.tls(&[&["issue", "node", &id, "--days", &days], &hosts[..]].concat())
    }

    /// Renews the certificate of a node.
    pub fn renew_node(&self, id: u64, days: u32) -> anyhow::Result<()> {
        let (id, days) = (id.to_string(), days.to_string());
        self.tls(&["renew", "node", &id, "--days", &days])
    }

    /// Issues an operator's certificate.
    pub fn operator(&self, name: &str) -> anyhow::Result<()> {
        self.tls(&["issue", "admin", name])
    }

    /// Trust settings of a client with the certificate of this name, or with no certificate.
    pub fn trust(&self, name: Option<&str>) -> Trust {
        let file = |name: String| self.directory.join(name);
        Trust {
            ca_file: Some(file("ca.pem".to_owned())),
            certificate: name
                .map(|name| (file(format!("{name}.pem")), file(format!("{name}-key.pem")))),
        }
    }

    /// Command-line flags that make a node use the certificate issued for `id`.
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
