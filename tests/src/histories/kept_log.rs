//! The log that all nodes together kept next to their backups, read by `placementd inspect`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use placement_model::command::WriteId;
use placement_model::types::{PartitionId, Timestamp};
use placement_model::{Command as Model, Stamped};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::binaries;

/// An entry of the log that one node kept.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    index: u64,
    term: u64,
    node: u64,
    stamp: Option<i64>,
    write_id: Option<WriteId>,
    request_id: Option<Uuid>,
    content: Value,
}

/// The merged log of all nodes.
#[derive(Debug, Clone, Default)]
pub struct KeptLog {
    /// Commands of the log by their index.
    pub commands: BTreeMap<u64, Stamped>,
    /// Violations of log matching, as text.
    pub wrong: Vec<String>,
    /// How often a snapshot gave a node entries that its own log does not have.
    pub snapshots: usize,
    entries: BTreeMap<u64, Entry>,
}

/// A line of the output of `placementd inspect`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Entry(Entry),
    Damaged {
        #[serde(rename = "damaged")]
        _why: String,
    },
}

/// The Raft property that a conflict of two entries violates.
const LOG_MATCHING: &str = "log matching";

impl KeptLog {
    /// Reads the logs below a directory of backups.
    pub fn read(backups: &Path) -> anyhow::Result<Self> {
        let mut all = Self::default();
        for cluster in list(backups)? {
            for node in list(&cluster)? {
                all.add(&node)?;
            }
        }
        for (index, entry) in &all.entries {
            if let (Some(at), Some(command)) = (entry.stamp, command(entry)?) {
                let stamped = Stamped {
                    partition: PartitionId::DEFAULT,
                    routes: 0,
                    at: Timestamp(at),
                    write_id: entry.write_id,
                    command,
                    request_id: entry.request_id,
                };
                all.commands.insert(*index, stamped);
            }
        }
        Ok(all)
    }

    fn add(&mut self, node: &Path) -> anyhow::Result<()> {
        let output = Command::new(binaries::placementd()?)
            .args(["inspect", "kept-log", "--json"])
            .arg(node)
            .output()?;
        let name = node.file_name().unwrap_or_default().to_string_lossy();
        let text = String::from_utf8(output.stdout)?;
        for (nth, line) in text.lines().enumerate() {
            let line: Line =
                serde_json::from_str(line).with_context(|| format!("invalid entry: {line}"))?;
            // Another node has the entries that this one lacks.
            let Line::Entry(entry) = line else {
                self.snapshots += 1;
                continue;
            };
            let index = entry.index;
            self.snapshots += usize::from(nth == 0 && index > 1);
            let first = self.entries.entry(index).or_insert_with(|| entry.clone());
            if *first != entry {
                self.wrong.push(format!(
                    "{LOG_MATCHING}: entry {index} of {name} is {entry:?}, on another node {first:?}"
                ));
            }
        }
        if text.is_empty() && !output.status.success() {
            bail!("{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// Index up to which the log is complete, counted from the first entry.
    pub fn reaches(&self) -> u64 {
        let (mut next, mut entries) = match self.entries.keys().next() {
            // Entry 0 is the first membership.
            Some(first) if *first <= 1 => (*first, self.entries.keys()),
            _ => return 0,
        };
        while entries.next() == Some(&next) {
            next += 1;
        }
        next.saturating_sub(1)
    }

    /// Number of entries of the log.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Number of leaders that have committed an entry.
    pub fn leaders(&self) -> usize {
        let leaders: BTreeSet<_> = (self.entries.values())
            .map(|entry| (entry.term, entry.node))
            .collect();
        leaders.len()
    }

    /// The log as text, one line per entry.
    pub fn text(&self) -> String {
        let lines = self.entries.values().map(|entry| format!("{entry:?}\n"));
        lines.collect()
    }
}

fn command(entry: &Entry) -> anyhow::Result<Option<Model>> {
    match &entry.content {
        Value::Null => Ok(None),
        content => serde_json::from_value(content.clone())
            .with_context(|| format!("entry {} is not a command: {content}", entry.index)),
    }
}

fn list(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry?.path());
    }
    found.sort();
    Ok(found)
}
