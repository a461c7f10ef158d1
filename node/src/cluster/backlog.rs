//! The writes that a node has taken from its clients and not answered, and those that a leader has taken
//! from all nodes. Beyond so many bytes, or once they wait too
//! long, further ones are turned away at once: whoever waits in a queue for longer than it has time is
//! served for nothing, and holds up those who come after.
//!
//! Nobody is turned away because nothing moves at all: that is no queue but an outage, mostly a short
//! one, and those who wait are answered when it is over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::Config;

/// So many writes may wait for as long as it takes: they go in one batch, and it is one large command
/// before them rather than too many clients that they wait for.
const ALWAYS: usize = 128;

/// Writes that wait for their outcome.
#[derive(Clone)]
pub(crate) struct Backlog {
    whose: &'static str,
    bytes_max: usize,
    age_max: Duration,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    next: u64,
    /// When they came, the oldest first.
    since: BTreeMap<u64, Instant>,
    bytes: usize,
    /// When one was last carried out.
    answered: Option<Instant>,
}

impl Taken {
    /// How long the oldest one has been waiting, if others were answered meanwhile.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let (_, since) = self.since.first_key_value()?;
        (self.answered? > *since).then(|| now.saturating_duration_since(*since))
    }
}

/// A write's place, until it is dropped.
pub(super) struct Place {
    backlog: Backlog,
    number: u64,
    bytes: usize,
}

impl Backlog {
    /// Those of `[cluster]`. `whose` says who has them, for a person.
    pub(crate) fn new(whose: &'static str, config: &Config) -> Self {
        Self {
            whose,
            bytes_max: config.cluster.backlog_bytes,
            age_max: Duration::from_millis(config.cluster.backlog_ms),
            taken: Arc::default(),
        }
    }

    /// A place for a write with a record of so many bytes; if there is none, why. One write always has
    /// its place.
    pub(super) fn place(&self, bytes: usize) -> Result<Place, String> {
        let now = Instant::now();
        let mut taken = self.taken.lock();
        if !self.age_max.is_zero()
            && taken.since.len() >= ALWAYS
            && let Some(wait) = taken.wait(now).filter(|wait| *wait > self.age_max)
        {
            return Err(format!(
                "{} has {} writes before this one, the oldest for {:.1} s",
                self.whose,
                taken.since.len(),
                wait.as_secs_f64()
            ));
        }
        if !taken.since.is_empty() && taken.bytes + bytes > self.bytes_max {
            return Err(format!(
                "{} has {} bytes of writes before this one",
                self.whose, taken.bytes
            ));
        }
        let number = taken.next;
        taken.next += 1;
        taken.since.insert(number, now);
        taken.bytes += bytes;
        Ok(Place {
            backlog: self.clone(),
            number,
            bytes,
        })
    }
}

impl Place {
    /// The write is carried out.
    pub(super) fn answered(self) {
        self.backlog.taken.lock().answered = Some(Instant::now());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.backlog.taken.lock();
        taken.since.remove(&self.number);
        taken.bytes -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE_MAX: Duration = Duration::from_secs(1);

    fn backlog(age_max: Duration) -> Backlog {
        let mut config = Config::default();
        config.cluster.backlog_bytes = 1000;
        config.cluster.backlog_ms = age_max.as_millis() as u64;
        Backlog::new("the leader", &config)
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_is_too_slow_lets_no_further_ones_in() {
        let backlog = backlog(AGE_MAX);
        let first = backlog.place(1).ok().unwrap();
        tokio::time::advance(AGE_MAX / 4).await;
        let rest: Vec<_> = (0..ALWAYS)
            .map(|_| backlog.place(1).ok().unwrap())
            .collect();
        tokio::time::advance(AGE_MAX / 4).await;
        first.answered();
        tokio::time::advance(AGE_MAX).await;
        let why = backlog.place(1).err().unwrap();
        assert!(why.contains("128 writes") && why.contains("1.2 s"), "{why}");
        drop(rest);
        assert!(backlog.place(1).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn all_wait_for_the_end_of_an_outage() {
        let backlog = backlog(AGE_MAX);
        backlog.place(1).ok().unwrap().answered();
        tokio::time::advance(AGE_MAX).await;
        let _old: Vec<_> = (0..ALWAYS)
            .map(|_| backlog.place(1).ok().unwrap())
            .collect();
        tokio::time::advance(AGE_MAX).await;
        // Clients that give up are no sign that anything moves.
        drop(backlog.place(1).ok().unwrap());
        tokio::time::advance(4 * AGE_MAX).await;
        assert!(backlog.place(1).is_ok());
    }

    #[tokio::test]
    async fn so_many_bytes_wait_and_one_write_always_may() {
        let backlog = backlog(Duration::ZERO);
        let large = backlog.place(5000).ok().unwrap();
        assert!(backlog.place(1).is_err());
        drop(large);
        let _some = backlog.place(600).ok().unwrap();
        assert!(backlog.place(600).is_err());
        assert!(backlog.place(400).is_ok());
    }
}
