//! `placementctl check`: verifies the state of each node, and compares the states.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, CheckReport, Error, Member, NodeStatus};
use placement_words::{Survey, nodes};
use serde::Serialize;
use tokio::time::sleep;

use crate::render::{Output, Rows, print};
use crate::survey::survey;

/// Time limit for one reachable member to verify its state.
const CHECK_LIMIT: Duration = Duration::from_secs(600);
/// Number of passes until each state can be compared with another state. While writes continue, two
/// members may have no digest of the same entry.
const PASSES: u32 = 3;
/// Pause between two passes.
const PAUSE: Duration = Duration::from_secs(1);
/// Exit code if a state was not checked or not compared and no check failed.
const INCOMPLETE: u8 = 2;

/// The results of all members.
#[derive(Serialize)]
struct ClusterCheck {
    members: Vec<MemberCheck>,
    /// The first entry after which states differ.
    difference: Option<String>,
    /// Members whose states have no entry in common with another state.
    not_compared: Vec<u64>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct MemberCheck {
    node: u64,
    name: String,
    report: Option<CheckReport>,
    /// Why there is no report, as a predicate that follows the name of the node.
    unchecked: Option<String>,
    verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// The state of each member is consistent, and all states are equal.
    Sound,
    /// A state is inconsistent, states differ, or a member belongs to another cluster.
    Wrong,
    /// No problem was found, but a state was not checked or not compared.
    Incomplete,
}

/// Checks the members one after the other, so that only one of them is under load at a time.
pub(crate) async fn run(
    admin: &Admin,
    output: &Output,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let survey = survey(admin, timeout).await?;
    let mut checked = ClusterCheck::new(pass(admin, &survey).await);
    for _ in 1..PASSES {
        if checked.not_compared.is_empty() {
            break;
        }
        sleep(PAUSE).await;
        let mut members = pass(admin, &survey).await;
        for (member, earlier) in members.iter_mut().zip(checked.members) {
            if let (Some(report), Some(earlier)) = (&mut member.report, earlier.report) {
                report.digests.extend(earlier.digests);
            }
        }
        checked = ClusterCheck::new(members);
    }
    print(&output.report(&checked, Some(checked.rows()), |_| checked.text())?)?;
    Ok(match checked.verdict {
        Verdict::Sound => ExitCode::SUCCESS,
        Verdict::Wrong => ExitCode::FAILURE,
        Verdict::Incomplete => ExitCode::from(INCOMPLETE),
    })
}

/// Checks each member once.
async fn pass(admin: &Admin, survey: &Survey) -> Vec<MemberCheck> {
    let mut members = Vec::new();
    for (member, status) in &survey.members {
        members.push(MemberCheck::run(admin, member, status.as_ref(), survey).await);
    }
    members
}

impl MemberCheck {
    async fn run(
        admin: &Admin,
        member: &Member,
        status: Option<&NodeStatus>,
        survey: &Survey,
    ) -> Self {
        let (found, verdict) = match status {
            None => {
                let silence = survey.silence(member);
                let reason = format!("could not be checked: it {silence}");
                (Err(reason), Verdict::Incomplete)
            }
            Some(status) if survey.is_foreign(status) => {
                let cluster = status.cluster_id.as_deref().unwrap_or_default();
                let reason =
                    format!("belongs to another cluster, {cluster}: its state was not compared");
                (Err(reason), Verdict::Wrong)
            }
            Some(_) => match check(admin, member, survey).await {
                Ok(report) if report.wrong.is_empty() => (Ok(report), Verdict::Sound),
                Ok(report) => (Ok(report), Verdict::Wrong),
                Err(error) => {
                    let reason = format!("could not be checked: {error}");
                    (Err(reason), Verdict::Incomplete)
                }
            },
        };
        Self {
            node: member.id,
            name: member.name.clone(),
            unchecked: found.as_ref().err().cloned(),
            report: found.ok(),
            verdict,
        }
    }
}

/// A line of the table.
#[derive(Serialize)]
struct Row {
    node: u64,
    name: String,
    verdict: Verdict,
    providers: Option<u64>,
    consumers: Option<u64>,
    applied: Option<u64>,
}

impl ClusterCheck {
    fn new(members: Vec<MemberCheck>) -> Self {
        let reports = members.iter().filter_map(|member| member.report.as_ref());
        let difference = difference(reports.clone());
        let not_compared = not_compared(reports);
        let has = |verdict| members.iter().any(|member| member.verdict == verdict);
        let verdict = match difference {
            Some(_) => Verdict::Wrong,
            None if has(Verdict::Wrong) => Verdict::Wrong,
            None if has(Verdict::Incomplete) => Verdict::Incomplete,
            None if !not_compared.is_empty() => Verdict::Incomplete,
            None => Verdict::Sound,
        };
        Self {
            members,
            difference,
            not_compared,
            verdict,
        }
    }

