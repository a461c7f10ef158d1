//! `placementctl debug bundle`: one file with what explains an incident to a person who was not
//! there.

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

/// Longer answers are cut. No node relays more than 1 MiB of another.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The searches of so many partitions are asked for.
const PARTITIONS_MAX: usize = 64;
const README: &str = include_str!("bundle/README.txt");
/// In place of a text that looks like it has a secret.
const NOT_SHOWN: &str = "(not shown: it looks like a secret)";

#[derive(Subcommand)]
pub(crate) enum DebugAction {
    /// Writes what each node knows of itself into one file, for a person who is to understand an
    /// incident: status, topology, log, metrics, settings without secrets, checks, searches.
    #[command(
        after_help = "Each node has as long as `--timeout` to answer; one that does not is named in it. A line that looks like \
                      it has a secret is masked: its place and the kind of the secret are shown instead. Exits with 1 \
                      if something was masked or no file could be written, and with 2 if no node answers. The state of \
                      each node is recounted, one after the other, which needs as much memory again as the state for \
                      a moment."
    )]
    Bundle(Which),
}

#[derive(Args)]
pub(crate) struct Which {
    /// The file, which must not exist. Without it the name says which cluster it is of, and when it
    /// was made.
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
    /// The lines that are masked.
    masked: Vec<Suspect>,
    /// Whether its name looked like a secret, so that it has another one.
    is_renamed: bool,
    bytes: usize,
    sha256: Option<String>,
    #[serde(skip)]
    text: String,
}

impl Entry {
    /// Asks once. `what` is below `/v1`.
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

    /// Masks what looks like a secret, wherever it stands.
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

/// Makes a bundle.
pub(crate) async fn make(
    client: &Client,
    which: Which,
    limit: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = survey(&Admin::new(client.clone()), limit).await?;
    let cluster = survey.newest().cluster_id.as_deref().unwrap_or_default();
    // A node may call its cluster anything.
    let cluster = Uuid::parse_str(cluster).map_or("no-cluster".to_owned(), |id| id.to_string());
    let made_at = OffsetDateTime::now_utc();
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let root = format!("placementd-bundle-{cluster}-{}", made_at.format(form)?);
    let name = || format!("{root}.tar.gz").into();
    let target = which.output.unwrap_or_else(name);
    let mut draft = Draft::of(&target)?;

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
        bail!("the names of files look like secrets; nothing was written");
    }
    let kept = files.iter().filter(|entry| entry.is_kept());
    let kept = kept.map(|entry| (&*entry.file, &*entry.text));
    let all = [("README.txt", README), ("manifest.json", &*manifest)];
    let packed = packed(&root, all.into_iter().chain(kept), made_at.unix_timestamp())?;
    let cannot = || format!("cannot write {}", target.display());
    draft.file.write_all(&packed).with_context(cannot)?;
    draft.finish()?;
    println!("{}: {} bytes", target.display(), packed.len());
    Ok(report(&files))
}

/// Asks all nodes at once, and has them recount their states afterwards, never two at a time.
async fn gather(admin: &Admin, survey: &Survey, limit: Duration) -> Vec<Entry> {
    let until = Instant::now() + limit;
    let is_plain = |name: &&String| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let named = survey.newest().partitions.iter().filter(is_plain);
    let named = named.take(PARTITIONS_MAX).map(String::as_str);
    let partitions: Vec<&str> = named.chain(["default"]).collect();
    let of = |member: &Member| Some((member.id, admin.of(member, limit).ok()?));
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

/// The status first: of a node that does not give it nothing else is asked.
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

/// As text; JSON with a line for each value, so that a line says where something is.
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

/// Says what is not in the bundle, and what else to look for. The exit code tells whether something
/// was masked.
fn report(files: &[Entry]) -> ExitCode {
    println!(
        "It holds names and addresses: of nodes, users, projects, resource providers, consumers and clients. Read \
         through it before you pass it on."
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
            eprintln!("placementctl: {file} is missing: {}", word(&json!(problem)));
        }
        if *is_renamed {
            eprintln!("placementctl: the name of {file} looked like a secret, and is not shown");
        }
        if let [first, more @ ..] = &**masked {
            let more = more.len();
            eprintln!("placementctl: {file}: {first} ({more} more)");
        }
    }
    let is_whole = |entry: &Entry| entry.masked.is_empty() && !entry.is_renamed;
    ExitCode::from(u8::from(!files.iter().all(is_whole)))
}
