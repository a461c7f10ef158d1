//! Processors: the last one runs the load, the others the services. On a machine with a single
//! processor, both share it.

use anyhow::Context;

use crate::process_group::run;

/// The first processor, for a service that is limited to one.
pub(crate) const FIRST: &str = "0";

/// Processors of the services, as a list for taskset.
pub(crate) fn of_services() -> anyhow::Result<String> {
    Ok(format!("0-{}", Ticks::now()?.0.len().max(2) - 2))
}

pub(crate) fn of_the_load() -> anyhow::Result<String> {
    Ok((Ticks::now()?.0.len() - 1).to_string())
}

pub(crate) fn all() -> anyhow::Result<String> {
    Ok(format!("0-{}", of_the_load()?))
}

/// Moves the main thread to these processors, and with it all processes that it starts later.
pub(crate) fn move_to(list: &str) -> anyhow::Result<()> {
    let this = std::process::id().to_string();
    run(std::process::Command::new("taskset").args(["--cpu-list", "--pid", list, &this]))
}

/// Ticks of each processor, in the order of proc(5): user, nice, system, idle, iowait, irq,
/// softirq, steal.
pub(crate) struct Ticks(Vec<[f64; 8]>);

const IDLE: [usize; 2] = [3, 4];
const STOLEN: [usize; 1] = [7];

/// Shares of the processors' time, in percent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shares {
    pub(crate) services_idle: f64,
    pub(crate) load_idle: f64,
    /// Time of all processors that the hypervisor gave to other guests.
    pub(crate) stolen: f64,
}

impl Ticks {
    pub(crate) fn now() -> anyhow::Result<Self> {
        let stat = std::fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let lines = stat
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with("cpu"));
        let ticks = lines.map(|line| {
            let mut ticks = [0.0; 8];
            for (tick, text) in ticks.iter_mut().zip(line.split_whitespace().skip(1)) {
                *tick = text.parse()?;
            }
            Ok(ticks)
        });
        Ok(Self(ticks.collect::<anyhow::Result<_>>()?))
    }

    /// Shares of the time since this reading.
    pub(crate) fn until_now(self) -> anyhow::Result<Shares> {
        let mut since = Self::now()?.0;
        for (now, before) in since.iter_mut().zip(&self.0) {
            for (now, before) in now.iter_mut().zip(before) {
                *now -= before;
            }
        }
        let (services, load) = since.split_at(since.len() - 1);
        Ok(Shares {
            services_idle: share(if services.is_empty() { load } else { services }, &IDLE),
            load_idle: share(load, &IDLE),
            stolen: share(&since, &STOLEN),
        })
    }
}

fn share(cores: &[[f64; 8]], fields: &[usize]) -> f64 {
    let all: f64 = cores.iter().flatten().sum();
    let some: f64 = (cores.iter())
        .flat_map(|ticks| fields.iter().map(|field| ticks[*field]))
        .sum();
    100.0 * some / all
}
