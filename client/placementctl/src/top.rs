//! `placementctl top`: a live view of members, their requests, and the fullest resource classes.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures::future::join_all;
use placement_client::{Admin, Capacity, Error, Member, NodeRole, NodeStatus};
use placement_words::{Condition, Health, Survey, inert_lines, share};
use terminal_size::{Height, Width, terminal_size};
use time::OffsetDateTime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout_at};
use unicode_width::UnicodeWidthChar;

use crate::moment::{duration, rfc3339};
use crate::render::{Misuse, Rows, is_written, print};
use crate::survey::{NO_QUORUM, survey};

/// Longer metrics of a node are truncated.
const METRICS_BYTES_MAX: usize = 4 << 20;
/// How long a node may take to return its metrics.
const METRICS_LIMIT: Duration = Duration::from_secs(3);
/// Number of resource classes to show.
const CLASSES_MAX: usize = 8;
const BAR_WIDTH: u64 = 20;
/// Shorter intervals would only load the nodes.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Size of a terminal that does not tell its size.
const SIZE_USUAL: (usize, usize) = (80, 24);
/// Switches to the second screen of the terminal, which has no history, and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

#[derive(Args)]
pub(crate) struct TopArgs {
    /// Time between two views. Rates and latencies are measured over this time.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// Print one view after one interval, and exit.
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        short if short < INTERVAL_MIN => Err(format!("expected at least {INTERVAL_MIN:?}")),
        interval => Ok(interval),
    }
}

/// Shows views until Ctrl-C. The exit code of a single view shows whether there is a quorum.
pub(crate) async fn show(
    admin: &Admin,
    args: &TopArgs,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    if args.once {
        let before = Sample::take(admin, timeout).await?;
        sleep(args.interval).await;
        let after = Sample::take(admin, timeout).await?;
        print(&view(Some(&before), &after))?;
        let health = Health::from_survey(&after.survey);
        return Ok(match health.condition {
            Condition::Healthy | Condition::Degraded => ExitCode::SUCCESS,
            Condition::NoQuorum | Condition::Unknown => ExitCode::from(NO_QUORUM),
        });
    }
    if !io::stdout().is_terminal() {
        let advice = "`top` refreshes its view on a terminal: use --once to print one view";
        return Err(Misuse(advice.to_owned()).into());
    }
    let mut before = Some(Sample::take(admin, timeout).await?);
    // A signal that arrives while a view is drawn is not lost.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let screen = Screen::enter()?;
    if let Some(sample) = &before {
        screen.draw(&view(None, sample))?;
    }
    loop {
        let refreshed = async {
            sleep(args.interval).await;
            Sample::take(admin, timeout).await
        };
        let after = tokio::select! {
            after = refreshed => after,
            _ = interrupt.recv() => return Ok(ExitCode::SUCCESS),
            _ = terminate.recv() => return Ok(ExitCode::SUCCESS),
        };
        let (text, sample) = match after {
            Ok(after) => (view(before.as_ref(), &after), Some(after)),
            Err(error) => (format!("{error}\n"), None),
        };
        if !screen.draw(&text)? {
            return Ok(ExitCode::SUCCESS);
        }
        before = sample;
    }
}

/// The second screen of the terminal. When dropped, the terminal shows the first one again.
struct Screen;

impl Screen {
    fn enter() -> anyhow::Result<Self> {
        is_written(ENTER.as_bytes())?;
        Ok(Self)
    }

    /// Replaces the content of the screen. Returns `false` if the terminal is closed.
    fn draw(&self, text: &str) -> anyhow::Result<bool> {
        let (width, height) = terminal_size()
            .map_or(SIZE_USUAL, |(Width(width), Height(height))| {
                (width.into(), height.into())
            });
        is_written(frame(&inert_lines(text), width, height).as_bytes())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A closed terminal has no screen to restore.
        drop(is_written(LEAVE.as_bytes()));
    }
}

