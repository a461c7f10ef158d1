//! Health of the cluster, warnings, members and partitions.

use maud::{Markup, html};
use placement_wire::{Member, NodeStatus};
use placement_words::{Condition, Health, Survey};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::{Failure, Questions};
use crate::charts::bars;
use crate::frame::View;
use crate::parts::{Room, cell, cells, facts, link, row, table};
use crate::target::Partition;
use crate::words::{bytes, cut, date, list, pairs, site, text, word};

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
    let mut survey = survey(&asked, entries, &answers);
    if questions.are_of_a_user() {
        // The reason contains addresses.
        let members = survey.members.iter_mut();
        members.for_each(|(member, _)| member.unreachable = None);
    }
    let health = Health::of(&survey);
    let warnings = survey.warnings(!questions.are_of_a_user());
    let warnings = health.problems.iter().chain(&warnings);
    let warnings = room.take(warnings.map(|one| html! { li { (cut(one)) } }));
    let rows = room.take(members.iter().map(|one| row(&cells(one, REPORTED))));
    let requests = room.take(members.iter().filter_map(requests));
    let certificates = room.take(members.iter().flat_map(certificates));
    let partitions = room.take(list(&partitions).iter().map(partition));
    Ok(View {
        title: "Overview".to_owned(),
        body: html! {
            p class="verdict" { (verdict(&health, survey.asked.node_id)) }
            @if !warnings.is_empty() {
                h2 { "Warnings" }
                ul { @for one in &warnings { (one) } }
            }
            (facts(&asked, "cluster_id leader term level"))
            (table("Members", MEMBERS, &rows))
            (table("Requests of the last hour", "Member | Answered | With 503 | Per minute", &requests))
            @if !certificates.is_empty() { (table("Certificates", "Listener | Member | Expires", &certificates)) }
            (table("Partitions", "Partition | Providers | Consumers | Region | Requests", &partitions))
        },
        commands: ["placementctl status", "placementctl partitions"]
            .map(str::to_owned)
            .into(),
    })
}

/// Status of a member, or its entry in the membership if it does not answer. `head`: index of the
/// last entry of the leader.
fn member(entry: &Value, status: Option<&Value>, head: Option<u64>) -> Value {
    // A faulty node may return any JSON.
    let status = status.filter(|status| status.is_object());
    let mut one = status.cloned().unwrap_or_default();
    let lag = head.zip(one["applied"].as_u64());
    one["lag"] = json!(lag.map(|(head, applied)| head.saturating_sub(applied)));
    one["name"] = json!(format!("{} (node {})", word(&entry["name"]), entry["id"]));
    one["site"] = json!(site(entry));
    one["ready"] = json!(one["ready"] == true);
    one["disk_used"] = json!(one["disk_used_bytes"].as_u64().map(bytes));
    one["disk_free"] = json!(one["disk_free_bytes"].as_u64().map(bytes));
    one["last_backup"] = json!(date(&one["last_backup"]));
    if status.is_none() {
        one["role"] = entry["role"].clone();
    }
    one
}

/// Parses the statuses like `placementctl status`. A faulty node may return any JSON.
fn survey(asked: &Value, entries: &[Value], answers: &[Result<Value, Failure>]) -> Survey {
    let status = |value: &Value| NodeStatus::deserialize(value).ok();
    let of_member = |(entry, answer): (&Value, &Result<Value, Failure>)| {
        let member = Member::deserialize(entry).ok()?;
        let own = answer.as_ref().ok().and_then(status);
        // A different node at this address does not count.
        Some((member.clone(), own.filter(|own| own.node_id == member.id)))
    };
    let members = entries.iter().zip(answers).filter_map(of_member);
    Survey::new(status(asked).unwrap_or_default(), members.collect())
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
        Condition::Healthy => format!("Healthy: {of}; {spare} may fail."),
        Condition::Degraded => format!("Degraded: {of}; {spare} may fail."),
    }
}

/// Requests that a member answered in the last hour.
fn requests(one: &Value) -> Option<Markup> {
    let minutes = list(&one["requests"]).iter().take(60);
    let of = |at: usize| minutes.clone().map(move |minute| minute[at].as_u64());
    let [all, failed] = [0, 1].map(|at| of(at).map(Option::unwrap_or_default).collect::<Vec<_>>());
    let sum = |counts: &[u64]| json!(counts.iter().copied().fold(0, u64::saturating_add));
    let label = format!("Requests per minute, at most {}", all.iter().max()?);
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
