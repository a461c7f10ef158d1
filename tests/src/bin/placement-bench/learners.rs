//! What learners cost the leader: its processor time and what it sends, beside the same without them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use placement_client::Claim;
use placement_tests::cluster::{COUNTED_ONLY, Cluster};
use placement_tests::process_cost::cpu_time;
use tokio::time::{Instant, MissedTickBehavior, interval};
use uuid::Uuid;

use super::regions::{metrics, replace, sample};
use super::{PROVIDERS, estates, machine, progress};

const VOTERS: u64 = 3;
const WRITERS: u32 = 16;
const BEGIN: &str = "<!-- written by scripts/bench learners --docs docs -->";
const END: &str = "<!-- end of what scripts/bench learners has written -->";

/// Three voters, and more and more learners, all on this machine, under the same modest load.
#[derive(Args)]
pub(super) struct Options {
    /// Numbers of learners, rising, separated by commas; 0 is always the first.
    #[arg(long, value_delimiter = ',', default_value = "5,10,20,40")]
    learners: Vec<u64>,

    /// Writes a second.
    #[arg(long, default_value_t = 200)]
    writes: u32,

    /// Seconds per figure.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,

    /// Writes the table into regions.md in this folder.
    #[arg(long)]
    docs: Option<PathBuf>,
}

/// What was seen of the leader.
#[derive(Clone, Copy)]
struct Figure {
    learners: u64,
    writes: f64,
    cpu: Duration,
    /// Sent to all learners, in bytes.
    sent: f64,
}

pub(super) async fn run(options: &Options) -> anyhow::Result<()> {
    println!("{}", machine());
    let duration = Duration::try_from_secs_f64(options.seconds).context("--seconds")?;
    ensure!(options.writes > 0, "--writes is 1 or more");
    let most = options.learners.iter().copied().max().unwrap_or_default();
    let config = format!("[log]\nlevel = \"warn\"\n{COUNTED_ONLY}");
    let room = u16::try_from(most).context("--learners")?;
    let mut cluster = Cluster::prepare_with_room(VOTERS, room, &config)?;
    progress("starting three voters");
    for id in 1..=VOTERS {
        cluster.start_node(id)?;
    }
    cluster.wait_healthy().await?;
    let providers = estates::boundless(&cluster.client_of(1), PROVIDERS).await?;
    let mut figures: Vec<Figure> = Vec::new();
    for learners in [0].into_iter().chain(options.learners.iter().copied()) {
        add(&mut cluster, VOTERS + learners).await?;
        progress(&format!("{learners} learners"));
        figures.push(measure(&mut cluster, &providers, learners, options.writes, duration).await?);
    }
    let text = table(&figures);
    print!("{text}");
    if let Some(folder) = &options.docs {
        replace(&folder.join("regions.md"), BEGIN, END, &text)?;
    }
    Ok(())
}

/// Adds learners until there are so many nodes.
async fn add(cluster: &mut Cluster, nodes: u64) -> anyhow::Result<()> {
    while (cluster.ids().len() as u64) < nodes {
        let place = cluster.add_place();
        cluster.start_node(place.id)?;
        cluster.admit(place.id).await?;
    }
    Ok(())
}

async fn measure(
    cluster: &mut Cluster,
    providers: &[Uuid],
    learners: u64,
    per_second: u32,
    duration: Duration,
) -> anyhow::Result<Figure> {
    let leader = cluster.leader().await?;
    let pid = cluster.process(leader).pid();
    let sent = |text: &str| -> f64 {
        let ids = VOTERS + 1..=VOTERS + learners;
        ids.map(|id| sample(text, "placement_peer_sent_bytes_total", id))
            .sum()
    };
    let before = (cpu_time(pid)?, sent(&metrics(cluster, leader).await?));
    let until = Instant::now() + duration;
    // Through the voters alone, as clients of a region come in.
    let writers = (0..WRITERS).map(|nth| {
        let client = cluster.client_of(u64::from(nth) % VOTERS + 1);
        let provider = providers[nth as usize % providers.len()];
        tokio::spawn(async move {
            let mut ticks = interval(Duration::from_secs(1) * WRITERS / per_second);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut written = 0u32;
            while Instant::now() < until {
                ticks.tick().await;
                let claim = Claim::by("project", "user").and(provider, &[("VCPU", 1)]);
                client.put_allocations(Uuid::new_v4(), &claim).await?;
                written += 1;
            }
            Ok::<_, placement_client::Error>(written)
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut writes = 0.0;
    for writer in writers {
        writes += f64::from(writer.await.context("a writer")??);
    }
    let after = (cpu_time(pid)?, sent(&metrics(cluster, leader).await?));
    ensure!(
        leader == cluster.leader().await?,
        "another node came to lead"
    );
    Ok(Figure {
        learners,
        writes,
        cpu: after.0.saturating_sub(before.0),
        sent: after.1 - before.1,
    })
}

fn table(figures: &[Figure]) -> String {
    let mut text = "\n| learners | writes | the leader's processor time per write | of it for each learner | bytes per \
                    write to each learner |\n|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let per_write = |figure: &Figure| figure.cpu.as_secs_f64() * 1e6 / figure.writes.max(1.0);
    for figure in figures {
        let count = figure.learners as f64;
        let beyond = figures
            .first()
            .map_or(0.0, |none| per_write(figure) - per_write(none));
        let (cpu, bytes) = match figure.learners {
            0 => ("-".to_owned(), "-".to_owned()),
            _ => (
                format!("{:.1} µs", beyond / count),
                format!("{:.0}", figure.sent / figure.writes.max(1.0) / count),
            ),
        };
        text.push_str(&format!(
            "| {} | {:.0} | {:.0} µs | {cpu} | {bytes} |\n",
            figure.learners,
            figure.writes,
            per_write(figure)
        ));
    }
    text
}