/// The text from the top left corner of a terminal, without what exceeds its size. The rest of each
/// line and of the screen is erased.
fn frame(text: &str, width: usize, height: usize) -> String {
    let lines: Vec<_> = (text.lines().take(height))
        .map(|line| format!("{}\x1b[K", fitting(line, width)))
        .collect();
    format!("\x1b[H{}\x1b[J", lines.join("\r\n"))
}

/// The beginning of a line that fits a width.
fn fitting(line: &str, width: usize) -> &str {
    let mut used = 0;
    let end = line.char_indices().find_map(|(at, char)| {
        used += char.width().unwrap_or(0);
        (used > width).then_some(at)
    });
    &line[..end.unwrap_or(line.len())]
}

/// The state of the cluster at one time.
struct Sample {
    at: Instant,
    survey: Survey,
    /// The counters of each node, by node number.
    counted: BTreeMap<u64, Counted>,
    classes: Vec<Class>,
}

impl Sample {
    async fn take(admin: &Admin, timeout: Duration) -> Result<Self, Error> {
        let survey = survey(admin, timeout).await?;
        let until = Instant::now() + METRICS_LIMIT;
        // A node of another cluster has other inventories.
        let own = |status: &NodeStatus| !survey.is_foreign(status);
        let members = survey.members.iter();
        let answering = members.filter(|(_, status)| status.as_ref().is_some_and(own));
        let asked = answering.map(|(member, _)| async move {
            let metrics = timeout_at(until, metrics(admin, member)).await.ok()??;
            Some((member.id, metrics))
        });
        let metrics: BTreeMap<u64, String> = join_all(asked).await.into_iter().flatten().collect();
        // All nodes have the same inventories.
        let classes = metrics.values().next().map(|metrics| classes(metrics));
        let counted = metrics
            .iter()
            .map(|(id, metrics)| (*id, Counted::new(metrics)));
        Ok(Self {
            at: Instant::now(),
            counted: counted.collect(),
            classes: classes.unwrap_or_default(),
            survey,
        })
    }
}

/// The metrics of a member; `None` if it does not return them.
async fn metrics(admin: &Admin, member: &Member) -> Option<String> {
    let node = admin.for_member(member, METRICS_LIMIT).ok()?;
    let (answer, _) = node.look("metrics", METRICS_BYTES_MAX).await.ok()?;
    let is_complete = answer.status.is_success();
    is_complete.then(|| String::from_utf8_lossy(&answer.body).into_owned())
}

/// What a node has counted since its start.
#[derive(Debug, Default, PartialEq)]
struct Counted {
    requests: f64,
    /// Requests that were answered with 5xx.
    failed: f64,
    /// Number of requests by the upper bound of their duration in seconds, ascending. Each number
    /// includes the previous ones.
    durations: Vec<(f64, f64)>,
}

impl Counted {
    fn new(metrics: &str) -> Self {
        let mut counted = Self::default();
        for line in metrics.lines() {
            let Some(series) = line.strip_prefix("placement_http_request_duration_seconds_") else {
                continue;
            };
            let Some(number) = value(series) else {
                continue;
            };
            if series.starts_with("count{") {
                counted.requests += number;
                let status = label(series, "status").unwrap_or_default();
                counted.failed += if status.starts_with('5') { number } else { 0.0 };
            } else if series.starts_with("bucket{")
                && let Some(bound) = label(series, "le").and_then(|bound| bound.parse::<f64>().ok())
            {
                let mut known = counted.durations.iter_mut();
                match known.find(|(known, _)| *known == bound) {
                    Some((_, sum)) => *sum += number,
                    None => counted.durations.push((bound, number)),
                }
            }
        }
        counted
            .durations
            .sort_by(|(one, _), (other, _)| one.total_cmp(other));
        counted
    }

