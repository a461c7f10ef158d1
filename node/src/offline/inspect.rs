//! `placementd inspect`: prints the contents of a data directory, without writing to it.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use placement_model::Command;
use placement_model::command::Stamped;
use placement_model::types::Timestamp;
use placement_raft_store::wire::{WireLogId, WireMembership, WireVote};
use placement_raft_store::{
    Entry, Inspection, LogId, LogLine, Payload, inspect, inspect_kept_log, inspect_log,
    inspect_rows,
};
use placement_words::inert_lines;
use serde_json::{Value, json};

use super::print;

/// Prints a summary of a data directory, and fails if it has problems.
pub(crate) fn all(dir: &Path, as_json: bool) -> anyhow::Result<()> {
    let found = inspect(dir)?;
    let text = if as_json {
        serde_json::to_string_pretty(&found)? + "\n"
    } else {
        words(&found)
    };
    print(&inert_lines(&text))?;
    fail_if_damaged(dir, found.problems.len())
}

/// Prints entries of the log, one per line; with `kept`, entries of the log that a node has
/// archived with its backups.
pub(crate) fn log(
    dir: &Path,
    kept: bool,
    [from, to]: [u64; 2],
    as_json: bool,
) -> anyhow::Result<()> {
    let (mut wrong, mut printed) = (0, Ok(()));
    let each = |line: LogLine| {
        wrong += usize::from(line.entry.is_err());
        if printed.is_ok() {
            let text = if as_json {
                json_of(&line).to_string()
            } else {
                line_of(&line)
            };
            printed = print(&format!("{}\n", inert_lines(&text)));
        }
    };
    if kept {
        inspect_kept_log(dir, from, to, each)?
    } else {
        inspect_log(dir, from, to, each)?
    }
    printed?;
    fail_if_damaged(dir, wrong)
}

/// Prints the number of rows of each table.
pub(crate) fn rows(dir: &Path, as_json: bool) -> anyhow::Result<()> {
    let tables = inspect_rows(dir)?;
    if as_json {
        print(&(serde_json::to_string_pretty(&tables)? + "\n"))?;
    } else {
        for table in &tables {
            let problem = table.problem.as_deref().unwrap_or_default();
            let (table, rows) = (&table.table, table.rows);
            print(&format!("{table:<20} {rows:>12} {problem}\n"))?;
        }
    }
    let wrong = tables.iter().filter(|table| table.problem.is_some());
    fail_if_damaged(dir, wrong.count())
}

fn fail_if_damaged(dir: &Path, wrong: usize) -> anyhow::Result<()> {
    match wrong {
        0 => Ok(()),
        1 => bail!("{}: 1 problem found", dir.display()),
        more => bail!("{}: {more} problems found", dir.display()),
    }
}

fn words(found: &Inspection) -> String {
    let mut lines = vec![("directory", found.dir.display().to_string())];
    if let Some(identity) = &found.identity {
        lines.push(("cluster", identity.cluster.to_string()));
        lines.push(("epoch", identity.epoch.to_string()));
        lines.push(("node", identity.node.to_string()));
    }
    lines.push(("starts", found.boots.to_string()));
    if let Some(log) = &found.log {
        lines.push(("vote", vote(log.vote)));
        lines.push(("purged to", place(log.purged)));
        lines.push(("committed", place(log.committed)));
        lines.push(("last", place(log.last)));
        let size = format!("{} entries, {} bytes", log.entries, log.bytes);
        lines.push(("log", size));
        if let Some((index, membership)) = &log.membership {
            let members = members(membership);
            lines.push(("members", format!("{members}, by entry {index} of the log")));
        }
    }
    match (&found.state, &found.log) {
        // The log is complete from its first entry.
        (Some(state), Some(log)) if state.applied.is_none() && log.purged.is_none() => {
            let words = format!(
                "not written yet: the next start computes it from the {} entries of the log",
                log.entries
            );
            lines.push(("state", words));
        }
        (Some(state), _) => {
            lines.push(("on disk to", place(state.applied)));
            lines.push(("digest", state.digest.clone()));
            lines.push(("level", state.level.to_string()));
            let members = members(&state.membership);
            lines.push(("members", format!("{members}, in the state")));
        }
        (None, _) => {}
    }
    for snapshot in &found.snapshots {
        let is = if snapshot.verified {
            format!("verified, covers {}", place(snapshot.covers))
        } else if snapshot.name.starts_with("snapshot-") {
            "damaged".to_owned()
        } else {
            "incomplete; the next start removes it".to_owned()
        };
        let size = format!("{}, {} bytes", snapshot.name, snapshot.bytes);
        lines.push(("snapshot", format!("{size}, {is}")));
    }
    for (name, texts) in [
        ("skipped", &found.skipped),
        ("recovered", &found.recovered),
        ("unfinished", &found.unfinished),
    ] {
        lines.extend(texts.iter().map(|text| (name, text.clone())));
    }
    for problem in &found.problems {
        lines.push(("wrong", format!("{}: {}", problem.part, problem.words)));
    }
    let lines = lines.into_iter();
    lines
        .map(|(name, value)| format!("{name:<12} {value}\n"))
        .collect()
}

