//! What a handler knows of its request, and what it may ask for.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use parking_lot::Mutex;
use placement_model::types::{ProviderUuid, Timestamp};
use placement_model::{Command, Outcome, Reply};
use tokio::time::Instant;

use super::answer::{Answer, Caching};
use super::as_of::{self, AsOf};
use super::budget::Caller;
use super::consistency;
use super::ledger::Ledger;
use super::patience::Patience;
use super::searches::Searched;
use super::settings::RequestLimits;
use super::state::Server;
use crate::audit;
use crate::backend::{Consistency, PlacementIndex, Position, Unavailable, View};
use crate::http::errors::{ApiError, Varies, WriteKind, not_found, refused};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::Query;
use crate::http::wire::schema;
use crate::world;

/// Longest body that is read by the thread that serves the request: some two milliseconds.
const READ_AT_ONCE_MAX_BYTES: usize = 100_000;

/// All routes, for those who ask about them or by them.
pub(crate) trait Table: Sync {
    /// Method, path and policy rule of this service's own operations.
    fn own_rules(&self) -> Vec<[&'static str; 3]>;

    /// What an operator would be answered, without a line in the logs: for copies of the state.
    fn rehearse(
        &'static self,
        server: Arc<Server>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Response<Body>>;
}

/// A request that has passed every check before its handler.
pub(crate) struct RequestContext {
    /// What all requests share.
    pub(crate) server: Arc<Server>,
    /// All routes.
    pub(crate) routes: &'static dyn Table,
    /// When the request came in, by the monotonic clock.
    pub(crate) begun: Duration,
    /// The path of the route, with names in braces.
    pub(crate) route: &'static str,
    pub(crate) method: &'static str,
    /// The microversion of the request.
    pub(crate) version: Microversion,
    /// Who asks, for what has a share for each.
    pub(crate) caller: Caller,
    /// The values of the path's parameters, in order.
    pub(crate) params: Vec<String>,
    pub(crate) query: Result<Query, ApiError>,
    pub(crate) body: Bytes,
    /// What links begin with: the path of the API as the client sees it.
    pub(crate) base_path: String,
    /// By which its write is known, in logs and in what was changed: the caller's id or, without
    /// one, that of this request. Not the id of a write.
    pub(crate) request_id: String,
    /// The promise of its reads.
    pub(crate) consistency: Consistency,
    /// The earlier moment that it reads from.
    pub(crate) as_of: Option<AsOf>,
    /// Those of the request, for an operation that needs them.
    pub(crate) headers: HeaderMap,
    /// What the client has seen by its cookie, where it asks for no promise.
    pub(crate) seen: Option<PlacementIndex>,
    /// What is found out on the way. Only the request's future has it.
    pub(crate) notes: Arc<Mutex<Notes>>,
}

/// What is found out about a request on its way.
#[derive(Default, Clone)]
pub(crate) struct Notes {
    /// The state that the answer comes from, once one was read.
    pub(crate) state: Option<Noted>,
    /// What became of its write; `None`: nothing of it is in the log.
    pub(crate) written: Option<audit::Outcome>,
    /// Where its write is in the log, and the term of its entry.
    pub(crate) position: Option<(PlacementIndex, u64)>,
    /// The providers and consumers that the write names.
    pub(crate) named: Vec<String>,
    /// What a search for candidates has found.
    pub(crate) searched: Option<Searched>,
    /// Whether the answer is all that there is in the partition.
    pub(crate) is_whole: bool,
}

/// Most names of providers and consumers that are noted of a write; the log has them all.
const NAMED_MAX: usize = 64;

/// The state that an answer comes from, and when it was taken.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noted {
    position: Position,
    /// What the answer keeps of what was promised.
    pub(crate) effective: Consistency,
    at: Instant,
}

impl Noted {
    /// Where it stands now: it has aged since.
    pub(crate) fn position(&self) -> Position {
        let age = self.at.elapsed();
        Position {
            staleness: self.position.staleness.map(|staleness| staleness + age),
            ..self.position
        }
    }
}

impl RequestContext {
    /// The path's parameter at this position.
    pub(crate) fn param(&self, position: usize) -> &str {
        self.params.get(position).map_or("", String::as_str)
    }

    /// The provider that the path begins with; `None` if its UUID has not the canonical spelling,
    /// which no provider has.
    pub(crate) fn provider(&self) -> Option<ProviderUuid> {
        ProviderUuid::from_canonical(self.param(0))
    }