    /// What was counted after `before`; `None` if the node has restarted in between.
    fn since(&self, before: &Self) -> Option<Self> {
        let earlier = |bound: f64| {
            let mut known = before.durations.iter();
            let found = known.find(|(known, _)| *known == bound);
            found.map_or(0.0, |(_, count)| *count)
        };
        let durations = self.durations.iter();
        let durations = durations.map(|(bound, count)| (*bound, count - earlier(*bound)));
        let since = Self {
            requests: self.requests - before.requests,
            failed: self.failed - before.failed,
            durations: durations.collect(),
        };
        let mut numbers = since.durations.iter().map(|(_, count)| *count);
        let has_grown = since.requests >= 0.0 && since.failed >= 0.0;
        (has_grown && numbers.all(|number| number >= 0.0)).then_some(since)
    }

    /// The duration in seconds that this part of the requests did not exceed, interpolated between
    /// the bounds; `None` without requests.
    fn quantile(&self, part: f64) -> Option<f64> {
        let (_, all) = self.durations.last()?;
        let rank = all * part;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in &self.durations {
            if *count >= rank && *count > 0.0 {
                let width = if bound.is_finite() {
                    bound - lower
                } else {
                    0.0
                };
                return Some(lower + width * (rank - below) / (count - below).max(1.0));
            }
            (lower, below) = (*bound, *count);
        }
        None
    }
}

/// The value of a label in a line of metrics.
fn label<'a>(series: &'a str, name: &str) -> Option<&'a str> {
    let starts = ["{", ","].map(|before| format!("{before}{name}=\""));
    let found = starts.iter().find_map(|start| series.split_once(start));
    Some(found?.1.split_once('"')?.0)
}

/// The value of a line of metrics.
fn value(series: &str) -> Option<f64> {
    series.rsplit_once(' ')?.1.parse().ok()
}

/// Use and capacity of a resource class in a partition.
#[derive(Debug, Clone, PartialEq)]
struct Class {
    class: String,
    partition: String,
    used: u64,
    capacity: i64,
}

impl Class {
    fn part(&self) -> f64 {
        self.used as f64 / self.capacity as f64
    }

    /// `[#####     ]  50 %`
    fn bar(&self) -> String {
        let filled = (self.part() * BAR_WIDTH as f64).ceil() as u64;
        let filled = filled.min(BAR_WIDTH);
        let cell = |at| if at < filled { '#' } else { ' ' };
        let bar: String = (0..BAR_WIDTH).map(cell).collect();
        format!("[{bar}] {:3.0} %", self.part() * 100.0)
    }
}

/// The resource classes with capacity, the fullest first.
fn classes(metrics: &str) -> Vec<Class> {
    let mut amounts: BTreeMap<(&str, &str), (f64, f64)> = BTreeMap::new();
    for line in metrics.lines() {
        let is_used = line.starts_with("placement_inventory_used{");
        if !is_used && !line.starts_with("placement_inventory_capacity{") {
            continue;
        }
        let names = label(line, "partition").zip(label(line, "resource_class"));
        if let Some((names, units)) = names.zip(value(line)) {
            let (used, capacity) = amounts.entry(names).or_default();
            *(if is_used { used } else { capacity }) = units;
        }
    }
    let all = amounts.into_iter();
    let class = |((partition, class), (used, capacity)): ((&str, &str), (f64, f64))| Class {
        class: class.to_owned(),
        partition: partition.to_owned(),
        used: used as u64,
        capacity: capacity as i64,
    };
    let mut all: Vec<Class> = all.map(class).filter(|class| class.capacity > 0).collect();
    all.sort_by(|one, other| other.part().total_cmp(&one.part()));
    all.truncate(CLASSES_MAX);
    all
}

/// A line of the table of members.
struct Line {
    node: u64,
    name: String,
    role: Option<NodeRole>,
    ready: &'static str,
    lag: Option<u64>,
    rate: Option<String>,
    failing: Option<String>,
    median: Option<String>,
    p99: Option<String>,
}

