//! `placementctl tls`: the certificate authority of a cluster, and its certificates.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use rcgen::ExtendedKeyUsagePurpose::{self, ClientAuth, ServerAuth};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use serde::Serialize;
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, GeneralName, Pem, X509Certificate};

use crate::files::{create, replace};
use crate::moment::{day, rfc3339};
use crate::render::{Output, Rows, print};

/// A certificate is valid from this long before its creation, since the clocks of machines differ.
const BEFORE: Duration = Duration::hours(1);
/// `show` marks a certificate that expires within this time.
const SOON: Duration = Duration::days(30);
const AUTHORITY: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca-key.pem";

/// Key usages of a node certificate: nodes are servers and clients of each other.
const NODE: &[ExtendedKeyUsagePurpose] = &[ServerAuth, ClientAuth];
const ADMIN: &[ExtendedKeyUsagePurpose] = &[ClientAuth];

/// Writes a file with these permissions.
type Put = fn(&Path, u32, &[u8]) -> anyhow::Result<()>;

#[derive(Subcommand)]
pub(crate) enum TlsAction {
    /// Create the certificate authority of a cluster.
    ///
    /// Copy `ca.pem` to each node and operator. Do not store `ca-key.pem` on a node: anyone who has
    /// it can issue a certificate for any node.
    Init {
        /// Directory for the new files.
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// Name of the authority.
        #[arg(long, default_value = "placement cluster")]
        name: String,
        /// Validity of the authority in days.
        #[arg(long, default_value_t = 3650)]
        days: u32,
    },
    /// Create a certificate and its key in the directory of the authority.
    #[command(subcommand)]
    Issue(CertificateOwner<Hosts>),
    /// Replace a certificate and its key by new ones with the same host names.
    ///
    /// The files are those in the directory of the authority. Afterwards, copy both over the files
    /// that the node or the operator uses; a running node reloads them within seconds.
    #[command(subcommand)]
    Renew(CertificateOwner<SameHosts>),
    /// Show the content of certificate files.
    Show {
        /// PEM files to show.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Subcommand)]
pub(crate) enum CertificateOwner<H: Args> {
    /// Write the certificate of a node: `node-ID.pem` and `node-ID-key.pem`.
    Node {
        /// Number of the node. The certificate is valid for this node only.
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        id: u64,
        #[command(flatten)]
        hosts: H,
        #[command(flatten)]
        from: From,
    },
    /// Write the certificate of an operator: `admin-NAME.pem` and `admin-NAME-key.pem`.
    ///
    /// Anyone who has these files has access to all nodes.
    Admin {
        /// Name of the operator.
        name: String,
        #[command(flatten)]
        from: From,
    },
}

#[derive(Args)]
pub(crate) struct Hosts {
    /// Host name or IP address that clients and operators use for https. Repeatable.
    #[arg(long = "host", value_parser = host)]
    hosts: Vec<String>,
}

/// A renewed certificate has the host names of the certificate that it replaces.
#[derive(Args)]
pub(crate) struct SameHosts {}

#[derive(Args)]
pub(crate) struct From {
    /// Directory of the authority and of the certificates.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Validity of the certificate in days.
    #[arg(long, default_value_t = 365)]
    days: u32,
}

pub(crate) fn run(action: TlsAction) -> anyhow::Result<()> {
    match action {
        TlsAction::Init { dir, name, days } => init(&dir, &name, days),
        TlsAction::Issue(CertificateOwner::Node { id, hosts, from }) => {
            let name = format!("node-{id}");
            let mut names = vec![format!("{name}.placement.internal")];
            names.push("peer.placement.internal".to_owned());
            names.extend(hosts.hosts);
            issue(&from, &name, &names, NODE, put_new)
        }
        TlsAction::Issue(CertificateOwner::Admin { name, from }) => {
            let names = ["admin.placement.internal".to_owned()];
            issue(&from, &of_admin(&name)?, &names, ADMIN, put_new)
        }
        TlsAction::Renew(CertificateOwner::Node { id, from, .. }) => {
            renew(&from, &format!("node-{id}"), NODE)
        }
        TlsAction::Renew(CertificateOwner::Admin { name, from }) => {
            renew(&from, &of_admin(&name)?, ADMIN)
        }
        TlsAction::Show { files, output } => {
            let now = OffsetDateTime::now_utc();
            let mut shown = Vec::new();
            for file in files {
                shown.extend(read(&file, now)?);
            }
            let text = |_| shown.iter().map(Shown::text).collect::<String>();
            print(&output.report(&shown, Some(rows(&shown)), text)?)
        }
    }
}

/// Prefix of the file names of an operator's certificate and key.
fn of_admin(name: &str) -> anyhow::Result<String> {
    let file_name = |char: char| char.is_ascii_alphanumeric() || "-_.@".contains(char);
    if name.is_empty() || !name.chars().all(file_name) {
        bail!("{name:?} cannot be part of a file name: use letters, digits and -_.@");
    }
    Ok(format!("admin-{name}"))
}

fn init(dir: &Path, name: &str, days: u32) -> anyhow::Result<()> {
    let mut params = params(name, days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    let (authority, key) = write(dir, "ca", &certificate, &key, put_new)?;
    println!(
        "{authority} and {key} are created: the authority for the nodes and operators of one cluster. Do not store \
         {key} on a node"
    );
    Ok(())
}

/// Replaces an existing certificate by a new one with the same names.
fn renew(from: &From, name: &str, roles: &[ExtendedKeyUsagePurpose]) -> anyhow::Result<()> {
    let file = from.dir.join(format!("{name}.pem"));
    let shown = file.display();
    let bytes = fs::read(&file)
        .with_context(|| {
            format!(
                "cannot read {shown}, the certificate to renew: copy it from where it is used, or create a new one \
                 with `tls issue`"
            )
        })?;
    let certificates = Pem::iter_from_buffer(&bytes).filter_map(Result::ok);
    let first = { certificates }.find(|pem| pem.label == "CERTIFICATE");
    let first = first.with_context(|| format!("{shown} contains no certificate"))?;
    let (_, certificate) =
        X509Certificate::from_der(&first.contents).map_err(|error| anyhow!("{shown}: {error}"))?;
    issue(from, name, &names(&certificate), roles, replace)
}

fn issue(
    from: &From,
    name: &str,
    names: &[String],
    roles: &[ExtendedKeyUsagePurpose],
    put: Put,
) -> anyhow::Result<()> {
    let dir = &from.dir;
    let read = |file: &str| {
        let file = dir.join(file);
        let shown = file.display();
        fs::read_to_string(&file)
            .with_context(|| format!("cannot read {shown}; `tls init` creates the authority"))
    };
    let key = KeyPair::from_pem(&read(AUTHORITY_KEY)?).context(AUTHORITY_KEY)?;
    let authority = Issuer::from_ca_cert_pem(&read(AUTHORITY)?, key).context(AUTHORITY)?;
    let mut params = params(name, from.days)?;
    let names = names.iter().map(|name| subject_name(name));
    params.subject_alt_names = names.collect::<anyhow::Result<_>>()?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = roles.to_vec();
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &authority)?;
    let (certificate, key) = write(dir, name, &certificate, &key, put)?;
    println!("{certificate} and {key} are created");
    Ok(())
}

/// Parameters of a certificate that is valid for `days` days from now.
fn params(name: &str, days: u32) -> anyhow::Result<CertificateParams> {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.not_before = now - BEFORE;
    params.not_after = (now.checked_add(Duration::days(days.into())))
        .ok_or_else(|| anyhow!("--days {days} is too large"))?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn subject_name(name: &str) -> anyhow::Result<SanType> {
    let refused = || {
        anyhow!(
            "{name:?} is neither a host name nor an IP address: give the host alone, such as node-2.example.org or \
             10.0.0.2"
        )
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    if !is_host_name(name.strip_prefix("*.").unwrap_or(name)) {
        return Err(refused());
    }
    Ok(SanType::DnsName(name.try_into().map_err(|_| refused())?))
}

/// Whether this is a host name according to RFC 1123. Its last label is not a number, so that a
/// mistyped IPv4 address is not a host name.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let mut chars = label.chars();
        (1..=63).contains(&label.len())
            && chars.all(|char| char.is_ascii_alphanumeric() || char == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253 && name.split('.').all(is_label) && last.parse::<u64>().is_err()
}

/// Parses `--host`.
fn host(name: &str) -> anyhow::Result<String> {
    subject_name(name).map(|_| name.to_owned())
}

/// Writes a file that must not exist.
fn put_new(path: &Path, mode: u32, content: &[u8]) -> anyhow::Result<()> {
    if path.exists() {
        bail!(
            "{} exists already; nothing was changed. `tls renew` renews the certificate of a node or an operator",
            path.display()
        );
    }
    (create(path, mode)?.write_all(content))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a certificate and its key. Returns the names of the files.
fn write(
    dir: &Path,
    name: &str,
    certificate: &Certificate,
    key: &KeyPair,
    put: Put,
) -> anyhow::Result<(String, String)> {
    let write = |end: &str, text: String, mode: u32| {
        let file = dir.join(format!("{name}{end}"));
        put(&file, mode, text.as_bytes())?;
        anyhow::Ok(file.display().to_string())
    };
    let key = write("-key.pem", key.serialize_pem(), 0o600)?;
    Ok((write(".pem", certificate.pem(), 0o644)?, key))
}

/// A part of a file: a certificate, or only the kind of another part.
#[derive(Clone, Serialize)]
struct Shown {
    file: String,
    /// `certificate`, or such as `private key`.
    kind: String,
    #[serde(flatten)]
    certificate: Option<ShownCertificate>,
}

#[derive(Clone, Serialize)]
struct ShownCertificate {
    subject: String,
    issuer: String,
    /// Expiry, as RFC 3339.
    valid_until: String,
    standing: Standing,
    names: Vec<String>,
    is_authority: bool,
    /// Expiry with the days from now.
    #[serde(skip)]
    until: String,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Valid,
    ExpiresSoon,
    Expired,
}

impl Shown {
    fn text(&self) -> String {
        let Some(certificate) = &self.certificate else {
            return format!("{}: {}\n", self.file, self.kind);
        };
        let ShownCertificate {
            subject,
            issuer,
            until,
            ..
        } = certificate;
        let standing = match certificate.standing {
            Standing::Valid => "",
            Standing::ExpiresSoon => ": expires soon",
            Standing::Expired => ": EXPIRED",
        };
        let file = &self.file;
        let mut text =
            format!("{file}: {subject}\n  issued by: {issuer}\n  valid until {until}{standing}\n");
        for name in &certificate.names {
            text += &format!("  name: {name}\n");
        }
        if certificate.is_authority {
            text += "  is an authority\n";
        }
        text
    }

    /// A value of the certificate.
    fn of<T>(&self, value: fn(&ShownCertificate) -> T) -> Option<T> {
        self.certificate.as_ref().map(value)
    }
}

fn rows(shown: &[Shown]) -> Rows<Shown> {
    Rows::new(shown.to_vec())
        .column("file", |one| one.file.clone())
        .column("kind", |one| one.kind.clone())
        .column("subject", |one| one.of(|of| of.subject.clone()))
        .column("valid_until", |one| one.of(|of| of.valid_until.clone()))
        .column("standing", |one| one.of(|of| of.standing))
        .column("names", |one| one.of(|of| of.names.clone()))
}

/// The parts of a PEM file.
fn read(file: &Path, now: OffsetDateTime) -> anyhow::Result<Vec<Shown>> {
    let file_name = file.display().to_string();
    let bytes = fs::read(file).with_context(|| file_name.clone())?;
    let mut parts = Vec::new();
    for pem in Pem::iter_from_buffer(&bytes) {
        let pem = pem.with_context(|| file_name.clone())?;
        let certificate = match &*pem.label {
            "CERTIFICATE" => {
                let (_, certificate) = X509Certificate::from_der(&pem.contents)
                    .map_err(|error| anyhow!("{file_name}: {error}"))?;
                Some(shown(&certificate, now))
            }
            _ => None,
        };
        parts.push(Shown {
            file: file_name.clone(),
            kind: pem.label.to_lowercase(),
            certificate,
        });
    }
    if parts.is_empty() {
        bail!("{file_name} contains no certificate")
    } else {
        Ok(parts)
    }
}

fn shown(certificate: &X509Certificate<'_>, now: OffsetDateTime) -> ShownCertificate {
    let until = certificate.validity().not_after.to_datetime();
    let (expiry, now_s) = (until.unix_timestamp(), now.unix_timestamp());
    ShownCertificate {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        valid_until: rfc3339(expiry),
        standing: match until - now {
            left if left < Duration::ZERO => Standing::Expired,
            left if left < SOON => Standing::ExpiresSoon,
            _ => Standing::Valid,
        },
        names: names(certificate),
        is_authority: certificate.is_ca(),
        until: day(expiry, now_s),
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let found = certificate.subject_alternative_name().ok().flatten();
    let names = found.iter().flat_map(|found| &found.value.general_names);
    names
        .map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            GeneralName::IPAddress(bytes) => address(bytes),
            other => other.to_string(),
        })
        .collect()
}

fn address(bytes: &[u8]) -> String {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
    address.map_or_else(|_| format!("{bytes:?}"), |address| address.to_string())
}
