//! Token validation with OpenStack's identity service, API version 3.
//!
//! Results are cached for a while under the token's SHA-256, so that no token stays in memory.
//! Concurrent requests with the same token share one validation. An unknown token is cached only
//! for seconds: the validating Keystone may not be the issuing one, and its keys or database may
//! lag behind.

mod access_rules;
mod documents;
#[cfg(test)]
pub(crate) mod fixtures;
mod session;
mod settings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moka::future::Cache;
use ring::digest::{SHA256, digest};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

pub use self::documents::{Credentials, Token};
pub use self::session::KeystoneUnavailable;
use self::session::{QUESTION_MAX, Session};
pub use self::settings::KeystoneSection;
use placement_base::net::Net;
use placement_base::settings::{Invalid, Secret};
use placement_base::world::Clock;
use placement_outgoing::Outgoing;

/// Maximum length of a validation response, with many roles or a catalog of many regions.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Maximum number of cached tokens.
const REMEMBERED_MAX: u64 = 100_000;
/// Time for which an unknown token is cached.
const UNKNOWN_LASTS: Duration = Duration::from_secs(5);
/// Maximum length of a token, sufficient for a thousand roles.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Maximum number of concurrent validations, each with its own connection. Further ones wait.
const ASKED_MAX: usize = 64;

/// Validates tokens and caches the results.
pub struct Keystone {
    session: Session,
    /// Limits the number of concurrent validations.
    places: Semaphore,
    /// Each waiting validation holds a clone.
    waiting: Arc<()>,
    /// Numbers of valid tokens, unknown tokens and failed validations.
    results: [AtomicU64; 3],
    clock: Arc<dyn Clock>,
    /// Time for which a valid token is cached.
    lasts: Duration,
    /// Cached results; `None` if caching is off.
    known: Option<Cache<[u8; 32], CachedValidation>>,
}

/// Result of a validation.
#[derive(Clone)]
struct CachedValidation {
    /// `None` if Keystone does not know the token.
    token: Option<Arc<Token>>,
    /// Expiry, in monotonic time.
    until: Duration,
}

impl Keystone {
    /// Reads the CA certificates. Sends nothing. Blocks.
    pub fn open(
        section: &KeystoneSection,
        net: Arc<dyn Net>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Invalid> {
        section.check()?;
        let tls = placement_outgoing::tls(section.cafile.as_deref());
        // Without a trusted CA, plain HTTP still works.
        let is_encrypted = |url: &String| url.starts_with("https:");
        let tls = if section.cafile.is_some() || section.auth_urls().iter().any(is_encrypted) {
            Some(tls.map_err(|message| Invalid::new("keystone.cafile", message))?)
        } else {
            tls.ok()
        };
        let outgoing = Outgoing::new(net, tls, QUESTION_MAX, ANSWER_BYTES_MAX);
        let remembers = Duration::from_secs(section.token_cache_time_s);
        // The cache's own clock only decides when memory is freed.
        let known = (!remembers.is_zero()).then(|| {
            let cache = Cache::builder().max_capacity(REMEMBERED_MAX);
            cache.time_to_live(remembers).build()
        });
        Ok(Self {
            session: Session::new(section.clone(), outgoing, clock.clone()),
            places: Semaphore::new(ASKED_MAX),
            waiting: Arc::default(),
            results: Default::default(),
            clock,
            lasts: remembers,
            known,
        })
    }

    /// The identity of a token. `None` if Keystone does not know it or it has expired, unless it
    /// `may_have_expired`.
    ///
    /// # Errors
    /// Keystone does not answer, and the result is not cached.
    pub(crate) async fn token_owner(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Arc<Token>>, KeystoneUnavailable> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let Some(cache) = &self.known else {
            return Ok(self.ask(token, may_have_expired).await?.token);
        };
        let hash = hash(token);
        let now = self.clock.monotonic();
        if (cache.get(&hash).await).is_some_and(|known| known.until <= now) {
            cache.invalidate(&hash).await;
        }
        let asked = cache.try_get_with(hash, self.ask(token, false));
        let known = asked
            .await
            .map_err(|away| KeystoneUnavailable::clone(&away))?;
        match known.token {
            Some(token) if !token.has_expired(self.clock.now()) => Ok(Some(token)),
            // The cache does not keep the identity of expired tokens.
            _ if may_have_expired => Ok(self.ask(token, true).await?.token),
            _ => Ok(None),
        }
    }

    /// Logs a user in and returns a token, whose [`Keystone::holder`] is the user. `None` if
    /// Keystone rejects the credentials.
    ///
    /// # Errors
    /// Keystone does not answer.
    pub async fn log_in(&self, user: &Credentials) -> Result<Option<Secret>, KeystoneUnavailable> {
        Ok(self.session.token_for(user).await?.map(Secret::from))
    }

    /// The user of a token, as for a request to the API. `None` if the token is no longer valid.
    ///
    /// # Errors
    /// Keystone does not answer, and the result is not cached.
    pub async fn holder(&self, token: &Secret) -> Result<Option<Arc<Token>>, KeystoneUnavailable> {
        self.token_owner(token.reveal(), false).await
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// Keystone does not answer. Then only the cache of this node has dropped the token.
    pub async fn revoke(&self, token: &Secret) -> Result<(), KeystoneUnavailable> {
        let revoked = self.session.revoke(token.reveal()).await;
        if let Some(cache) = &self.known {
            cache.invalidate(&hash(token.reveal())).await;
        }
        revoked
    }

    /// The settings for Keystone.
    pub(crate) fn section(&self) -> &KeystoneSection {
        &self.session.section
    }

    /// Number of validations that wait for others.
    pub fn waiting(&self) -> u64 {
        Arc::strong_count(&self.waiting) as u64 - 1
    }

    /// Numbers of validations so far, by result; zeros if Keystone is not in use.
    pub fn results(it: Option<&Self>) -> [(&'static str, u64); 3] {
        let count = |nth: usize| it.map_or(0, |it| it.results[nth].load(Ordering::Relaxed));
        [
            ("valid", count(0)),
            ("unknown", count(1)),
            ("failed", count(2)),
        ]
    }

    /// Waits for a permit to validate a token.
    async fn place(&self) -> Result<SemaphorePermit<'_>, KeystoneUnavailable> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = self.waiting.clone();
        match timeout(QUESTION_MAX, self.places.acquire()).await {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(KeystoneUnavailable(format!(
                "{ASKED_MAX} validations are in progress, and no place became free within {} s",
                QUESTION_MAX.as_secs_f32()
            ))),
        }
    }

    async fn ask(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<CachedValidation, KeystoneUnavailable> {
        let found = self.validate(token, may_have_expired).await;
        let result = match &found {
            Ok(Some(_)) => 0,
            Ok(None) => 1,
            Err(_) => 2,
        };
        self.results[result].fetch_add(1, Ordering::Relaxed);
        let found = found?;
        let now = self.clock.now();
        let found = found.filter(|token| may_have_expired || !token.has_expired(now));
        let lasts = match found {
            Some(_) => self.lasts,
            None => self.lasts.min(UNKNOWN_LASTS),
        };
        Ok(CachedValidation {
            token: found.map(Arc::new),
            until: self.clock.monotonic().saturating_add(lasts),
        })
    }

    async fn validate(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Token>, KeystoneUnavailable> {
        let _place = self.place().await?;
        self.session.validate(token, may_have_expired).await
    }
}

fn hash(token: &str) -> [u8; 32] {
    let hash = digest(&SHA256, token.as_bytes());
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests;
