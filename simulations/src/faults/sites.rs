//! Faults of whole sites and of the links between sites.

use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;

use super::fault::Fault;
use super::planned::Planned;
use crate::parameters::Parameters;
use crate::regions::Regions;

/// The faults of sites in a run with regions, unsorted, drawn from a separate random stream. Empty
/// without regions.
pub fn plan(parameters: &Parameters) -> Vec<Planned> {
    let Some(regions) = &parameters.regions else {
        return Vec::new();
    };
    let random = &mut parameters.seed.stream("faults regions");
    let mut planned = Vec::new();
    let mut begins = Duration::from_millis(500);
    while begins < parameters.fault_phase {
        planned.push(Planned {
            begins,
            lasts: Duration::from_millis(random.random_range(1_000..5_000)),
            fault: draw(random, regions),
        });
        begins += parameters
            .fault_every
            .mul_f64(random.random_range(1.0..4.0));
    }
    planned.push(Planned {
        begins: parameters
            .fault_phase
            .mul_f64(random.random_range(0.2..0.7)),
        lasts: Duration::from_millis(random.random_range(2_000..5_000)),
        fault: Fault::DrainLeaderSite,
    });
    // An edge site is cut off for most of the phase, so that the other nodes purge the log entries
    // that it lacks.
    let edges = regions.sites() - usize::try_from(regions.learners).expect("few learners");
    if regions.learners > 0 && random.random_bool(0.5) {
        planned.push(Planned {
            begins: parameters.fault_phase.mul_f64(0.1),
            lasts: parameters
                .fault_phase
                .mul_f64(random.random_range(0.5..0.8)),
            fault: Fault::CutSite(random.random_range(edges..regions.sites())),
        });
    }
    planned
}

fn draw(random: &mut SmallRng, regions: &Regions) -> Fault {
    let sites = regions.sites();
    let site = random.random_range(0..sites);
    let other = (site + random.random_range(1..sites)) % sites;
    match random.random_range(0..100) {
        0..10 => Fault::PowerCutSite(regions.nodes(site)),
        10..22 => Fault::PowerCutLeaderSite,
        22..32 => Fault::CutSite(site),
        32..44 => Fault::CutLeaderSite,
        44..56 => Fault::FlapSites(site, other),
        56..69 => Fault::CutSiteWay(site, other),
        69..82 => Fault::ThinSite(regions.nodes(site)),
        _ => Fault::DrainSite(regions.nodes(site)),
    }
}
