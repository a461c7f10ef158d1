//! `placementctl support-bundle`: collects diagnostic data of all nodes in one archive.

mod secrets;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::{join, join_all};
use placement_client::{Admin, Client, Member};
use placement_words::Survey;
use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use self::secrets::Suspect;
use crate::content::EXTENSIONS;
use crate::files::Draft;
use crate::render::word;
use crate::status;
use crate::survey::survey;

/// Longer responses are truncated. A node relays at most 1 MiB of another node's response.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Number of partitions whose searches are included.
const PARTITIONS_MAX: usize = 64;
const README: &str = include_str!("bundle/README.txt");
/// Replacement of a text that looks like a secret.
const NOT_SHOWN: &str = "(not shown: it looks like a secret)";

#[derive(Args)]
pub(crate) struct BundleArgs {
    /// File to create; it must not exist. Default: placementd-bundle-CLUSTER-TIME.tar.gz in the
    /// current directory.
    file: Option<PathBuf>,
}

/// A file of the bundle, or the reason why it is missing.
#[derive(Default, Serialize)]
struct Entry {
    file: String,
    /// The node that was asked; `None`: the first node that answered.
    node: Option<u64>,
    question: String,
    /// Time of the response, as RFC 3339.
    at: String,
    status: Option<u16>,
    problem: Option<String>,
    /// Whether the response exceeded the limit and was truncated.
    is_cut: bool,
    /// Masked lines with the kinds of secrets.
    masked: Vec<Suspect>,
    /// Whether the file was renamed because its name looked like a secret.
    is_renamed: bool,
    bytes: usize,
    sha256: Option<String>,
    #[serde(skip)]
    text: String,
}

impl Entry {
    /// Sends one request. `what` is a path below `/v1`.
    async fn ask(admin: &Admin, node: Option<u64>, file: &str, what: &str, until: Instant) -> Self {
        let folder = node.map_or("cluster".to_owned(), |id| format!("node-{id}"));
        let answer = timeout_at(until, admin.look(what, ANSWER_BYTES_MAX)).await;
        let mut entry = Self {
            file: format!("{folder}/{file}"),
            node,
            question: format!("GET /v1/{what}"),
            at: OffsetDateTime::now_utc()
                .format(&Rfc3339)
                .unwrap_or_default(),
            ..Self::default()
        };
        match answer {
            Err(_) => entry.problem = Some("no response within --timeout".to_owned()),
            Ok(Err(error)) => entry.problem = Some(error.to_string()),
            Ok(Ok((answer, is_cut))) => {
                entry.status = Some(answer.status.as_u16());
                entry.problem = answer.error().map(|error| error.to_string());
                entry.is_cut = is_cut;
                if answer.status.is_success() {
                    entry.text = readable(file, &answer.body);
                }
            }
        }
        entry
    }

    /// Masks suspected secrets in the text, the request, the problem and the file name.
    fn mask(&mut self, place: usize) {
        (self.text, self.masked) = secrets::mask(&self.text);
        let names = [Some(&mut self.question), self.problem.as_mut()];
        for name in names.into_iter().flatten() {
            if !secrets::find(name).is_empty() {
                NOT_SHOWN.clone_into(name);
            }
        }
        if !secrets::find(&self.file).is_empty() {
            self.is_renamed = true;
            self.file = format!("renamed-{place}");
        }
        if self.is_kept() {
            self.bytes = self.text.len();
            let hash = digest(&SHA256, self.text.as_bytes());
            let hash = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
            self.sha256 = Some(hash.collect());
        }
    }

    fn is_kept(&self) -> bool {
        self.problem.is_none()
    }
}

/// Collects and writes a bundle.
pub(crate) async fn make(
    client: &Client,
    args: BundleArgs,
    limit: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = survey(&Admin::new(client.clone()), limit).await?;
    let cluster = survey.newest().cluster_id.as_deref().unwrap_or_default();
    // The cluster id comes from a node, so only a valid UUID gets into a file name.
    let cluster = Uuid::parse_str(cluster).map_or("no-cluster".to_owned(), |id| id.to_string());
    let made_at = OffsetDateTime::now_utc();
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let root = format!("placementd-bundle-{cluster}-{}", made_at.format(form)?);
    let name = || format!("{root}.tar.gz").into();
    let target = args.file.unwrap_or_else(name);
    let mut draft = Draft::create(&target)?;

    let once = Admin::new(client.clone().with_patience(Duration::ZERO));
    let mut files = gather(&once, &survey, limit).await;
    files.push(Entry {
        file: "summary.txt".to_owned(),
        question: "placementctl status".to_owned(),
        at: made_at.format(&Rfc3339)?,
        text: status::text(&survey)?,
        ..Entry::default()
    });
    files.sort_by(|one, other| (one.node, &one.file).cmp(&(other.node, &other.file)));
    for (place, entry) in (1..).zip(&mut files) {
        entry.mask(place);
    }
    let manifest = json!({
        "made_at": made_at.format(&Rfc3339)?,
        "placementctl": env!("CARGO_PKG_VERSION"),
        "limits": { "answer_bytes": ANSWER_BYTES_MAX, "partitions": PARTITIONS_MAX, "node_s": limit.as_secs_f64() },
        "files": &files,
    });
    let manifest = format!("{manifest:#}\n");
    if !secrets::find(&manifest).is_empty() {
        bail!("the manifest of the bundle seems to contain a secret; nothing was written");
    }
    let kept = files
        .iter()
        .filter(|entry| entry.is_kept())
        .map(|entry| (&*entry.file, &*entry.text));
    let all = [("README.txt", README), ("manifest.json", &*manifest)];
    let packed = packed(&root, all.into_iter().chain(kept), made_at.unix_timestamp())?;
    let cannot = || format!("cannot write {}", target.display());
    draft.file.write_all(&packed).with_context(cannot)?;
    draft.finish()?;
    println!("{} is written: {} bytes", target.display(), packed.len());
    Ok(report(&files))
}