fn place(id: Option<WireLogId>) -> String {
    id.map_or("nothing".to_owned(), |id| LogId::from(id).to_string())
}

fn vote(vote: Option<WireVote>) -> String {
    match vote {
        None => "none".to_owned(),
        Some(vote) => {
            let elected = if vote.committed {
                ", elected by a majority"
            } else {
                ""
            };
            format!("for node {} in term {}{elected}", vote.node, vote.term)
        }
    }
}

/// The voters, then the learners.
pub(crate) fn members(membership: &WireMembership) -> String {
    let voters: Vec<String> = (membership.voters.iter())
        .map(|set| format!("{set:?}"))
        .collect();
    let voters = voters.join(" and ");
    let is_voter = |id: &&u64| membership.voters.iter().any(|set| set.contains(*id));
    let learners = membership.members.keys().filter(|id| !is_voter(id));
    match learners.collect::<Vec<_>>().as_slice() {
        [] => format!("voters {voters}"),
        learners => format!("voters {voters}, learners {learners:?}"),
    }
}

fn line_of(line: &LogLine) -> String {
    match &line.entry {
        Ok(entry) => {
            let (name, summary) = summary(entry);
            let at = stamped(entry).map_or("-".to_owned(), |stamped| date(stamped.at));
            let bytes = line.bytes;
            let known = format!("{} {at} {name} {bytes} bytes {summary}", entry.log_id);
            let kept = (line.kept_at).map_or(String::new(), |at| format!(" kept {}", date(at)));
            format!("{}{kept}", known.trim_end())
        }
        Err(reason) => format!("{} DAMAGED {reason}", line.index),
    }
}

fn json_of(line: &LogLine) -> Value {
    match &line.entry {
        Ok(entry) => {
            let (name, summary) = summary(entry);
            let id = WireLogId::from(&entry.log_id);
            let stamped = stamped(entry);
            json!({
                "index": id.index, "term": id.term, "node": id.node, "bytes": line.bytes,
                "stamp": stamped.map(|stamped| stamped.at.0), "kept": line.kept_at.map(|at| at.0),
                "write_id": stamped.and_then(|stamped| stamped.write_id),
                "request_id": stamped.and_then(|stamped| stamped.request_id),
                "command": name, "summary": summary,
                "content": stamped.map(|stamped| content(&stamped.command)),
            })
        }
        Err(reason) => json!({ "index": line.index, "bytes": line.bytes, "damaged": reason }),
    }
}

fn stamped(entry: &Entry) -> Option<&Stamped> {
    match &entry.payload {
        Payload::Normal(logged) => Some(logged.stamped()),
        Payload::Blank | Payload::Membership(_) => None,
    }
}

/// The kind of an entry, and a summary of the rest.
fn summary(entry: &Entry) -> (&'static str, String) {
    match &entry.payload {
        Payload::Blank => ("blank", String::new()),
        Payload::Membership(set) => ("membership", members(&WireMembership::from(set))),
        Payload::Normal(logged) => {
            let name = logged.stamped().command.name();
            let words = logged.stamped().to_string();
            let summary = words.strip_prefix(name).unwrap_or(&words).trim().to_owned();
            (name, summary)
        }
    }
}

fn content(command: &Command) -> Value {
    // Values that JSON cannot represent are shown in the program's debug format.
    serde_json::to_value(command).unwrap_or_else(|_| json!(format!("{command:?}")))
}

fn date(at: Timestamp) -> String {
    let since = Duration::from_micros(at.0.max(0).unsigned_abs());
    match SystemTime::UNIX_EPOCH.checked_add(since) {
        // The formatter panics at later times.
        Some(time) if since.as_secs() < 253_402_300_800 => {
            httpdate::fmt_http_date(time).replace(' ', "_")
        }
        _ => format!("{}µs", at.0),
    }
}
