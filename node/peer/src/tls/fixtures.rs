//! A certificate authority for tests.

use std::ops::Range;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::CertificateFiles;
use super::certificates::{Certificates, Clients};
use super::{PEER, node_name};

/// A certificate authority. Its files are deleted when it is dropped.
pub(crate) struct Authority {
    dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // The authority expires before the certificates that it issues.
        params.not_after = rcgen::date_time_ymd(2999, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).unwrap();
        Self {
            dir,
            issuer: Issuer::new(params, key),
        }
    }

    /// Issues a certificate with these names and writes it to files called `file`.
    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> CertificateFiles {
        self.write(file, named(names))
    }

    /// Issues a new certificate for a node, valid from 1 January of the first year to 1 January of
    /// the second.
    pub(crate) fn issue_for(&self, id: u64, years: Range<i32>) {
        let mut params = named(&[&node_name(id), PEER]);
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        self.write(&format!("node-{id}"), params);
    }

    fn write(&self, file: &str, params: CertificateParams) -> CertificateFiles {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = |end: &str| self.dir.path().join(format!("{file}{end}"));
        std::fs::write(path(".pem"), certificate.pem()).unwrap();
        std::fs::write(path("-key.pem"), key.serialize_pem()).unwrap();
        CertificateFiles {
            certificate: path(".pem"),
            key: path("-key.pem"),
            authorities: Some(self.dir.path().join("ca.pem")),
        }
    }

    /// Issues the certificates of a node and opens them.
    pub(crate) fn node(&self, id: u64) -> Arc<Certificates> {
        let files = self.issue(&format!("node-{id}"), &[&node_name(id), PEER]);
        Certificates::open(files, Clients::Must, &[], Some(node_name(id))).unwrap()
    }
}

fn named(names: &[&str]) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    CertificateParams::new(names).unwrap()
}