    fn rows(&self) -> Rows<Row> {
        let row = |member: &MemberCheck| {
            let report = member.report.as_ref();
            Row {
                node: member.node,
                name: member.name.clone(),
                verdict: member.verdict,
                providers: report.map(|report| report.providers),
                consumers: report.map(|report| report.consumers),
                applied: report.and_then(|report| report.applied),
            }
        };
        Rows::new(self.members.iter().map(row).collect())
            .column("node", |row| row.node)
            .column("name", |row| row.name.clone())
            .column("verdict", |row| row.verdict)
            .column("providers", |row| row.providers)
            .column("consumers", |row| row.consumers)
            .column("applied", |row| row.applied)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut unchecked = self.not_compared.len();
        for member in &self.members {
            if let Some(reason) = &member.unchecked {
                unchecked += 1;
                text += &format!("node {} {reason}\n", member.node);
            }
        }
        let reports = self.members.iter().filter_map(|one| one.report.as_ref());
        text.extend(reports.map(words));
        if let Some(difference) = &self.difference {
            text += &format!("{difference}\n");
        }
        if !self.not_compared.is_empty() {
            let (who, their) = match self.not_compared.as_slice() {
                [_] => ("shares", "its state was"),
                _ => ("share", "their states were"),
            };
            text += &format!(
                "{} {who} no checked entry with another member: {their} not compared\n",
                nodes(&self.not_compared)
            );
        }
        text += &match self.verdict {
            Verdict::Wrong => "check failed\n".to_owned(),
            Verdict::Incomplete => {
                format!(
                    "no problem found, but {unchecked} of the members could not be checked or compared\n"
                )
            }
            Verdict::Sound => {
                "sound: the state of each member is consistent, and all states are equal\n"
                    .to_owned()
            }
        };
        text
    }
}

async fn check(admin: &Admin, member: &Member, survey: &Survey) -> Result<CheckReport, Error> {
    let node = if survey.errors.contains_key(&member.id) {
        admin.relayed(member.id, CHECK_LIMIT)
    } else {
        admin.for_member(member, CHECK_LIMIT)?
    };
    node.check().await
}

fn words(report: &CheckReport) -> String {
    let mut text = format!(
        "node {}: {} providers, {} consumers, at entry {}\n",
        report.node_id,
        report.providers,
        report.consumers,
        report.applied.unwrap_or_default()
    );
    for (kind, findings) in [("WRONG", &report.wrong), ("noticed", &report.noticed)] {
        for finding in findings {
            text += &format!("  {kind}: {}: {}\n", finding.what, finding.count);
            for example in &finding.examples {
                text += &format!("    {example}\n");
            }
        }
    }
    text
}

/// The digests of all reports, by log index and format, with the nodes that have each digest.
type Digests<'a> = BTreeMap<(u64, &'a str), BTreeMap<&'a str, Vec<u64>>>;

fn digests<'a>(reports: impl IntoIterator<Item = &'a CheckReport>) -> Digests<'a> {
    let mut at = Digests::new();
    for report in reports {
        for (index, digest) in &report.digests {
            let form = digest.split('.').next().unwrap_or_default();
            let digests = at.entry((*index, form)).or_default();
            digests.entry(digest).or_default().push(report.node_id);
        }
    }
    at
}

