//! Runs in regions: which runs, and the settings that an operator would need for them.

use std::time::Duration;

use rand::Rng;

use crate::parameters::Parameters;
use crate::regions::Regions;

/// One in this many runs spans regions.
const ONE_IN: u32 = 6;
/// Round trips of a new leader to find the end of a follower's log: it bisects its own log of at
/// most a thousand entries.
const PROBES: u32 = 10;

/// Shortest mean time between two writes of all clients together.
const ENTRY_EVERY_MS: u64 = 5;

/// Moves the run to regions, if its seed says so, with the timeouts that an operator would set.
/// Other runs are unchanged.
pub fn place(parameters: Parameters) -> Parameters {
    let random = &mut parameters.seed.stream("far apart");
    if !random.random_ratio(1, ONE_IN) || parameters.is_lost {
        return parameters;
    }
    let mut regions = Regions::draw(random);
    for _ in 0..parameters.spares {
        regions
            .site_of
            .push(random.random_range(0..regions.sites()));
    }
    let fault_phase = Duration::from_millis(random.random_range(9_000..15_000));
    let farthest = regions.farthest();
    let parameters = Parameters {
        fault_phase,
        ..parameters
    };
    let mut placed = in_regions(parameters, regions);
    // Writes wait while leadership moves to a preferred site.
    let moved = 2 * placed.request() + PROBES * farthest;
    placed.wait = placed.wait.max(moved);
    placed
}

/// A run in these regions.
pub fn in_regions(parameters: Parameters, regions: Regions) -> Parameters {
    let ms = Duration::from_millis;
    let farthest = regions.farthest();
    let voters = regions.site_of.len() as u64 - regions.learners - parameters.spares;
    // A heartbeat counts only if its answer arrives within three quarters of the heartbeat
    // interval.
    let sync_max = parameters.sync_max.min(ms(40));
    let answered = farthest + 2 * ms(5) + sync_max;
    let heartbeat = parameters.heartbeat.max(answered * 3 / 2).max(ms(100));
    let mut placed = Parameters {
        nodes: voters,
        // The step length does not matter at these latencies.
        tick: parameters.tick.max(ms(2)),
        latency_max: parameters.latency_max.min(ms(5)),
        sync_max,
        heartbeat,
        election: heartbeat * 3,
        clients: parameters.clients.max(regions.sites()),
        faults_from_the_start: false,
        regions: Some(regions),
        ..parameters
    };
    // Entries must stay in the log until the farthest node has acknowledged them: a snapshot would
    // take longer than a write waits.
    let unacknowledged = farthest.as_millis() as u64 / ENTRY_EVERY_MS;
    placed.keep_in_log = placed.keep_in_log.max(unacknowledged);
    placed.knobs.silence = placed.knobs.silence.max(4 * farthest + ms(200));
    placed.wait = placed.wait.max(2 * placed.request());
    placed.patience = placed.patience.max(4 * placed.request());
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn placed() -> impl Iterator<Item = (Parameters, Regions)> {
        let all = (1..200).map(|seed| place(Parameters::from_seed(Seed(seed))));
        all.filter_map(|parameters| {
            let regions = parameters.regions.clone()?;
            Some((parameters, regions))
        })
    }

    #[test]
    fn one_run_in_six_spans_regions_with_each_node_at_a_site() {
        let all: Vec<_> = placed().collect();
        assert!((20..50).contains(&all.len()), "{} of 199", all.len());
        for (parameters, regions) in &all {
            let machines = usize::try_from(parameters.machines()).expect("few");
            assert_eq!(regions.site_of.len(), machines);
            let nodes: usize = (0..regions.sites())
                .map(|site| regions.nodes(site).iter().count())
                .sum();
            assert_eq!(nodes, machines);
            assert!(parameters.election > 2 * regions.farthest());
            assert!(parameters.patience > parameters.request());
        }
        let five = all
            .iter()
            .filter(|(parameters, regions)| parameters.nodes == 5 && regions.learners > 0);
        assert!(five.count() > 5);
        assert!(
            all.iter()
                .any(|(_, regions)| !regions.preference.is_empty())
        );
    }

    #[test]
    fn clients_mostly_choose_nodes_of_their_site() {
        let regions = Regions::new(&[2, 1], 1, Duration::from_millis(10));
        assert_eq!(regions.site_of, [0, 0, 1, 2]);
        let random = &mut Seed(1).stream("test");
        let mut chosen = |site| regions.choice(random, site, vec![1, 2, 3]);
        let at_home = (0..100).filter(|_| chosen(1) == [3]).count();
        assert!((65..95).contains(&at_home), "{at_home}");
        assert_eq!(chosen(2), [1, 2, 3], "no node of that site is available");
    }
}
