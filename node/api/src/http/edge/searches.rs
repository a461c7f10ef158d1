//! What was lately searched for, so that an empty answer can be explained when someone asks for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use placement_model::query::explain::Reason;
use placement_model::types::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::explanations::Asked;
use super::patience::Patience;
use crate::world::{Clock, Offload};

/// So many searches are kept.
const KEPT_MAX: usize = 4096;
/// Of so many of them the explanation is kept, if it is not longer than the most: 16 MiB at most.
const EXPLAINED_MAX: usize = 512;
const EXPLANATION_MAX_BYTES: usize = 32 * 1024;
/// Explanations of empty answers take at most a fifth of one processor in the long run,
const SHARE: u32 = 5;
/// of which a step of the search takes less than
const STEP: Duration = Duration::from_micros(1);
/// and there are ten a second,
const APART: Duration = Duration::from_millis(100);
/// but for as many as take this long together.
const AHEAD: Duration = Duration::from_secs(1);
/// So many empty answers are being explained or wait for that, each with the state that it was
/// given on.
const EXPLAINING_MAX: usize = 5;
/// The reason that is counted where an empty answer was not explained.
const UNEXPLAINED: &str = "unexplained";
/// As long as its thread may wait for a processor.
const PATIENCE: Duration = Duration::from_secs(30);
/// The target of the lines about empty answers.
const TARGET: &str = "placement::search";

/// What a search has found.
#[derive(Clone)]
pub(crate) struct Searched {
    pub(crate) candidates: usize,
    /// Whether there are as many as its limit allows, so that there may be more.
    pub(crate) limited: bool,
    /// What was asked, if there is no candidate.
    pub(crate) asked: Option<Arc<Asked>>,
}

/// A search that was answered.
#[derive(Serialize)]
pub(crate) struct Kept {
    #[serde(serialize_with = "Timestamp::serialize_rfc3339")]
    pub(super) at: Timestamp,
    pub(super) request_id: String,
    pub(super) global_request_id: Option<String>,
    pub(super) user_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_name: Option<String>,
    pub(super) project_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project_name: Option<String>,
    pub(super) query: String,
    pub(super) microversion: Option<&'static str>,
    pub(super) index: Option<String>,
    pub(super) ms: f64,
    pub(super) candidates: usize,
    /// Whether there are as many as its limit allows, so that there may be more.
    pub(super) limited: bool,
    /// The condition that leaves no candidate.
    #[serde(skip)]
    pub(super) reason: OnceLock<&'static str>,
    #[serde(skip)]
    pub(super) explanation: Mutex<Option<Box<RawValue>>>,
}

/// A search as it is shown.
#[derive(Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    kept: Arc<Kept>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Box<RawValue>>,
}

/// Which of the searches are asked for.
pub(crate) struct Which {
    /// Not before.
    pub(crate) since: Option<Timestamp>,
    /// Only those without candidates.
    pub(crate) empty: bool,
    /// Of the request with this id, or of a caller's request with it.
    pub(crate) request_id: Option<String>,
    /// Of a caller of this project.
    pub(crate) project: Option<String>,
    /// At most so many.
    pub(crate) limit: usize,
}

/// The searches of one partition on this node. No request waits for what a thread that explains
/// locks, as that may have to wait for a processor.
pub struct Searches {
    kept: Mutex<VecDeque<Arc<Kept>>>,
    empties: Mutex<Empties>,
    /// Searches that found candidates, that found none, and that took too long or too much.
    results: [AtomicU64; 3],
    /// Empty answers that are not explained.
    unexplained: AtomicU64,
    /// When those that were explained have had their share of time, in nanoseconds.
    due: AtomicU64,
    /// Held by the empty answer that is being explained: one at a time.
    explaining: Mutex<()>,
    /// Of which each empty answer has one that is or will be explained.
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

/// Empty answers.
#[derive(Default)]
struct Empties {
    explained: VecDeque<Arc<Kept>>,
    /// Empty answers, by the reason.
    empty: BTreeMap<&'static str, u64>,
}

impl Searches {
    /// Empty answers so far, by the reason.
    pub fn empty(&self) -> BTreeMap<&'static str, u64> {
        let mut empty = self.empties.lock().empty.clone();
        let unexplained = self.unexplained.load(Ordering::Relaxed);
        if unexplained > 0 {
            *empty.entry(UNEXPLAINED).or_default() += unexplained;
        }
        empty
    }

