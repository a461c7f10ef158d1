//! Simultaneous losses, and whether the remaining voters are a majority.
//!
//! Nodes without a region count as one region, and nodes of a region without a zone as one zone,
//! because nodes at unknown locations may fail together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use placement_raft_store::Site;
use placement_wire::FailureDomain;
use serde::{Deserialize, Serialize};

/// The relevant attributes of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    pub node: u64,
    pub site: Site,
    pub is_voter: bool,
    /// Whether it is reachable. An unreachable member counts as lost.
    pub is_reachable: bool,
}

/// The extent of a simultaneous loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Extent {
    Node,
    Zone,
    Region,
}

impl Extent {
    pub(crate) const ALL: [Self; 3] = [Self::Node, Self::Zone, Self::Region];
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Zone => "zone",
            Self::Region => "region",
        })
    }
}

/// The failure domain of a member for this extent.
pub(super) fn place_of(extent: Extent, member: &MemberStatus) -> FailureDomain {
    let Site { region, zone } = member.site.clone();
    match extent {
        Extent::Node => FailureDomain::Node { node: member.node },
        Extent::Zone => FailureDomain::Zone { region, zone },
        Extent::Region => FailureDomain::Region { region },
    }
}

/// The members by failure domain.
pub(super) fn places(
    members: &[MemberStatus],
    extent: Extent,
) -> BTreeMap<FailureDomain, BTreeSet<u64>> {
    let mut places = BTreeMap::<FailureDomain, BTreeSet<u64>>::new();
    for member in members {
        let place = place_of(extent, member);
        places.entry(place).or_default().insert(member.node);
    }
    places
}

pub(super) fn voters(members: &[MemberStatus]) -> impl Iterator<Item = &MemberStatus> {
    members.iter().filter(|member| member.is_voter)
}

/// Whether a majority of the voters is still reachable if the nodes in `lost` fail.
pub(super) fn has_quorum(members: &[MemberStatus], lost: &BTreeSet<u64>) -> bool {
    let is_left = |member: &&MemberStatus| member.is_reachable && !lost.contains(&member.node);
    2 * voters(members).filter(is_left).count() > voters(members).count()
}

/// The failure domains of this extent whose loss leaves no majority.
pub(super) fn fatal(members: &[MemberStatus], extent: Extent) -> BTreeSet<FailureDomain> {
    let places = places(members, extent).into_iter();
    let ends = places.filter(|(_, nodes)| !has_quorum(members, nodes));
    ends.map(|(place, _)| place).collect()
}

/// The failure domains whose loss a membership change makes fatal. If the loss of some domain of
/// this extent was fatal before, the result is empty, because the change may be a step towards
/// tolerance. This exception does not apply to a change that reduces the number of voters.
pub fn made_fatal(
    before: &[MemberStatus],
    after: &[MemberStatus],
    extent: Extent,
) -> BTreeSet<FailureDomain> {
    let was = fatal(before, extent);
    if was.is_empty() || voters(after).count() < voters(before).count() {
        fatal(after, extent).difference(&was).cloned().collect()
    } else {
        BTreeSet::new()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// `north/a*` is a voter, `north/a` a learner; numbered from 1.
    pub(crate) fn standings(sites: &[&str]) -> Vec<MemberStatus> {
        let numbered = sites.iter().zip(1..);
        let standing = |(site, node): (&&str, u64)| {
            let is_voter = site.ends_with('*');
            let (region, zone) = site.trim_end_matches('*').split_once('/').unwrap();
            MemberStatus {
                node,
                site: Site {
                    region: region.to_owned(),
                    zone: zone.to_owned(),
                },
                is_voter,
                is_reachable: true,
            }
        };
        numbered.map(standing).collect()
    }

    fn fatal_regions(sites: &[&str]) -> Vec<String> {
        let fatal = fatal(&standings(sites), Extent::Region);
        fatal.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn loss_of_a_region_with_half_of_the_voters_is_fatal() {
        assert_eq!(
            fatal_regions(&["north/a*", "north/b*", "south/a*"]),
            ["region north"]
        );
        assert_eq!(
            fatal_regions(&["north/*", "south/*"]),
            ["region north", "region south"]
        );
        assert!(fatal_regions(&["north/*", "south/*", "west/*"]).is_empty());
        assert!(fatal_regions(&["n/*", "n/*", "s/*", "s/*", "w/*"]).is_empty());
        // A learner does not count.
        assert_eq!(
            fatal_regions(&["n/*", "n/*", "s/*", "w/"]),
            ["region n"],
            "a learner"
        );
    }

    #[test]
    fn unnamed_regions_and_zones_may_fail_together() {
        assert_eq!(
            fatal_regions(&["/*", "/*", "/*"]),
            ["nodes without a region"]
        );
        let members = standings(&["n/*", "n/*", "n/a*"]);
        let zones: Vec<_> = (fatal(&members, Extent::Zone).iter())
            .map(ToString::to_string)
            .collect();
        assert_eq!(zones, ["nodes without a zone in region n"]);
    }

    #[test]
    fn unreachable_voter_counts_as_lost() {
        let mut members = standings(&["n/*", "s/*", "w/*"]);
        assert!(fatal(&members, Extent::Node).is_empty());
        members[2].is_reachable = false;
        let fatal: Vec<_> = (fatal(&members, Extent::Node).iter())
            .map(ToString::to_string)
            .collect();
        assert_eq!(fatal, ["node 1", "node 2"]);
    }

    #[test]
    fn change_is_refused_only_for_losses_that_it_makes_fatal() {
        let made = |before: &[&str], after: &[&str]| {
            let (before, after) = (standings(before), standings(after));
            let made = made_fatal(&before, &after, Extent::Region);
            made.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        // Before these changes every loss was tolerated: all losses that they make fatal are
        // reported.
        let three = ["n/*", "s/*", "w/*"];
        assert_eq!(made(&three, &["n/*", "s/*"]), ["region n", "region s"]);
        assert_eq!(
            made(&["n/*", "s/*", "w/*", "n/"], &["n/*", "s/*", "w/*", "n/*"]),
            ["region n"]
        );
        // A growing cluster moves towards tolerance.
        assert!(made(&["n/*", "s/"], &["n/*", "s/*"]).is_empty());
        // A shrinking one does not.
        assert_eq!(made(&["n/*", "n/*", "s/*"], &["n/*", "s/*"]), ["region s"]);
        assert!(made(&["n/*", "n/*", "s/*"], &["n/*", "n/*"]).is_empty());
    }
}
