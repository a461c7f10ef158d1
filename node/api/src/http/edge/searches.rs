//! The latest searches on this node, so that empty answers can be explained on request.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use placement_model::query::explain::Reason;
use placement_model::types::Timestamp;
use placement_wire::searches::Search;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::explanations::AnsweredRequest;
use super::patience::Patience;
use placement_base::world::{Clock, Offload};

/// Maximum number of retained searches.
const KEPT_MAX: usize = 4096;
/// Maximum number of retained explanations, and maximum size of each: 16 MiB in total.
const EXPLAINED_MAX: usize = 512;
const EXPLANATION_MAX_BYTES: usize = 32 * 1024;
/// In the long run, explanations of empty answers may use 1/`SHARE` of one processor.
const SHARE: u32 = 5;
/// Assumed upper bound of the time that one step of an explanation takes.
const STEP: Duration = Duration::from_micros(1);
/// Minimum interval between explanations in the long run.
const APART: Duration = Duration::from_millis(100);
/// Maximum time that explanations may use in advance of their share, for bursts of empty answers.
const AHEAD: Duration = Duration::from_secs(1);
/// Maximum number of empty answers that are being explained or wait for an explanation. Each holds
/// the state that was searched.
const EXPLAINING_MAX: usize = 5;
/// The reason counted for an empty answer without explanation.
const UNEXPLAINED: &str = "unexplained";
/// Time limit for an explanation: long, as its thread has idle priority and may wait for a
/// processor.
const PATIENCE: Duration = Duration::from_secs(30);
/// Log target of the lines about empty answers.
const TARGET: &str = "placement::search";

/// A claim, which the list of searches contains if it searched or was refused, or a write of
/// allocations that a limit refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnsweredClaim {
    /// The query of the candidates; empty if the client sent the choices.
    pub(crate) query: String,
    /// The outcome, as metrics count it.
    pub(crate) outcome: &'static str,
    /// Why the claim was refused.
    pub(crate) refusal: Option<String>,
}

/// A search for the choices of a claim.
pub(crate) struct Searched {
    /// Empty if the client sent the choices.
    pub(crate) query: String,
    pub(crate) candidates: usize,
    pub(crate) limited: bool,
    /// The request and the state, if there is no candidate.
    pub(crate) asked: Option<Arc<AnsweredRequest>>,
}

impl Searched {
    /// This number of choices, which the client sent.
    pub(crate) fn sent(choices: usize) -> Self {
        Self {
            query: String::new(),
            candidates: choices,
            limited: false,
            asked: None,
        }
    }
}

/// The result of a search.
#[derive(Clone)]
pub(crate) struct SearchOutcome {
    pub(crate) candidates: usize,
    /// Whether the limit was reached, so that there may be more candidates.
    pub(crate) limited: bool,
    /// The request and the state, if there is no candidate.
    pub(crate) asked: Option<Arc<AnsweredRequest>>,
    /// The claim that searched.
    pub(crate) claim: Option<AnsweredClaim>,
}

/// A search that was answered.
pub(crate) struct AnsweredSearch {
    pub(super) at: Timestamp,
    pub(super) request_id: String,
    pub(super) global_request_id: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) user_name: Option<String>,
    pub(super) project_id: Option<String>,
    pub(super) project_name: Option<String>,
    pub(super) query: String,
    pub(super) microversion: Option<&'static str>,
    pub(super) index: Option<String>,
    pub(super) ms: f64,
    pub(super) candidates: usize,
    /// Whether the limit was reached, so that there may be more candidates.
    pub(super) limited: bool,
    /// The claim that searched.
    pub(super) claim: Option<AnsweredClaim>,
    /// The condition that excluded the last candidates; unset unless the answer was explained.
    pub(super) reason: OnceLock<&'static str>,
    pub(super) explanation: Mutex<Option<Box<RawValue>>>,
}

impl AnsweredSearch {
    /// False for a write whose choices the client sent.
    fn has_searched(&self) -> bool {
        self.claim
            .as_ref()
            .is_none_or(|claim| !claim.query.is_empty())
    }
}

/// A search as the API shows it.
pub(crate) struct SearchView {
    kept: Arc<AnsweredSearch>,
    reason: Option<&'static str>,
    explanation: Option<Box<RawValue>>,
}

