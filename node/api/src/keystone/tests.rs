use futures::future::join_all;
use proptest::prelude::*;

use self::log::Log;
use super::fixtures::{Cloud, at, keystone, keystone_at};
use super::*;

#[path = "../../tests/support/log.rs"]
mod log;

async fn user_of(keystone: &Keystone, token: &str) -> Option<String> {
    let whose = keystone.token_owner(token, false).await.unwrap();
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
            let whose = keystone.token_owner(&token, false).await;
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
    let ask = async |token: String| keystone.token_owner(&token, false).await;
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
        let whose = keystone.token_owner("alice:100", true).await.unwrap();
        assert_eq!(whose.unwrap().identity.user_id, "alice");
        assert_eq!(cloud.asked(), ["one:1 alice:100 true"]);
    }
    cloud.revoked.lock().insert("alice:100".to_owned());
    assert_eq!(keystone.token_owner("alice:100", true).await, Ok(None));
}

#[tokio::test]
async fn service_token_is_renewed_before_expiry_and_when_rejected() {
    let (cloud, clock, keystone) = keystone(0);
    assert!(user_of(&keystone, "alice:9000").await.is_some());
    // Keystone's keys were changed.
    *clock.0.lock() = at(10);
    cloud.asked();
    cloud.tokens.lock().clear();
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
    let crowd = || join_all((0..20).map(|_| keystone.token_owner("alice:9000", false)));
    for second in 0..3 {
        *clock.0.lock() = at(second);
        let all = crowd().await;
        assert!(
            all.iter()
                .all(|one| matches!(one, Err(KeystoneUnavailable(why)) if why.contains("401")))
        );
        assert_eq!(cloud.logins_asked(), 1);
    }
    cloud.closed.store(false, Ordering::Relaxed);
    *clock.0.lock() = at(3);
    assert!(crowd().await.iter().all(Result::is_ok));
    assert_eq!(cloud.logins_asked(), 1);
    // Keystone forgets the token that it has just issued.
    cloud.tokens.lock().clear();
    let all = crowd().await;
    assert!(
        all.iter()
            .all(|one| matches!(one, Err(KeystoneUnavailable(why)) if why.contains("just given")))
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
    let KeystoneUnavailable(why) = keystone.token_owner("carol:100", false).await.unwrap_err();
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
        cloud.set_endpoint(url);
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
    let (log, _guard) = Log::start("warn", false);
    for url in [
        "http://one:1/elsewhere",
        "http://one:1/moved/moved/moved/moved",
    ] {
        let cloud = Arc::new(Cloud::default());
        let (clock, keystone) = keystone_at(&cloud, url, 300);
        // Far enough apart for two logins.
        for second in [0, 10] {
            *clock.0.lock() = at(second);
            let owner = keystone.token_owner("alice:100", false).await;
            let KeystoneUnavailable(why) = owner.unwrap_err();
            assert!(why.contains(&format!("{url}/v3")), "{why}");
        }
    }
    let text = log.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.contains("http://one:1/elsewhere/v3 answers 404 without Keystone's error document"),
        "{text}"
    );
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
