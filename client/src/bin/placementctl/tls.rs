//! `placementctl tls`: the authority of a cluster, and certificates that it vouches for.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, Pem, X509Certificate};

/// Clocks differ: a certificate counts from this long before it is made.
const BEFORE: Duration = Duration::hours(1);
/// `show` says so if a certificate ends within this.
const SOON: Duration = Duration::days(30);
const AUTHORITY: &str = "ca.pem";
const AUTHORITY_KEY: &str = "ca-key.pem";

#[derive(Subcommand)]
pub(crate) enum TlsAction {
    /// Makes the authority of a cluster: `ca.pem`, which each node and operator is given, and `ca-key.pem`, which
    /// none is given: its owner can issue a certificate for any node.
    Init {
        /// Where the files are put.
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// How the authority is called.
        #[arg(long, default_value = "placement cluster")]
        name: String,
        /// How long it counts.
        #[arg(long, default_value_t = 3650)]
        days: u32,
    },
    /// Makes a certificate and its key, in the directory of the authority.
    #[command(subcommand)]
    Issue(Whose),
    /// Tells what is in certificate files.
    Show {
        /// PEM files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Subcommand)]
pub(crate) enum Whose {
    /// For a node: `node-ID.pem` and `node-ID-key.pem`.
    Node {
        /// Its number. The certificate allows it to be this node and no other.
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        id: u64,
        /// A name or an address under which clients and operators reach it, for https.
        #[arg(long = "host")]
        hosts: Vec<String>,
        #[command(flatten)]
        from: From,
    },
    /// For an operator: `admin-NAME.pem` and `admin-NAME-key.pem`. Their owner has access to all nodes.
    Admin {
        /// The operator.
        name: String,
        #[command(flatten)]
        from: From,
    },
}

#[derive(Args)]
pub(crate) struct From {
    /// Where the authority's files are, and the new ones are put.
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// How long the certificate counts.
    #[arg(long, default_value_t = 365)]
    days: u32,
}

pub(crate) fn run(action: TlsAction) -> anyhow::Result<()> {
    match action {
        TlsAction::Init { dir, name, days } => init(&dir, &name, days),
        TlsAction::Issue(Whose::Node { id, hosts, from }) => {
            let own = [
                format!("node-{id}.placement.internal"),
                "peer.placement.internal".to_owned(),
            ];
            let names = (own.into_iter().chain(hosts))
                .map(|name| subject_name(&name))
                .collect::<anyhow::Result<_>>()?;
            let roles = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
            issue(&from, &format!("node-{id}"), names, roles)
        }
        TlsAction::Issue(Whose::Admin { name, from }) => {
            let file_name = |char: char| char.is_ascii_alphanumeric() || "-_.@".contains(char);
            if name.is_empty() || !name.chars().all(file_name) {
                bail!("{name:?} is no name for a file: use letters, digits and -_.@");
            }
            let names = vec![subject_name("admin.placement.internal")?];
            let roles = vec![ExtendedKeyUsagePurpose::ClientAuth];
            issue(&from, &format!("admin-{name}"), names, roles)
        }
        TlsAction::Show { files } => {
            for file in files {
                print!("{}", show(&file, OffsetDateTime::now_utc())?);
            }
            Ok(())
        }
    }
}

fn init(dir: &Path, name: &str, days: u32) -> anyhow::Result<()> {
    let mut params = lasting(days)?;
    params.distinguished_name = called(name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
    write(&dir.join(AUTHORITY_KEY), &key.serialize_pem(), 0o600)?;
    write(&dir.join(AUTHORITY), &certificate.pem(), 0o644)?;
    println!(
        "{} vouches for the nodes and operators of one cluster; keep {} where no node is",
        dir.join(AUTHORITY).display(),
        dir.join(AUTHORITY_KEY).display()
    );
    Ok(())
}

fn issue(
    from: &From,
    name: &str,
    names: Vec<SanType>,
    roles: Vec<ExtendedKeyUsagePurpose>,
) -> anyhow::Result<()> {
    let dir = &from.dir;
    let read = |file: &str| {
        let file = dir.join(file);
        fs::read_to_string(&file).with_context(|| {
            format!(
                "{}: is there no authority yet (`tls init`)?",
                file.display()
            )
        })
    };
    let key = KeyPair::from_pem(&read(AUTHORITY_KEY)?).context(AUTHORITY_KEY)?;
    let authority = Issuer::from_ca_cert_pem(&read(AUTHORITY)?, key).context(AUTHORITY)?;
    let mut params = lasting(from.days)?;
    params.distinguished_name = called(name);
    params.subject_alt_names = names;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = roles;
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &authority)?;
    let (certificate_file, key_file) = (
        dir.join(format!("{name}.pem")),
        dir.join(format!("{name}-key.pem")),
    );
    write(&key_file, &key.serialize_pem(), 0o600)?;
    write(&certificate_file, &certificate.pem(), 0o644)?;
    println!("{}, {}", certificate_file.display(), key_file.display());
    Ok(())
}

fn lasting(days: u32) -> anyhow::Result<CertificateParams> {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.not_before = now - BEFORE;
    params.not_after = now
        .checked_add(Duration::days(days.into()))
        .ok_or_else(|| anyhow!("--days {days} is beyond the calendar"))?;
    Ok(params)
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

fn subject_name(name: &str) -> anyhow::Result<SanType> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into().map_err(|_| {
            anyhow!("{name:?} is neither a host's name nor an address")
        })?)),
    }
}

/// A new file. One that is there stays as it is: somebody may be using it.
fn write(file: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let mut open = OpenOptions::new();
    open.write(true).create_new(true).mode(mode);
    (open.open(file))
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .with_context(|| format!("cannot make {}", file.display()))
}

/// What is in a file, as text.
fn show(file: &Path, now: OffsetDateTime) -> anyhow::Result<String> {
    let of_file = || file.display().to_string();
    let bytes = fs::read(file).with_context(of_file)?;
    let mut text = String::new();
    for pem in Pem::iter_from_buffer(&bytes) {
        let pem = pem.with_context(of_file)?;
        if pem.label != "CERTIFICATE" {
            writeln!(text, "{}: {}", file.display(), pem.label.to_lowercase())?;
            continue;
        }
        let (_, certificate) = X509Certificate::from_der(&pem.contents)
            .map_err(|error| anyhow!("{}: {error}", file.display()))?;
        let ends = certificate.validity().not_after.to_datetime();
        let standing = match ends - now {
            left if left < Duration::ZERO => " (EXPIRED)",
            left if left < SOON => " (ends soon)",
            _ => "",
        };
        writeln!(text, "{}: {}", file.display(), certificate.subject())?;
        writeln!(text, "  issued by: {}", certificate.issuer())?;
        writeln!(text, "  counts until: {ends}{standing}")?;
        for name in names(&certificate) {
            writeln!(text, "  for: {name}")?;
        }
        if certificate.is_ca() {
            writeln!(text, "  vouches for others")?;
        }
    }
    match text.is_empty() {
        true => bail!("{}: there is no certificate in it", file.display()),
        false => Ok(text),
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for extension in certificate.extensions() {
        let ParsedExtension::SubjectAlternativeName(found) = extension.parsed_extension() else {
            continue;
        };
        names.extend(found.general_names.iter().map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            GeneralName::IPAddress(bytes) => address(bytes),
            other => other.to_string(),
        }));
    }
    names
}

fn address(bytes: &[u8]) -> String {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let six = <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    four.or(six)
        .map_or_else(|_| format!("{bytes:?}"), |address| address.to_string())
}
