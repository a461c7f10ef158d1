//! `GET /allocation_candidates`, from 1.10.
//!
//! The search runs away from the threads that serve requests, on a state of its own, and writes
//! the answer straight into its bytes. It ends early when its client is gone, when it takes
//! longer than the deadline, and when its answer grows beyond the limit.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use placement_model::State;
use placement_model::query::candidates::{
    AllocationRequest, Candidate, CandidateError, CandidateRequest, Placed, Placement,
    ProviderSummary, Summaries,
};
use placement_model::types::{Given, ProviderUuid, ResourceClassName, TraitName};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use serde::Serialize;

use crate::doors::SharedState;
use crate::http::edge::admission::Held;
use crate::http::edge::answer::Answer;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::settings::{CandidateSettings, Carried};
use crate::http::errors::{ApiError, joined};
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::parse_candidates;
use crate::http::wire::values::{Members, Shown, Whole};
use crate::world::{self, Clock};

/// `GET /allocation_candidates`.
pub(in crate::http) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let api = &context.server.api;
    let mut request = parse_candidates(context.query()?, context.version)?;
    context.admit(Carried::RequestGroups, request.groups.len())?;
    request.strategy = api.settings.candidates.generation_strategy;
    let mut view = context.view().await?;
    (api.before_search)(&mut view.state, &mut request);
    let settings = api.settings.candidates.clone();
    let spent = api.clock.monotonic().saturating_sub(context.begun);
    let admission = &context.server.admission;
    let turn = admission
        .search(settings.deadline.saturating_sub(spent))
        .await?;
    let job = Job {
        started: context.begun,
        state: view.state,
        limit: request.limit,
        request,
        version: context.version,
        settings,
        clock: api.clock.clone(),
        seed: api.ids.uuid().as_u64_pair().0,
        abandoned: Arc::new(AtomicBool::new(false)),
    };
    let _guard = AbandonOnDrop(job.abandoned.clone());
    let mut memory = Memory {
        held: admission.bytes(),
        max_bytes: job.settings.memory_max_bytes,
    };
    let search = move || {
        // It searches on for a moment after its client is gone.
        let _turn = turn;
        job.run(&mut memory)
    };
    let found = world::compute(&*api.offload, search).await;
    let body = found.unwrap_or_else(|| Err(ApiError::internal()))?;
    Ok(context.modified_now(Answer::bytes(body)))
}

/// Ends the search when the request's future is dropped: its client is gone.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One search with all it needs.
struct Job {
    /// When its request came in.
    started: Duration,
    state: SharedState,
    request: CandidateRequest,
    /// What the client asked for; the request's own limit may be lower.
    limit: Option<usize>,
    version: Microversion,
    settings: CandidateSettings,
    clock: Arc<dyn Clock>,
    seed: u64,
    abandoned: Arc<AtomicBool>,
}

impl Job {
    fn run(mut self, memory: &mut Memory) -> Result<Bytes, ApiError> {
        self.request.search_max = self.settings.max;
        self.request.limit = self.limit.filter(|_| !self.settings.randomize);
        let mut writer = AnswerWriter::new(&self);
        let (clock, started) = (self.clock.clone(), self.started);
        let deadline = self.settings.deadline;
        let abandoned = self.abandoned.clone();
        let watch = move |_steps| {
            let late = clock.monotonic().saturating_sub(started) > deadline;
            if late || abandoned.load(Ordering::Relaxed) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let mut search = self
            .state
            .candidates_watched(&self.request, Box::new(watch))
            .map_err(|error| wrong_name(&error))?;
        if self.settings.randomize {
            let mut all = Vec::new();
            let mut places = 0;
            while let Some(candidate) = search.next_candidate() {
                places += candidate.placements.len();
                all.push(candidate);
                writer.elsewhere =
                    all.len() * size_of::<Candidate>() + places * size_of::<Placement>();
                memory.take(writer.size())?;
            }
            let mut random = SmallRng::seed_from_u64(self.seed);
            let wanted = self.limit.unwrap_or(usize::MAX).min(all.len());
            let (chosen, others) = all.partial_shuffle(&mut random, wanted);
            for candidate in chosen.iter() {
                writer.write(candidate, &search.describe(candidate));
                memory.take(writer.size())?;
            }
            for candidate in others.iter() {
                writer.summaries.note_beyond(candidate);
            }
        } else {
            while let Some(candidate) = search.next_candidate() {
                writer.write(&candidate, &search.describe(&candidate));
                memory.take(writer.size())?;
            }
            search.complete(&mut writer.summaries);
        }
        if search.interrupted() {
            return Err(too_long(deadline));
        }
        writer.finish(memory)
    }
}

/// The memory that one search takes of what there is for all requests.
struct Memory {
    held: Held,
    max_bytes: usize,
}

impl Memory {
    /// # Errors
    /// 400 if it is more than one search may take, 503 if others have taken too much.
    fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
        const STEP: usize = 64 * 1024;
        if bytes > self.max_bytes {
            return Err(ApiError::search_ended(format!(
                "The answer would take more than the {} bytes that [candidates] \
                 memory_max_bytes allows. Ask with a limit, or for less.",
                self.max_bytes
            )));
        }
        self.held.grow_to(bytes.next_multiple_of(STEP))
    }
}

fn wrong_name(error: &CandidateError) -> ApiError {
    ApiError::bad_request(match error {
        CandidateError::UnknownResourceClass(name) => {
            format!("Invalid resource class in resources parameter: No such resource class {name}.")
        }
        CandidateError::UnknownTraits(traits) => format!("No such trait(s): {}.", joined(traits)),
    })
}

