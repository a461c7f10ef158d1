//! OpenStack's identity service: whose a token is, by its API's version 3.
//!
//! What it says of a token is remembered for a while, by the token's SHA-256: no token stays in memory. One
//! question serves all who ask about the same token meanwhile.

mod documents;
mod session;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use moka::Expiry;
use moka::future::Cache;
use ring::digest::{SHA256, digest};

pub(crate) use self::documents::Token;
pub(crate) use self::session::Away;
use self::session::Session;
use crate::config::{ConfigError, KeystoneSection};
use crate::env::Net;
use crate::outgoing::{self, Outgoing};
use crate::world::Clock;

/// The longest answer about a token that is read: many roles, or a catalog of many regions.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Tokens that are remembered at once.
const REMEMBERED_MAX: u64 = 100_000;
/// No token is longer than this, with a thousand roles in it.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Knows whose tokens are.
pub struct Keystone {
    session: Session,
    clock: Arc<dyn Clock>,
    /// `None`: nothing is remembered.
    known: Option<Cache<[u8; 32], Known>>,
}

/// What was said of a token, and until when that counts. `None`: it is none.
#[derive(Clone)]
struct Known {
    token: Option<Arc<Token>>,
    lasts: Duration,
}

struct AsItSays;

impl Expiry<[u8; 32], Known> for AsItSays {
    fn expire_after_create(&self, _: &[u8; 32], known: &Known, _: Instant) -> Option<Duration> {
        Some(known.lasts)
    }
}

impl Keystone {
    /// Reads the certificates. Nothing is sent. Blocks.
    pub(crate) fn open(
        section: &KeystoneSection,
        net: Arc<dyn Net>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConfigError> {
        let place = section.place()?;
        let tls = outgoing::tls(section.cafile.as_deref());
        // Where no authority is trusted, plain HTTP still goes.
        let tls = match section.cafile.is_some() || place.is_encrypted() {
            true => Some(tls.map_err(|message| ConfigError::Invalid {
                key: "keystone.cafile".to_owned(),
                message,
            })?),
            false => tls.ok(),
        };
        let deadline = Duration::from_millis(section.timeout_ms);
        let outgoing = Outgoing::new(net, tls, deadline, ANSWER_BYTES_MAX);
        let remembers = Duration::from_secs(section.token_cache_time_s);
        let known = (!remembers.is_zero()).then(|| {
            let cache = Cache::builder().max_capacity(REMEMBERED_MAX);
            cache.expire_after(AsItSays).time_to_live(remembers).build()
        });
        Ok(Self {
            session: Session::new(place, outgoing, clock.clone()),
            clock,
            known,
        })
    }

    /// Whose a token is. `None`: nobody's, or it has expired, unless it `may_have_expired` meanwhile.
    ///
    /// # Errors
    /// Keystone cannot be asked, and it is not remembered.
    pub(crate) async fn whose(
        &self,
        token: &str,
        may_have_expired: bool,
    ) -> Result<Option<Arc<Token>>, Away> {
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let Some(cache) = &self.known else {
            return Ok(self.ask(token, may_have_expired).await?.token);
        };
        let hash = digest(&SHA256, token.as_bytes());
        let hash: [u8; 32] = hash.as_ref().try_into().expect("SHA-256 has 32 bytes");
        let asked = cache.try_get_with(hash, self.ask(token, false));
        let known = asked.await.map_err(|away| Away::clone(&away))?;
        match known.token {
            Some(token) if !token.has_expired(self.clock.now()) => Ok(Some(token)),
            // That it has expired says nothing of what it was; and an expired token is not remembered.
            _ if may_have_expired => Ok(self.ask(token, true).await?.token),
            _ => Ok(None),
        }
    }

    async fn ask(&self, token: &str, may_have_expired: bool) -> Result<Known, Away> {
        let said = self.session.validate(token, may_have_expired).await?;
        let now = self.clock.now();
        let said = said.filter(|token| may_have_expired || !token.has_expired(now));
        Ok(Known {
            lasts: said
                .as_ref()
                .map_or(Duration::MAX, |token| left(token, now)),
            token: said.map(Arc::new),
        })
    }
}

fn left(token: &Token, now: SystemTime) -> Duration {
    token.expires_at.duration_since(now).unwrap_or_default()
}
