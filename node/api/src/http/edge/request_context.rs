//! The context of a request: its data for the handler, and the operations that the handler can use.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use parking_lot::Mutex;
use placement_model::types::{LimitExcess, ProviderUuid, Timestamp};
use placement_model::{Command, Outcome, Refusal, Reply};
use tokio::time::Instant;

use super::answer::{Answer, Caching};
use super::as_of::{self, AsOf};
use super::budget::Caller;
use super::claims::ClaimOutcome;
use super::consistency;
use super::ledger::Ledger;
use super::limits::LimitOutcome;
use super::patience::Patience;
use super::searches::{AnsweredClaim, SearchOutcome, Searched};
use super::settings::RequestLimits;
use super::state::{Api, Server};
use crate::http::errors::{ApiError, Varies, WriteKind, not_found, refused};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::Query;
use crate::http::wire::schema;
use placement_audit as audit;
use placement_base::backend::{
    AppliedWrite, Consistency, PlacementIndex, Position, Unavailable, View,
};
use placement_base::log_messages::log;
use placement_base::world;

/// Longest body that is parsed on the thread that serves the request; this takes some 2 ms.
const READ_AT_ONCE_MAX_BYTES: usize = 100_000;

/// The table of all routes, for handlers that list routes or send requests through them.
pub(crate) trait Table: Sync {
    /// Method, path and policy rule of each of this service's own operations.
    fn own_rules(&self) -> Vec<[&'static str; 3]>;

    /// Whether one of this service's own operations, by method and decoded path, changes the state.
    fn is_own_write(&self, method: &str, path: &str) -> bool;

    /// Answers a request as if an operator had sent it, without log lines: for requests to copies
    /// of the state.
    fn rehearse(
        &'static self,
        server: Arc<Server>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Response<Body>>;
}

/// A request that has passed all stages before its handler.
pub(crate) struct RequestContext {
    pub(crate) head: Head,
    /// The body; empty unless the operation needs one.
    pub(crate) body: Bytes,
    pub(crate) services: Services,
    /// Notes for the response and the records. Only the request's future holds them, so
    /// [`Patience`] notices when that future is dropped.
    pub(crate) notes: Arc<Mutex<Notes>>,
}

/// The part of a request before its body, parsed.
pub(crate) struct Head {
    /// Time at which the caller was authenticated and the operation found, by the monotonic clock.
    pub(crate) begun: Duration,
    /// The path of the route, with parameters in braces.
    pub(crate) route: &'static str,
    pub(crate) method: &'static str,
    /// The microversion of the request.
    pub(crate) version: Microversion,
    /// The caller, for shares of resources.
    pub(crate) caller: Caller,
    /// The values of the path's parameters, in order.
    pub(crate) params: Vec<String>,
    pub(crate) query: Result<Query, ApiError>,
    /// The beginning of links: the path of the API as the client sees it.
    pub(crate) base_path: String,
    /// The id under which its write appears in logs and in the change log: the caller's id or,
    /// without one, the id of this request. It does not identify the write itself.
    pub(crate) request_id: String,
    /// The consistency of reads.
    pub(crate) consistency: Consistency,
    /// The earlier state to read from.
    pub(crate) as_of: Option<AsOf>,
    /// Whether the caller passes the further rule of the operation.
    pub(crate) passes_further_rule: bool,
    /// The request's headers; empty unless the operation needs them.
    pub(crate) headers: HeaderMap,
}

/// The services of the node for handlers.
pub(crate) struct Services {
    /// State shared by all requests.
    pub(crate) server: Arc<Server>,
    /// The table of all routes.
    pub(crate) routes: &'static dyn Table,
}

/// Facts that are recorded while a request is handled.
#[derive(Default, Clone)]
pub(crate) struct Notes {
    /// The state that the answer comes from, once it is read.
    pub(crate) state: Option<AnswerSource>,
    /// The outcome of the write; `None` if the log certainly does not contain it.
    pub(crate) written: Option<audit::Outcome>,
    /// Position and term of the write's log entry.
    pub(crate) position: Option<(PlacementIndex, u64)>,
    /// The providers and consumers that the write names.
    pub(crate) named: Vec<String>,
    /// The result of a search for candidates.
    pub(crate) searched: Option<SearchOutcome>,
    /// Whether the answer contains so much of the partition's content that it is recorded.
    pub(crate) is_bulk: bool,
    /// Whether the limit that refuses the write has refused another one with the same request id.
    pub(crate) is_refused_again: bool,
}

/// Maximum number of provider and consumer names noted for a write; the log has all of them.
const NAMED_MAX: usize = 64;

/// The state that an answer comes from, and the time at which it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerSource {
    position: Position,
    /// The consistency of the answer.
    pub(crate) effective: Consistency,
    at: Instant,
}

impl AnswerSource {
    /// The position, with the staleness at the current time.
    pub(crate) fn position(&self) -> Position {
        let age = self.at.elapsed();
        Position {
            staleness: self.position.staleness.map(|staleness| staleness + age),
            ..self.position
        }
    }
}

impl RequestContext {
    /// The backends, the outside world and the settings.
    pub(crate) fn api(&self) -> &Api {
        &self.services.server.api
    }

