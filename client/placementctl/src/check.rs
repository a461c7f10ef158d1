//! `placementctl check`: verifies the state of each node, and compares the states.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use placement_client::{Admin, CheckReport, Error, Member};

use crate::render::print;
use crate::survey::survey;

/// Time limit for one reachable member to verify its state.
const CHECK_LIMIT: Duration = Duration::from_secs(600);
/// Exit code if a member could not be checked and no check failed.
const INCOMPLETE: u8 = 2;

/// Checks the members one after the other, so that only one of them is under load at a time.
pub(crate) async fn run(admin: &Admin, timeout: Duration) -> anyhow::Result<ExitCode> {
    let members = survey(admin, timeout).await?.members;
    let mut reports = Vec::new();
    let mut unchecked = 0;
    for (member, status) in &members {
        let found = match status {
            Some(_) => (check(admin, member).await).map_err(|error| error.to_string()),
            None => Err("it does not answer".to_owned()),
        };
        match found {
            Ok(report) => reports.push(report),
            Err(reason) => {
                unchecked += 1;
                print(&format!(
                    "node {} could not be checked: {reason}\n",
                    member.id
                ))?;
            }
        }
    }
    for report in &reports {
        print(&words(report))?;
    }
    let difference = difference(&reports);
    if let Some(difference) = &difference {
        print(&format!("{difference}\n"))?;
    }
    if difference.is_some() || reports.iter().any(|report| !report.wrong.is_empty()) {
        println!("check failed");
        return Ok(ExitCode::FAILURE);
    }
    if unchecked > 0 {
        println!("no problem found, but {unchecked} of the members could not be checked");
        return Ok(ExitCode::from(INCOMPLETE));
    }
    println!("sound: the state of each member is consistent, and all states are equal");
    Ok(ExitCode::SUCCESS)
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
fn difference(reports: &[CheckReport]) -> Option<String> {
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
        .map(|(digest, nodes)| format!("{digest} on nodes {nodes:?}"))
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
