//! The sessions of logged-in users. They belong to this process, and end with it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use parking_lot::{Mutex, MutexGuard};
use ring::digest::{SHA256, digest};

use placement_base::settings::Secret;
use placement_base::world::{Clock, UuidSource};

/// Maximum number of sessions, in total and of one user. A further session ends the oldest one, of
/// the same user if that user has too many.
const SESSIONS_MAX: usize = 1024;
const SESSIONS_PER_USER_MAX: usize = 16;
/// How long a session lasts; it also ends with its token.
const LASTS: Duration = Duration::from_hours(8);
/// A browser accepts this cookie only from this host, over TLS or on loopback, and sends it only to
/// this host.
const COOKIE_NAME: &str = "__Host-placementd";

/// The session behind a cookie.
pub(super) struct Session {
    /// Name of the user, for display.
    pub(super) name: Arc<str>,
    pub(super) token: Secret,
}

/// All sessions. Only browsers know their ids; this stores hashes of them, so that the response
/// time does not depend on how much of an id was guessed.
pub(super) struct Sessions {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn UuidSource>,
    /// Open sessions, the oldest first.
    open: Mutex<VecDeque<OpenSession>>,
}

struct OpenSession {
    id: Vec<u8>,
    user_id: String,
    ends: Duration,
    session: Arc<Session>,
}

impl Sessions {
    pub(super) fn new(clock: Arc<dyn Clock>, ids: Arc<dyn UuidSource>) -> Self {
        let open = Mutex::default();
        Self { clock, ids, open }
    }

    /// Begins a session in place of the browser's current one. Returns its cookie for `Set-Cookie`,
    /// with more than 256 random bits, and the sessions that it replaces.
    pub(super) fn begin(
        &self,
        headers: &HeaderMap,
        user_id: &str,
        session: Session,
    ) -> (String, Vec<Arc<Session>>) {
        let id = [(); 3]
            .map(|()| self.ids.uuid().simple().to_string())
            .concat();
        let mut ended = Vec::from_iter(self.end(headers));
        let mut open = self.current();
        let own = |one: &OpenSession| one.user_id == user_id;
        let surplus = match open.iter().filter(|one| own(one)).count() {
            SESSIONS_PER_USER_MAX.. => open.iter().position(own),
            _ => (open.len() >= SESSIONS_MAX).then_some(0),
        };
        let surplus = surplus.and_then(|at| open.remove(at));
        ended.extend(surplus.map(|one| one.session));
        open.push_back(OpenSession {
            id: hash(&id),
            user_id: user_id.to_owned(),
            ends: self.clock.monotonic() + LASTS,
            session: Arc::new(session),
        });
        (cookie(&id, ""), ended)
    }

    /// The session of the cookie that a browser sends.
    pub(super) fn find(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let id = cookie_hash(headers)?;
        let open = self.current();
        let found = open.iter().find(|one| one.id == id)?;
        Some(found.session.clone())
    }

    /// Ends the session of the cookie that a browser sends.
    pub(super) fn end(&self, headers: &HeaderMap) -> Option<Arc<Session>> {
        let id = cookie_hash(headers)?;
        let mut open = self.current();
        let at = open.iter().position(|one| one.id == id)?;
        Some(open.remove(at)?.session)
    }

    /// Removes expired sessions and returns the others.
    fn current(&self) -> MutexGuard<'_, VecDeque<OpenSession>> {
        let now = self.clock.monotonic();
        let mut open = self.open.lock();
        while open.front().is_some_and(|oldest| oldest.ends <= now) {
            open.pop_front();
        }
        open
    }
}

/// For `Set-Cookie`: makes a browser delete its cookie.
pub(super) fn deletion_cookie() -> String {
    cookie("", "; Max-Age=0")
}

fn cookie(id: &str, more: &str) -> String {
    format!("{COOKIE_NAME}={id}; Path=/; Secure; HttpOnly; SameSite=Strict{more}")
}

/// The hash of the id in the cookie.
fn cookie_hash(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut all = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
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
    use placement_base::world::RealWorld;

    /// A clock that shows a number of hours, until a test changes it.
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

    /// Begins a session of this user. Returns the headers that the browser sends, and the users
    /// whose sessions end for it.
    fn begin(sessions: &Sessions, name: &str) -> (HeaderMap, Vec<String>) {
        let (own, token) = (name.into(), Secret::from("t".to_owned()));
        let session = Session { name: own, token };
        let (set, ended) = sessions.begin(&HeaderMap::new(), name, session);
        let cookie = set.split(';').next().unwrap();
        let sent = format!("other=1; {cookie}; __Host-placementd2=x");
        let sent = HeaderMap::from_iter([(COOKIE, sent.parse().unwrap())]);
        (sent, ended.iter().map(|one| one.name.to_string()).collect())
    }

    fn name(sessions: &Sessions, sent: &HeaderMap) -> Option<String> {
        Some(sessions.find(sent)?.name.to_string())
    }

    #[test]
    fn session_ends_after_hours_or_for_a_newer_one() {
        let (clock, sessions) = sessions();
        let (first, _) = begin(&sessions, "first");
        *clock.0.lock() = 7;
        let (second, _) = begin(&sessions, "second");
        assert_eq!(name(&sessions, &first).as_deref(), Some("first"));
        *clock.0.lock() = 8;
        assert_eq!(name(&sessions, &first), None);
        assert_eq!(name(&sessions, &second).as_deref(), Some("second"));
        for number in 1..SESSIONS_MAX {
            begin(&sessions, &format!("user {number}"));
        }
        assert!(sessions.find(&second).is_some());
        let (last, ended) = begin(&sessions, "last");
        assert_eq!(ended, ["second"]);
        assert!(sessions.find(&second).is_none());
        assert_eq!(sessions.open.lock().len(), SESSIONS_MAX);
        assert!(sessions.end(&last).is_some() && sessions.end(&last).is_none());
    }

    #[test]
    fn many_logins_of_one_user_end_no_session_of_another() {
        let (_, sessions) = sessions();
        let (other, _) = begin(&sessions, "other");
        let own: Vec<_> = (0..2 * SESSIONS_MAX)
            .map(|_| begin(&sessions, "user"))
            .collect();
        assert!(sessions.find(&other).is_some());
        let open = own.iter().filter(|(sent, _)| sessions.find(sent).is_some());
        assert_eq!(open.count(), SESSIONS_PER_USER_MAX);
        let (begun, further) = own.split_at(SESSIONS_PER_USER_MAX);
        assert!(begun.iter().all(|(_, ended)| ended.is_empty()));
        assert!(further.iter().all(|(_, ended)| *ended == ["user"]));
        assert!(
            sessions.find(&own.last().unwrap().0).is_some(),
            "the newest stay"
        );
    }

    #[test]
    fn session_is_found_only_by_its_exact_cookie() {
        let (_, sessions) = sessions();
        let (sent, _) = begin(&sessions, "user");
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