    /// The path's parameter at this position.
    pub(crate) fn param(&self, position: usize) -> &str {
        self.head.params.get(position).map_or("", String::as_str)
    }

    /// The provider in the path; `None` if its UUID is not in canonical spelling, in which case no
    /// such provider exists.
    pub(crate) fn provider(&self) -> Option<ProviderUuid> {
        ProviderUuid::from_canonical(self.param(0))
    }

    /// The provider in the path. It may not exist.
    ///
    /// # Errors
    /// 404 if the UUID is not in canonical spelling.
    pub(crate) fn provider_or_404(&self) -> Result<ProviderUuid, ApiError> {
        self.find_provider(Varies::No, |provider| Some(*provider))
    }

    /// Applies `find` to the provider in the path.
    ///
    /// # Errors
    /// 404 if it returns `None`.
    pub(crate) fn find_provider<T>(
        &self,
        varies: Varies,
        find: impl FnOnce(&ProviderUuid) -> Option<T>,
    ) -> Result<T, ApiError> {
        let found = self.provider().as_ref().and_then(find);
        found.ok_or_else(|| not_found::provider(self.param(0), varies))
    }

    /// The query string.
    ///
    /// # Errors
    /// 400 if it cannot be decoded.
    pub(crate) fn query(&self) -> Result<&Query, ApiError> {
        self.head.query.as_ref().map_err(ApiError::clone)
    }

    /// A state with the requested consistency, or the requested earlier state.
    ///
    /// # Errors
    /// 503 if no such state is available in time; 412 for a token of another history; 410 if the
    /// earlier state is no longer available.
    pub(crate) async fn view(&self) -> Result<View, ApiError> {
        match self.head.as_of {
            None => self.view_now().await,
            Some(AsOf::Token(token)) => {
                let consistency = Consistency::Session(token);
                let newest = self.view_at(consistency).await?;
                self.view_then(newest, AsOf::Token(token)).await
            }
            Some(time) => {
                let newest = self.view_now().await?;
                self.view_then(newest, time).await
            }
        }
    }

    /// Reconstructs an earlier state from a later one, in a queue of its own and at idle priority.
    async fn view_then(&self, newest: View, as_of: AsOf) -> Result<View, ApiError> {
        let moments = &self.services.server.admission.moments;
        let turn = moments.turn(self.head.caller, as_of::WAIT).await?;
        let patience = self.patience(self.api().clock.monotonic(), as_of::DEADLINE);
        let ledger = self.ledger(&newest);
        let made = self.compute_idly(move || {
            let _turn = turn;
            as_of::view(newest, &ledger, as_of, &patience)
        });
        let view = made.await?;
        if let Some(noted) = &mut self.notes.lock().state {
            noted.position = view.position;
        }
        Ok(view)
    }

    /// Rejects `Placement-As-Of`, for operations on the whole history or on no state.
    ///
    /// # Errors
    /// 400 if the request has that header; `instead` tells the client what to do.
    pub(crate) fn refuse_as_of(&self, instead: &str) -> Result<(), ApiError> {
        let message = format!("Placement-As-Of is not supported on this path; {instead}");
        let asked = self.head.as_of.map(|_| ApiError::bad_consistency(message));
        asked.map_or(Ok(()), Err)
    }

    /// The change log of the partition of a view.
    pub(crate) fn ledger(&self, view: &View) -> Ledger {
        Ledger::for_view(view, self.api().ledger.clone())
    }

    async fn view_now(&self) -> Result<View, ApiError> {
        self.view_at(self.head.consistency).await
    }

    /// A linearizable state, for a write whose answer depends on the state before it.
    ///
    /// # Errors
    /// 503 if there is no such state.
    pub(crate) async fn view_to_write(&self) -> Result<View, ApiError> {
        self.view_at(Consistency::Linearizable).await
    }

    /// A state with this consistency.
    ///
    /// # Errors
    /// 503 if no such state is available in time; 412 for a token of another history.
    pub(crate) async fn view_at(&self, consistency: Consistency) -> Result<View, ApiError> {
        let view = self.api().read.view(consistency).await?;
        let kept = consistency::kept(consistency, &view.position);
        self.note(view.position, kept);
        Ok(view)
    }

    fn note(&self, position: Position, effective: Consistency) {
        self.notes.lock().state = Some(AnswerSource {
            position,
            effective,
            at: Instant::now(),
        });
    }

