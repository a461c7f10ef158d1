//! `placementctl check`: verifies the state of each node, and compares the states.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, CheckReport, Error, Member};
use placement_words::nodes;
use serde::Serialize;

use crate::render::{Output, Rows, print};
use crate::survey::survey;

/// Time limit for one reachable member to verify its state.
const CHECK_LIMIT: Duration = Duration::from_secs(600);
/// Exit code if a member could not be checked and no check failed.
const INCOMPLETE: u8 = 2;

/// The results of all members.
#[derive(Serialize)]
struct ClusterCheck {
    members: Vec<MemberCheck>,
    /// The first entry after which states differ.
    difference: Option<String>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct MemberCheck {
    node: u64,
    name: String,
    report: Option<CheckReport>,
    /// Why there is no report.
    unchecked: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// The state of each member is consistent, and all states are equal.
    Sound,
    /// A state is inconsistent, or states differ.
    Wrong,
    /// No problem was found, but a member was not checked.
    Incomplete,
}

/// Checks the members one after the other, so that only one of them is under load at a time.
pub(crate) async fn run(
    admin: &Admin,
    output: &Output,
    timeout: Duration,
) -> anyhow::Result<ExitCode> {
    let mut members = Vec::new();
    for (member, status) in survey(admin, timeout).await?.members {
        let found = match status {
            Some(_) => (check(admin, &member).await).map_err(|error| error.to_string()),
            None => Err("it does not answer".to_owned()),
        };
        members.push(MemberCheck {
            node: member.id,
            name: member.name,
            unchecked: found.as_ref().err().cloned(),
            report: found.ok(),
        });
    }
    let checked = ClusterCheck::new(members);
    print(&output.report(&checked, Some(checked.rows()), |_| checked.text())?)?;
    Ok(match checked.verdict {
        Verdict::Sound => ExitCode::SUCCESS,
        Verdict::Wrong => ExitCode::FAILURE,
        Verdict::Incomplete => ExitCode::from(INCOMPLETE),
    })
}

impl MemberCheck {
    fn verdict(&self) -> Verdict {
        match &self.report {
            None => Verdict::Incomplete,
            Some(report) if report.wrong.is_empty() => Verdict::Sound,
            Some(_) => Verdict::Wrong,
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
        let difference = difference(reports);
        let has = |verdict| members.iter().any(|member| member.verdict() == verdict);
        let verdict = match difference {
            Some(_) => Verdict::Wrong,
            None if has(Verdict::Wrong) => Verdict::Wrong,
            None if has(Verdict::Incomplete) => Verdict::Incomplete,
            None => Verdict::Sound,
        };
        Self {
            members,
            difference,
            verdict,
        }
    }

    fn rows(&self) -> Rows<Row> {
        let row = |member: &MemberCheck| {
            let report = member.report.as_ref();
            Row {
                node: member.node,
                name: member.name.clone(),
                verdict: member.verdict(),
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
        let mut unchecked = 0;
        for member in &self.members {
            if let Some(reason) = &member.unchecked {
                unchecked += 1;
                text += &format!("node {} could not be checked: {reason}\n", member.node);
            }
        }
        let reports = self.members.iter().filter_map(|one| one.report.as_ref());
        text.extend(reports.map(words));
        if let Some(difference) = &self.difference {
            text += &format!("{difference}\n");
        }
        text += &match self.verdict {
            Verdict::Wrong => "check failed\n".to_owned(),
            Verdict::Incomplete => {
                format!("no problem found, but {unchecked} of the members could not be checked\n")
            }
            Verdict::Sound => {
                "sound: the state of each member is consistent, and all states are equal\n"
                    .to_owned()
            }
        };
        text
    }
}

async fn check(admin: &Admin, member: &Member) -> Result<CheckReport, Error> {
    admin.for_member(member, CHECK_LIMIT)?.check().await
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

/// Describes the first log entry after which the states of nodes differ. Once states differ, they
/// differ after all later entries, too. Digests in different formats are not compared; they occur
/// while nodes run different versions.
fn difference<'a>(reports: impl IntoIterator<Item = &'a CheckReport>) -> Option<String> {
    let mut at: BTreeMap<(u64, &str), BTreeMap<&str, Vec<u64>>> = BTreeMap::new();
    for report in reports {
        for (index, digest) in &report.digests {
            let form = digest.split('.').next().unwrap_or_default();
            let digests = at.entry((*index, form)).or_default();
            digests.entry(digest).or_default().push(report.node_id);
        }
    }
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