/// Nodes whose states have no entry in common with the state of another node. All states are empty
/// before the first entry, so that its digest shows nothing.
fn not_compared<'a>(reports: impl IntoIterator<Item = &'a CheckReport> + Clone) -> Vec<u64> {
    let at = digests(reports.clone());
    let mut compared = BTreeSet::new();
    for ((index, _), digests) in &at {
        let nodes: Vec<u64> = digests.values().flatten().copied().collect();
        if *index > 0 && nodes.len() > 1 {
            compared.extend(nodes);
        }
    }
    let all: Vec<u64> = reports.into_iter().map(|report| report.node_id).collect();
    let is_alone = all.len() == 1;
    let rest = all.into_iter();
    rest.filter(|node| !is_alone && !compared.contains(node))
        .collect()
}

/// Describes the first log entry after which the states of nodes differ. Once states differ, they
/// differ after all later entries, too. Digests in different formats are not compared; they occur
/// while nodes run different versions.
fn difference<'a>(reports: impl IntoIterator<Item = &'a CheckReport>) -> Option<String> {
    let at = digests(reports);
    let ((index, _), differ) = at.iter().find(|(_, digests)| digests.len() > 1)?;
    let differ: Vec<_> = (differ.iter())
        .map(|(digest, ids)| format!("{digest} on {}", nodes(ids)))
        .collect();
    Some(format!(
        "the states differ after entry {index}: {}",
        differ.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(node_id: u64, digests: &[(u64, &str)]) -> CheckReport {
        let digests = digests
            .iter()
            .map(|(at, digest)| (*at, (*digest).to_owned()));
        CheckReport {
            node_id,
            applied: None,
            digests: digests.collect(),
            providers: 0,
            consumers: 0,
            wrong: Vec::new(),
            noticed: Vec::new(),
        }
    }

    fn checked(reports: impl IntoIterator<Item = CheckReport>) -> ClusterCheck {
        let member = |report: CheckReport| MemberCheck {
            node: report.node_id,
            name: format!("node-{}", report.node_id),
            report: Some(report),
            unchecked: None,
            verdict: Verdict::Sound,
        };
        ClusterCheck::new(reports.into_iter().map(member).collect())
    }

    #[test]
    fn states_without_a_common_entry_are_not_called_equal() {
        // The digest before the first entry is the same for all clusters.
        let one = report(1, &[(0, "2.00"), (64, "2.aa"), (109, "2.bb")]);
        let two = report(2, &[(0, "2.00"), (64, "2.aa"), (110, "2.cc")]);
        let other = report(3, &[(0, "2.00"), (3, "2.dd")]);
        let check = checked([one.clone(), two.clone(), other]);
        assert!(check.verdict == Verdict::Incomplete);
        let text = check.text();
        assert!(
            text.contains(
                "node 3 shares no checked entry with another member: its state was not compared\n"
            ),
            "{text}"
        );
        assert!(!text.contains("sound"), "{text}");
        assert!(checked([one.clone(), two]).verdict == Verdict::Sound);
        assert!(checked([one]).verdict == Verdict::Sound, "a single member");
    }

    #[test]
    fn a_member_of_another_cluster_fails_the_check() {
        let mut check = checked([report(1, &[(64, "2.aa")]), report(2, &[(64, "2.aa")])]);
        check.members.push(MemberCheck {
            node: 3,
            name: "node-3".to_owned(),
            report: None,
            unchecked: Some("belongs to another cluster, d: its state was not compared".to_owned()),
            verdict: Verdict::Wrong,
        });
        let text = ClusterCheck::new(check.members).text();
        assert!(
            text.starts_with("node 3 belongs to another cluster, d: its state was not compared\n"),
            "{text}"
        );
        assert!(text.ends_with("check failed\n"), "{text}");
    }

    #[test]
    fn only_digests_of_the_same_entry_and_format_are_compared() {
        let same = [(64, "2.aa"), (128, "2.bb")];
        let other_place = [(192, "2.cc"), (128, "2.bb")];
        let other_form = [(128, "3.dd")];
        let reports = [
            report(1, &same),
            report(2, &other_place),
            report(3, &other_form),
        ];
        assert_eq!(difference(&reports), None);
        let differs = [report(1, &same), report(2, &[(64, "2.aa"), (128, "2.ee")])];
        let found = difference(&differs).unwrap();
        assert!(found.contains("after entry 128"), "{found:?}");
    }
}