    /// Submits a command. Returns the committed write, which the model may have refused, without
    /// the limits that it exceeds: these are counted and logged here.
    ///
    /// # Errors
    /// The error for an unavailable cluster.
    pub(crate) async fn write(&self, command: Command) -> Result<AppliedWrite, ApiError> {
        {
            let mut notes = self.notes.lock();
            if self.api().audit.is_on() {
                notes.named = named(&command);
            }
            (notes.written, notes.position) = (Some(audit::Outcome::Unknown), None);
        }
        let write_backend = &self.api().write;
        let submitted = write_backend.submit(command, self.head.request_id.clone());
        let written = submitted.await.inspect_err(|unavailable| {
            if !matches!(unavailable, Unavailable::OutcomeUnknown(_)) {
                self.notes.lock().written = None;
            }
        })?;
        let outcome = match &written.outcome {
            Outcome::Done(_) => Some(audit::Outcome::Committed),
            Outcome::Refused(_) => Some(audit::Outcome::Refused),
            Outcome::AnsweredBefore => None,
        };
        if outcome.is_some() {
            let mut notes = self.notes.lock();
            notes.written = outcome;
            notes.position = Some((written.index, written.term));
        }
        let position = Position {
            index: Some(written.index),
            ..written.view.position
        };
        self.note(position, Consistency::Linearizable);
        Ok(AppliedWrite {
            outcome: self.without_excesses(written.outcome),
            ..written
        })
    }

    /// Counts and logs the limits that a write exceeds. Returns the outcome as without limits, or
    /// the refusal.
    fn without_excesses(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done(reply) => {
                let (reply, excesses) = reply.split_excesses();
                self.note_excesses(&excesses, LimitOutcome::Reported);
                Outcome::Done(reply)
            }
            Outcome::Refused(refusal) => {
                if let Refusal::OverLimit(excess) = &refusal {
                    self.note_excesses(std::slice::from_ref(excess), LimitOutcome::Refused);
                }
                Outcome::Refused(refusal)
            }
            Outcome::AnsweredBefore => Outcome::AnsweredBefore,
        }
    }

    fn note_excesses(&self, excesses: &[LimitExcess], outcome: LimitOutcome) {
        if let Some(exceeded) = &self.services.server.exceeded_limits {
            for excess in excesses {
                let is_new = exceeded.note(excess, outcome, &self.head.request_id);
                self.notes.lock().is_refused_again = !is_new;
            }
        }
    }

    /// Submits a command. Returns the model's reply, and a view of a state that contains the write.
    ///
    /// # Errors
    /// The error for the refusal of the command, or for an unavailable cluster.
    pub(crate) async fn submit(
        &self,
        command: Command,
        write: WriteKind<'_>,
    ) -> Result<(Reply, View), ApiError> {
        reply_to(self.write(command).await?, write)
    }

    /// Notes a claim, or a refused write of allocations, for the list of searches.
    pub(crate) fn note_claim(
        &self,
        searched: Searched,
        outcome: ClaimOutcome,
        refusal: Option<&ApiError>,
    ) {
        self.notes.lock().searched = Some(SearchOutcome {
            candidates: searched.candidates,
            limited: searched.limited,
            asked: searched.asked,
            claim: Some(AnsweredClaim {
                query: searched.query,
                outcome: outcome.as_str(),
                refusal: refusal.map(|error| error.message.clone()),
            }),
        });
    }

    /// Notes for the audit trail that the request succeeded and changed nothing.
    pub(crate) fn note_unchanged(&self) {
        let mut notes = self.notes.lock();
        (notes.written, notes.position) = (Some(audit::Outcome::Unchanged), None);
    }

    /// Submits a command and answers 204.
    ///
    /// # Errors
    /// As [`RequestContext::submit`].
    pub(crate) async fn carry_out(
        &self,
        command: Command,
        write: WriteKind<'_>,
    ) -> Result<Answer, ApiError> {
        self.submit(command, write).await?;
        Ok(Answer::no_content())
    }

    /// Parses the body and checks it against its schema. A long body is parsed on another thread.
    ///
    /// # Errors
    /// 400 if it is not JSON or does not match the schema.
    pub(crate) async fn body(&self) -> Result<Json, ApiError> {
        let schema = schema::body_of(self.head.method, self.head.route, self.head.version);
        let values_max = self.api().settings.limits.json_values;
        let body = self.body.clone();
        let read = move || schema::read_body(values_max, &body, schema);
        if self.body.len() <= READ_AT_ONCE_MAX_BYTES {
            read()
        } else {
            self.compute(read).await
        }
    }

    /// A time limit for work: it ends `limit` after `begun` (a time of the monotonic clock) or when
    /// the client disconnects.
    pub(crate) fn patience(&self, begun: Duration, limit: Duration) -> Patience {
        Patience::after(begun, limit, &self.api().clock).with_client(&self.notes)
    }