/// Queries all nodes concurrently, then has them verify their states one after the other.
async fn gather(admin: &Admin, survey: &Survey, limit: Duration) -> Vec<Entry> {
    let until = Instant::now() + limit;
    let is_plain = |name: &&String| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let named = survey
        .newest()
        .partitions
        .iter()
        .filter(is_plain)
        .take(PARTITIONS_MAX)
        .map(String::as_str);
    let partitions: Vec<&str> = named.chain(["default"]).collect();
    let of = |member: &Member| Some((member.id, admin.for_member(member, limit).ok()?));
    let members = survey.members.iter();
    let mut nodes: Vec<_> = members.filter_map(|(member, _)| of(member)).collect();
    let asked = survey.asked.node_id;
    if nodes.iter().all(|(id, _)| *id != asked) {
        nodes.push((asked, admin.clone()));
    }
    let of_nodes = nodes
        .iter()
        .map(|(id, node)| of_node(node, *id, &partitions, until));
    let cluster = ["topology", "partitions", "join-tokens"].map(|what| async move {
        Entry::ask(admin, None, &format!("{what}.json"), what, until).await
    });
    let (mut entries, of_nodes) = join(join_all(cluster), join_all(of_nodes)).await;
    for ((id, node), answers) in nodes.iter().zip(of_nodes) {
        if answers[0].status.is_some() {
            let until = Instant::now() + limit;
            entries.push(Entry::ask(node, Some(*id), "check.json", "check", until).await);
        }
        entries.extend(answers);
    }
    entries
}

/// Asks the node for its status first. Without a status, no other request is sent to the node.
async fn of_node(admin: &Admin, id: u64, partitions: &[&str], until: Instant) -> Vec<Entry> {
    let ask = async |file: &str, what: &str| Entry::ask(admin, Some(id), file, what, until).await;
    let mut entries = vec![ask("status.json", "status").await];
    if entries[0].status.is_none() {
        return entries;
    }
    entries.push(ask("log.txt", "log").await);
    entries.push(ask("metrics.txt", "metrics").await);
    entries.push(ask("settings.toml", "settings").await);
    entries.push(ask("host.txt", "host").await);
    for partition in partitions {
        let file = format!("searches-{partition}.json");
        let what = format!("placement/{partition}{EXTENSIONS}/searches?limit=1000");
        entries.push(ask(&file, &what).await);
    }
    entries
}

/// The body as text. JSON gets a line for each value, so that a line number locates a value.
fn readable(file: &str, body: &[u8]) -> String {
    let is_json = file.ends_with(".json");
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if is_json => format!("{value:#}\n"),
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

fn packed<'a>(
    root: &str,
    files: impl Iterator<Item = (&'a str, &'a str)>,
    at: i64,
) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(u64::try_from(at).unwrap_or_default());
        tar.append_data(&mut header, format!("{root}/{name}"), text.as_bytes())?;
    }
    tar.into_inner()?.finish()
}

/// Reports missing, renamed and masked files. The exit code is 1 if a line was masked or a file was
/// renamed.
fn report(files: &[Entry]) -> ExitCode {
    println!(
        "The bundle contains names and addresses of nodes, users, projects, resource providers, consumers and clients. \
         Review it before you share it."
    );
    for Entry {
        file,
        problem,
        masked,
        is_renamed,
        ..
    } in files
    {
        if let Some(problem) = problem {
            eprintln!("placementctl: {file} is missing: {}", word(problem));
        }
        if *is_renamed {
            eprintln!(
                "placementctl: the original name of {file} looked like a secret and is not shown"
            );
        }
        if let [first, more @ ..] = &**masked {
            let more = more.len();
            eprintln!("placementctl: {file}: {first} ({more} more)");
        }
    }
    let is_whole = |entry: &Entry| entry.masked.is_empty() && !entry.is_renamed;
    ExitCode::from(u8::from(!files.iter().all(is_whole)))
}