    /// The provider that the path begins with. It may still not exist.
    ///
    /// # Errors
    /// 404.
    pub(crate) fn provider_or_404(&self) -> Result<ProviderUuid, ApiError> {
        self.of_provider(Varies::No, |provider| Some(*provider))
    }

    /// What `find` returns for the provider that the path begins with.
    ///
    /// # Errors
    /// 404 if it returns nothing.
    pub(crate) fn of_provider<T>(
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
        self.query.as_ref().map_err(ApiError::clone)
    }

    /// A state that keeps the promise the client asked for, of the moment that it asks for.
    ///
    /// # Errors
    /// 503, 412 for a token of another history, or 410 for a moment that is too long ago.
    pub(crate) async fn view(&self) -> Result<View, ApiError> {
        match self.as_of {
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

    /// The state of an earlier moment, made of a later one, in a queue of its own and the time of
    /// explanations.
    async fn view_then(&self, newest: View, as_of: AsOf) -> Result<View, ApiError> {
        let moments = &self.server.admission.moments;
        let turn = moments.turn(self.caller, as_of::WAIT).await?;
        let patience = self.patience(self.server.api.clock.monotonic(), as_of::DEADLINE);
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

    /// For what is about all moments, or about none.
    ///
    /// # Errors
    /// 400 if the request asks for one moment by the header; `instead` says what it is to do.
    pub(crate) fn refuse_as_of(&self, instead: &str) -> Result<(), ApiError> {
        let message = format!("Placement-As-Of is not for this path; {instead}");
        let asked = self.as_of.map(|_| ApiError::bad_consistency(message));
        asked.map_or(Ok(()), Err)
    }

    /// What was changed in the partition of a view.
    pub(crate) fn ledger(&self, view: &View) -> Ledger {
        Ledger::of(view, self.server.api.ledger.clone())
    }

    async fn view_now(&self) -> Result<View, ApiError> {
        if let Some(seen) = self.seen
            && self.consistency != Consistency::Linearizable
        {
            match self.server.api.read.view(Consistency::Session(seen)).await {
                // The cluster has another history since: what the client saw is not in it.
                Ok(_) | Err(Unavailable::ForeignIndex(_)) => {}
                Err(unavailable) => return Err(unavailable.into()),
            }
        }
        self.view_at(self.consistency).await
    }

    /// A state with everything that was acknowledged before now, for answers to writes that show
    /// what was there before.
    ///
    /// # Errors
    /// 503.
    pub(crate) async fn view_to_write(&self) -> Result<View, ApiError> {
        self.view_at(Consistency::Linearizable).await
    }

    /// A state that keeps this promise.
    ///
    /// # Errors
    /// 503, or 412 for a token of another history.
    pub(crate) async fn view_at(&self, consistency: Consistency) -> Result<View, ApiError> {
        let view = self.server.api.read.view(consistency).await?;
        let kept = consistency::kept(consistency, &view.position);
        self.note(view.position, kept);
        Ok(view)
    }

    fn note(&self, position: Position, effective: Consistency) {
        self.notes.lock().state = Some(Noted {
            position,
            effective,
            at: Instant::now(),
        });
    }

    /// Has a command carried out. Returns the model's reply, and a state that contains the write.
    ///
    /// # Errors
    /// The error of a refusal, or 503.
    pub(crate) async fn submit(
        &self,
        command: Command,
        write: WriteKind<'_>,
    ) -> Result<(Reply, View), ApiError> {
        {
            let mut notes = self.notes.lock();
            if self.server.api.audit.is_on() {
                notes.named = named(&command);
            }
            (notes.written, notes.position) = (Some(audit::Outcome::Unknown), None);
        }
        let write_backend = &self.server.api.write;
        let submitted = write_backend.submit(command, self.request_id.clone());
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
        match written.outcome {
            Outcome::Done(reply) => Ok((reply, written.view)),
            Outcome::Refused(refusal) => Err(refused(write, refusal)),
            Outcome::AnsweredBefore => {
                tracing::error!("a fresh write was taken for one that was answered long ago");
                Err(ApiError::internal())
            }
        }
    }

    /// Has a command carried out, and answers 204.
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

    /// Reads the body, which must look as the API's description shows it. A long one is read where
    /// it holds up no other request.
    ///
    /// # Errors
    /// 400.
    pub(crate) async fn body(&self) -> Result<Json, ApiError> {
        let schema = schema::body_of(self.method, self.route, self.version);
        let values_max = self.server.api.settings.limits.json_values;
        let body = self.body.clone();
        let read = move || schema::read_body(values_max, &body, schema);
        match self.body.len() <= READ_AT_ONCE_MAX_BYTES {
            true => read(),
            false => self.compute(read).await,
        }
    }

    /// So long after a time of the monotonic clock, and as long as the client waits.
    pub(crate) fn patience(&self, begun: Duration, limit: Duration) -> Patience {
        Patience::after(begun, limit, &self.server.api.clock).with_client(&self.notes)
    }

    /// Has something computed where it holds up no other request.
    ///
    /// # Errors
    /// 500 if it panicked, and what `work` returns.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let offload = &self.server.api.offload;
        let computed = world::compute(|work| offload.run(work), work).await;
        computed.unwrap_or_else(|| Err(ApiError::internal()))
    }

    /// The same in the time that other requests leave.
    ///
    /// # Errors
    /// The same.
    pub(crate) async fn compute_idly<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let offload = &self.server.api.offload;
        let computed = world::compute(|work| offload.run_idly(work), work).await;
        computed.unwrap_or_else(|| Err(ApiError::internal()))
    }

    /// Has a long list made in its turn, where it holds up no other request.
    ///
    /// # Errors
    /// 503 if its turn does not come, and what `make` returns.
    pub(crate) async fn listed<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let patience = self.server.api.settings.candidates.deadline;
        let turn = self.server.admission.lists.turn(patience).await?;
        self.compute(move || {
            let _turn = turn;
            make()
        })
        .await
    }

