//! `placementctl debug bundle`: one file with what explains an incident to a person who was not there.

mod secrets;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::{join, join_all};
use placement_client::{Admin, Client, Error, encode};
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
use crate::files::{Draft, unless_interrupted};
use crate::render::word;
use crate::status;
use crate::survey::{Survey, survey};

/// Longer answers are cut. No node relays more than 1 MiB of another.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The searches of so many partitions are asked for.
const PARTITIONS_MAX: usize = 64;
const README: &str = include_str!("bundle/README.txt");
/// In place of a text that looks like it has a secret.
const NOT_SHOWN: &str = "(not shown: it looks like a secret)";

#[derive(Subcommand)]
pub(crate) enum DebugAction {
    /// Writes what each node knows of itself into one file, for a person who is to understand an incident: status,
    /// topology, log, metrics, settings without secrets, checks, searches.
    #[command(
        after_help = "Each node has as long as `--timeout` to answer; one that does not is named in it. What looks like a \
                      secret is left out, with the whole file that has it. Exits with 1 if something was left out or no \
                      file could be written, and with 2 if no node answers. The state of each node is recounted, one \
                      after the other, which needs as much memory again as the state for a moment."
    )]
    Bundle(Which),
}

#[derive(Args)]
pub(crate) struct Which {
    /// The file, which must not exist. Without it the name says which cluster it is of, and when it was made.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A file of the bundle, or why it is not there.
#[derive(Default, Serialize)]
struct Entry {
    file: String,
    /// Which node was asked; `None`: the first that answered.
    node: Option<u64>,
    question: String,
    /// When it was answered.
    at: String,
    status: Option<u16>,
    problem: Option<String>,
    /// Whether the answer was longer than what is kept of one.
    is_cut: bool,
    /// Why the file is not there although it was answered.
    left_out: Vec<Suspect>,
    bytes: usize,
    sha256: Option<String>,
    #[serde(skip)]
    text: String,
}

impl Entry {
    /// Asks once. `what` is below `/v1`.
    async fn ask(
        admin: &Admin,
        node: Option<u64>,
        (file, what): (&str, &str),
        until: Instant,
    ) -> Self {
        let folder = node.map_or("cluster".to_owned(), |id| format!("node-{id}"));
        let answer = timeout_at(until, admin.look(what, ANSWER_BYTES_MAX)).await;
        let mut entry = Self {
            file: format!("{folder}/{file}"),
            node,
            question: format!("GET /v1/{what}"),
            at: now().format(&Rfc3339).unwrap_or_default(),
            ..Self::default()
        };
        match answer {
            Err(_) => entry.problem = Some("there was no time left for an answer".to_owned()),
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

    /// Takes out what looks like a secret, wherever it stands.
    fn vet(&mut self, place: usize) {
        self.left_out = secrets::find(&self.text);
        let names = [Some(&mut self.question), self.problem.as_mut()];
        for name in names.into_iter().flatten() {
            if !secrets::find(name).is_empty() {
                NOT_SHOWN.clone_into(name);
            }
        }
        let in_name = secrets::find(&self.file);
        if !in_name.is_empty() {
            self.file = format!("left-out-{place}");
            self.left_out.extend(in_name);
        }
        if !self.left_out.is_empty() {
            self.text.clear();
        }
        if self.is_kept() {
            self.bytes = self.text.len();
            self.sha256 = Some(sha256(self.text.as_bytes()));
        }
    }

    fn is_kept(&self) -> bool {
        self.problem.is_none() && self.left_out.is_empty()
    }
}

/// What all files are, as `manifest.json` has it.
#[derive(Serialize)]
struct Manifest {
    made_at: String,
    placementctl: &'static str,
    cluster_id: Option<Uuid>,
    answer_bytes_max: usize,
    partitions_max: usize,
    seconds_per_node: f64,
    files: Vec<Entry>,
}

/// Makes a bundle.
pub(crate) async fn make(
    client: &Client,
    which: Which,
    limit: Duration,
) -> anyhow::Result<ExitCode> {
    let made = make_of(client, which, limit);
    unless_interrupted(made, "no bundle was written").await
}

async fn make_of(client: &Client, which: Which, limit: Duration) -> anyhow::Result<ExitCode> {
    let admin = Admin::new(client.clone());
    let survey = survey(&admin, limit).await?;
    let cluster_id = survey.newest().cluster_id.as_deref();
    // A node may call itself anything.
    let cluster_id: Option<Uuid> = cluster_id.and_then(|id| id.parse().ok());
    let made_at = now();
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let cluster = cluster_id.map_or("no-cluster".to_owned(), |id| id.to_string());
    let root = format!("placementd-bundle-{cluster}-{}", made_at.format(form)?);
    let target = which
        .output
        .unwrap_or_else(|| format!("{root}.tar.gz").into());
    let draft = Draft::of(&target)?;

    let mut files = gather(
        &Admin::new(client.clone().with_patience(Duration::ZERO)),
        &survey,
        limit,
    )
    .await;
    files.push(Entry {
        file: "summary.txt".to_owned(),
        question: "placementctl status".to_owned(),
        at: made_at.format(&Rfc3339)?,
        text: status::text(&survey)?,
        ..Entry::default()
    });
    files.sort_by(|one, other| (one.node, &one.file).cmp(&(other.node, &other.file)));
    for (place, entry) in (1..).zip(&mut files) {
        entry.vet(place);
    }
    let manifest = Manifest {
        made_at: made_at.format(&Rfc3339)?,
        placementctl: env!("CARGO_PKG_VERSION"),
        cluster_id,
        answer_bytes_max: ANSWER_BYTES_MAX,
        partitions_max: PARTITIONS_MAX,
        seconds_per_node: limit.as_secs_f64(),
        files,
    };
    let packed = packed(&root, &manifest, made_at.unix_timestamp())?;
    let cannot = || format!("cannot write {}", draft.path.display());
    (&draft.file).write_all(&packed).with_context(cannot)?;
    draft.finish(&target)?;
    Ok(report(
        &target.display().to_string(),
        packed.len(),
        &manifest.files,
    ))
}

/// Asks all nodes at once, and has them recount their states afterwards, never two at a time.
async fn gather(admin: &Admin, survey: &Survey, limit: Duration) -> Vec<Entry> {
    let until = Instant::now() + limit;
    let newest = survey.newest();
    let is_plain = |name: &&String| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let named = newest
        .partitions
        .iter()
        .filter(is_plain)
        .take(PARTITIONS_MAX);
    let partitions: Vec<&str> = named.map(String::as_str).chain(["default"]).collect();
    let members = survey.members.iter().map(|(member, _)| member);
    let mut nodes: Vec<_> = members.map(|one| (one.id, admin.of(one, limit))).collect();
    let asked = survey.asked.node_id;
    if nodes.iter().all(|(id, _)| *id != asked) {
        nodes.push((asked, Ok(admin.clone())));
    }
    let of_nodes = nodes
        .iter()
        .map(|(id, node)| of_node(node, *id, &partitions, until));
    let cluster = ["topology", "partitions", "join-tokens"].map(|what| async move {
        Entry::ask(admin, None, (&format!("{what}.json"), what), until).await
    });
    let (mut entries, of_nodes) = join(join_all(cluster), join_all(of_nodes)).await;
    let answers = of_nodes.iter().map(|entries| entries[0].status.is_some());
    let answers: Vec<bool> = answers.collect();
    entries.extend(of_nodes.into_iter().flatten());
    for ((id, node), answers) in nodes.iter().zip(answers) {
        if let (Ok(node), true) = (node, answers) {
            let until = Instant::now() + limit;
            entries.push(Entry::ask(node, Some(*id), ("check.json", "check"), until).await);
        }
    }
    entries
}

/// The status first: of a node that does not give it nothing else is asked.
async fn of_node(
    admin: &Result<Admin, Error>,
    id: u64,
    partitions: &[&str],
    until: Instant,
) -> Vec<Entry> {
    let admin = match admin {
        Ok(admin) => admin,
        Err(error) => {
            let file = format!("node-{id}/status.json");
            let problem = Some(error.to_string());
            return vec![Entry {
                file,
                node: Some(id),
                problem,
                ..Entry::default()
            }];
        }
    };
    let ask = async |file: &str, what: &str| Entry::ask(admin, Some(id), (file, what), until).await;
    let mut entries = vec![ask("status.json", "status").await];
    if entries[0].status.is_none() {
        return entries;
    }
    for (file, what) in [
        ("log.txt", "log"),
        ("metrics.txt", "metrics"),
        ("settings.toml", "settings"),
        ("host.txt", "host"),
    ] {
        entries.push(ask(file, what).await);
    }
    for partition in partitions {
        let file = format!("searches-{partition}.json");
        let what = format!(
            "placement/{}{EXTENSIONS}/searches?limit=1000",
            encode(partition)
        );
        entries.push(ask(&file, &what).await);
    }
    entries
}

/// As text; JSON with a line for each value, so that a line says where something is.
fn readable(file: &str, body: &[u8]) -> String {
    let is_json = file.ends_with(".json");
    let value: Option<Value> = is_json.then(|| serde_json::from_slice(body).ok()).flatten();
    match value {
        Some(value) => format!("{value:#}\n"),
        None => String::from_utf8_lossy(body).into_owned(),
    }
}

fn packed(root: &str, manifest: &Manifest, at: i64) -> anyhow::Result<Vec<u8>> {
    let listed = serde_json::to_string_pretty(manifest)? + "\n";
    if !secrets::find(&listed).is_empty() {
        bail!("the names of files or nodes look like secrets; nothing was written");
    }
    let kept = manifest.files.iter().filter(|entry| entry.is_kept());
    let kept = kept.map(|entry| (&*entry.file, &*entry.text));
    let all = [("README.txt", README), ("manifest.json", &listed)];
    tar(root, all.into_iter().chain(kept), at).context("cannot pack the bundle")
}

fn tar<'a>(
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

/// Says what is in the bundle and what is not.
fn report(target: &str, bytes: usize, files: &[Entry]) -> ExitCode {
    let kept = files.iter().filter(|entry| entry.is_kept()).count();
    println!("{target}: {kept} answers, {bytes} bytes");
    println!(
        "It holds names and addresses: of nodes, users, projects, resource providers, consumers and clients. Read \
         through it before you pass it on."
    );
    for entry in files {
        let Entry { file, problem, .. } = entry;
        if let Some(problem) = problem {
            eprintln!("placementctl: {file} is missing: {}", word(&json!(problem)));
        }
        for Suspect { line, kind } in &entry.left_out {
            eprintln!("placementctl: {file} is left out: line {line} looks like it has {kind}");
        }
    }
    let is_whole = files.iter().all(|entry| entry.left_out.is_empty());
    ExitCode::from(u8::from(!is_whole))
}

fn sha256(bytes: &[u8]) -> String {
    let hash = digest(&SHA256, bytes);
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn now() -> OffsetDateTime {
    OffsetDateTime::now_utc()
}
