//! Recommended changes, as text for operators.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement_raft_store::Site;
use placement_wire::FailureDomain;

use super::costs::{RoundTrips, Voters};
use super::losses::{Extent, Standing, fatal, place_of, places, voters};

/// More voters make each write slower, and no cluster needs them.
const VOTERS_MAX: usize = 7;
/// Another site for the leader is recommended if it reduces the sum of write times of all sites to
/// at most this fraction.
const WORTH: f64 = 0.8;

pub(super) fn advice(
    members: &[Standing],
    trips: &RoundTrips,
    leader: Option<u64>,
    clouds: &[(String, String)],
) -> Vec<String> {
    let all = [
        silent(members),
        unnamed(members),
        even(members),
        other_voters(members),
        lonely(members),
        homeless(members, clouds),
        leader.and_then(|leader| other_leader(members, trips, leader, clouds)),
    ];
    all.into_iter().flatten().collect()
}

fn list(nodes: impl IntoIterator<Item = u64>) -> String {
    let nodes: Vec<String> = nodes.into_iter().map(|node| node.to_string()).collect();
    match nodes.as_slice() {
        [one] => format!("node {one}"),
        _ => format!("nodes {}", nodes.join(", ")),
    }
}

/// The list of the members for which `fits` holds.
fn fitting(members: &[Standing], fits: fn(&Standing) -> bool) -> Option<String> {
    let fitting = members.iter().filter(|member| fits(member));
    let nodes: Vec<u64> = fitting.map(|member| member.node).collect();
    (!nodes.is_empty()).then(|| list(nodes))
}

fn silent(members: &[Standing]) -> Option<String> {
    let nodes = fitting(members, |member| !member.is_reachable)?;
    Some(format!(
        "no answer from {nodes}: bring the lost nodes back or replace them"
    ))
}

/// Nodes without a region, if others have one.
fn unnamed(members: &[Standing]) -> Option<String> {
    if members.iter().all(|member| member.site.region.is_empty()) {
        return None;
    }
    let nodes = fitting(members, |member| member.site.region.is_empty())?;
    Some(format!(
        "no region is named for {nodes}: nodes without one count as failing together; set [node] \
        region there"
    ))
}

fn even(members: &[Standing]) -> Option<String> {
    let count = voters(members).count();
    (count > 1 && count.is_multiple_of(2)).then(|| {
        format!(
            "{count} voters tolerate no more losses than {}: use an odd number",
            count - 1
        )
    })
}

/// Voters for which no loss of the widest possible extent is fatal.
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
                    "the loss of {first} stops all writes, and one of two {extent}s always has \
                    half of the voters or more: add a node in a third {extent}, and make it a \
                    voter"
                ));
            }
            continue;
        };
        let voters: BTreeSet<u64> = voters(members).map(|voter| voter.node).collect();
        let (promoted, demoted) = (&chosen - &voters, &voters - &chosen);
        let mut steps = Vec::new();
        if !promoted.is_empty() {
            steps.push(format!("promote {}", list(promoted)));
        }
        if !demoted.is_empty() {
            steps.push(format!("demote {}", list(demoted)));
        }
        return Some(format!(
            "the loss of {first} stops all writes: {}, and the cluster tolerates the loss of any \
            one {extent}",
            steps.join(", then ")
        ));
    }
    None
}

