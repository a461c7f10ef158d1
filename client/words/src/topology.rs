//! The failures that a cluster tolerates, as tables show them.

use placement_wire::{FailureDomain, Loss, Reads, SiteReads, Topology};

/// Whether any member has a zone, and whether any has a region.
pub fn has_places(topology: &Topology) -> [bool; 2] {
    let members = &topology.members;
    let has_zones = members.iter().any(|member| !member.zone.is_empty());
    let has_regions = members.iter().any(|member| !member.region.is_empty());
    [has_zones, has_regions]
}

/// The failures to show, larger domains first. A zone or region with the same nodes as another row
/// is omitted. Zones are omitted if no member has a configured zone; the same holds for regions.
pub fn losses(topology: &Topology) -> Vec<&Loss> {
    let [has_zones, has_regions] = has_places(topology);
    let is_known = |loss: &&Loss| match loss.place {
        FailureDomain::Region { .. } => has_regions,
        FailureDomain::Zone { .. } => has_zones,
        FailureDomain::Node { .. } => true,
    };
    let mut losses: Vec<&Loss> = topology.losses.iter().filter(is_known).collect();
    losses.sort_by_key(|loss| match loss.place {
        FailureDomain::Region { .. } => 0,
        FailureDomain::Zone { .. } => 1,
        FailureDomain::Node { .. } => 2,
    });
    let mut rows: Vec<&Loss> = Vec::new();
    for loss in losses {
        let is_shown = rows.iter().any(|row| row.nodes == loss.nodes);
        if !is_shown || matches!(loss.place, FailureDomain::Node { .. }) {
            rows.push(loss);
        }
    }
    rows
}

/// The reads that remain: `all`, or `local only in south; none in north`, if sites differ. `site`
/// names a site, and at most `count` sites are named.
pub fn reads(loss: &Loss, count: usize, site: impl Fn(&SiteReads) -> String) -> String {
    let mut parts = Vec::new();
    for (reads, what) in [
        (Reads::All, "all"),
        (Reads::Local, "local only"),
        (Reads::None, "none"),
    ] {
        let sites = loss.sites.iter().filter(|one| one.reads == reads);
        let mut names: Vec<_> = sites.map(&site).collect();
        let more = names.len().saturating_sub(count);
        names.truncate(count);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        if !names.is_empty() {
            parts.push((what, names.join(", ")));
        }
    }
    match parts.as_slice() {
        // All sites answer the same reads, so the list of sites is left out.
        [(what, _)] => (*what).to_owned(),
        parts => {
            let parts = parts
                .iter()
                .map(|(what, sites)| format!("{what} in {sites}"));
            parts.collect::<Vec<_>>().join("; ")
        }
    }
}
