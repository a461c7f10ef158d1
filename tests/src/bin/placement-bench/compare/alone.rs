//! What parts cost alone: the disk's syncs, and serde_json.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use placement_tests::load::Measured;
use placement_tests::process_cost::cpu_time;
use serde::{Deserialize, Serialize};

const BLOCK_BYTES: usize = 4096;
/// What is overwritten again and again.
const AREA_BLOCKS: u64 = 1024;

/// How a block gets to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// At the end of a file, which grows.
    Append,
    /// Where there was one before.
    Overwrite,
}

/// Writes 4 KiB and fdatasyncs, again and again, in a new file where nodes keep their data.
pub(super) fn syncs(place: Place, duration: Duration) -> anyhow::Result<Measured> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("synced");
    if place == Place::Overwrite {
        let mut file = File::create(&path)?;
        for _ in 0..AREA_BLOCKS {
            file.write_all(&[1; BLOCK_BYTES])?;
        }
        file.sync_all()?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)?;
    let started = Instant::now();
    let mut latencies = Vec::new();
    let mut block = 0;
    while started.elapsed() < duration {
        let begun = Instant::now();
        file.write_all_at(&[7; BLOCK_BYTES], block * BLOCK_BYTES as u64)?;
        file.sync_data()?;
        latencies.push(begun.elapsed());
        block += 1;
        if place == Place::Overwrite {
            block %= AREA_BLOCKS;
        }
    }
    let elapsed = started.elapsed();
    latencies.sort_unstable();
    Ok(Measured {
        elapsed,
        calls: latencies.len() as u64,
        latencies,
        errors: 0,
    })
}

/// `GET /allocation_candidates` as structs.
#[derive(Serialize, Deserialize)]
struct Answer {
    allocation_requests: Vec<Candidate>,
    provider_summaries: BTreeMap<String, Summary>,
}

#[derive(Serialize, Deserialize)]
struct Candidate {
    allocations: BTreeMap<String, Allocation>,
    mappings: BTreeMap<String, Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct Allocation {
    resources: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct Summary {
    resources: BTreeMap<String, Resource>,
    traits: Vec<String>,
    parent_provider_uuid: Option<String>,
    root_provider_uuid: String,
}

#[derive(Serialize, Deserialize)]
struct Resource {
    capacity: u64,
    used: u64,
}

/// Writes an answer's structs as JSON again and again, into the same memory: how often, and the
/// processor time of one.
pub(super) fn json_writing(
    answer: &[u8],
    duration: Duration,
) -> anyhow::Result<(Measured, Duration)> {
    let ready: Answer =
        serde_json::from_slice(answer).context("an answer with other fields than it had")?;
    let mut written = Vec::with_capacity(answer.len() * 2);
    let pid = std::process::id();
    let cpu = cpu_time(pid)?;
    let started = Instant::now();
    let mut latencies = Vec::new();
    while started.elapsed() < duration {
        let begun = Instant::now();
        written.clear();
        serde_json::to_writer(&mut written, &ready)?;
        latencies.push(begun.elapsed());
    }
    let elapsed = started.elapsed();
    let cpu = cpu_time(pid)?.saturating_sub(cpu);
    let difference = written.len().abs_diff(answer.len());
    ensure!(
        difference * 50 < answer.len(),
        "{} bytes written of an answer of {}",
        written.len(),
        answer.len()
    );
    latencies.sort_unstable();
    let measured = Measured {
        elapsed,
        calls: latencies.len() as u64,
        latencies,
        errors: 0,
    };
    let each = cpu.div_f64(measured.calls as f64);
    Ok((measured, each))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_written_as_long_as_it_was() {
        let answer = br#"{"allocation_requests":[{"allocations":{"a":{"resources":{"VCPU":1}}},"mappings":{"":["a"]}}],"provider_summaries":{"a":{"resources":{"VCPU":{"capacity":4,"used":0}},"traits":["T"],"parent_provider_uuid":null,"root_provider_uuid":"a"}}}"#;
        let (measured, _) = json_writing(answer, Duration::from_millis(20)).expect("JSON");
        assert!(measured.calls > 10);
        let other = format!("{}{}", String::from_utf8_lossy(answer), " ".repeat(100));
        assert!(json_writing(other.as_bytes(), Duration::ZERO).is_err());
    }

    #[test]
    fn both_ways_to_the_disk_are_measured() {
        for place in [Place::Append, Place::Overwrite] {
            let measured = syncs(place, Duration::from_millis(20)).expect("a disk");
            assert!(measured.calls > 0 && measured.quantile(0.5) > Duration::ZERO);
        }
    }
}
