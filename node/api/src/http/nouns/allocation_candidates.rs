//! `GET /allocation_candidates`, from 1.10.
//!
//! The search runs on a snapshot of the state and writes the answer directly as JSON bytes. A short
//! search runs on the thread of its request; a long one starts again on another thread. A search
//! ends early when its client disconnects, at its deadline, and when its answer exceeds the limit.

mod template;
mod writer;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use placement_model::query::candidates::{Summaries, Watch};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use tracing::Instrument;

use self::writer::AnswerWriter;
use super::{explain, unknown_name};
use crate::http::edge::admission::Memory;
use crate::http::edge::answer::Answer;
use crate::http::edge::explanations::AnsweredRequest;
use crate::http::edge::patience::Patience;
use crate::http::edge::request_context::RequestContext;
use crate::http::edge::searches::SearchOutcome;
use crate::http::edge::settings::CandidateSettings;
use crate::http::errors::ApiError;

/// A search whose answer is at most this long may run on the thread of its request. The first call
/// of its watch callback also ends that attempt. On current hardware, a search reaches either limit
/// in well below a millisecond.
const AT_ONCE_MAX_BYTES: usize = 64 * 1024;

/// Granularity in which a search reserves memory in the budget of all requests.
const MEMORY_STEP_BYTES: usize = 64 * 1024;

/// Estimated bytes that a candidate and its provider's summary add to an answer; rarely less.
const CANDIDATE_BYTES: usize = 256;

/// `GET /allocation_candidates`: searches for candidates and writes the answer.
pub(crate) async fn list(context: &RequestContext) -> Result<Answer, ApiError> {
    let api = context.api();
    let mut request = explain::parse(context, context.query()?, context.head.version)?;
    request.strategy = api.settings.candidates.generation_strategy;
    request.search_max = Some(api.settings.candidates.max).filter(|most| *most > 0);
    let view = context.view().await?;
    let settings = api.settings.candidates.clone();
    let admission = &context.services.server.admission;
    let seed = settings.randomize.then(|| api.ids.uuid().as_u64_pair().0);
    // Without a limit all candidates are found, and the starting point does not matter.
    request.seed = seed.filter(|_| request.limit.is_some());
    let job = SearchJob {
        patience: context.patience(context.head.begun, settings.deadline),
        asked: Arc::new(AnsweredRequest {
            view,
            request,
            version: context.head.version,
        }),
        seed,
        settings,
    };
    let asked = job.asked.clone();
    let mut memory = admission.answer(context.head.caller);
    let found = async {
        if let Some(found) = job.run_briefly(&mut memory)? {
            return Ok(found);
        }
        let turn = admission.searches.turn(job.patience.left()).await?;
        let found = context.compute(move || {
            // The search continues for a moment after its client has disconnected, and holds the
            // permit until then.
            let _turn = turn;
            job.run(&mut memory)
        });
        found.await
    };
    let found = found.instrument(tracing::debug_span!("search")).await?;
    answered(context, found, asked)
}

/// Builds the answer, and notes the search so that it can be explained later.
fn answered(
    context: &RequestContext,
    found: SearchResult,
    asked: Arc<AnsweredRequest>,
) -> Result<Answer, ApiError> {
    let limits = [asked.request.limit, asked.request.search_max];
    let least = limits.into_iter().flatten().min();
    context.notes.lock().searched = Some(SearchOutcome {
        candidates: found.candidates,
        limited: least.is_some_and(|limit| found.candidates >= limit),
        asked: (found.candidates == 0).then_some(asked),
        claim: None,
    });
    Ok(context.modified_now(Answer::chunks(found.body?)))
}

/// The result of a search.
struct SearchResult {
    /// The whole answer, or the error for a name that does not exist.
    body: Result<Vec<Bytes>, ApiError>,
    candidates: usize,
}

/// One search with all its inputs.
struct SearchJob {
    /// Ends at the deadline, counted from the authentication of the caller.
    patience: Patience,
    asked: Arc<AnsweredRequest>,
    settings: CandidateSettings,
    /// Set with `randomize`.
    seed: Option<u64>,
}

/// The reason why there is no answer; `None` if the watch ended the search.
type Unanswered = Option<ApiError>;

impl SearchJob {
    /// The answer if it takes little time, as most do; `None` if the search must start again on
    /// another thread.
    fn run_briefly(&self, memory: &mut Memory) -> Result<Option<SearchResult>, ApiError> {
        let watch = |_steps| ControlFlow::Break(());
        match self.answer(Box::new(watch), AT_ONCE_MAX_BYTES, memory) {
            Ok(found) => Ok(Some(found)),
            Err(None) => Ok(None),
            Err(Some(error)) => Err(error),
        }
    }

    fn run(&self, memory: &mut Memory) -> Result<SearchResult, ApiError> {
        let deadline = self.settings.deadline;
        let watch = |_steps| self.patience.check();
        let answer = self.answer(Box::new(watch), usize::MAX, memory);
        answer.map_err(|unanswered| unanswered.unwrap_or_else(|| too_long(deadline)))
    }

    /// Searches and writes the answer. An answer of more than `most` bytes interrupts the search.
    fn answer<'a>(
        &'a self,
        watch: Watch<'a>,
        most: usize,
        memory: &mut Memory,
    ) -> Result<SearchResult, Unanswered> {
        let max = self.settings.memory_max_bytes;
        let mut take = |bytes: usize| {
            if bytes > max {
                return Err(Some(ApiError::search_ended(format!(
                    "The answer would take more than {max} bytes of memory. Set a limit, or request less."
                ))));
            }
            memory.grow_to(bytes.next_multiple_of(MEMORY_STEP_BYTES))?;
            if bytes > most { Err(None) } else { Ok(()) }
        };
        let AnsweredRequest {
            view,
            request,
            version,
        } = &*self.asked;
        let mut search = match view.state.candidates(request, Some(watch)) {
            Ok(search) => search,
            Err(error) => {
                return Ok(SearchResult {
                    body: Err(unknown_name(&error, "")),
                    candidates: 0,
                });
            }
        };
        if search.likely().saturating_mul(CANDIDATE_BYTES) > most {
            return Err(None);
        }
        let summaries = Summaries::new(request);
        let mut writer = AnswerWriter::new(&view.state, &search, summaries, *version);
        // Bytes of candidates that are found but not yet written.
        let mut kept_bytes = 0;
        if let Some(seed) = self.seed {
            let mut all = Vec::new();
            while let Some(candidate) = search.next_candidate() {
                kept_bytes += candidate.bytes();
                all.push(candidate);
                take(kept_bytes + search.waiting_bytes())?;
            }
            all.shuffle(&mut SmallRng::seed_from_u64(seed));
            for candidate in &all {
                writer.write(candidate);
                take(kept_bytes + writer.bytes())?;
            }
        } else {
            while let Some(candidate) = search.advance() {
                writer.write(candidate);
                take(writer.bytes() + search.waiting_bytes())?;
            }
        }
        search.complete(&mut writer.summaries);
        if search.interrupted() {
            return Err(None);
        }
        let candidates = writer.candidates();
        let body = writer.finish(|bytes| take(kept_bytes + bytes))?;
        Ok(SearchResult {
            body: Ok(body),
            candidates,
        })
    }
}

fn too_long(deadline: Duration) -> ApiError {
    ApiError::search_ended(format!(
        "The search exceeded its deadline of {} s. Set a limit, or request less.",
        deadline.as_secs_f64()
    ))
}
