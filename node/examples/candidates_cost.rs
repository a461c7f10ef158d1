//! What `GET /allocation_candidates` costs from the request to the bytes of its answer, without network
//! and Raft, beside serde_json writing the same answer from ready structs:
//!
//!     cargo run -p placement-node --release --example candidates_cost
//!
//! Each figure is the median of several runs, after some to warm up.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "it measures time"
)]

#[path = "../../model/examples/estates/mod.rs"]
mod estates;
#[path = "../tests/support/memory.rs"]
mod memory;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use futures::future::BoxFuture;
use http::Request;
use http_body_util::BodyExt;

use memory::Memory;
use placement_model::State;
use placement_node::doors::{Consistency, Position, ReadDoor, SharedState, Unavailable, View};
use placement_node::http::{Api, ApiSettings, router};
use placement_node::world::RealWorld;
use serde::{Deserialize, Serialize};
use tower::ServiceExt;

/// A state that does not change.
struct Still {
    memory: Memory,
    state: SharedState,
}

impl ReadDoor for Still {
    fn view(&self, consistency: Consistency) -> BoxFuture<'_, Result<View, Unavailable>> {
        Box::pin(async move {
            let view = self.memory.view(consistency).await?;
            let state = self.state.clone();
            Ok(View { state, ..view })
        })
    }

    fn position(&self) -> Position {
        self.memory.position()
    }
}

/// An answer, ready to be written.
#[derive(Serialize, Deserialize)]
struct AnswerBody {
    allocation_requests: Vec<RequestBody>,
    provider_summaries: BTreeMap<String, SummaryBody>,
}

#[derive(Serialize, Deserialize)]
struct RequestBody {
    allocations: BTreeMap<String, AmountsBody>,
    mappings: BTreeMap<String, Vec<String>>,
}

#[derive(Serialize, Deserialize)]
struct AmountsBody {
    resources: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct SummaryBody {
    resources: BTreeMap<String, ResourceBody>,
    traits: Vec<String>,
    parent_provider_uuid: Option<String>,
    root_provider_uuid: String,
}

#[derive(Serialize, Deserialize)]
struct ResourceBody {
    capacity: u64,
    used: u64,
}

fn api(state: State, randomize: bool) -> axum::Router {
    let (memory, world) = (Arc::new(Memory::new()), Arc::new(RealWorld::new()));
    let still = Still {
        memory: Memory::new(),
        state: state.into(),
    };
    let mut settings = ApiSettings::default();
    settings.candidates.randomize = randomize;
    router(Api {
        write: memory.clone(),
        read: Arc::new(still),
        readiness: memory,
        clock: world.clone(),
        ids: world.clone(),
        offload: world,
        before_search: |_, _| {},
        settings,
    })
}

async fn ask(api: &axum::Router, query: &str) -> Vec<u8> {
    let request = Request::get(format!("/allocation_candidates?{query}"))
        .header("x-auth-token", "admin")
        .header("openstack-api-version", "placement 1.39")
        .body(Body::empty());
    let mut body = api
        .clone()
        .oneshot(request.unwrap())
        .await
        .unwrap()
        .into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        bytes.push(frame.unwrap().into_data().unwrap());
    }
    bytes.concat()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

async fn measure(what: &str, state: &State, randomize: bool, query: &str) {
    let api = api(state.clone(), randomize);
    let mut body = Vec::new();
    let mut times = Vec::new();
    for run in 0..60 {
        let begun = Instant::now();
        body = ask(&api, query).await;
        if run >= 20 {
            times.push(begun.elapsed());
        }
    }
    let answer: AnswerBody = serde_json::from_slice(&body).unwrap();
    let serde = (0..60).map(|_| {
        let begun = Instant::now();
        let written = serde_json::to_vec(&answer).unwrap();
        let took = begun.elapsed();
        assert_eq!(written.len(), body.len());
        took
    });
    println!(
        "{what}: {} candidates, {} bytes, {:.0} µs; serde_json {:.0} µs",
        answer.allocation_requests.len(),
        body.len(),
        median(times),
        median(serde.collect()),
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    const FLAT: &str = "resources=VCPU:2,MEMORY_MB:2048,DISK_GB:20";
    let ten = format!("{FLAT}&limit=10");
    for hosts in [1_000, 10_000, 100_000] {
        let cloud = estates::flat(hosts);
        for randomize in [false, true] {
            let what = format!("flat, {hosts} hosts, limit=10, randomize={randomize}");
            measure(&what, &cloud, randomize, &ten).await;
        }
        if hosts <= 1_000 {
            let what = format!("flat, {hosts} hosts, no limit");
            measure(&what, &cloud, false, FLAT).await;
        }
    }
    for traits in [30, 60] {
        let cloud = estates::flat_with_traits(1_000, traits);
        for query in [&ten, FLAT] {
            let limit = query.strip_prefix(FLAT).unwrap();
            let what = format!("flat, 1,000 hosts of {traits} traits{limit}");
            measure(&what, &cloud, false, query).await;
        }
    }
    let nested = estates::nested(1_000);
    let job = "resources=DISK_GB:20&resources_CPU=VCPU:2,MEMORY_MB:2048&resources_DEV=CUSTOM_VF:1\
               &required_DEV=CUSTOM_COMMON&same_subtree=_CPU,_DEV&group_policy=none";
    for limit in ["&limit=10", ""] {
        let query = format!("{job}{limit}");
        measure(
            &format!("nested, 1,000 trees of 7{limit}"),
            &nested,
            false,
            &query,
        )
        .await;
    }
    for hosts in [100, 500] {
        let cloud = estates::pci(hosts, 8);
        for groups in [1, 2, 4, 8] {
            let devices: String = (0..groups)
                .map(|group| format!("&resources_{group}=CUSTOM_VF:1"))
                .collect();
            let query = format!("resources=VCPU:1{devices}&group_policy=none&limit=1000");
            let what = format!("PCI, {hosts} hosts of 8, {groups} groups, limit=1000");
            measure(&what, &cloud, false, &query).await;
        }
    }
}
