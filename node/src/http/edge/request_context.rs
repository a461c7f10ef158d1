//! What a handler knows of its request, and what it may ask for.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use placement_model::types::{ProviderUuid, Timestamp};
use placement_model::{Command, Outcome, Reply};
use tokio::time::Instant;

use super::answer::{Answer, Caching};
use super::consistency::Effective;
use super::settings::Carried;
use super::state::Server;
use crate::audit::{Fate, Place};
use crate::doors::{Consistency, PlacementIndex, Position, Unavailable, View};
use crate::http::errors::{ApiError, Varies, WriteKind, not_found, refused};
use crate::http::wire::json::Json;
use crate::http::wire::microversion::Microversion;
use crate::http::wire::query::{BadQuery, Query};
use crate::http::wire::schema;
use crate::world;

/// Longest body that is read by the thread that serves the request: some two milliseconds.
const READ_AT_ONCE_MAX_BYTES: usize = 100_000;

/// A request that has passed every check before its handler.
pub(in crate::http) struct RequestContext {
    /// What all requests share.
    pub(in crate::http) server: Arc<Server>,
    /// When the request came in, by the monotonic clock.
    pub(in crate::http) begun: Duration,
    /// The path of the route, with names in braces.
    pub(in crate::http) route: &'static str,
    pub(in crate::http) method: &'static str,
    /// The microversion of the request.
    pub(in crate::http) version: Microversion,
    /// The values of the path's parameters, in order.
    pub(in crate::http) params: Vec<String>,
    pub(in crate::http) query: Result<Query, BadQuery>,
    pub(in crate::http) body: Bytes,
    /// What links begin with: the path of the API as the client sees it.
    pub(in crate::http) base_path: String,
    /// The id of this request, for the log; not the id of a write.
    pub(in crate::http) request_id: String,
    /// The promise of its reads.
    pub(in crate::http) consistency: Consistency,
    /// What the client has seen by its cookie, where it asks for no promise.
    pub(in crate::http) seen: Option<PlacementIndex>,
    /// What is found out on the way.
    pub(in crate::http) notes: Arc<Mutex<Notes>>,
}

/// What is found out about a request on its way.
#[derive(Default)]
pub(in crate::http) struct Notes {
    /// The state that the answer comes from, once one was read.
    pub(in crate::http) state: Option<Noted>,
    /// How far its write has come.
    pub(in crate::http) fate: Fate,
    /// Whether it is to be noted what the write names.
    pub(in crate::http) names: bool,
    /// The providers and consumers that the write names.
    pub(in crate::http) named: Vec<String>,
}

/// Most names of providers and consumers that are noted of a write; the log has them all.
const NAMED_MAX: usize = 64;

/// The state that an answer comes from, and when it was taken.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Noted {
    position: Position,
    pub(in crate::http) effective: Effective,
    at: Instant,
}

impl Noted {
    /// Where it stands now: it has aged since.
    pub(in crate::http) fn position(&self) -> Position {
        let age = self.at.elapsed();
        Position {
            staleness: self.position.staleness.map(|staleness| staleness + age),
            ..self.position
        }
    }
}

/// A write that was carried out.
pub(in crate::http) struct Done {
    /// The model's reply.
    pub(in crate::http) reply: Reply,
    /// A state that contains the write.
    pub(in crate::http) view: View,
}

impl RequestContext {
    /// The path's parameter at this position.
    pub(in crate::http) fn param(&self, position: usize) -> &str {
        self.params.get(position).map_or("", String::as_str)
    }

    /// The provider that the path begins with; `None` if its UUID has not the canonical spelling,
    /// which no provider has.
    fn provider(&self) -> Option<ProviderUuid> {
        ProviderUuid::from_canonical(self.param(0))
    }

    /// The provider that the path begins with. It may still not exist.
    ///
    /// # Errors
    /// 404.
    pub(in crate::http) fn provider_or_404(&self) -> Result<ProviderUuid, ApiError> {
        self.provider().ok_or_else(|| self.provider_not_found())
    }

    /// What `find` returns for the provider that the path begins with.
    ///
    /// # Errors
    /// `missing`, applied to the path's spelling, if it returns nothing.
    pub(in crate::http) fn of_provider<T>(
        &self,
        find: impl FnOnce(&ProviderUuid) -> Option<T>,
        missing: impl FnOnce(&str) -> ApiError,
    ) -> Result<T, ApiError> {
        let found = self.provider().as_ref().and_then(find);
        found.ok_or_else(|| missing(self.param(0)))
    }

    fn provider_not_found(&self) -> ApiError {
        not_found::provider(self.param(0), Varies::No)
    }

    /// The query string.
    ///
    /// # Errors
    /// 400 if it cannot be decoded.
    pub(in crate::http) fn query(&self) -> Result<&Query, ApiError> {
        self.query.as_ref().map_err(|bad| ApiError::from(*bad))
    }

