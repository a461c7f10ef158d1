//! `placementctl status`: the status of each member.

use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, MeasuredRoundTrip, Member, MemberRole, NodeRole, NodeStatus};
use placement_words::{Health, Survey, bytes};
use serde::Serialize;
use time::OffsetDateTime;

use crate::moment::short_span;
use crate::render::{Output, Rows, print};
use crate::survey::{exit_code, survey};
use crate::topology::site;

/// Prints a survey. The exit code shows the health of the cluster.
pub(crate) async fn show(
    admin: &Admin,
    output: &Output,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = survey(admin, timeout).await?;
    let report = ClusterReport::new(&survey);
    print(&report.printed(output)?)?;
    Ok(exit_code(&report.health))
}

/// Text output of `status` for a survey.
pub(crate) fn text(survey: &Survey) -> anyhow::Result<String> {
    ClusterReport::new(survey).printed(&Output::default())
}

/// The output of `members list` for a survey.
pub(crate) fn members(survey: &Survey, output: &Output) -> anyhow::Result<String> {
    let rows = Rows::new(ClusterReport::new(survey).lines())
        .column("node", |row| row.member.id)
        .column("name", |row| row.member.name.clone())
        .column("site", |row| row.site.clone())
        .column("role", |row| row.member.role)
        .column("ready", |row| row.ready)
        .wide("version", |row| row.member.version.clone())
        .wide("peer", |row| row.member.peer.clone())
        .wide("api", |row| row.member.api.clone())
        .wide("admin", |row| row.member.admin.clone());
    output.rows(rows.if_none("no members"))
}

#[derive(Serialize)]
struct ClusterReport {
    cluster_id: Option<String>,
    leader: Option<u64>,
    term: u64,
    /// The feature level of the cluster.
    level: Option<u32>,
    health: Health,
    /// All partitions except the default one.
    partitions: Vec<String>,
    members: Vec<MemberReport>,
    /// Problems that do not affect clients yet; they do not change the exit code.
    warnings: Vec<String>,
}

impl ClusterReport {
    fn new(survey: &Survey) -> Self {
        let newest = survey.newest();
        let leads = |status: &&NodeStatus| Some(status.node_id) == newest.leader;
        let head = survey
            .answers()
            .find(leads)
            .and_then(|leader| leader.last_log);
        let members = survey
            .members
            .iter()
            .map(|(one, answer)| MemberReport::new(one, answer.as_ref(), survey, head));
        Self {
            cluster_id: newest.cluster_id.clone(),
            leader: survey.leader(),
            term: newest.term,
            level: newest.level,
            health: Health::from_survey(survey),
            partitions: newest.partitions.clone(),
            members: members.collect(),
            warnings: survey.warnings(true),
        }
    }

    fn printed(&self, output: &Output) -> anyhow::Result<String> {
        output.report(self, Some(self.rows()), |table| self.text(&table))
    }

    /// A line of the table for each member.
    fn lines(&self) -> Vec<Row> {
        let now = OffsetDateTime::now_utc().unix_timestamp();
        let row = |member| Row::new(member, u64::try_from(now).unwrap_or_default());
        self.members.iter().map(row).collect()
    }

    fn rows(&self) -> Rows<Row> {
        let rows = Rows::new(self.lines())
            .column("node", |row| row.member.id)
            .column("name", |row| row.member.name.clone());
        let site = |row: &Row| row.site.clone();
        let has_sites = self.members.iter().any(|member| member.has_site());
        let rows = if has_sites {
            rows.column("site", site)
        } else {
            rows.wide("site", site)
        };
        rows.column("role", |row| row.member.role)
            .column("ready", |row| row.ready)
            .column("lag", |row| row.member.lag)
            .column("version", |row| row.member.version.clone())
            .column("disk_free", |row| row.disk_free.clone())
            .column("backup", |row| row.backup.clone())
            .wide("level", |row| row.member.level_max)
            .wide("api", |row| row.member.api.clone())
            .wide("term", |row| row.member.term)
            .wide("last_log", |row| row.member.last_log)
            .wide("committed", |row| row.member.committed)
            .wide("applied", |row| row.member.applied)
            .wide("snapshot", |row| row.member.snapshot)
            .wide("disk_used", |row| row.disk_used.clone())
    }

    fn text(&self, table: &str) -> String {
        let cluster = self.cluster_id.as_deref().unwrap_or("not formed");
        let leader = self.leader.map(|leader| format!("node {leader}"));
        let leader = leader.as_deref().unwrap_or("none");
        let mut text = format!("cluster {cluster}   leader {leader}   term {}", self.term);
        if let Some(level) = self.level {
            text += &format!("   feature level {level}");
        }
        text += "\n";
        if !self.partitions.is_empty() {
            text += &format!("partitions default, {}\n", self.partitions.join(", "));
        }
        text += "\n";
        if !self.members.is_empty() {
            text += &format!("{table}\n");
        }
        text += &self.health.text();
        for warning in &self.warnings {
            text += &format!("warning: {warning}\n");
        }
        text
    }
}

