//! Health of the cluster, warnings, members and partitions.

use maud::html;
use placement_wire::{Member, NodeRole, NodeStatus, Partition};
use placement_words::{Condition, Health, Survey};

use crate::ask::{Failure, Questions};
use crate::charts::bars;
use crate::frame::View;
use crate::parts::{RowBudget, Table, cell, facts, link};
use crate::target;
use crate::words::{bytes, cut, date, site, word};

pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let asked: NodeStatus = match questions.get("/v1/status".to_owned()).await {
        // `placementd replay` has no members.
        Err(failure) if failure.status == 404 => return backup(questions).await,
        asked => asked?,
    };
    let paths = asked
        .members
        .iter()
        .map(|one| format!("/v1/nodes/{}/status", one.id));
    let (answers, partitions) = questions
        .all_and_one(paths.collect(), "/v1/partitions".to_owned())
        .await;
    let answers: Vec<Result<NodeStatus, Failure>> = answers;
    let partitions: Vec<Partition> = partitions.unwrap_or_default();
    let mut leaders = answers.iter().flatten();
    let leader = leaders.find(|one| one.role == NodeRole::Leader);
    let head = leader.unwrap_or(&asked).last_log;
    let members: Vec<Reported<'_>> = asked
        .members
        .iter()
        .zip(&answers)
        .map(|(entry, answer)| Reported {
            entry,
            status: answer.as_ref().ok(),
            head,
        })
        .collect();
    let mut budget = RowBudget::default();
    let mut survey = survey(&asked, &answers);
    if questions.is_user_session() {
        // The reason contains addresses, which only operators may see.
        let members = survey.members.iter_mut();
        members.for_each(|(member, _)| member.unreachable = None);
    }
    let health = Health::from_survey(&survey);
    let warnings = survey.warnings(!questions.is_user_session());
    let warnings = health.problems.iter().chain(&warnings);
    let warnings = budget.take(warnings.map(|one| html! { li { (cut(one)) } }));
    let (reported, answered, expiring) = (reported(), answered(), expiring());
    let rows = budget.take(members.iter().map(|one| reported.row(one)));
    let requests = members.iter().filter_map(Requests::from_report);
    let requests = budget.take(requests.map(|one| answered.row(&one)));
    let certificates = members.iter().flat_map(certificates);
    let certificates = budget.take(certificates.map(|one| expiring.row(&one)));
    let held = held();
    let partitions = budget.take(partitions.iter().map(|one| held.row(one)));
    let facts = facts(&[
        ("cluster id", word(&asked.cluster_id)),
        ("leader", word(survey.leader())),
        ("term", word(asked.term)),
        ("level", word(asked.level)),
    ]);
    Ok(View {
        title: "Overview".to_owned(),
        body: html! {
            p class="verdict" { (verdict(&health, survey.asked.node_id)) }
            @if !warnings.is_empty() {
                h2 { "Warnings" }
                ul { @for one in &warnings { (one) } }
            }
            (facts)
            (reported.with("Members", &rows))
            (answered.with("Requests of the last hour", &requests))
            @if !certificates.is_empty() { (expiring.with("Certificates", &certificates)) }
            (held.with("Partitions", &partitions))
        },
        commands: ["placementctl status", "placementctl partitions"]
            .map(str::to_owned)
            .into(),
    })
}

/// The partitions of a backup.
async fn backup(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let partitions: Vec<Partition> = questions.get("/v1/partitions".to_owned()).await?;
    let (held, mut budget) = (held(), RowBudget::default());
    let partitions = budget.take(partitions.iter().map(|one| held.row(one)));
    Ok(View {
        title: "Backup".to_owned(),
        body: html! {
            p { "These pages show the content of a backup. It has no members and no searches." }
            (held.with("Partitions", &partitions))
        },
        commands: Vec::new(),
    })
}

/// A member: its entry in the membership, and the status that it reports if it answers.
struct Reported<'a> {
    entry: &'a Member,
    status: Option<&'a NodeStatus>,
    /// Index of the last log entry of the leader.
    head: Option<u64>,
}

impl Reported<'_> {
    fn name(&self) -> String {
        format!("{} (node {})", word(&self.entry.name), self.entry.id)
    }

    fn lag(&self) -> Option<u64> {
        let applied = self.status?.applied?;
        Some(self.head?.saturating_sub(applied))
    }
}