/// An odd number of voters, of which no place has half, with the fewest changes.
fn choose(members: &[Standing], extent: Extent) -> Option<BTreeSet<u64>> {
    let reachable: Vec<&Standing> = members.iter().filter(|one| one.is_reachable).collect();
    let voters: BTreeSet<u64> = voters(members).map(|voter| voter.node).collect();
    let sizes = (3..=VOTERS_MAX.min(reachable.len())).step_by(2);
    let chosen = sizes.filter_map(|size| {
        // A voter keeps its vote if possible.
        let mut order = reachable.clone();
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

/// Regions with a single node. Zones of one region are near each other.
fn lonely(members: &[Standing]) -> Option<String> {
    let mut regions = BTreeMap::<&str, Vec<u64>>::new();
    for member in members {
        let region = &*member.site.region;
        regions.entry(region).or_default().push(member.node);
    }
    if regions.len() < 2 {
        return None;
    }
    let alone = joined(
        regions
            .into_iter()
            .filter_map(|(region, nodes)| match nodes[..] {
                [only] if !region.is_empty() => Some(format!("region {region} (node {only})")),
                _ => None,
            }),
    )?;
    Some(format!(
        "only one node answers in {alone}: without it clients there have to use another region; a \
        second node there, as a learner, slows no write"
    ))
}

fn joined(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Clouds whose region has no node.
fn homeless(members: &[Standing], clouds: &[(String, String)]) -> Option<String> {
    let is_empty = |region: &str| !members.iter().any(|one| one.site.region == region);
    let empty = clouds.iter().filter(|(_, region)| is_empty(region));
    let named = joined(empty.map(|(name, region)| format!("{name} ({region})")))?;
    Some(format!(
        "no node is in the region of {named}: its clients use distant nodes; a learner there \
        would answer their reads"
    ))
}

/// A site where a leader would make writes much faster: summed over all sites or, if clouds have
/// regions, over the sites in those.
fn other_leader(
    members: &[Standing],
    trips: &RoundTrips,
    leader: u64,
    clouds: &[(String, String)],
) -> Option<String> {
    let costs = Voters::of(members);
    let is_home = |site: &Site| clouds.iter().any(|(_, region)| *region == site.region);
    let all: BTreeSet<&Site> = members.iter().map(|member| &member.site).collect();
    let homes: BTreeSet<&Site> = all.iter().copied().filter(|site| is_home(site)).collect();
    let sites = if homes.is_empty() { all } else { homes };
    let total = |leader: u64| {
        sites.iter().try_fold(Duration::ZERO, |sum, site| {
            let nodes = members.iter().filter(|member| member.site == **site);
            let waits = nodes.filter_map(|member| costs.write(trips, member.node, leader));
            Some(sum + waits.min()?)
        })
    };
    let now = total(leader)?;
    let others = voters(members).filter(|voter| voter.is_reachable && !voter.site.is_unknown());
    let (best, _, site) = others
        .filter_map(|member| Some((total(member.node)?, member.node, &member.site)))
        .min()?;
    let is_there = |member: &Standing| member.node == leader && member.site == *site;
    if members.iter().any(is_there) || best.as_secs_f64() > now.as_secs_f64() * WORTH {
        return None;
    }
    let count = u32::try_from(sites.len()).ok()?;
    Some(format!(
        "with the leader in {site} a write waits {:.1} ms on average over the sites, with node \
        {leader} \
         {:.1} ms: [cluster] leader_preference = [\"{site}\"]",
        (best / count).as_secs_f64() * 1e3,
        (now / count).as_secs_f64() * 1e3,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::losses::tests::standings;
    use super::*;

    fn advised(sites: &[&str]) -> String {
        other_voters(&standings(sites)).unwrap_or_default()
    }

    #[test]
    fn advice_names_nodes_to_promote_and_to_demote() {
        assert_eq!(advised(&["n/*", "s/*", "w/*"]), "");
        let advice = advised(&["n/*", "n/*", "s/*", "w/"]);
        assert!(
            advice.contains("region n") && advice.contains("promote node 4, then demote node 2"),
            "{advice}"
        );
        let advice = advised(&["n/a*", "n/a*", "n/b*", "n/c"]);
        assert!(advice.contains("zone n/a"), "{advice}");
        assert!(advice.contains("any one zone"), "{advice}");
    }

    #[test]
    fn advice_on_regions_is_for_clusters_that_name_some() {
        for near in [&["/*", "/*", "/*"][..], &["/a*", "/b*", "/c*"]] {
            let members = standings(near);
            assert_eq!(
                (lonely(&members), unnamed(&members)),
                (None, None),
                "{near:?}"
            );
        }
        let far = standings(&["n/a*", "n/b*", "s/*", "/"]);
        let alone = lonely(&far).unwrap();
        assert!(alone.contains("answers in region s (node 3):"), "{alone}");
        let unnamed = unnamed(&far).unwrap();
        assert!(
            unnamed.contains("no region is named for node 4"),
            "{unnamed}"
        );
    }

    #[test]
    fn two_regions_get_the_advice_to_add_a_third() {
        let advice = advised(&["n/*", "n/*", "s/*", "s/"]);
        assert!(advice.contains("a third region"), "{advice}");
    }

    #[test]
    fn chosen_voters_survive_the_loss_of_any_region() {
        // All clusters of up to five nodes over three regions, with all assignments of votes.
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
    fn advice_names_the_site_with_the_cheapest_writes() {
        let members = standings(&["n/*", "s/*", "w/*"]);
        let mut trips = RoundTrips::default();
        for (one, other, ms) in [(1, 2, 20), (2, 3, 20), (1, 3, 200)] {
            trips.note(one, other, Duration::from_millis(ms));
        }
        assert_eq!(other_leader(&members, &trips, 2, &[]), None);
        let advice = other_leader(&members, &trips, 3, &[]).unwrap();
        assert!(advice.contains("leader_preference = [\"s\"]"), "{advice}");
        // If clouds have regions, only their writes count.
        let cloud = |region: &str| (format!("cloud of {region}"), region.to_owned());
        assert_eq!(other_leader(&members, &trips, 3, &[cloud("w")]), None);
        let advice = other_leader(&members, &trips, 3, &[cloud("n")]).unwrap();
        assert!(advice.contains("leader_preference = [\"n\"]"), "{advice}");
        assert_eq!(homeless(&members, &[cloud("n")]), None);
        let advice = homeless(&members, &[cloud("n"), cloud("x")]).unwrap();
        assert!(advice.contains("cloud of x (x)"), "{advice}");
    }
}