/// Membership and reported status of a member; `None` if it does not report a value.
#[derive(Clone, Serialize)]
struct MemberReport {
    admin: String,
    api: String,
    applied: Option<u64>,
    backup_problem: Option<String>,
    certificate_problem: Option<String>,
    clock_problem: Option<String>,
    committed: Option<u64>,
    digest: Option<String>,
    disk_free_bytes: Option<u64>,
    disk_problem: Option<String>,
    disk_used_bytes: Option<u64>,
    id: u64,
    lag: Option<u64>,
    last_backup: Option<u64>,
    last_log: Option<u64>,
    level_max: Option<u32>,
    makes_backups: bool,
    matched: Option<u64>,
    name: String,
    not_ready: Option<String>,
    peer: String,
    reachable: bool,
    ready: bool,
    region: String,
    replaced_by: Option<u64>,
    role: Role,
    round_trip_problem: Option<String>,
    round_trips: Vec<MeasuredRoundTrip>,
    snapshot: Option<u64>,
    storage_failure: Option<String>,
    term: Option<u64>,
    unreachable: Option<String>,
    version: Option<String>,
    zone: String,
}

/// Raft role that a member reports; if it does not answer, its role in the membership.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Role {
    Reported(NodeRole),
    Listed(MemberRole),
    Lost(LostRole),
}

/// Role of a node that the cluster does not count.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum LostRole {
    /// It believes that it is the leader although another node leads in a later term.
    Superseded,
    /// It belongs to another cluster.
    Foreign,
}

impl MemberReport {
    fn has_site(&self) -> bool {
        !self.region.is_empty() || !self.zone.is_empty()
    }

    /// `head`: index of the last entry of the leader.
    fn new(
        member: &Member,
        answer: Option<&NodeStatus>,
        survey: &Survey,
        head: Option<u64>,
    ) -> Self {
        let Member {
            id,
            name,
            role,
            peer,
            api,
            admin,
            region,
            zone,
            matched,
            unreachable,
            replaced_by,
        } = member.clone();
        let is_foreign = answer.is_some_and(|status| survey.is_foreign(status));
        let applied = answer.and_then(|status| status.applied);
        let text = |of: fn(&NodeStatus) -> &Option<String>| answer.and_then(|one| of(one).clone());
        Self {
            admin,
            api,
            applied,
            backup_problem: text(|status| &status.backup_problem),
            certificate_problem: text(|status| &status.certificate_problem),
            clock_problem: text(|status| &status.clock_problem),
            committed: answer.and_then(|status| status.committed),
            digest: text(|status| &status.digest),
            disk_free_bytes: answer.and_then(|status| status.disk_free_bytes),
            disk_problem: text(|status| &status.disk_problem),
            disk_used_bytes: answer.and_then(|status| status.disk_used_bytes),
            id,
            lag: head
                .zip(applied)
                .filter(|_| !is_foreign)
                .map(|(head, applied)| head.saturating_sub(applied)),
            last_backup: answer.and_then(|status| status.last_backup),
            last_log: answer.and_then(|status| status.last_log),
            level_max: answer.map(|status| status.level_max),
            makes_backups: answer.is_some_and(|status| status.makes_backups),
            matched,
            name,
            not_ready: text(|status| &status.not_ready),
            peer,
            reachable: answer.is_some(),
            ready: answer.is_some_and(|status| status.ready && !is_foreign),
            region,
            replaced_by,
            role: match answer {
                Some(_) if is_foreign => Role::Lost(LostRole::Foreign),
                Some(status) if survey.is_superseded(status) => Role::Lost(LostRole::Superseded),
                Some(status) => Role::Reported(status.role),
                None => Role::Listed(role),
            },
            round_trip_problem: text(|status| &status.round_trip_problem),
            round_trips: answer.map_or_else(Vec::new, |status| status.round_trips.clone()),
            snapshot: answer.and_then(|status| status.snapshot),
            storage_failure: text(|status| &status.storage_failure),
            term: answer.map(|status| status.term),
            unreachable,
            version: answer.map(|status| status.version.clone()),
            zone,
        }
    }
}

/// The row of a member in the table.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    member: MemberReport,
    /// `yes`, `no`, or why not in one word.
    #[serde(skip)]
    ready: &'static str,
    site: String,
    disk_used: Option<String>,
    disk_free: Option<String>,
    /// Age of the last scheduled backup.
    #[serde(skip)]
    backup: Option<String>,
}

impl Row {
    /// `now`: seconds since 1970.
    fn new(member: &MemberReport, now: u64) -> Self {
        let age = |at: u64| short_span(now.saturating_sub(at)) + " ago";
        let backup = match member.last_backup {
            None if member.makes_backups => Some("none yet".to_owned()),
            None | Some(0) => None,
            Some(at) => Some(age(at)),
        };
        Self {
            ready: match (member.reachable, &member.storage_failure) {
                (false, _) => "no answer",
                (true, Some(_)) => "failed",
                (true, None) if member.ready => "yes",
                (true, None) => "no",
            },
            backup,
            site: site(&member.region, &member.zone),
            disk_used: member.disk_used_bytes.map(bytes),
            disk_free: member.disk_free_bytes.map(bytes),
            member: member.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
