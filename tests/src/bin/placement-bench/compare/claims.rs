//! A claim as a scheduler makes it: candidates, then one of them is written, again on a conflict.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use rand::seq::IndexedRandom as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::connection::Connection;
use super::generator::Work;
use super::request::{FRESH, Request};

/// Attempts of one claim.
const ATTEMPTS: u32 = 10;
/// Small, so that a cloud is not full in a minute.
const QUERY: &str =
    "/allocation_candidates?resources=VCPU%3A1%2CMEMORY_MB%3A64%2CDISK_GB%3A1&limit=10";

/// What each client does again and again.
pub(super) struct ClaimLoop;

#[derive(Deserialize)]
struct Candidates<'a> {
    #[serde(borrow)]
    allocation_requests: Vec<Candidate<'a>>,
}

/// Taken as it comes, and sent as it came.
#[derive(Deserialize)]
struct Candidate<'a> {
    #[serde(borrow)]
    allocations: &'a RawValue,
    #[serde(borrow)]
    mappings: BTreeMap<&'a str, &'a RawValue>,
}

#[derive(Serialize)]
struct Claim<'a> {
    allocations: &'a RawValue,
    mappings: &'a BTreeMap<&'a str, &'a RawValue>,
    project_id: &'a str,
    user_id: &'a str,
    consumer_generation: Option<u64>,
    consumer_type: &'a str,
}

impl Work for ClaimLoop {
    fn once(&self, connection: &mut Connection, _: u64) -> anyhow::Result<bool> {
        let server = connection.server();
        let candidates = Request::get(QUERY).bytes(server);
        for _ in 0..ATTEMPTS {
            let found = connection.ask(&candidates)?;
            ensure!(found.status == 200, "candidates: {}", found.status);
            let found: Candidates<'_> = serde_json::from_slice(&found.body)?;
            // As a scheduler does that has weighed them: not all take the first.
            let candidate = (found.allocation_requests)
                .choose(&mut rand::rng())
                .context("the cloud is full")?;
            let claim = Claim {
                allocations: candidate.allocations,
                mappings: &candidate.mappings,
                project_id: "project",
                user_id: "user",
                consumer_generation: None,
                consumer_type: "INSTANCE",
            };
            let body = serde_json::to_string(&claim)?;
            let claim = Request::put(format!("/allocations/{FRESH}"), body);
            let answer = connection.ask(&claim.bytes(server))?;
            match answer.status {
                204 => return Ok(true),
                409 => {}
                other => bail!("claim: {other} {}", String::from_utf8_lossy(&answer.body)),
            }
        }
        Ok(false)
    }
}