/// The text of a view. Rates are those since `before`.
fn view(before: Option<&Sample>, after: &Sample) -> String {
    let newest = after.survey.newest();
    let cluster = newest.cluster_id.as_deref().unwrap_or("not formed");
    let leader = after.survey.leader();
    let leader = leader.map(|leader| format!("node {leader}"));
    let leader = leader.as_deref().unwrap_or("none");
    let now = rfc3339(OffsetDateTime::now_utc().unix_timestamp());
    let mut text = format!("cluster {cluster}   leader {leader}   {now}\n");
    text += &Health::from_survey(&after.survey).text();
    for warning in after.survey.warnings(false) {
        text += &format!("warning: {warning}\n");
    }
    let members = after.survey.members.iter();
    let lines = members.map(|(member, status)| line(before, after, member, status.as_ref()));
    text += "\n";
    text += &Rows::new(lines.collect())
        .column("node", |line: &Line| line.node)
        .column("name", |line| line.name.clone())
        .column("role", |line| line.role)
        .column("ready", |line| line.ready)
        .column("lag", |line| line.lag)
        .column("requests/s", |line| line.rate.clone())
        .column("5xx/s", |line| line.failing.clone())
        .column("median", |line| line.median.clone())
        .column("99 %", |line| line.p99.clone())
        .table();
    if !after.classes.is_empty() {
        text += "\n";
        text += &Rows::new(after.classes.clone())
            .column("class", |class: &Class| class.class.clone())
            .column("partition", |class| class.partition.clone())
            .column("used", Class::bar)
            .column("of", |class| {
                share(&class.class, class.used, Capacity::from(class.capacity))
            })
            .table();
    }
    text
}