    /// # Errors
    /// 400 if the request carries more than `most` of the limits allows.
    pub(crate) fn admit(
        &self,
        what: &str,
        count: usize,
        most: fn(&RequestLimits) -> usize,
    ) -> Result<(), ApiError> {
        let most = most(&self.server.api.settings.limits);
        if count > most {
            return Err(ApiError::over_limit(what, most));
        }
        Ok(())
    }

    /// Reads the body of a write below a provider. A provider that does not exist is reported
    /// before a body that does not fit.
    ///
    /// # Errors
    /// 404 or 400.
    pub(crate) async fn body_below(&self, provider: ProviderUuid) -> Result<Json, ApiError> {
        self.found_below(provider, self.body().await).await
    }

    /// What was parsed, or its error. A missing provider is reported first.
    ///
    /// # Errors
    /// 404, or that of the parser.
    pub(crate) async fn found_below<T>(
        &self,
        provider: ProviderUuid,
        parsed: Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        if parsed.is_err() {
            let view = self.view_to_write().await?;
            self.of_provider(Varies::No, |_| view.state.provider(&provider))?;
        }
        parsed
    }

    /// Adds the headers for caches, from 1.15, to what may never have been modified.
    pub(crate) fn modified_if_ever(&self, answer: Answer, at: Option<Timestamp>) -> Answer {
        match at {
            None if self.version.from(15) => answer.caching(Caching::NoDate),
            at => self.modified(answer, at),
        }
    }

    /// Adds the headers for caches, from 1.15: modified now.
    pub(crate) fn modified_now(&self, answer: Answer) -> Answer {
        self.modified(answer, None)
    }

    /// Adds the headers for caches, from 1.15: modified at the time given, or now.
    pub(crate) fn modified(&self, answer: Answer, at: Option<Timestamp>) -> Answer {
        match at {
            _ if !self.version.from(15) => answer,
            Some(at) => answer.modified(at),
            None => answer.caching(Caching::At(self.server.api.clock.now())),
        }
    }
}

/// Whose allocations a write changes, or of which providers it changes something.
fn named(command: &Command) -> Vec<String> {
    let mut named = Vec::new();
    match command {
        Command::CreateProvider(of) => named.push(of.uuid.to_string()),
        Command::ReplaceAllocations(of) => {
            let consumers = of.consumers.iter().take(NAMED_MAX);
            named.extend(consumers.map(|one| one.consumer.to_string()));
        }
        Command::Reshape(of) => {
            named.extend((of.inventories.iter()).map(|one| one.provider.to_string()));
            named.extend((of.allocations.iter()).map(|one| one.consumer.to_string()));
            named.truncate(NAMED_MAX);
        }
        // The others name it in the path.
        _ => {}
    }
    named
}
