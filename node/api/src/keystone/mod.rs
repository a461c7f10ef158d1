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
pub use self::session::Away;
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
    known: Option<Cache<[u8; 32], Known>>,
}

/// Result of a validation.
#[derive(Clone)]
struct Known {
    /// `None` if Keystone does not know the token.
    token: Option<Arc<Token>>,
    /// End of validity, monotonic.
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
        let tls = match section.cafile.is_some() || section.auth_urls().iter().any(is_encrypted) {
            true => Some(tls.map_err(|message| Invalid::new("keystone.cafile", message))?),
            false => tls.ok(),
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
        let hash = hash(token);
        let now = self.clock.monotonic();
        if (cache.get(&hash).await).is_some_and(|known| known.until <= now) {
            cache.invalidate(&hash).await;
        }
        let asked = cache.try_get_with(hash, self.ask(token, false));
        let known = asked.await.map_err(|away| Away::clone(&away))?;
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
    pub async fn log_in(&self, user: &Credentials) -> Result<Option<Secret>, Away> {
        Ok(self.session.token_for(user).await?.map(Secret::from))
    }

    /// The user of a token, as for a request to the API. `None` if the token is no longer valid.
    ///
    /// # Errors
    /// Keystone does not answer, and the result is not cached.
    pub async fn holder(&self, token: &Secret) -> Result<Option<Arc<Token>>, Away> {
        self.whose(token.reveal(), false).await
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// Keystone does not answer; only this node has forgotten the token.
    pub async fn revoke(&self, token: &Secret) -> Result<(), Away> {
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

    /// Waits for a free place among the concurrent validations.
    async fn place(&self) -> Result<SemaphorePermit<'_>, Away> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = self.waiting.clone();
        match timeout(QUESTION_MAX, self.places.acquire()).await {
            Ok(place) => Ok(place.expect("the semaphore is never closed")),
            Err(_) => Err(Away(format!(
                "{ASKED_MAX} validations are in progress, and no place became free within {} s",
                QUESTION_MAX.as_secs_f32()
            ))),
        }
    }

    async fn ask(&self, token: &str, may_have_expired: bool) -> Result<Known, Away> {
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
        Ok(Known {
            token: found.map(Arc::new),
            until: self.clock.monotonic().saturating_add(lasts),
        })
    }

    async fn validate(&self, token: &str, may_have_expired: bool) -> Result<Option<Token>, Away> {
        let _place = self.place().await?;
        self.session.validate(token, may_have_expired).await
    }
}

fn hash(token: &str) -> [u8; 32] {
    let hash = digest(&SHA256, token.as_bytes());
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use proptest::prelude::*;

    use super::fixtures::{Cloud, at, keystone, keystone_at};
    use super::*;

    async fn user_of(keystone: &Keystone, token: &str) -> Option<String> {
        let whose = keystone.whose(token, false).await.unwrap();
        whose.map(|token| token.identity.user_id.clone())
    }

    #[tokio::test]
    async fn concurrent_questions_about_one_token_are_asked_once() {
        let (cloud, _, keystone) = keystone(300);
        let all = join_all((0..50).map(|_| user_of(&keystone, "alice:100"))).await;
        assert!(all.iter().all(|user| user.as_deref() == Some("alice")));
        assert_eq!(cloud.asked(), ["one:1 login", "one:1 alice:100 false"]);
        assert_eq!(user_of(&keystone, "unknown").await, None);
        assert_eq!(user_of(&keystone, "unknown").await, None);
        assert_eq!(cloud.asked(), ["one:1 unknown false"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// For all tokens that the cloud does not know, whatever their form.
        #[test]
        fn an_invalid_token_of_any_form_is_refused(token in "[^:]{0,80}") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (_, _, keystone) = keystone(300);
                let whose = keystone.whose(&token, false).await;
                prop_assert!(matches!(whose, Ok(None)), "{token:?}");
                Ok(())
            })?;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn token_lookups_at_once_are_limited_and_others_wait() {
        let (cloud, _, keystone) = keystone(300);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        *cloud.takes.lock() = Duration::from_secs(1);
        let tokens = (0..3 * ASKED_MAX).map(|number| format!("user{number}:100"));
        let all = join_all(tokens.map(async |token| user_of(&keystone, &token).await));
        let look = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            keystone.waiting()
        };
        let (all, waiting) = futures::join!(all, look);
        assert!(all.iter().all(Option::is_some));
        assert_eq!(waiting, 2 * ASKED_MAX as u64);
        assert_eq!(cloud.most.load(Ordering::Relaxed), ASKED_MAX);
        assert_eq!(keystone.waiting(), 0);

        // If Keystone hangs, all requests stop waiting after the timeout.
        *cloud.takes.lock() = Duration::from_secs(3_600);
        let begun = tokio::time::Instant::now();
        let tokens = (0..2 * ASKED_MAX).map(|number| format!("late{number}:100"));
        let ask = async |token: String| keystone.whose(&token, false).await;
        let all = join_all(tokens.map(ask)).await;
        assert!(all.iter().all(Result::is_err));
        assert!(begun.elapsed() <= 3 * QUESTION_MAX, "{:?}", begun.elapsed());
        assert_eq!(keystone.waiting(), 0);
    }

    #[tokio::test]
    async fn without_a_cache_each_request_is_validated() {
        let (cloud, _, keystone) = keystone(0);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        cloud.revoked.lock().insert("alice:100".to_owned());
        assert!(user_of(&keystone, "alice:100").await.is_none());
        assert_eq!(cloud.asked().len(), 3);
    }

    #[tokio::test]
    async fn revoked_token_is_accepted_at_most_for_the_cache_time() {
        let (cloud, clock, keystone) = keystone(300);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        cloud.revoked.lock().insert("alice:9000".to_owned());
        *clock.0.lock() = at(299);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        *clock.0.lock() = at(300);
        assert!(user_of(&keystone, "alice:9000").await.is_none());
    }

    #[tokio::test]
    async fn unknown_token_is_validated_again_within_seconds() {
        for (cache_s, refused_s) in [(300, 5), (2, 2)] {
            let (cloud, clock, keystone) = keystone(cache_s);
            // The Keystone that validates the token does not have the issuer's key yet.
            cloud.revoked.lock().insert("alice:9000".to_owned());
            assert!(user_of(&keystone, "alice:9000").await.is_none());
            cloud.revoked.lock().clear();
            cloud.asked();
            *clock.0.lock() = at(refused_s - 1);
            assert!(user_of(&keystone, "alice:9000").await.is_none());
            assert_eq!(cloud.asked(), Vec::<String>::new());
            *clock.0.lock() = at(refused_s);
            assert!(user_of(&keystone, "alice:9000").await.is_some());
            assert_eq!(cloud.asked(), ["one:1 alice:9000 false"]);
        }
    }

    #[tokio::test]
    async fn cached_answer_does_not_outlive_the_token() {
        let (cloud, clock, keystone) = keystone(300);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        *clock.0.lock() = at(99);
        assert!(user_of(&keystone, "alice:100").await.is_some());
        *clock.0.lock() = at(100);
        cloud.asked();
        assert!(user_of(&keystone, "alice:100").await.is_none());
        assert_eq!(cloud.asked(), Vec::<String>::new());
        // A service may use it, and each such use is validated.
        for _ in 0..2 {
            let whose = keystone.whose("alice:100", true).await.unwrap();
            assert_eq!(whose.unwrap().identity.user_id, "alice");
            assert_eq!(cloud.asked(), ["one:1 alice:100 true"]);
        }
        cloud.revoked.lock().insert("alice:100".to_owned());
        assert_eq!(keystone.whose("alice:100", true).await, Ok(None));
    }

    #[tokio::test]
    async fn service_token_is_renewed_before_expiry_and_when_rejected() {
        let (cloud, clock, keystone) = keystone(0);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        // Keystone's keys were changed.
        *clock.0.lock() = at(10);
        cloud.asked();
        cloud.logins.lock().clear();
        let all = join_all((0..20).map(|_| user_of(&keystone, "alice:9000"))).await;
        assert!(all.iter().all(Option::is_some));
        assert_eq!(cloud.logins_asked(), 1);
        *clock.0.lock() = at(3_600 - 121);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        assert_eq!(cloud.asked(), ["one:1 alice:9000 false"]);
        *clock.0.lock() = at(3_600 - 120);
        assert!(user_of(&keystone, "alice:9000").await.is_some());
        assert_eq!(cloud.asked(), ["one:1 login", "one:1 alice:9000 false"]);
    }

    #[tokio::test]
    async fn refused_login_is_not_repeated_for_each_request() {
        let (cloud, clock, keystone) = keystone(0);
        cloud.closed.store(true, Ordering::Relaxed);
        let crowd = || join_all((0..20).map(|_| keystone.whose("alice:9000", false)));
        for second in 0..3 {
            *clock.0.lock() = at(second);
            let all = crowd().await;
            assert!(
                all.iter()
                    .all(|one| matches!(one, Err(Away(why)) if why.contains("401")))
            );
            assert_eq!(cloud.logins_asked(), 1);
        }
        cloud.closed.store(false, Ordering::Relaxed);
        *clock.0.lock() = at(3);
        assert!(crowd().await.iter().all(Result::is_ok));
        assert_eq!(cloud.logins_asked(), 1);
        // Keystone forgets the token that it has just issued.
        cloud.logins.lock().clear();
        let all = crowd().await;
        assert!(
            all.iter()
                .all(|one| matches!(one, Err(Away(why)) if why.contains("just given")))
        );
        assert_eq!(cloud.logins_asked(), 0);
    }

    #[tokio::test]
    async fn next_keystone_is_asked_if_one_does_not_answer() {
        let (cloud, _, keystone) = keystone(300);
        cloud.down.lock().insert("one:1".to_owned());
        assert!(user_of(&keystone, "alice:100").await.is_some());
        cloud.down.lock().clear();
        cloud.ill.lock().insert("one:1".to_owned());
        assert!(user_of(&keystone, "bob:100").await.is_some());
        cloud.down.lock().insert("two:2".to_owned());
        assert!(
            user_of(&keystone, "bob:100").await.is_some(),
            "it is cached"
        );
        let Away(why) = keystone.whose("carol:100", false).await.unwrap_err();
        assert!(why.contains("two:2") && !why.contains("carol"), "{why}");
        // A failed validation is not cached.
        cloud.down.lock().clear();
        assert!(user_of(&keystone, "carol:100").await.is_some());
        assert_eq!(user_of(&keystone, "unknown").await, None);
        let counted = Keystone::results(Some(&keystone));
        assert_eq!(counted, [("valid", 3), ("unknown", 1), ("failed", 1)]);
    }

    #[tokio::test]
    async fn tokens_are_validated_with_any_endpoint_in_the_catalog() {
        for url in [
            "http://one:1",
            "http://one:1/",
            "http://one:1/v3",
            "http://one:1/v3/",
            "http://one:1/v2.0",
            "http://one:1/v2.0/",
            "http://one:1/moved",
            "http://one:1/moved/v2.0",
            // Keystone is not there, so `auth_url` is used.
            "http://one:1/elsewhere",
            "http://nowhere:9/v3",
            "",
        ] {
            let (cloud, _, keystone) = keystone(300);
            cloud.down.lock().insert("nowhere:9".to_owned());
            *cloud.catalog.lock() = Some(url.to_owned());
            let alice = user_of(&keystone, "alice:100").await;
            assert_eq!(alice.as_deref(), Some("alice"), "{url}");
            assert_eq!(user_of(&keystone, "unknown").await, None, "{url}");
            let asked = cloud.asked();
            let elsewhere = asked.iter().filter(|asked| asked.contains("elsewhere"));
            let expected = usize::from(url.ends_with("elsewhere"));
            assert_eq!(elsewhere.count(), expected, "{asked:?}");
        }
    }

    #[tokio::test]
    async fn foreign_404_does_not_invalidate_a_token() {
        for at in [
            "http://one:1/elsewhere",
            "http://one:1/moved/moved/moved/moved",
        ] {
            let cloud = Arc::new(Cloud::default());
            let (_, keystone) = keystone_at(&cloud, at, 300);
            let Away(why) = keystone.whose("alice:100", false).await.unwrap_err();
            assert!(why.contains(&format!("{at}/v3")), "{why}");
        }
    }

    #[tokio::test]
    async fn impossible_token_is_refused_without_asking_keystone() {
        let (cloud, _, keystone) = keystone(300);
        for token in [String::new(), "x".repeat(TOKEN_BYTES_MAX + 1)] {
            assert_eq!(user_of(&keystone, &token).await, None);
        }
        assert_eq!(user_of(&keystone, "line\nbreak").await, None);
        assert_eq!(cloud.asked(), Vec::<String>::new());
    }
}