fn line(
    before: Option<&Sample>,
    after: &Sample,
    member: &Member,
    status: Option<&NodeStatus>,
) -> Line {
    let newest = after.survey.newest();
    let own = status.filter(|status| !after.survey.is_foreign(status));
    let applied = own.and_then(|status| status.applied);
    let before = before.and_then(|before| {
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        Some((before.counted.get(&member.id)?, seconds.max(0.001)))
    });
    let since = before.and_then(|(before, seconds)| {
        let counted = after.counted.get(&member.id)?.since(before)?;
        Some((counted, seconds))
    });
    let since = since.as_ref();
    let quantile = |part| {
        let (counted, _) = since?;
        counted.quantile(part).map(milliseconds)
    };
    Line {
        node: member.id,
        name: member.name.clone(),
        role: own.map(|status| status.role),
        ready: match (status, own) {
            (None, _) => "no answer",
            (Some(_), Some(own)) if own.ready => "yes",
            _ => "no",
        },
        lag: (newest.last_log.zip(applied)).map(|(last, applied)| last.saturating_sub(applied)),
        rate: since.map(|(counted, seconds)| format!("{:.1}", counted.requests / seconds)),
        failing: since.map(|(counted, seconds)| format!("{:.1}", counted.failed / seconds)),
        median: quantile(0.5),
        p99: quantile(0.99),
    }
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = r#"
# TYPE placement_http_request_duration_seconds histogram
placement_http_request_duration_seconds_sum{method="GET",route="/traits",status="200"} 0.5
placement_http_request_duration_seconds_count{method="GET",route="/traits",status="200"} 90
placement_http_request_duration_seconds_bucket{method="GET",route="/traits",status="200",le="0.001"} 50
placement_http_request_duration_seconds_bucket{method="GET",route="/traits",status="200",le="0.01"} 90
placement_http_request_duration_seconds_bucket{method="GET",route="/traits",status="200",le="+Inf"} 90
placement_http_request_duration_seconds_count{method="PUT",route="none",status="503"} 10
placement_http_request_duration_seconds_bucket{method="PUT",route="none",status="503",le="0.001"} 0
placement_http_request_duration_seconds_bucket{method="PUT",route="none",status="503",le="0.01"} 0
placement_http_request_duration_seconds_bucket{method="PUT",route="none",status="503",le="+Inf"} 10
placement_inventory_capacity{partition="default",resource_class="VCPU"} 48
placement_inventory_used{partition="default",resource_class="VCPU"} 12
placement_inventory_capacity{partition="default",resource_class="MEMORY_MB"} 2048
placement_inventory_used{partition="default",resource_class="MEMORY_MB"} 2000
placement_inventory_capacity{partition="north",resource_class="VGPU"} 0
"#;

    #[test]
    fn requests_are_summed_over_routes_and_their_durations_interpolated() {
        let counted = Counted::new(METRICS);
        assert_eq!((counted.requests, counted.failed), (100.0, 10.0));
        assert_eq!(
            counted.durations,
            [(0.001, 50.0), (0.01, 90.0), (f64::INFINITY, 100.0)]
        );
        for (part, expected) in [(0.5, 0.001), (0.7, 0.0055)] {
            let found = counted.quantile(part).unwrap();
            assert!((found - expected).abs() < 1e-9, "{found}");
        }
        assert_eq!(
            counted.quantile(0.99),
            Some(0.01),
            "it exceeds the last bound"
        );
        assert_eq!(Counted::default().quantile(0.5), None);
    }

    #[test]
    fn a_restart_is_no_negative_rate() {
        let counted = Counted::new(METRICS);
        let since = counted.since(&Counted::default()).unwrap();
        assert_eq!(since, counted);
        let none = counted.since(&counted).unwrap();
        assert_eq!((none.requests, none.quantile(0.5)), (0.0, None));
        assert_eq!(Counted::default().since(&counted), None);
        let restarted =
            Counted::new(&METRICS.replace(r#"status="503"} 10"#, r#"status="200"} 99"#));
        assert!(restarted.requests > counted.requests);
        assert_eq!(restarted.since(&counted), None, "it failed less often");
    }

    #[test]
    fn an_interval_is_not_zero() {
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        for text in ["0", "0.01", "soon"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_fullest_class_comes_first() {
        let classes = classes(METRICS);
        let names: Vec<_> = classes.iter().map(|class| &*class.class).collect();
        assert_eq!(names, ["MEMORY_MB", "VCPU"]);
        assert_eq!(classes[1].bar(), "[#####               ]  25 %");
    }

    #[test]
    fn a_view_fits_the_terminal() {
        let text = "計算機 too long\nsecond\nthird\n";
        assert_eq!(frame(text, 5, 2), "\x1b[H計算\x1b[K\r\nsecon\x1b[K\x1b[J");
        assert_eq!(fitting("short", 80), "short");
    }

    #[test]
    fn a_view_has_80_columns() {
        let member = |id: u64| Member {
            id,
            name: format!("node-{id}"),
            ..Member::default()
        };
        let leader = NodeStatus {
            makes_backups: true,
            clock_problem: Some("its clock is 300 s ahead".to_owned()),
            node_id: 1,
            cluster_id: Some("18f80951-404d-4a19-8c9e-0518526ce24d".to_owned()),
            role: NodeRole::Leader,
            leader: Some(1),
            last_log: Some(1_000_000),
            applied: Some(1_000_000),
            ready: true,
            members: vec![member(1), member(2)],
            ..NodeStatus::default()
        };
        let sample = |counted| Sample {
            at: Instant::now(),
            survey: Survey::new(
                leader.clone(),
                vec![(member(1), Some(leader.clone())), (member(2), None)],
            ),
            counted: BTreeMap::from([(1, counted)]),
            classes: classes(METRICS),
        };
        let text = view(
            Some(&sample(Counted::default())),
            &sample(Counted::new(METRICS)),
        );
        assert!(
            text.contains("\nwarning: node 1: its clock is 300 s ahead\n"),
            "{text}"
        );
        let width = text.lines().map(|line| line.chars().count()).max();
        assert!(width <= Some(100), "{text}");
        let table = text.lines().skip_while(|line| !line.starts_with("NODE"));
        assert!(
            table.clone().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(text.contains("node-2  -       no answer"), "{text}");
        assert!(
            text.contains("MEMORY_MB  default    [####################]  98 %  2/2 GiB"),
            "{text}"
        );
    }
}
