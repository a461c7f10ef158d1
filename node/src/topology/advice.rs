//! What to change, as text for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_raft_store::Site;
use placement_wire::FailureDomain;

use super::costs::{RoundTrips, Voters};
use super::losses::{Extent, Standing, fatal, place_of, places};

/// More voters than this make each write dearer, and no cluster needs them.
const VOTERS_MAX: usize = 7;
/// Another site for the leader is named if writes wait at least so much less, in all sites together.
const WORTH: f64 = 0.8;

pub(super) fn advice(
    members: &[Standing],
    trips: &RoundTrips,
    leader: Option<u64>,
    clouds: &[(String, String)],
) -> Vec<String> {
    let mut advice = Vec::new();
    advice.extend(unheard(members));
    advice.extend(unnamed(members));
    advice.extend(even(members));
    advice.extend(other_voters(members));
    advice.extend(lonely(members));
    advice.extend(homeless(members, clouds));
    advice.extend(leader.and_then(|leader| other_leader(members, trips, leader, clouds)));
    advice
}

fn list(nodes: impl IntoIterator<Item = u64>) -> String {
    let nodes: Vec<String> = nodes.into_iter().map(|node| node.to_string()).collect();
    match nodes.as_slice() {
        [one] => format!("node {one}"),
        _ => format!("nodes {}", nodes.join(", ")),
    }
}

fn unheard(members: &[Standing]) -> Option<String> {
    let nodes: Vec<u64> = (members.iter().filter(|member| !member.is_heard))
        .map(|member| member.node)
        .collect();
    let count = nodes.len();
    (count > 0).then(|| {
        format!(
            "{} {} not answer: bring {} back, or replace {}",
            list(nodes),
            if count == 1 { "does" } else { "do" },
            if count == 1 { "it" } else { "them" },
            if count == 1 { "it" } else { "them" },
        )
    })
}

fn unnamed(members: &[Standing]) -> Option<String> {
    let nodes: Vec<u64> = (members
        .iter()
        .filter(|member| member.site.region.is_empty()))
    .map(|member| member.node)
    .collect();
    let count = nodes.len();
    (count > 0).then(|| {
        format!(
            "{} {} no region, and {} taken to fail together: set [node] region there",
            list(nodes),
            if count == 1 { "names" } else { "name" },
            if count == 1 { "is" } else { "are" },
        )
    })
}

fn even(members: &[Standing]) -> Option<String> {
    let voters = members.iter().filter(|member| member.is_voter).count();
    (voters > 1 && voters.is_multiple_of(2)).then(|| {
        format!(
            "{voters} voters survive no more losses than {}: an odd number is better",
            voters - 1
        )
    })
}

/// Voters such that the loss of no place of the widest extent that can be survived is fatal.
fn other_voters(members: &[Standing]) -> Option<String> {
    for extent in [Extent::Region, Extent::Zone] {
        let fatal = fatal(members, extent);
        if places(members, extent).len() < 2 {
            continue;
        }
        let first = fatal.first()?;
        let Some(chosen) = choose(members, extent) else {
            if places(members, extent).len() == 2 && extent == Extent::Region {
                return Some(format!(
                    "the loss of {first} stops all writes, and of two {extent}s one always has half of \
                     the voters or more: add a node in a third {extent}, and make it a voter"
                ));
            }
            continue;
        };
        let is_voter = |node: &u64| (members.iter()).any(|one| one.node == *node && one.is_voter);
        let (kept, promoted): (BTreeSet<u64>, BTreeSet<u64>) =
            chosen.iter().copied().partition(is_voter);
        let voters = members.iter().filter(|member| member.is_voter);
        let demoted: Vec<u64> = (voters.map(|voter| voter.node))
            .filter(|node| !kept.contains(node))
            .collect();
        let mut steps = Vec::new();
        if !promoted.is_empty() {
            steps.push(format!("promote {}", list(promoted)));
        }
        if !demoted.is_empty() {
            steps.push(format!("demote {}", list(demoted)));
        }
        return Some(format!(
            "the loss of {first} stops all writes: {}, and the loss of any one {extent} is survived",
            steps.join(", then ")
        ));
    }
    None
}

/// The voters of an odd number that take the fewest changes, no place having half of them.
fn choose(members: &[Standing], extent: Extent) -> Option<BTreeSet<u64>> {
    let heard: Vec<&Standing> = members.iter().filter(|member| member.is_heard).collect();
    let voters: BTreeSet<u64> = (members.iter().filter(|member| member.is_voter))
        .map(|member| member.node)
        .collect();
    let sizes = (3..=VOTERS_MAX.min(heard.len())).step_by(2);
    let chosen = sizes.filter_map(|size| {
        // A voter keeps its vote if it can.
        let mut order = heard.clone();
        order.sort_by_key(|member| (!member.is_voter, member.node));
        let mut at = BTreeMap::<FailureDomain, usize>::new();
        let mut chosen = BTreeSet::new();
        for member in order {
            let count = at.entry(place_of(extent, member)).or_default();
            if chosen.len() < size && *count < (size - 1) / 2 {
                *count += 1;
                chosen.insert(member.node);
            }
        }
        (chosen.len() == size).then_some(chosen)
    });
    chosen.min_by_key(|chosen| chosen.symmetric_difference(&voters).count())
}