    /// A state that keeps the promise the client asked for.
    ///
    /// # Errors
    /// 503, or 412 for a token of another history.
    pub(in crate::http) async fn view(&self) -> Result<View, ApiError> {
        if let Some(seen) = self.seen
            && self.consistency != Consistency::Linearizable
        {
            match self.server.api.read.view(Consistency::Session(seen)).await {
                // The cluster has another history since: what the client saw is not in it.
                Ok(_) | Err(Unavailable::ForeignIndex { .. }) => {}
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
    pub(in crate::http) async fn view_to_write(&self) -> Result<View, ApiError> {
        self.view_at(Consistency::Linearizable).await
    }

    async fn view_at(&self, consistency: Consistency) -> Result<View, ApiError> {
        let view = self.server.api.read.view(consistency).await?;
        self.note(view.position, Effective::of(consistency, &view.position));
        Ok(view)
    }

    fn note(&self, position: Position, effective: Effective) {
        self.notes.lock().state = Some(Noted {
            position,
            effective,
            at: Instant::now(),
        });
    }

    /// Has a command carried out.
    ///
    /// # Errors
    /// The error of a refusal, or 503.
    pub(in crate::http) async fn submit(
        &self,
        command: Command,
        write: WriteKind<'_>,
    ) -> Result<Done, ApiError> {
        {
            let mut notes = self.notes.lock();
            if notes.names {
                notes.named = named(&command);
            }
            notes.fate = Fate::Unknown;
        }
        let submitted = self
            .server
            .api
            .write
            .submit(command, self.request_id.clone());
        let written = submitted.await.inspect_err(|unavailable| {
            if !matches!(unavailable, Unavailable::OutcomeUnknown { .. }) {
                self.notes.lock().fate = Fate::NotBegun;
            }
        })?;
        let place = Place {
            epoch: written.index.epoch,
            index: written.index.index,
            term: written.term,
        };
        match &written.outcome {
            Outcome::Done(_) => self.notes.lock().fate = Fate::Committed(place),
            Outcome::Refused(_) => self.notes.lock().fate = Fate::Refused(place),
            Outcome::AnsweredBefore => {}
        }
        let position = Position {
            index: Some(written.index),
            ..written.view.position
        };
        self.note(position, Effective::Kept(Consistency::Linearizable));
        match written.outcome {
            Outcome::Done(reply) => Ok(Done {
                reply,
                view: written.view,
            }),
            Outcome::Refused(refusal) => Err(refused(write, refusal)),
            Outcome::AnsweredBefore => {
                tracing::error!("a fresh write was taken for one that was answered long ago");
                Err(ApiError::internal())
            }
        }
    }

    /// Reads the body, which must look as the API's description shows it. A long one is read where it holds
    /// up no other request.
    ///
    /// # Errors
    /// 400.
    pub(in crate::http) async fn body(&self) -> Result<Json, ApiError> {
        let schema = schema::body_of(self.method, self.route, self.version);
        let api = &self.server.api;
        let values_max = api.settings.limits.json_values;
        if self.body.len() <= READ_AT_ONCE_MAX_BYTES {
            return schema::read_body(values_max, &self.body, schema);
        }
        let body = self.body.clone();
        let read = world::compute(&*api.offload, move || {
            schema::read_body(values_max, &body, schema)
        });
        read.await.unwrap_or_else(|| Err(ApiError::internal()))
    }

    /// Has a long list made in its turn, where it holds up no other request.
    ///
    /// # Errors
    /// 503 if its turn does not come, and what `make` returns.
    pub(in crate::http) async fn listed<T: Send + 'static>(
        &self,
        make: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let api = &self.server.api;
        let patience = api.settings.candidates.deadline;
        let turn = self.server.admission.list(patience).await?;
        let make = move || {
            let _turn = turn;
            make()
        };
        let made = world::compute(&*api.offload, make).await;
        made.unwrap_or_else(|| Err(ApiError::internal()))
    }

    /// # Errors
    /// 400 if the request carries more than `[limits]` allows.
    pub(in crate::http) fn admit(&self, carried: Carried, count: usize) -> Result<(), ApiError> {
        self.server.api.settings.limits.admit(carried, count)
    }

    /// Reads the body of a write below a provider. A provider that does not exist is reported
    /// before a body that does not fit.
    ///
    /// # Errors
    /// 404 or 400.
    pub(in crate::http) async fn body_below(
        &self,
        provider: ProviderUuid,
    ) -> Result<Json, ApiError> {
        match self.body().await {
            Ok(body) => Ok(body),
            Err(error) => Err(self.unless_provider_is_missing(provider, error).await),
        }
    }

    /// An error that is found only when the provider exists.
    pub(in crate::http) async fn unless_provider_is_missing(
        &self,
        provider: ProviderUuid,
        error: ApiError,
    ) -> ApiError {
        match self.view_to_write().await {
            Ok(view) if view.state.provider(&provider).is_none() => self.provider_not_found(),
            Ok(_) => error,
            Err(unavailable) => unavailable,
        }
    }

    /// Adds the headers for caches, from 1.15, to what may never have been modified.
    pub(in crate::http) fn modified_if_ever(
        &self,
        answer: Answer,
        at: Option<Timestamp>,
    ) -> Answer {
        match at {
            None if self.version.from(15) => answer.caching(Caching::NoDate),
            at => self.modified(answer, at),
        }
    }

    /// Adds the headers for caches, from 1.15: modified now.
    pub(in crate::http) fn modified_now(&self, answer: Answer) -> Answer {
        self.modified(answer, None)
    }

    /// Adds the headers for caches, from 1.15: modified at the time given, or now.
    pub(in crate::http) fn modified(&self, answer: Answer, at: Option<Timestamp>) -> Answer {
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