    /// Searches so far, by their result.
    pub fn results(&self) -> [(&'static str, u64); 3] {
        let [found, empty, ended] = (self.results.each_ref()).map(|it| it.load(Ordering::Relaxed));
        [("found", found), ("empty", empty), ("ended", ended)]
    }

    /// One took too long or too much.
    pub(super) fn note_ended(&self) {
        self.results[2].fetch_add(1, Ordering::Relaxed);
    }

    /// The searches that are asked for, the last first, and how many are left out by the limit;
    /// those of one request with their explanations, which are long.
    pub(crate) fn of(&self, which: &Which) -> (Vec<Shown>, usize) {
        let is_asked_for = |kept: &&Arc<Kept>| {
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
        let explanation = |kept: &Kept| kept.explanation.try_lock()?.clone();
        let shown = found.into_iter().map(|kept| Shown {
            explanation: (which.request_id.as_ref()).and_then(|_| explanation(&kept)),
            reason: kept.reason.get().copied(),
            kept,
        });
        (shown.collect(), left_out)
    }

    fn keep(&self, kept: Arc<Kept>) {
        self.results[usize::from(kept.candidates == 0)].fetch_add(1, Ordering::Relaxed);
        let mut all = self.kept.lock();
        let oldest = match all.len() {
            KEPT_MAX => all.pop_front(),
            _ => None,
        };
        all.push_back(kept);
        drop(all);
        // It is freed when no one waits for that.
        drop(oldest);
    }

    /// The place of an empty answer that is to be explained. One that comes too soon is counted,
    /// and has none.
    fn place(&self, now: Duration) -> Option<OwnedSemaphorePermit> {
        let due = Duration::from_nanos(self.due.load(Ordering::Relaxed));
        let place = (due <= now + AHEAD).then(|| self.places.clone().try_acquire_owned().ok());
        let place = place.flatten();
        if place.is_none() {
            self.unexplained.fetch_add(1, Ordering::Relaxed);
        }
        place
    }

    /// Explains an empty answer, after those that came before. Its thread may wait for a processor,
    /// so time says nothing of what it takes: steps do.
    fn explain(&self, kept: Arc<Kept>, asked: &Asked, clock: &Arc<dyn Clock>) {
        let _one = self.explaining.lock();
        let (reason, steps) = self.explain_one(kept, asked, clock);
        *self.empties.lock().empty.entry(reason).or_default() += 1;
        let due = Duration::from_nanos(self.due.load(Ordering::Relaxed)).max(clock.monotonic())
            + APART.max(STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX)) * SHARE);
        let due = u64::try_from(due.as_nanos()).unwrap_or(u64::MAX);
        self.due.store(due, Ordering::Relaxed);
    }

    /// Returns the reason, and the steps that it took.
    fn explain_one(
        &self,
        kept: Arc<Kept>,
        asked: &Asked,
        clock: &Arc<dyn Clock>,
    ) -> (&'static str, u64) {
        let patience = Patience::after(clock.monotonic(), PATIENCE, clock);
        let Ok(explained) = asked.explain(&patience) else {
            return (UNEXPLAINED, 0);
        };
        let steps = explained.explanation.steps;
        // A state that has no candidate has a reason.
        let reason = explained.explanation.reason;
        let reason = reason.map_or(UNEXPLAINED, Reason::as_str);
        // It is explained once.
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
        let text = serde_json::value::to_raw_value(&explained);
        if let Ok(text) = text
            && text.get().len() <= EXPLANATION_MAX_BYTES
        {
            self.explained(kept, text);
        }
        (reason, steps)
    }

    fn explained(&self, kept: Arc<Kept>, explanation: Box<RawValue>) {
        *kept.explanation.lock() = Some(explanation);
        let mut empties = self.empties.lock();
        let oldest = match empties.explained.len() {
            EXPLAINED_MAX => empties.explained.pop_front(),
            _ => None,
        };
        empties.explained.push_back(kept);
        drop(empties);
        // It is long, and freed while nothing is locked.
        let old = oldest.and_then(|oldest| oldest.explanation.lock().take());
        drop(old);
    }
}

/// Keeps a search. If it has found nothing, it is explained in the time that requests leave, on the
/// very state that it was answered from.
pub(super) fn keep(
    searches: &Arc<Searches>,
    clock: &Arc<dyn Clock>,
    offload: &dyn Offload,
    kept: Kept,
    asked: Option<Arc<Asked>>,
) {
    let kept = Arc::new(kept);
    searches.keep(kept.clone());
    let Some(asked) = asked else { return };
    if let Some(place) = searches.place(clock.monotonic()) {
        let (searches, clock) = (searches.clone(), clock.clone());
        let work = move || {
            // Given back even if it panics or never begins.
            let _place = place;
            searches.explain(kept, &asked, &clock);
        };
        // It goes on by itself.
        drop(offload.run_idly(Box::new(work)));
    }
}