/// Sites that one node alone serves.
fn lonely(members: &[Standing]) -> Option<String> {
    let mut sites = BTreeMap::<&Site, Vec<u64>>::new();
    for member in members {
        sites.entry(&member.site).or_default().push(member.node);
    }
    if sites.len() < 2 {
        return None;
    }
    let alone: Vec<String> = (sites.into_iter())
        .filter_map(|(site, nodes)| match nodes.as_slice() {
            [only] if !site.is_unknown() => Some(format!("{site} (node {only})")),
            _ => None,
        })
        .collect();
    (!alone.is_empty()).then(|| {
        format!(
            "one node alone answers in {}: without it clients there have to ask far away; a learner \
             beside it costs no write anything",
            alone.join(", ")
        )
    })
}

/// Clouds in whose region no node stands.
fn homeless(members: &[Standing], clouds: &[(String, String)]) -> Option<String> {
    let is_empty = |region: &str| !members.iter().any(|one| one.site.region == region);
    let empty = clouds.iter().filter(|(_, region)| is_empty(region));
    let named: Vec<String> = empty
        .map(|(name, region)| format!("{name} ({region})"))
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "no node stands in the region of {}: its clients ask far away; a learner there answers their reads",
            named.join(", ")
        )
    })
}

/// A site where a leader would keep writes waiting much less: those of all sites together, or of those in the regions
/// of clouds, where these are said.
fn other_leader(
    members: &[Standing],
    trips: &RoundTrips,
    leader: u64,
    clouds: &[(String, String)],
) -> Option<String> {
    let voters = Voters::of(members);
    let is_home = |site: &Site| clouds.iter().any(|(_, region)| *region == site.region);
    let all: BTreeSet<&Site> = members.iter().map(|member| &member.site).collect();
    let homes: BTreeSet<&Site> = all.iter().copied().filter(|site| is_home(site)).collect();
    let sites = if homes.is_empty() { all } else { homes };
    let total = |leader: u64| {
        sites.iter().try_fold(Duration::ZERO, |sum, site| {
            let nodes = members.iter().filter(|member| member.site == **site);
            let costs = nodes.filter_map(|member| voters.write(trips, member.node, leader));
            Some(sum + costs.min()?)
        })
    };
    let now = total(leader)?;
    let at = |node| members.iter().find(|member| member.node == node);
    let others = members
        .iter()
        .filter(|member| member.is_voter && member.is_heard && !member.site.is_unknown());
    let (best, node) = others
        .filter_map(|member| Some((total(member.node)?, member.node)))
        .min()?;
    let site = &at(node)?.site;
    if *site == at(leader)?.site || best.as_secs_f64() > now.as_secs_f64() * WORTH {
        return None;
    }
    let count = u32::try_from(sites.len()).ok()?;
    Some(format!(
        "with the leader in {site} a write waits {:.1} ms on average over the sites, with node {leader} \
         {:.1} ms: [cluster] leader_preference = [\"{site}\"]",
        (best / count).as_secs_f64() * 1e3,
        (now / count).as_secs_f64() * 1e3,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::losses::tests::standings;
    use super::*;

    fn voters(sites: &[&str]) -> String {
        other_voters(&standings(sites)).unwrap_or_default()
    }

    #[test]
    fn it_says_which_nodes_to_promote_and_to_demote() {
        assert_eq!(voters(&["n/*", "s/*", "w/*"]), "");
        let said = voters(&["n/*", "n/*", "s/*", "w/"]);
        assert!(
            said.contains("region n") && said.contains("promote node 4, then demote node 2"),
            "{said}"
        );
        let said = voters(&["n/a*", "n/a*", "n/b*", "n/c"]);
        assert!(said.contains("zone n/a"), "{said}");
        assert!(said.contains("any one zone"), "{said}");
    }

    #[test]
    fn of_two_regions_one_has_half_of_the_voters() {
        let said = voters(&["n/*", "n/*", "s/*", "s/"]);
        assert!(said.contains("a third region"), "{said}");
    }

    #[test]
    fn what_it_chooses_survives_what_it_says() {
        // All clusters of up to five nodes over three regions, whichever of them vote.
        for code in 0..6_u32.pow(5) {
            let sites: Vec<&str> = (0..5)
                .map(|at| {
                    ["n/*", "s/*", "w/*", "n/", "s/", "w/"][(code / 6_u32.pow(at) % 6) as usize]
                })
                .collect();
            let mut members = standings(&sites);
            let Some(chosen) = choose(&members, Extent::Region) else {
                continue;
            };
            for member in &mut members {
                member.is_voter = chosen.contains(&member.node);
            }
            let left = fatal(&members, Extent::Region);
            assert!(left.is_empty(), "{sites:?}: {chosen:?} leave {left:?}");
        }
    }

    #[test]
    fn a_leader_in_the_middle_keeps_writes_waiting_less() {
        let members = standings(&["n/*", "s/*", "w/*"]);
        let mut trips = RoundTrips::default();
        for (one, other, ms) in [(1, 2, 20), (2, 3, 20), (1, 3, 200)] {
            trips.note(one, other, Duration::from_millis(ms));
        }
        assert_eq!(other_leader(&members, &trips, 2, &[]), None);
        let said = other_leader(&members, &trips, 3, &[]).unwrap();
        assert!(said.contains("leader_preference = [\"s\"]"), "{said}");
        // Where clouds are said to be, their writes count alone.
        let cloud = |region: &str| (format!("cloud of {region}"), region.to_owned());
        assert_eq!(other_leader(&members, &trips, 3, &[cloud("w")]), None);
        let said = other_leader(&members, &trips, 3, &[cloud("n")]).unwrap();
        assert!(said.contains("leader_preference = [\"n\"]"), "{said}");
        assert_eq!(homeless(&members, &[cloud("n")]), None);
        let said = homeless(&members, &[cloud("n"), cloud("x")]).unwrap();
        assert!(said.contains("cloud of x (x)"), "{said}");
    }
}
