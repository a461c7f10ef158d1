//! The writes that a node has taken from its clients and not answered, and those that a leader has taken
//! from all nodes. When there are more than it can answer soon, further ones are turned away at once:
//! whoever waits in a queue for longer than it has time is served for nothing, and holds up those who
//! come after.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::config::Config;

/// So many writes may wait however slow it is: they go in one batch.
const ALWAYS: usize = 64;
/// Over how many seconds it is remembered how many writes were carried out. An outage must not make
/// a node turn away those who wait for its end.
const REMEMBERED_S: usize = 10;

/// Writes that wait for their outcome.
#[derive(Clone)]
pub(crate) struct Backlog {
    whose: &'static str,
    bytes_max: usize,
    wait_max: Duration,
    begun: Instant,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default)]
struct Taken {
    waiting: usize,
    bytes: usize,
    /// How many were carried out in each of the last seconds.
    carried_out: [usize; REMEMBERED_S],
    /// The second that was last counted.
    second: u64,
}

impl Taken {
    /// Forgets what is too old.
    fn advance(&mut self, second: u64) {
        let passed = second.saturating_sub(self.second);
        for nth in (1..=passed).take(REMEMBERED_S) {
            self.carried_out[slot(self.second + nth)] = 0;
        }
        self.second = self.second.max(second);
    }

    /// How many were carried out in a second, of the last ones in which any were. The present one counts
    /// only when there is no other: it is not over.
    fn per_second(&self) -> usize {
        let present = slot(self.second);
        let busy =
            |(second, count): (usize, &usize)| (second != present && *count > 0).then_some(*count);
        let counts = self.carried_out.iter().enumerate().filter_map(busy);
        let (seconds, sum) =
            counts.fold((0, 0), |(seconds, sum), count| (seconds + 1, sum + count));
        match seconds {
            0 => self.carried_out[present],
            _ => sum / seconds,
        }
    }
}

fn slot(second: u64) -> usize {
    (second % REMEMBERED_S as u64) as usize
}

/// A write's place, until it is dropped.
pub(super) struct Place {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    /// Those of `[cluster]`. `whose` says who has them, for a person.
    pub(crate) fn new(whose: &'static str, config: &Config) -> Self {
        Self {
            whose,
            bytes_max: config.cluster.backlog_bytes,
            wait_max: Duration::from_millis(config.cluster.backlog_ms),
            begun: Instant::now(),
            taken: Arc::default(),
        }
    }

    /// A place for a write with a record of so many bytes; if there is none, why. One write always has
    /// its place.
    pub(super) fn place(&self, bytes: usize) -> Result<Place, String> {
        let mut taken = self.lock();
        let per_second = taken.per_second();
        let soon = (per_second as f64 * self.wait_max.as_secs_f64()) as usize;
        if !self.wait_max.is_zero() && taken.waiting >= soon.max(ALWAYS) {
            return Err(format!(
                "{} has {} writes before this one, and carries out {per_second} a second",
                self.whose, taken.waiting
            ));
        }
        if taken.waiting > 0 && taken.bytes + bytes > self.bytes_max {
            return Err(format!(
                "{} has {} bytes of writes before this one",
                self.whose, taken.bytes
            ));
        }
        taken.waiting += 1;
        taken.bytes += bytes;
        Ok(Place {
            backlog: self.clone(),
            bytes,
        })
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Taken> {
        let mut taken = self.taken.lock();
        taken.advance(self.begun.elapsed().as_secs());
        taken
    }
}

impl Place {
    /// The write is carried out.
    pub(super) fn answered(self) {
        let mut taken = self.backlog.lock();
        let second = taken.second;
        taken.carried_out[slot(second)] += 1;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.backlog.taken.lock();
        taken.waiting -= 1;
        taken.bytes -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn backlog(wait_max: Duration) -> Backlog {
        let mut config = Config::default();
        config.cluster.backlog_bytes = 1000;
        config.cluster.backlog_ms = wait_max.as_millis() as u64;
        Backlog::new("the leader", &config)
    }

    fn fill(backlog: &Backlog) -> Vec<Place> {
        std::iter::from_fn(|| backlog.place(1).ok()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_wait_as_are_carried_out_while_they_do() {
        let backlog = backlog(SECOND / 2);
        let few = fill(&backlog);
        assert_eq!(few.len(), ALWAYS);
        drop(few);
        for _ in 0..400 {
            backlog.place(1).ok().unwrap().answered();
        }
        let many = fill(&backlog);
        assert_eq!(many.len(), 200);
        let why = backlog.place(1).err().unwrap();
        assert!(
            why.contains("200 writes") && why.contains("400 a second"),
            "{why}"
        );
        drop(many);

        // A short outage is none of its clients' fault, a long one is forgotten.
        tokio::time::advance(5 * SECOND).await;
        assert_eq!(fill(&backlog).len(), 200);
        tokio::time::advance(6 * SECOND).await;
        assert_eq!(fill(&backlog).len(), ALWAYS);
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
