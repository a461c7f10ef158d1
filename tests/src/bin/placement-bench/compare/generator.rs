//! Load by threads that block, one for each connection: at a fixed schedule, whatever the answers, with
//! latency counted from when a request was due; or one request after the other, each to its end.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use placement_tests::load::Measured;

use super::connection::Connection;
use super::request::Request;

/// When requests are sent.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Each connection sends the next as soon as it has the answer.
    OneAfterTheOther,
    /// So many a second of all connections together. What is due in the time of warming up is not
    /// counted: threads and connections are made then.
    PerSecond { rate: f64, warm_up: Duration },
}

/// What one thread does again and again.
pub(super) trait Work: Send + Sync {
    /// Does it once, for the `nth` time of all. `false`: it came to nothing, and is not counted.
    fn once(&self, connection: &mut Connection, nth: u64) -> anyhow::Result<bool>;
}

/// Runs until `stop` is set; what is under way then comes to its end. The servers are taken in turn.
/// The first error ends it all.
pub(super) fn run(
    servers: &[SocketAddr],
    connections: usize,
    pace: Pace,
    timeout: Duration,
    work: &dyn Work,
    stop: &AtomicBool,
) -> anyhow::Result<Measured> {
    let (next, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let counted_from = match pace {
        Pace::OneAfterTheOther => started,
        Pace::PerSecond { warm_up, .. } => started + warm_up,
    };
    let worker = |server: SocketAddr| {
        let mut connection = Connection::new(server, timeout);
        let mut latencies = Vec::new();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let due = match pace {
                Pace::OneAfterTheOther => Instant::now(),
                Pace::PerSecond { rate, .. } => {
                    started + Duration::from_secs_f64(nth as f64 / rate)
                }
            };
            while let Some(early) = due.checked_duration_since(Instant::now())
                && !stop.load(Ordering::Relaxed)
            {
                std::thread::sleep(early.min(Duration::from_millis(50)));
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(latencies);
            }
            match work.once(&mut connection, nth) {
                Ok(true) if due >= counted_from => latencies.push(due.elapsed()),
                Ok(true) => {}
                Ok(false) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let results: Vec<anyhow::Result<Vec<Duration>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|nth| {
                let server = servers[nth % servers.len()];
                scope.spawn(move || worker(server))
            })
            .collect();
        let ended = workers.into_iter().map(|worker| worker.join());
        ended
            .map(|result| result.expect("a worker does not panic"))
            .collect()
    });
    let mut latencies = Vec::new();
    for result in results {
        latencies.extend(result?);
    }
    latencies.sort_unstable();
    Ok(Measured {
        elapsed: counted_from.elapsed(),
        calls: next.into_inner().saturating_sub(connections as u64),
        latencies,
        errors: failed.into_inner(),
    })
}

/// Requests that are sent in turn.
pub(super) struct InTurn {
    pub(super) requests: Vec<Request>,
    /// Whether one may fail, which then does not count; otherwise it ends the run.
    pub(super) may_fail: bool,
}

impl Work for InTurn {
    fn once(&self, connection: &mut Connection, nth: u64) -> anyhow::Result<bool> {
        let which = usize::try_from(nth).context("so many requests")? % self.requests.len();
        let answer = connection.ask(&self.requests[which].bytes(connection.server()));
        match answer {
            Ok(answer) if answer.status < 300 => Ok(true),
            _ if self.may_fail => Ok(false),
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.body);
                bail!("answered {}: {text}", answer.status)
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first takes long.
    struct SlowOnce;

    impl Work for SlowOnce {
        fn once(&self, _: &mut Connection, nth: u64) -> anyhow::Result<bool> {
            if nth == 0 {
                std::thread::sleep(Duration::from_millis(200));
            }
            Ok(true)
        }
    }

    #[test]
    fn what_is_due_while_an_answer_is_late_is_late_too() {
        let stop = AtomicBool::new(false);
        let nowhere = [SocketAddr::from(([127, 0, 0, 1], 1))];
        let measured = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(400));
                stop.store(true, Ordering::Relaxed);
            });
            let pace = Pace::PerSecond {
                rate: 100.0,
                warm_up: Duration::ZERO,
            };
            run(&nowhere, 1, pace, Duration::from_secs(1), &SlowOnce, &stop)
        })
        .expect("nothing fails");
        let late = (measured.latencies.iter()).filter(|took| **took > Duration::from_millis(50));
        let late = late.count();
        assert!(late > 10, "{late} of {}", measured.calls);
        let due = measured.elapsed.as_millis() / 10 + 1;
        assert!(
            u128::from(measured.calls) <= due,
            "{} of {due}",
            measured.calls
        );
        assert_eq!(measured.calls, measured.latencies.len() as u64);
    }
}
