//! serde_json writing an answer from ready structs: the cost of the JSON alone.
//! The target for an answer with all candidates is a multiple of this cost, as absolute times
//! depend on the machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::load::Sample;
use crate::process_group::cpu_time;

/// Body of `GET /allocation_candidates`.
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

/// Serializes the answer repeatedly into the same buffer.
pub(crate) fn write(answer: &[u8], seconds: u64) -> anyhow::Result<Sample> {
    let ready: Answer = serde_json::from_slice(answer)?;
    let mut written = Vec::with_capacity(answer.len() * 2);
    let this = std::process::id();
    let (started, before) = (Instant::now(), cpu_time(this)?);
    let mut requests = 0.0;
    while started.elapsed() < Duration::from_secs(seconds) {
        written.clear();
        serde_json::to_writer(&mut written, &ready)?;
        requests += 1.0;
    }
    let cpu_ms = (cpu_time(this)? - before).as_secs_f64() * 1e3 / requests;
    let (is, was) = (written.len(), answer.len());
    ensure!(
        is.abs_diff(was) * 50 < was,
        "{is} bytes were written, {was} expected"
    );
    Ok(Sample {
        requests,
        per_second: requests / seconds as f64,
        cpu_ms,
        cpu_of_asked_ms: cpu_ms,
        ..Sample::default()
    })
}
