//! How the cluster is: health, members, warnings, partitions.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::ask::{Failure, Questions};
use crate::charts::bars;
use crate::frame::View;
use crate::parts::{Room, cell, cells, facts, link, row, table};
use crate::target::Partition;
use crate::words::{bytes, cut, date, list, pairs, site, text, word};

/// What a member reports as a problem.
const PROBLEMS: &str = "not_ready storage_failure backup_problem round_trip_problem clock_problem";
/// The same, with names of partitions: users may not see all of them.
const ROUTING_PROBLEM: &str = "routing_problem";
const MEMBERS: &str = "Member | Role | Ready | Site | Version | Level | Term | Applied | Lag | Disk used | Disk free | \
                       Last backup";
const REPORTED: &str =
    "name role ready site version level_max term applied lag disk_used disk_free last_backup";

pub(super) async fn show(questions: &mut Questions<'_>) -> Result<View, Failure> {
    let asked = questions.get("/v1/status".to_owned()).await?;
    let entries = list(&asked["members"]);
    let paths = entries
        .iter()
        .map(|one| format!("/v1/nodes/{}/status", one["id"]));
    let paths = paths.chain(["/v1/partitions".to_owned()]).collect();
    let mut answers = questions.all(paths).await;
    let partitions = answers.pop().and_then(Result::ok).unwrap_or_default();
    let leader = answers.iter().flatten().find(|one| one["role"] == "leader");
    let head = leader.unwrap_or(&asked)["last_log"].as_u64();
    let members = entries.iter().zip(&answers);
    let members: Vec<Value> = members
        .map(|(entry, answer)| member(entry, answer.as_ref().ok(), head))
        .collect();
    let mut room = Room::default();
    let for_operators = (!questions.are_of_a_user()).then_some(ROUTING_PROBLEM);
    let problems: Vec<&str> = PROBLEMS.split(' ').chain(for_operators).collect();
    let warnings = members.iter().flat_map(|one| warnings(one, &problems));
    let warnings = room.take(warnings);
    let rows = room.take(members.iter().map(|one| row(&cells(one, REPORTED))));
    let requests = room.take(members.iter().filter_map(requests));
    let certificates = room.take(members.iter().flat_map(certificates));
    let partitions = room.take(list(&partitions).iter().map(partition));
    Ok(View {
        title: "Overview".to_owned(),
        body: html! {
            p class="verdict" { (verdict(&asked, &members)) }
            @if !warnings.is_empty() {
                h2 { "Warnings" }
                ul { @for one in &warnings { (one) } }
            }
            (facts(&asked, "cluster_id leader term level"))
            (table("Members", MEMBERS, &rows))
            (table("Requests of the last hour", "Member | Answered | With 503 | By minute", &requests))
            @if !certificates.is_empty() { (table("Certificates", "Listener | Member | End", &certificates)) }
            (table("Partitions", "Partition | Providers | Consumers | Region | Requests", &partitions))
        },
        commands: ["placementctl status", "placementctl partitions"]
            .map(str::to_owned)
            .into(),
    })
}

/// What a member reports, or where it does not answer, what the membership has of it. `head`: the last entry of the
/// leader.
fn member(entry: &Value, status: Option<&Value>, head: Option<u64>) -> Value {
    // Another node may answer anything.
    let status = status.filter(|status| status.is_object());
    let mut one = status.cloned().unwrap_or_default();
    let lag = head.zip(one["applied"].as_u64());
    one["lag"] = json!(lag.map(|(head, applied)| head.saturating_sub(applied)));
    one["name"] = json!(format!("{} (node {})", word(&entry["name"]), entry["id"]));
    one["site"] = json!(site(entry));
    one["votes"] = json!(entry["role"] == "voter");
    one["ready"] = json!(one["ready"] == true);
    one["disk_used"] = json!(one["disk_used_bytes"].as_u64().map(bytes));
    one["disk_free"] = json!(one["disk_free_bytes"].as_u64().map(bytes));
    one["last_backup"] = json!(date(&one["last_backup"]));
    if status.is_none() {
        one["role"] = entry["role"].clone();
        one["not_ready"] = json!("does not answer");
    }
    one
}

/// The condition in one line: what `placementctl status` derives from the same answers.
fn verdict(asked: &Value, members: &[Value]) -> String {
    let is_ready = |one: &&Value| one["ready"] == true;
    let voters: Vec<&Value> = members.iter().filter(|one| one["votes"] == true).collect();
    let ready = voters.iter().copied().filter(is_ready).count();
    let spare = ready.saturating_sub(voters.len() / 2 + 1);
    let of = format!("{ready} of {} voters are ready", voters.len());
    match (ready, members.iter().all(|one| is_ready(&one))) {
        _ if members.is_empty() => format!("Node {} belongs to no cluster.", asked["node_id"]),
        (0, _) => format!("No quorum: {of}, nothing can be written."),
        (_, true) => format!("Healthy: {of}, {spare} may be lost."),
        (_, false) => format!("Degraded: {of}, {spare} may be lost."),
    }
}

fn warnings(one: &Value, problems: &[&str]) -> Vec<Markup> {
    let problems = problems.iter().map(|key| &one[*key]);
    let problems = problems.filter(|problem| problem.is_string());
    let warning = |problem| html! { li { (word(&one["name"])) ": " (word(problem)) } };
    problems.map(warning).collect()
}

/// What a member has answered in an hour.
fn requests(one: &Value) -> Option<Markup> {
    let minutes = list(&one["requests"]).iter().take(60);
    let of = |at: usize| minutes.clone().map(move |minute| minute[at].as_u64());
    let [all, failed] = [0, 1].map(|at| of(at).map(Option::unwrap_or_default).collect::<Vec<_>>());
    let sum = |counts: &[u64]| json!(counts.iter().copied().fold(0, u64::saturating_add));
    let label = format!("Requests by minute, {} at most", all.iter().max()?);
    let cells = [&one["name"], &sum(&all), &sum(&failed)].map(cell);
    Some(row(&[&cells[..], &[bars(&label, &all, &failed)]].concat()))
}

fn certificates(one: &Value) -> Vec<Markup> {
    let ends = pairs(&one["certificate_ends"]);
    let text = |text: String| html! { (text) };
    ends.map(|(listener, end)| row(&[text(cut(listener)), cell(&one["name"]), text(date(end))]))
        .collect()
}

fn partition(one: &Value) -> Markup {
    let page = Partition(text(&one["name"]).to_owned()).page("capacity", &[]);
    let mut row = vec![link(&page, &one["name"])];
    row.extend(cells(one, "providers consumers region ways"));
    crate::parts::row(&row)
}
