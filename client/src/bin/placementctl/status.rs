//! `placementctl status`: the status of each member.

use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, Member, NodeStatus};
use placement_words::{Health, Survey, bytes};
use serde::Serialize;
use serde_json::{Value, json};

use crate::render::{Output, Rows, print, word};
use crate::survey::{exit_code, survey};
use crate::topology::site;

/// Members of a node's status that are part of the output.
const REPORTED: &str = "version not_ready term last_log committed applied snapshot last_backup backup_problem \
                        disk_used_bytes disk_free_bytes disk_problem storage_failure digest level_max \
                        round_trip_problem clock_problem certificate_problem";

/// Prints a survey. The exit code shows the health of the cluster.
pub(crate) async fn show(
    admin: &Admin,
    output: &Output,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = survey(admin, timeout).await?;
    let report = ClusterReport::new(&survey)?;
    print(&report.printed(output)?)?;
    Ok(exit_code(&report.health))
}

/// Text output of `status` for a survey.
pub(crate) fn text(survey: &Survey) -> anyhow::Result<String> {
    ClusterReport::new(survey)?.printed(&Output::default())
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
    members: Vec<Value>,
    /// Problems that do not affect clients yet; they do not change the exit code.
    warnings: Vec<String>,
}

impl ClusterReport {
    fn new(survey: &Survey) -> serde_json::Result<Self> {
        let newest = survey.newest();
        let leads = |status: &&NodeStatus| Some(status.node_id) == newest.leader;
        let head = survey
            .answers()
            .find(leads)
            .and_then(|leader| leader.last_log);
        let members = survey.members.iter();
        let members = members.map(|(one, answer)| member(one, answer.as_ref(), survey, head));
        Ok(Self {
            cluster_id: newest.cluster_id.clone(),
            leader: newest.leader,
            term: newest.term,
            level: newest.level,
            health: Health::of(survey),
            partitions: newest.partitions.clone(),
            members: members.collect::<Result<_, _>>()?,
            warnings: survey.warnings(true),
        })
    }

    fn printed(&self, output: &Output) -> anyhow::Result<String> {
        output.report(self, Some(self.rows()), |table| self.text(&table))
    }

    /// A row for each member.
    fn rows(&self) -> Rows {
        let items = self.members.iter().map(row);
        let columns = "node:id name site role ready lag version +level:level_max +api +term +last_log \
                       +committed +applied +snapshot +disk_used disk_free";
        Rows::new(columns, items.collect())
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

/// Membership and reported status of a member; null if it does not report a value. `head`: index of
/// the last entry of the leader.
fn member(
    member: &Member,
    answer: Option<&NodeStatus>,
    survey: &Survey,
    head: Option<u64>,
) -> serde_json::Result<Value> {
    let (mut item, status) = (serde_json::to_value(member)?, serde_json::to_value(answer)?);
    for key in REPORTED.split_whitespace() {
        item[key] = status[key].clone();
    }
    item["role"] = match answer {
        Some(status) if survey.is_superseded(status) => json!("superseded"),
        Some(status) => json!(status.role),
        None => json!(member.role),
    };
    let lag = head.zip(answer.and_then(|status| status.applied));
    item["lag"] = json!(lag.map(|(head, applied)| head.saturating_sub(applied)));
    item["ready"] = json!(answer.is_some_and(|status| status.ready));
    item["reachable"] = json!(answer.is_some());
    let trips = answer.map_or(&[][..], |status| &status.round_trips);
    item["round_trips"] = json!(trips);
    Ok(item)
}

/// The row of a member in the table.
fn row(member: &Value) -> Value {
    let mut row = member.clone();
    let mark = match (member["reachable"] == true, &member["storage_failure"]) {
        (false, _) => " (unreachable)",
        (_, Value::Null) => "",
        _ => " (failed)",
    };
    row["role"] = json!(word(&member["role"]) + mark);
    let [region, zone] = ["region", "zone"].map(|key| member[key].as_str().unwrap_or_default());
    row["site"] = json!(site(region, zone));
    for key in ["disk_used", "disk_free"] {
        row[key] = json!(member[format!("{key}_bytes")].as_u64().map(bytes));
    }
    row
}

#[cfg(test)]
mod tests;
