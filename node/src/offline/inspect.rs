//! `placementd inspect`: what is in a data directory. It writes nothing.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use placement_model::command::WriteId;
use placement_model::types::Timestamp;
use placement_raft_store::wire::{WireLogId, WireMembership, WireVote};
use placement_raft_store::{
    Entry, Inspection, LogId, LogLine, LogPart, Payload, StatePart, inspect, inspect_kept_log,
    inspect_log, inspect_rows,
};
use serde_json::{Value, json};

/// Prints what a data directory holds, and fails if something in it is wrong.
pub(crate) fn all(dir: &Path, as_json: bool) -> anyhow::Result<()> {
    let found = inspect(dir)?;
    match as_json {
        true => println!("{}", serde_json::to_string_pretty(&found)?),
        false => print!("{}", words(&found)),
    }
    blame(dir, found.problems.len())
}

/// Prints entries of the log, one in a line.
pub(crate) fn log(dir: &Path, from: u64, to: u64, as_json: bool) -> anyhow::Result<()> {
    let mut wrong = 0;
    inspect_log(dir, from, to, |line| wrong += print(&line, as_json))?;
    blame(dir, wrong)
}

/// The same of the log that a node has kept with its backups.
pub(crate) fn kept_log(dir: &Path, from: u64, to: u64, as_json: bool) -> anyhow::Result<()> {
    let mut wrong = 0;
    inspect_kept_log(dir, from, to, |line| wrong += print(&line, as_json))?;
    blame(dir, wrong)
}

/// Prints an entry. Returns how much is wrong with it.
fn print(line: &LogLine, as_json: bool) -> usize {
    match as_json {
        true => println!("{}", json_of(line)),
        false => println!("{}", line_of(line)),
    }
    usize::from(line.entry.is_err())
}

/// Prints how many rows each table has.
pub(crate) fn rows(dir: &Path, as_json: bool) -> anyhow::Result<()> {
    let tables = inspect_rows(dir)?;
    if as_json {
        println!("{}", serde_json::to_string_pretty(&tables)?);
    } else {
        for table in &tables {
            let problem = table.problem.as_deref().unwrap_or_default();
            println!("{:<20} {:>12} {problem}", table.table, table.rows);
        }
    }
    let wrong = tables.iter().filter(|table| table.problem.is_some());
    blame(dir, wrong.count())
}

fn blame(dir: &Path, wrong: usize) -> anyhow::Result<()> {
    match wrong {
        0 => Ok(()),
        1 => bail!("something is wrong with {}", dir.display()),
        more => bail!("{more} things are wrong with {}", dir.display()),
    }
}

fn words(found: &Inspection) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "{name:<12} {value}");
    };
    line("directory", &found.dir.display());
    if let Some(identity) = &found.identity {
        line("cluster", &identity.cluster);
        line("epoch", &identity.epoch);
        line("node", &identity.node);
    }
    line("starts", &found.boots);
    if let Some(log) = &found.log {
        put_log(&mut line, log);
    }
    if let Some(state) = &found.state {
        put_state(&mut line, state);
    }
    for snapshot in &found.snapshots {
        let is = match snapshot.verified {
            true => format!("verified, covers {}", place(snapshot.covers)),
            false if snapshot.name.starts_with("snapshot-") => "not sound".to_owned(),
            false => "not finished; the next start removes it".to_owned(),
        };
        line(
            "snapshot",
            &format_args!("{}, {} bytes, {is}", snapshot.name, snapshot.bytes),
        );
    }
    for entry in &found.skipped {
        line("skipped", entry);
    }
    for trace in &found.recovered {
        line("recovered", trace);
    }
    for what in &found.unfinished {
        line("unfinished", what);
    }
    for problem in &found.problems {
        line(
            "wrong",
            &format_args!("{}: {}", problem.part, problem.words),
        );
    }
    text
}

fn put_log(line: &mut impl FnMut(&str, &dyn std::fmt::Display), log: &LogPart) {
    line("vote", &vote(log.vote));
    line("purged to", &place(log.purged));
    line("committed", &place(log.committed));
    line("last", &place(log.last));
    line(
        "log",
        &format_args!("{} entries, {} bytes", log.entries, log.bytes),
    );
    if let Some((index, membership)) = &log.membership {
        line(
            "members",
            &format_args!("{}, by entry {index} of the log", members(membership)),
        );
    }
}