    /// Runs a computation on another thread.
    ///
    /// # Errors
    /// 500 if it panics, and the errors of `work`.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let offload = &self.api().offload;
        let computed = world::compute(|work| offload.run(work), work).await;
        computed.unwrap_or_else(|| Err(ApiError::internal()))
    }

    /// Runs a computation on another thread at idle priority.
    ///
    /// # Errors
    /// As [`RequestContext::compute`].
    pub(crate) async fn compute_idly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let offload = &self.api().offload;
        let computed = world::compute(|work| offload.run_idly(work), work).await;
        computed.unwrap_or_else(|| Err(ApiError::internal()))
    }

    /// Computes a long list on another thread, after waiting in the queue for lists.
    ///
    /// # Errors
    /// 503 if the queue is full or the wait is too long, and the errors of `make`.
    pub(crate) async fn listed<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let patience = self.api().settings.candidates.deadline;
        let turn = self.services.server.admission.lists.turn(patience).await?;
        self.compute(move || {
            let _turn = turn;
            make()
        })
        .await
    }

    /// # Errors
    /// 400 if `count` exceeds the limit that `most` selects; `what` names the counted items.
    pub(crate) fn admit(
        &self,
        what: &str,
        count: usize,
        most: fn(&RequestLimits) -> usize,
    ) -> Result<(), ApiError> {
        let most = most(&self.api().settings.limits);
        if count > most {
            return Err(ApiError::over_limit(what, most));
        }
        Ok(())
    }

    /// Parses the body of a write to a provider. If the body is invalid and the provider is
    /// missing, the error names the missing provider.
    ///
    /// # Errors
    /// 404 if the provider does not exist, 400 if the body is invalid.
    pub(crate) async fn body_below(&self, provider: ProviderUuid) -> Result<Json, ApiError> {
        self.found_below(provider, self.body().await).await
    }

    /// Returns `parsed`. If it is an error and the provider is missing, the error names the missing
    /// provider instead.
    ///
    /// # Errors
    /// 404 if the provider does not exist, or the error of the parser.
    pub(crate) async fn found_below<T>(
        &self,
        provider: ProviderUuid,
        parsed: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if parsed.is_err() {
            let view = self.view_to_write().await?;
            self.find_provider(Varies::No, |_| view.state.provider(&provider))?;
        }
        parsed
    }

    /// Adds the headers for caches, from 1.15, for a resource that may never have been modified.
    pub(crate) fn modified_if_ever(&self, answer: Answer, at: Option<Timestamp>) -> Answer {
        match at {
            None if self.head.version.from(15) => answer.caching(Caching::NoDate),
            at => self.modified(answer, at),
        }
    }

    /// Adds the headers for caches, from 1.15, with the current time.
    pub(crate) fn modified_now(&self, answer: Answer) -> Answer {
        self.modified(answer, None)
    }

    /// Adds the headers for caches, from 1.15, with this time or the current one.
    pub(crate) fn modified(&self, answer: Answer, at: Option<Timestamp>) -> Answer {
        match at {
            _ if !self.head.version.from(15) => answer,
            Some(at) => answer.modified(at),
            None => answer.caching(Caching::At(self.api().clock.now())),
        }
    }
}

/// The model's reply to a write, and a state that contains the write.
///
/// # Errors
/// The error of a refusal.
pub(crate) fn reply_to(
    written: AppliedWrite,
    write: WriteKind<'_>,
) -> Result<(Reply, View), ApiError> {
    match written.outcome {
        Outcome::Done(reply) => Ok((reply, written.view)),
        Outcome::Refused(refusal) => Err(refused(write, refusal)),
        Outcome::AnsweredBefore => {
            log!(
                WRITE_TAKEN_FOR_RETRY,
                "a new write was mistaken for a retry of an old one"
            );
            Err(ApiError::internal())
        }
    }
}

/// The consumers and providers that a write changes, unless the path names them.
fn named(command: &Command) -> Vec<String> {
    let mut named = Vec::new();
    match command {
        Command::CreateProvider(of) => named.push(of.uuid.to_string()),
        Command::ReplaceAllocations(of) => {
            let consumers = of.consumers.iter().take(NAMED_MAX);
            named.extend(consumers.map(|one| one.consumer.to_string()));
        }
        Command::Claim(of) => {
            let claimants = of.claimants.iter().take(NAMED_MAX);
            named.extend(claimants.map(|one| one.consumer.to_string()));
        }
        Command::Reshape(of) => {
            named.extend((of.inventories.iter()).map(|one| one.provider.to_string()));
            named.extend((of.allocations.iter()).map(|one| one.consumer.to_string()));
            named.truncate(NAMED_MAX);
        }
        // The path names the objects of the other commands.
        _ => {}
    }
    named
}