impl SearchView {
    /// The search as responses contain it.
    pub(crate) fn json(&self) -> Search<'_, &RawValue> {
        let AnsweredSearch {
            at,
            request_id,
            global_request_id,
            user_id,
            user_name,
            project_id,
            project_name,
            query,
            microversion,
            index,
            ms,
            candidates,
            limited,
            claim,
            ..
        } = &*self.kept;
        fn text(text: &Option<String>) -> Option<Cow<'_, str>> {
            text.as_deref().map(Cow::from)
        }
        Search {
            at: at.rfc3339_seconds().map(Into::into),
            candidates: *candidates as u64,
            claim: claim.as_ref().map(|claim| claim.outcome.into()),
            explanation: self.explanation.as_deref(),
            global_request_id: text(global_request_id),
            index: text(index),
            limited: *limited,
            microversion: microversion.map(Into::into),
            ms: *ms,
            project_id: text(project_id),
            project_name: text(project_name),
            query: query.into(),
            reason: self.reason.map(Into::into),
            refusal: claim.as_ref().and_then(|claim| text(&claim.refusal)),
            request_id: request_id.into(),
            user_id: text(user_id),
            user_name: text(user_name),
        }
    }
}

/// Conditions on searches, all of which must hold.
pub(crate) struct SearchFilter {
    /// Only searches at this time or later.
    pub(crate) since: Option<Timestamp>,
    /// Only searches without candidates.
    pub(crate) empty: bool,
    /// Only the request with this id, as its own or as the caller's id.
    pub(crate) request_id: Option<String>,
    /// Only searches by callers of this project.
    pub(crate) project: Option<String>,
    /// Maximum number of searches.
    pub(crate) limit: usize,
    /// Whether to return the explanations, which are long.
    pub(crate) explained: bool,
}

/// The searches of one partition on this node. No request waits for a lock that an explaining
/// thread holds, as that thread may have to wait for a processor.
pub struct Searches {
    kept: Mutex<VecDeque<Arc<AnsweredSearch>>>,
    empties: Mutex<EmptyAnswers>,
    /// Number of searches that found candidates, found none, or exceeded a limit.
    results: [AtomicU64; 3],
    /// Number of empty answers without explanation.
    unexplained: AtomicU64,
    /// Monotonic time in nanoseconds by which the share will have paid for all explanations so far.
    due: AtomicU64,
    /// Held while an empty answer is explained: one at a time.
    explaining: Mutex<()>,
    /// A permit for each empty answer that is being explained or waits for an explanation.
    places: Arc<Semaphore>,
}

impl Default for Searches {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            empties: Mutex::default(),
            results: Default::default(),
            unexplained: AtomicU64::default(),
            due: AtomicU64::default(),
            explaining: Mutex::default(),
            places: Arc::new(Semaphore::new(EXPLAINING_MAX)),
        }
    }
}

/// The explained empty answers.
#[derive(Default)]
struct EmptyAnswers {
    explained: VecDeque<Arc<AnsweredSearch>>,
    /// Number of empty answers by reason.
    empty: BTreeMap<&'static str, u64>,
}

