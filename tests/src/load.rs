//! Many clients that do the same thing for a while, and how long each time took.

use std::future::Future;
use std::time::{Duration, Instant};

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Measured {
    /// From the first start to the last end.
    pub elapsed: Duration,
    /// Every call that was begun within the measured time, shortest first.
    pub latencies: Vec<Duration>,
    /// Calls that failed.
    pub errors: u64,
    /// All calls, those of the warm-up included.
    pub calls: u64,
}

impl Measured {
    /// Successful calls per second.
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency that this share (0 to 1) of the calls did not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// Runs `clients` tasks that each call `work(client)` one after the other, for `warm_up` without and
/// then for `duration` with measuring.
pub async fn run<F, Fut, E>(
    clients: usize,
    warm_up: Duration,
    duration: Duration,
    work: F,
) -> Measured
where
    F: Fn(usize) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: std::fmt::Display + Send,
{
    let measured_from = Instant::now() + warm_up;
    let until = measured_from + duration;
    let mut tasks = Vec::new();
    for client in 0..clients {
        let work = work.clone();
        tasks.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            let (mut errors, mut calls) = (0, 0);
            while Instant::now() < until {
                let started = Instant::now();
                let result = work(client).await;
                calls += 1;
                if started < measured_from {
                    continue;
                }
                match result {
                    Ok(()) => latencies.push(started.elapsed()),
                    Err(error) => {
                        if errors == 0 {
                            eprintln!("    client {client}: {error}");
                        }
                        errors += 1;
                    }
                }
            }
            (latencies, errors, calls)
        }));
    }
    let mut latencies = Vec::new();
    let (mut errors, mut calls) = (0, 0);
    for task in tasks {
        let (some, failed, all) = task.await.expect("a client does not panic");
        latencies.extend(some);
        errors += failed;
        calls += all;
    }
    latencies.sort_unstable();
    Measured {
        elapsed: measured_from.elapsed(),
        latencies,
        errors,
        calls,
    }
}
