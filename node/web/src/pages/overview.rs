//! How the cluster is: health, members, warnings, partitions.

use maud::{Markup, html};
use serde_json::Value;

use crate::ask::{Failure, Questions};
use crate::frame::View;
use crate::parts::{Room, cell, link, row, table};
use crate::target::Partition;
use crate::words::{bytes, date, list, site, text, word};

/// What a member reports as a problem.
const PROBLEMS: [&str; 5] = [
    "storage_failure",
    "backup_problem",
    "routing_problem",
    "round_trip_problem",
    "clock_problem",
];
const MEMBERS: [&str; 12] = [
    "Member",
    "Role",
    "Ready",
    "Site",
    "Version",
    "Level",
    "Term",
    "Applied",
    "Lag",
    "Disk used",
    "Disk free",
    "Last backup",
];

/// A member, and its own status if it answers.
struct Member<'a> {
    entry: &'a Value,
    status: Option<Value>,
}

impl Member<'_> {
    fn reports(&self, key: &str) -> &Value {
        const NOTHING: &Value = &Value::Null;
        self.status.as_ref().map_or(NOTHING, |status| &status[key])
    }

    fn is_ready(&self) -> bool {
        self.reports("ready") == true
    }

    fn name(&self) -> String {
        format!("{} (node {})", word(&self.entry["name"]), self.entry["id"])
    }
}

pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let asked = questions.get("/v1/status".to_owned()).await?;
    let entries = list(&asked["members"]);
    let paths = entries
        .iter()
        .map(|one| format!("/v1/nodes/{}/status", one["id"]))
        .chain(["/v1/partitions".to_owned()]);
    let mut answers = questions.all(paths.collect()).await;
    let partitions = answers.pop().and_then(Result::ok).unwrap_or_default();
    let members = entries.iter().zip(answers);
    let members: Vec<Member<'_>> = members
        .map(|(entry, answer)| Member {
            entry,
            status: answer.ok(),
        })
        .collect();
    let mut room = Room::default();
    let head = (members.iter())
        .find(|one| one.reports("role") == "leader")
        .map_or(&asked["committed"], |leader| leader.reports("last_log"));
    let rows = room.take(members.iter().map(|one| member(one, head)));
    let body = html! {
        p class="verdict" { (verdict(&asked, &members)) }
        @let warnings = room.take(members.iter().flat_map(warnings));
        @if !warnings.is_empty() {
            h2 { "Warnings" }
            ul { @for one in &warnings { (one) } }
        }
        dl {
            dt { "Cluster" } dd { (word(&asked["cluster_id"])) }
            dt { "Leader" } dd { (leader(&asked)) }
            dt { "Feature level" } dd { (word(&asked["level"])) }
        }
        (table("Members", &MEMBERS, &rows))
        (partition_table(&mut room, &partitions))
    };
    Ok(View {
        title: "Overview".to_owned(),
        body,
        commands: ["placementctl status", "placementctl partitions"]
            .map(str::to_owned)
            .to_vec(),
    })
}

fn leader(asked: &Value) -> String {
    match asked["leader"].as_u64() {
        Some(leader) => format!("node {leader}"),
        None => "not known".to_owned(),
    }
}

/// The condition in one line: what `placementctl status` derives from the same answers.
fn verdict(asked: &Value, members: &[Member<'_>]) -> String {
    let voters = members.iter().filter(|one| one.entry["role"] == "voter");
    let voters: Vec<_> = voters.collect();
    let ready = voters.iter().filter(|one| one.is_ready()).count();
    let spare = ready.saturating_sub(voters.len() / 2 + 1);
    let of = format!("{ready} of {} voters are ready", voters.len());
    if members.is_empty() {
        return format!("Node {} belongs to no cluster.", asked["node_id"]);
    }
    match (ready, members.iter().all(Member::is_ready)) {
        (0, _) => format!("No quorum: {of}, nothing can be written."),
        (_, true) => format!("Healthy: {of}, {spare} may be lost."),
        (_, false) => format!("Degraded: {of}, {spare} may be lost."),
    }
}

fn warnings(one: &Member<'_>) -> Vec<Markup> {
    let line = |what: String| html! { li { (one.name()) ": " (what) } };
    if one.status.is_none() {
        return vec![line("does not answer".to_owned())];
    }
    let keys = ["not_ready"].iter().chain(&PROBLEMS);
    let problems = keys.map(|key| one.reports(key));
    let problems = problems.filter(|problem| problem.is_string());
    problems.map(|problem| line(word(problem))).collect()
}

/// `head`: the last entry of the leader.
fn member(one: &Member<'_>, head: &Value) -> Markup {
    let role = match one.status {
        Some(_) => word(one.reports("role")),
        None => format!("{} (does not answer)", word(&one.entry["role"])),
    };
    let lag = head.as_u64().zip(one.reports("applied").as_u64());
    let lag = lag.map(|(head, applied)| head.saturating_sub(applied));
    row(&[
        html! { (one.name()) },
        html! { (role) },
        html! { (if one.is_ready() { "yes" } else { "no" }) },
        html! { (site(one.entry)) },
        cell(one.reports("version")),
        cell(one.reports("level_max")),
        cell(one.reports("term")),
        cell(one.reports("applied")),
        cell(&lag.into()),
        html! { (bytes(one.reports("disk_used_bytes"))) },
        html! { (bytes(one.reports("disk_free_bytes"))) },
        html! { (date(one.reports("last_backup"))) },
    ])
}

fn partition_table(room: &mut Room, partitions: &Value) -> Markup {
    let rows = list(partitions).iter().map(|one| {
        let page = Partition(text(&one["name"]).to_owned()).page("capacity", &[]);
        row(&[
            link(&page, &word(&one["name"])),
            cell(&one["providers"]),
            cell(&one["consumers"]),
            cell(&one["region"]),
            cell(&one["ways"]),
        ])
    });
    let heads = ["Partition", "Providers", "Consumers", "Region", "Requests"];
    let rows = room.take(rows);
    table("Partitions", &heads, &rows)
}