fn reported<'a>() -> Table<'static, Reported<'a>> {
    Table::new()
        .column("Member", |one: &Reported<'_>| cell(one.name()))
        .column("Role", |one| match one.status {
            Some(status) => cell(status.role),
            None => cell(one.entry.role),
        })
        .column("Ready", |one| cell(one.status.is_some_and(|one| one.ready)))
        .column("Site", |one| cell(site(&one.entry.region, &one.entry.zone)))
        .column("Version", |one| cell(one.status.map(|one| &one.version)))
        .column("Level", |one| cell(one.status.map(|one| one.level_max)))
        .column("Term", |one| cell(one.status.map(|one| one.term)))
        .column("Applied", |one| cell(one.status.map(|one| one.applied)))
        .column("Lag", |one| cell(one.lag()))
        .column("Disk used", |one| {
            let used = one.status.and_then(|one| one.disk_used_bytes);
            cell(used.map(bytes))
        })
        .column("Disk free", |one| {
            let free = one.status.and_then(|one| one.disk_free_bytes);
            cell(free.map(bytes))
        })
        .column("Last backup", |one| {
            let last = one.status.and_then(|one| one.last_backup);
            cell(last.map(date))
        })
}

/// The same survey as in `placementctl status`.
fn survey(asked: &NodeStatus, answers: &[Result<NodeStatus, Failure>]) -> Survey {
    let of_member = |(member, answer): (&Member, &Result<NodeStatus, Failure>)| {
        let own = answer.as_ref().ok().cloned();
        // A different node at this address does not count.
        (member.clone(), own.filter(|own| own.node_id == member.id))
    };
    let members = asked.members.iter().zip(answers).map(of_member);
    Survey::new(asked.clone(), members.collect())
}

/// The condition of the cluster on one line.
fn verdict(health: &Health, asked: u64) -> String {
    let (of, spare) = (
        format!("{} of {} voters are ready", health.ready, health.voters),
        health.can_lose,
    );
    match health.condition {
        _ if health.voters == 0 => format!("Node {asked} belongs to no cluster."),
        Condition::NoQuorum => format!("No quorum: {of}; nothing can be written."),
        Condition::Unknown => format!("Unknown: the other nodes refuse node {asked}."),
        Condition::Healthy => format!("Healthy: {of}; {spare} may fail."),
        Condition::Degraded => format!("Degraded: {of}; {spare} may fail."),
    }
}

/// Requests that a member answered in each minute of the last hour, and those with 503.
struct Requests {
    member: String,
    all: Vec<u64>,
    failed: Vec<u64>,
}

impl Requests {
    fn from_report(member: &Reported<'_>) -> Option<Self> {
        let minutes = member.status?.requests.iter().take(60).copied();
        let (all, failed): (Vec<_>, Vec<_>) = minutes.unzip();
        (!all.is_empty()).then(|| Self {
            member: member.name(),
            all,
            failed,
        })
    }
}

fn answered() -> Table<'static, Requests> {
    let sum = |counts: &[u64]| cell(counts.iter().copied().fold(0, u64::saturating_add));
    Table::new()
        .column("Member", |one: &Requests| cell(&one.member))
        .column("Answered", move |one| sum(&one.all))
        .column("With 503", move |one| sum(&one.failed))
        .column("Per minute", |one| {
            let most = one.all.iter().max().copied().unwrap_or_default();
            let label = format!("Requests per minute, at most {most}");
            bars(&label, &one.all, &one.failed)
        })
}

/// The certificate of a listener of a member.
struct Certificate {
    listener: String,
    member: String,
    /// Time of its expiry, in seconds since 1970.
    end: u64,
}

fn certificates(member: &Reported<'_>) -> Vec<Certificate> {
    let ends = member.status.iter().flat_map(|one| &one.certificate_ends);
    ends.map(|(listener, end)| Certificate {
        listener: cut(listener),
        member: member.name(),
        end: *end,
    })
    .collect()
}

fn expiring() -> Table<'static, Certificate> {
    Table::new()
        .column("Listener", |one: &Certificate| html! { (one.listener) })
        .column("Member", |one| cell(&one.member))
        .column("Expires", |one| html! { (date(one.end)) })
}

fn held() -> Table<'static, Partition> {
    Table::new()
        .column("Partition", |one: &Partition| {
            let page = target::Partition(one.name.clone()).page("capacity", &[]);
            link(&page, &one.name)
        })
        .column("Providers", |one| cell(one.providers))
        .column("Consumers", |one| cell(one.consumers))
        .column("Region", |one| cell(&one.region))
        .column("Requests", |one| cell(&one.ways))
}
