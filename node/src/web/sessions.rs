//! The sessions of users who have logged in. They are this process's, and end with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use parking_lot::{Mutex, MutexGuard};
use ring::digest::{SHA256, digest};

use placement_api::settings::Secret;
use placement_api::world::{Clock, UuidSource};

/// Sessions at once. For a further one the oldest ends.
const SESSIONS_MAX: usize = 1024;
/// How long a session lasts; it ends with its token too.
const LASTS: Duration = Duration::from_hours(8);
/// A browser takes it from this host alone, over TLS or on loopback, and sends it to this host alone.
const COOKIE_NAME: &str = "__Host-placementd";

/// What stands behind a cookie.
pub(super) struct Session {
    /// What the user is called.
    pub(super) name: Arc<str>,
    pub(super) token: Secret,
}

/// All sessions. Their ids are known to browsers alone: here are hashes of them, so that no time of an answer depends on
/// how much of an id was guessed.
pub(super) struct Sessions {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn UuidSource>,
    /// The oldest first.
    open: Mutex<VecDeque<Open>>,
}

struct Open {
    id: Vec<u8>,
    ends: Duration,
    session: Arc<Session>,
}

impl Sessions {
    pub(super) fn new(clock: Arc<dyn Clock>, ids: Arc<dyn UuidSource>) -> Self {
        let open = Mutex::default();
        Self { clock, ids, open }
    }

    /// Begins a session; gives its cookie for `Set-Cookie`, in which more than 256 bits are random.
    pub(super) fn begin(&self, session: Session) -> String {
        let id: String = (0..3)
            .map(|_| self.ids.uuid().simple().to_string())
            .collect();
        let mut open = self.open.lock();
        if open.len() >= SESSIONS_MAX {
            open.pop_front();
        }
        open.push_back(Open {
            id: hash(&id),
            ends: self.clock.monotonic() + LASTS,
            session: Arc::new(session),
        });
        cookie(&id, "")
    }

    /// The session of the cookie that a browser sends.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let id = sent(headers)?;
        let open = self.current();
        let found = open.iter().find(|one| one.id == id)?;
        Some(found.session.clone())
    }

    /// Ends it.
    pub(super) fn end(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let id = sent(headers)?;
        let mut open = self.current();
        let at = open.iter().position(|one| one.id == id)?;
        Some(open.remove(at)?.session)
    }

    /// Those that have not ended.
    fn current(&self) -> MutexGuard<'_, VecDeque<Open>> {
        let now = self.clock.monotonic();
        let mut open = self.open.lock();
        while open.front().is_some_and(|oldest| oldest.ends <= now) {
            open.pop_front();
        }
        open
    }
}

/// For `Set-Cookie`: has a browser forget its cookie.
pub(super) fn forgotten() -> String {
    cookie("", "; Max-Age=0")
}

fn cookie(id: &str, more: &str) -> String {
    format!("{COOKIE_NAME}={id}; Path=/; Secure; HttpOnly; SameSite=Strict{more}")
}

/// The hash of the id in the cookie.
fn sent(headers: &HeaderMap) -> Option<Vec<u8>> {
    let all = headers.get_all(COOKIE).iter();
    let all = all.filter_map(|value| value.to_str().ok());
    let mut all = all.flat_map(|value| value.split(';'));
    let id = all.find_map(|one| one.trim().strip_prefix(COOKIE_NAME)?.strip_prefix('='))?;
    Some(hash(id))
}

fn hash(id: &str) -> Vec<u8> {
    digest(&SHA256, id.as_bytes()).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use placement_api::world::RealWorld;

    /// It stands at so many hours, until a test moves it.
    struct StandingClock(Mutex<u64>);

    impl Clock for StandingClock {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }

        fn monotonic(&self) -> Duration {
            Duration::from_hours(*self.0.lock())
        }
    }

    fn sessions() -> (Arc<StandingClock>, Sessions) {
        let clock = Arc::new(StandingClock(Mutex::new(0)));
        let ids = Arc::new(RealWorld::default());
        (clock.clone(), Sessions::new(clock, ids))
    }

    /// What the browser sends of a new session.
    fn begin(sessions: &Sessions, name: &str) -> HeaderMap {
        let (name, token) = (name.into(), Secret::from("t".to_owned()));
        let set = sessions.begin(Session { name, token });
        let cookie = set.split(';').next().unwrap();
        let sent = format!("other=1; {cookie}; __Host-placementd2=x");
        HeaderMap::from_iter([(COOKIE, sent.parse().unwrap())])
    }

    fn name(sessions: &Sessions, sent: &HeaderMap) -> Option<String> {
        Some(sessions.find(sent)?.name.to_string())
    }

    #[test]
    fn a_session_ends_after_hours_or_for_a_newer_one() {
        let (clock, sessions) = sessions();
        let first = begin(&sessions, "first");
        *clock.0.lock() = 7;
        let second = begin(&sessions, "second");
        assert_eq!(name(&sessions, &first).as_deref(), Some("first"));
        *clock.0.lock() = 8;
        assert_eq!(name(&sessions, &first), None);
        assert_eq!(name(&sessions, &second).as_deref(), Some("second"));
        for _ in 1..SESSIONS_MAX {
            begin(&sessions, "more");
        }
        assert!(sessions.find(&second).is_some());
        let last = begin(&sessions, "last");
        assert!(sessions.find(&second).is_none());
        assert_eq!(sessions.open.lock().len(), SESSIONS_MAX);
        assert!(sessions.end(&last).is_some() && sessions.end(&last).is_none());
    }

    #[test]
    fn only_the_whole_cookie_of_a_session_is_its_own() {
        let (_, sessions) = sessions();
        let sent = begin(&sessions, "user");
        let cookie = sent[COOKIE].to_str().unwrap();
        for wrong in [
            cookie.replace("__Host-placementd=", "placementd="),
            cookie.replace("__Host-placementd=", "__Host-placementd= "),
            cookie.replace("; __Host-placementd2", "0"),
            "__Host-placementd".to_owned(),
            "__Host-placementd=".to_owned(),
        ] {
            let wrong = HeaderMap::from_iter([(COOKIE, wrong.parse().unwrap())]);
            assert!(sessions.find(&wrong).is_none(), "{wrong:?}");
        }
    }
}