fn put_state(line: &mut impl FnMut(&str, &dyn std::fmt::Display), state: &StatePart) {
    line("on disk to", &place(state.applied));
    line("digest", &state.digest);
    line("level", &state.level);
    line(
        "members",
        &format_args!("{}, in the state", members(&state.membership)),
    );
}

fn place(id: Option<WireLogId>) -> String {
    id.map_or("nothing".to_owned(), |id| LogId::from(id).to_string())
}

fn vote(vote: Option<WireVote>) -> String {
    match vote {
        None => "none".to_owned(),
        Some(vote) => {
            let acknowledged = match vote.committed {
                true => ", which a majority has elected",
                false => "",
            };
            format!("for node {} in term {}{acknowledged}", vote.node, vote.term)
        }
    }
}

/// Voters, and learners behind them.
pub(crate) fn members(membership: &WireMembership) -> String {
    let voters: Vec<String> = (membership.voters.iter())
        .map(|set| format!("{set:?}"))
        .collect();
    let is_voter = |id: &u64| membership.voters.iter().any(|set| set.contains(id));
    let learners: Vec<_> = (membership.members.keys())
        .filter(|id| !is_voter(id))
        .collect();
    match learners.is_empty() {
        true => format!("voters {}", voters.join(" and ")),
        false => format!("voters {}, learners {learners:?}", voters.join(" and ")),
    }
}

fn line_of(line: &LogLine) -> String {
    match &line.entry {
        Ok(entry) => {
            let (at, name, summary) = parts(entry);
            let at = at.map_or("-".to_owned(), date);
            let bytes = line.bytes;
            format!("{} {at} {name} {bytes} bytes {summary}", entry.log_id)
                .trim_end()
                .to_owned()
        }
        Err(reason) => format!("{} DAMAGED {reason}", line.index),
    }
}

fn json_of(line: &LogLine) -> Value {
    match &line.entry {
        Ok(entry) => {
            let (at, name, summary) = parts(entry);
            let id = WireLogId::from(&entry.log_id);
            json!({
                "index": id.index, "term": id.term, "node": id.node, "bytes": line.bytes,
                "stamp": at.map(|at| at.0), "write_id": write_id(entry), "command": name, "summary": summary,
                "content": content(entry),
            })
        }
        Err(reason) => json!({ "index": line.index, "bytes": line.bytes, "damaged": reason }),
    }
}

/// When it was stamped, its name, and what else tells it from others.
fn parts(entry: &Entry) -> (Option<Timestamp>, &'static str, String) {
    match &entry.payload {
        Payload::Blank => (None, "blank", String::new()),
        Payload::Membership(membership) => (
            None,
            "membership",
            members(&WireMembership::from(membership)),
        ),
        Payload::Normal(logged) => {
            let stamped = logged.stamped();
            let name = stamped.command.name();
            let words = stamped.to_string();
            let summary = words.strip_prefix(name).unwrap_or(&words).trim().to_owned();
            (Some(stamped.at), name, summary)
        }
    }
}

/// Which write of which node it is, if a client's.
fn write_id(entry: &Entry) -> Option<WriteId> {
    match &entry.payload {
        Payload::Normal(logged) => logged.stamped().write_id,
        Payload::Blank | Payload::Membership(_) => None,
    }
}

fn content(entry: &Entry) -> Value {
    match &entry.payload {
        Payload::Normal(logged) => {
            let command = &logged.stamped().command;
            // What JSON cannot say is shown as the program sees it.
            serde_json::to_value(command).unwrap_or_else(|_| json!(format!("{command:?}")))
        }
        Payload::Blank | Payload::Membership(_) => Value::Null,
    }
}

fn date(at: Timestamp) -> String {
    let since = Duration::from_micros(at.0.max(0).unsigned_abs());
    match SystemTime::UNIX_EPOCH.checked_add(since) {
        // What the format cannot write, it panics at.
        Some(time) if since.as_secs() < 253_402_300_800 => {
            httpdate::fmt_http_date(time).replace(' ', "_")
        }
        _ => format!("{}µs", at.0),
    }
}