fn too_long(deadline: Duration) -> ApiError {
    ApiError::search_ended(format!(
        "The search was ended after {} s, the deadline that [candidates] deadline_ms sets. Ask \
         with a limit, or for less.",
        deadline.as_secs_f64()
    ))
}

/// Writes the answer as it is found.
struct AnswerWriter<'a> {
    bytes: Vec<u8>,
    /// Bytes of what was found and not yet written.
    elsewhere: usize,
    first: bool,
    summaries: Summaries<'a>,
    requested: BTreeSet<&'a ResourceClassName>,
    state: &'a State,
    version: Microversion,
}

impl<'a> AnswerWriter<'a> {
    fn new(job: &'a Job) -> Self {
        let groups = job.request.groups.iter();
        Self {
            bytes: b"{\"allocation_requests\":[".to_vec(),
            elsewhere: 0,
            first: true,
            summaries: Summaries::new(&job.state, &job.request),
            requested: groups
                .flat_map(|group| group.resources.keys())
                .filter_map(Given::valid)
                .collect(),
            state: &job.state,
            version: job.version,
        }
    }

    fn size(&self) -> usize {
        self.elsewhere + self.bytes.len()
    }

    fn write(&mut self, candidate: &Candidate, request: &AllocationRequest) {
        self.summaries.note(candidate);
        if !std::mem::take(&mut self.first) {
            self.bytes.push(b',');
        }
        if self.version.from(12) {
            let allocations = request.allocations.iter();
            let mappings = request.mappings.iter();
            put(
                &mut self.bytes,
                &DictBody {
                    allocations: Members(
                        allocations
                            .map(|placed| (Shown(placed.provider), AmountsBody::new(placed))),
                    ),
                    mappings: self.version.from(34).then(|| {
                        Members(mappings.map(|(suffix, providers)| {
                            (suffix, providers.iter().map(Shown).collect::<Vec<_>>())
                        }))
                    }),
                },
            );
        } else {
            let allocations = request.allocations.iter().map(|placed| ListItem {
                resource_provider: ProviderRef {
                    uuid: Shown(placed.provider),
                },
                resources: Members(&placed.resources),
            });
            put(
                &mut self.bytes,
                &ListBody {
                    allocations: allocations.collect::<Vec<_>>(),
                },
            );
        }
    }

    fn finish(mut self, memory: &mut Memory) -> Result<Bytes, ApiError> {
        self.bytes.extend_from_slice(b"],\"provider_summaries\":{");
        let mut first = true;
        for summary in self.summaries.each() {
            if !std::mem::take(&mut first) {
                self.bytes.push(b',');
            }
            put(&mut self.bytes, &Shown(summary.provider));
            self.bytes.push(b':');
            let body = summary_body(&summary, self.state, self.version, &self.requested);
            put(&mut self.bytes, &body);
            memory.take(self.elsewhere + self.bytes.len())?;
        }
        self.bytes.extend_from_slice(b"}}");
        Ok(self.bytes.into())
    }
}

fn put(bytes: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(bytes, value)
        .expect("our own types have string keys, and memory takes all bytes");
}

/// An allocation request from 1.12: fit to be sent as `PUT /allocations/{consumer}`.
#[derive(Serialize)]
struct DictBody<A: Serialize, M: Serialize> {
    allocations: A,
    #[serde(skip_serializing_if = "Option::is_none")]
    mappings: Option<M>,
}

#[derive(Serialize)]
struct AmountsBody<'a> {
    resources: Members<&'a std::collections::BTreeMap<ResourceClassName, u64>>,
}

impl<'a> AmountsBody<'a> {
    fn new(placed: &'a Placed) -> Self {
        Self {
            resources: Members(&placed.resources),
        }
    }
}

/// An allocation request below 1.12.
#[derive(Serialize)]
struct ListBody<'a> {
    allocations: Vec<ListItem<'a>>,
}

#[derive(Serialize)]
struct ListItem<'a> {
    resource_provider: ProviderRef,
    resources: Members<&'a std::collections::BTreeMap<ResourceClassName, u64>>,
}

#[derive(Serialize)]
struct ProviderRef {
    uuid: Shown<ProviderUuid>,
}

#[derive(Serialize)]
struct SummaryBody<R: Serialize, T: Serialize> {
    resources: R,
    #[serde(skip_serializing_if = "Option::is_none")]
    traits: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_provider_uuid: Option<Option<Shown<ProviderUuid>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_provider_uuid: Option<Shown<ProviderUuid>>,
}

#[derive(Serialize)]
struct ResourceBody {
    capacity: Whole,
    used: u64,
}

/// A summary as this version shows it: below 1.27 only the classes asked for, traits from 1.17,
/// the place in the tree from 1.29.
fn summary_body<'a>(
    summary: &'a ProviderSummary,
    state: &State,
    version: Microversion,
    requested: &'a BTreeSet<&'a ResourceClassName>,
) -> impl Serialize + use<'a> {
    let resources = summary
        .resources
        .iter()
        .filter(move |(class, _)| version.from(27) || requested.contains(class))
        .map(|(class, resource)| {
            let body = ResourceBody {
                capacity: Whole(resource.capacity),
                used: resource.used,
            };
            (class.as_str(), body)
        });
    // In the order of their creation: the standard ones first.
    let mut traits: Vec<&TraitName> = summary.traits.iter().collect();
    traits.sort_by_key(|name| state.trait_id(name));
    let nested = version.from(29);
    SummaryBody {
        resources: Members(resources),
        traits: version.from(17).then_some(traits),
        parent_provider_uuid: nested.then(|| summary.parent.map(Shown)),
        root_provider_uuid: nested.then_some(Shown(summary.root)),
    }
}