impl Searches {
    /// Number of empty answers so far by reason.
    pub fn empty(&self) -> BTreeMap<&'static str, u64> {
        let mut empty = self.empties.lock().empty.clone();
        let unexplained = self.unexplained.load(Ordering::Relaxed);
        if unexplained > 0 {
            *empty.entry(UNEXPLAINED).or_default() += unexplained;
        }
        empty
    }

    /// Number of searches so far by result.
    pub fn results(&self) -> [(&'static str, u64); 3] {
        let [found, empty, ended] = (self.results.each_ref()).map(|it| it.load(Ordering::Relaxed));
        [("found", found), ("empty", empty), ("ended", ended)]
    }

    /// Counts a search that exceeded a limit of time or size.
    pub(super) fn note_ended(&self) {
        self.results[2].fetch_add(1, Ordering::Relaxed);
    }

    /// The matching searches, latest first, and the number of further matches beyond the limit.
    pub(crate) fn matching(&self, which: &SearchFilter) -> (Vec<SearchView>, usize) {
        let is_asked_for = |kept: &&Arc<AnsweredSearch>| {
            let ids = [Some(&kept.request_id), kept.global_request_id.as_ref()];
            which.since.is_none_or(|since| kept.at >= since)
                && (!which.empty || kept.candidates == 0)
                && (which.request_id.as_ref()).is_none_or(|id| ids.contains(&Some(id)))
                && (which.project.as_ref()).is_none_or(|id| kept.project_id.as_ref() == Some(id))
        };
        let all = self.kept.lock();
        let mut matching = all.iter().rev().filter(is_asked_for);
        let found: Vec<_> = matching.by_ref().take(which.limit).cloned().collect();
        let left_out = matching.count();
        drop(all);
        let explanation = |kept: &AnsweredSearch| kept.explanation.try_lock()?.clone();
        let shown = found.into_iter().map(|kept| SearchView {
            explanation: if which.explained {
                explanation(&kept)
            } else {
                None
            },
            reason: kept.reason.get().copied(),
            kept,
        });
        (shown.collect(), left_out)
    }

    fn keep(&self, kept: Arc<AnsweredSearch>) {
        if kept.has_searched() {
            self.results[usize::from(kept.candidates == 0)].fetch_add(1, Ordering::Relaxed);
        }
        let mut all = self.kept.lock();
        let oldest = match all.len() {
            KEPT_MAX => all.pop_front(),
            _ => None,
        };
        all.push_back(kept);
        drop(all);
        // Dropping a search takes time, so it happens after the lock is released.
        drop(oldest);
    }

    /// A permit to explain an empty answer. `None`, and the answer is counted as unexplained, if
    /// explanations have used their share or too many answers wait.
    fn place(&self, now: Duration) -> Option<OwnedSemaphorePermit> {
        let due = Duration::from_nanos(self.due.load(Ordering::Relaxed));
        let place = (due <= now + AHEAD)
            .then(|| self.places.clone().try_acquire_owned().ok())
            .flatten();
        if place.is_none() {
            self.unexplained.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// Explains an empty answer, one at a time. The share of a processor (`SHARE`) is charged by
    /// the number of steps, not by elapsed time, because the thread may wait for a processor.
    fn explain(&self, kept: Arc<AnsweredSearch>, asked: &AnsweredRequest, clock: &Arc<dyn Clock>) {
        let _one = self.explaining.lock();
        let (reason, steps) = self.explain_one(kept, asked, clock);
        *self.empties.lock().empty.entry(reason).or_default() += 1;
        let due = Duration::from_nanos(self.due.load(Ordering::Relaxed)).max(clock.monotonic())
            + APART.max(STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX)) * SHARE);
        let due = u64::try_from(due.as_nanos()).unwrap_or(u64::MAX);
        self.due.store(due, Ordering::Relaxed);
    }

    /// Returns the reason and the number of steps.
    fn explain_one(
        &self,
        kept: Arc<AnsweredSearch>,
        asked: &AnsweredRequest,
        clock: &Arc<dyn Clock>,
    ) -> (&'static str, u64) {
        let patience = Patience::after(clock.monotonic(), PATIENCE, clock);
        let Ok(explained) = asked.explain(&patience) else {
            return (UNEXPLAINED, 0);
        };
        let steps = explained.explanation.steps;
        // A state without candidates always yields a reason.
        let reason = explained
            .explanation
            .reason
            .map_or(UNEXPLAINED, Reason::as_str);
        // No other call sets it.
        let _ = kept.reason.set(reason);
        tracing::info!(
            target: TARGET,
            reason,
            class = explained.explanation.class(),
            trees = explained.explanation.trees,
            request_id = kept.request_id,
            global_request_id = kept.global_request_id,
            "no candidates"
        );
        let text = serde_json::value::to_raw_value(&explained.shown());
        if let Ok(text) = text
            && text.get().len() <= EXPLANATION_MAX_BYTES
        {
            self.explained(kept, text);
        }
        (reason, steps)
    }

    fn explained(&self, kept: Arc<AnsweredSearch>, explanation: Box<RawValue>) {
        *kept.explanation.lock() = Some(explanation);
        let mut empties = self.empties.lock();
        let oldest = match empties.explained.len() {
            EXPLAINED_MAX => empties.explained.pop_front(),
            _ => None,
        };
        empties.explained.push_back(kept);
        drop(empties);
        // The explanation is long; it is dropped while no lock is held.
        let old = oldest.and_then(|oldest| oldest.explanation.lock().take());
        drop(old);
    }
}

/// Records a search. If it found no candidates, it is explained at idle priority, on the state that
/// was searched.
pub(super) fn keep(
    searches: &Arc<Searches>,
    clock: &Arc<dyn Clock>,
    offload: &dyn Offload,
    kept: AnsweredSearch,
    asked: Option<Arc<AnsweredRequest>>,
) {
    let kept = Arc::new(kept);
    searches.keep(kept.clone());
    let Some(asked) = asked else { return };
    if let Some(place) = searches.place(clock.monotonic()) {
        let (searches, clock) = (searches.clone(), clock.clone());
        let work = move || {
            // Dropped even if the work panics or never begins.
            let _place = place;
            searches.explain(kept, &asked, &clock);
        };
        // The work runs detached.
        drop(offload.run_idly(Box::new(work)));
    }
}
