//! What was lately searched for, so that an empty answer can be explained when someone asks for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use placement_model::types::Timestamp;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::explanations::Asked;
use super::progress::Progress;
use super::state::Server;
use crate::access::{URI_MAX_BYTES, bounded};
use crate::world::micros;

/// So many searches are kept.
const KEPT_MAX: usize = 4096;
/// Of so many of them the explanation is kept, if it is not longer than the most: 16 MiB at most.
const EXPLAINED_MAX: usize = 512;
const EXPLANATION_MAX_BYTES: usize = 32 * 1024;
/// Explanations of empty answers take at most a fifth of one processor, and are so far apart at least.
const RESTS_FOR: u32 = 4;
const RESTS_AT_LEAST: Duration = Duration::from_millis(100);
/// The reason that is counted where an empty answer was not explained.
const UNEXPLAINED: &str = "unexplained";
/// The target of the lines about empty answers.
const TARGET: &str = "placement::search";

/// What a search has found.
#[derive(Clone)]
pub(crate) struct Searched {
    pub(crate) candidates: usize,
    /// What was asked, if there is no candidate.
    pub(crate) asked: Option<Arc<Asked>>,
}

/// A search that was answered.
#[derive(Serialize)]
pub(crate) struct Kept {
    #[serde(serialize_with = "Timestamp::serialize_rfc3339")]
    at: Timestamp,
    request_id: String,
    global_request_id: Option<String>,
    user_id: Option<String>,
    project_id: Option<String>,
    query: String,
    microversion: Option<&'static str>,
    index: Option<String>,
    ms: f64,
    candidates: usize,
    #[serde(skip_serializing_if = "is_none", serialize_with = "unlocked")]
    explanation: Mutex<Option<Box<RawValue>>>,
}

fn is_none(explanation: &Mutex<Option<Box<RawValue>>>) -> bool {
    explanation.lock().is_none()
}

fn unlocked<S: Serializer>(
    explanation: &Mutex<Option<Box<RawValue>>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    explanation.lock().serialize(serializer)
}

/// Which of the searches are asked for.
pub(crate) struct Which {
    /// Not longer ago.
    pub(crate) since: Option<Duration>,
    /// Only those without candidates.
    pub(crate) empty: bool,
    /// Of the request with this id, or of a caller's request with it.
    pub(crate) request_id: Option<String>,
}

/// The searches of one partition on this node.
#[derive(Default)]
pub struct Searches(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    kept: VecDeque<Arc<Kept>>,
    explained: VecDeque<Arc<Kept>>,
    /// Empty answers, by the reason.
    empty: BTreeMap<&'static str, u64>,
    /// No empty answer is explained before; `None` while one is.
    idle_until: Option<Duration>,
    explaining: bool,
}

impl Searches {
    /// Empty answers so far, by the reason.
    pub fn empty(&self) -> Vec<(&'static str, u64)> {
        let inner = self.0.lock();
        inner
            .empty
            .iter()
            .map(|(reason, count)| (*reason, *count))
            .collect()
    }

    /// The searches that are asked for, the last first.
    pub(crate) fn of(&self, which: &Which, now: Timestamp) -> Vec<Arc<Kept>> {
        let oldest = which.since.map(|since| {
            let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
            Timestamp(now.0.saturating_sub(micros))
        });
        let is_asked_for = |kept: &&Arc<Kept>| {
            let ids = [Some(&kept.request_id), kept.global_request_id.as_ref()];
            oldest.is_none_or(|oldest| kept.at >= oldest)
                && (!which.empty || kept.candidates == 0)
                && (which.request_id.as_ref()).is_none_or(|id| ids.contains(&Some(id)))
        };
        let inner = self.0.lock();
        inner
            .kept
            .iter()
            .rev()
            .filter(is_asked_for)
            .cloned()
            .collect()
    }

    fn keep(&self, kept: Arc<Kept>) {
        let mut inner = self.0.lock();
        if inner.kept.len() == KEPT_MAX {
            inner.kept.pop_front();
        }
        inner.kept.push_back(kept);
    }

    /// Whether an empty answer may be explained now. One that may not is counted.
    fn begin(&self, now: Duration) -> bool {
        let mut inner = self.0.lock();
        let may = !inner.explaining && inner.idle_until.is_none_or(|until| now >= until);
        match may {
            true => inner.explaining = true,
            false => *inner.empty.entry(UNEXPLAINED).or_default() += 1,
        }
        may
    }

    fn end(&self, reason: &'static str, begun: Duration, now: Duration) {
        let spent = now.saturating_sub(begun);
        let mut inner = self.0.lock();
        inner.explaining = false;
        inner.idle_until = Some(now + RESTS_AT_LEAST.max(spent * RESTS_FOR));
        *inner.empty.entry(reason).or_default() += 1;
    }

    fn explained(&self, kept: Arc<Kept>, explanation: Box<RawValue>) {
        *kept.explanation.lock() = Some(explanation);
        let mut inner = self.0.lock();
        if inner.explained.len() == EXPLAINED_MAX
            && let Some(oldest) = inner.explained.pop_front()
        {
            *oldest.explanation.lock() = None;
        }
        inner.explained.push_back(kept);
    }
}

/// Keeps a search. If it has found nothing, it is explained in the time that requests leave, on the very state that it
/// was answered from.
pub(super) fn keep(server: &Arc<Server>, progress: &Progress<'_>, searched: Searched) {
    let caller = progress.identity.as_ref();
    let query = progress.parts.uri.query().unwrap_or_default();
    let position = progress.notes.lock().state.map(|noted| noted.position());
    let index = position.and_then(|position| position.index);
    let kept = Arc::new(Kept {
        at: micros(server.api.clock.now()),
        request_id: progress.request_id.clone(),
        global_request_id: progress.global_request_id.clone(),
        user_id: caller.map(|caller| caller.user_id.clone()),
        project_id: caller.and_then(|caller| caller.project_id.clone()),
        query: bounded(query, URI_MAX_BYTES).into_owned(),
        microversion: progress.version.map(|version| version.text()),
        index: index.map(|index| index.to_string()),
        ms: progress.ms(),
        candidates: searched.candidates,
        explanation: Mutex::default(),
    });
    server.searches.keep(kept.clone());
    let Some(asked) = searched.asked else { return };
    let begun = server.api.clock.monotonic();
    if server.searches.begin(begun) {
        let of_server = server.clone();
        let work = move || explain(&of_server, kept, &asked, begun);
        // It goes on by itself.
        drop(server.api.offload.run_idly(Box::new(work)));
    }
}

fn explain(server: &Server, kept: Arc<Kept>, asked: &Asked, begun: Duration) {
    let clock = &server.api.clock;
    let wanted = Arc::new(());
    let explained = asked.explain(clock, &Arc::downgrade(&wanted));
    let Ok(explained) = explained else {
        return server.searches.end(UNEXPLAINED, begun, clock.monotonic());
    };
    let (reason, class) = explained.explanation.reason();
    tracing::info!(
        target: TARGET,
        reason,
        class,
        trees = explained.explanation.trees,
        request_id = kept.request_id,
        global_request_id = kept.global_request_id,
        "no candidates"
    );
    let text = serde_json::value::to_raw_value(&explained);
    if let Ok(text) = text
        && text.get().len() <= EXPLANATION_MAX_BYTES
    {
        server.searches.explained(kept, text);
    }
    server.searches.end(reason, begun, clock.monotonic());
}
