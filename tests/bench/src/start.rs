//! Cost of a node at rest: its start, and the memory of its consumers.

use std::time::{Duration, Instant};

use placement_tests::cluster::Cluster;
use placement_tests::process_cost::memory;

use crate::bars::{Bars, Bound, Doubt, ROUNDS};
use crate::clouds::{Cloud, Shape};
use crate::cores;
use crate::pids;
use crate::process_group::cpu_time;

/// Consumers of each host; in a plain cloud a host has only the first.
const CONSUMERS: u64 = 10;

/// Time from the start of a node's process until it is ready, processor time on all processors, and
/// resident memory then. The node was shut down cleanly before.
struct Start {
    took: Duration,
    cpu: Duration,
    resident: u64,
}

pub(crate) async fn measure(hosts: u64, bars: &mut Bars) -> anyhow::Result<()> {
    cores::move_to(&cores::all()?)?;
    let mut cluster = Cluster::start(1).await?;
    let cloud = Cloud::plain(Shape::Flat, hosts);
    cloud.seed(&cluster.clients()).await?;
    let few = starts(&mut cluster).await?;
    let added = CONSUMERS - 1;
    cloud.add_consumers(&cluster.clients(), added).await?;
    let many = starts(&mut cluster).await?;

    let what = format!("start, {hosts} hosts, {} consumers", hosts * CONSUMERS);
    let of = |figure: fn(&Start) -> f64| many.iter().map(figure).collect::<Vec<_>>();
    let s = |value| format!("{value:.2} s");
    let sure = Doubt::default();
    let took = of(|start| start.took.as_secs_f64());
    bars.hold(&what, &took, Some(Bound::AtMost(1.5)), sure, s);
    let cpu = of(|start| start.cpu.as_secs_f64());
    bars.hold(&format!("{what}: CPU"), &cpu, None, sure, s);
    let resident = of(|start| (start.resident >> 20) as f64);
    let mib = |value| format!("{value:.0} MiB");
    bars.hold(&format!("{what}: resident"), &resident, None, sure, mib);
    let each = |(few, many): (&Start, &Start)| {
        (many.resident as f64 - few.resident as f64) / (hosts * added) as f64
    };
    let each: Vec<_> = few.iter().zip(&many).map(each).collect();
    let bound = Some(Bound::AtMost(150.0));
    let b = |value| format!("{value:.0} B");
    bars.hold("memory of a consumer", &each, bound, sure, b);
    Ok(())
}

async fn starts(cluster: &mut Cluster) -> anyhow::Result<Vec<Start>> {
    // Otherwise the start would replay most of the log.
    cluster.admin_of(1).compact().await?;
    let mut starts = Vec::new();
    for _ in 0..ROUNDS {
        cluster.stop_node(1).await?;
        let started = Instant::now();
        cluster.start_node(1)?;
        cluster.wait_ready(1).await?;
        let took = started.elapsed();
        let pid = pids(cluster, [1])[0];
        let (cpu, resident) = (cpu_time(pid)?, memory(pid)?.resident);
        starts.push(Start {
            took,
            cpu,
            resident,
        });
    }
    Ok(starts)
}
