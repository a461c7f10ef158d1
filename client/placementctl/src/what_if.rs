//! `placementctl what-if`: shows how the cluster would answer after some changes.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use placement_client::{ApiRequest, Consistency};
use placement_wire::upstream::Errors;
use placement_wire::what_if::{Fit, Outcome, Preemption, WhatIf, WhatIfAnswer};
use placement_words::counted;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::capacity::summed;
use crate::content::{Content, EXTENSIONS};
use crate::explain::explained;
use crate::files::read;
use crate::render::{NO_ROWS, cell, word};

#[derive(Args)]
pub(crate) struct WhatIfArgs {
    /// File with changes and questions in JSON, see docs/placementctl.md; `-` reads standard input.
    file: PathBuf,
}

pub(crate) async fn ask(
    content: &Content,
    WhatIfArgs { file }: WhatIfArgs,
) -> anyhow::Result<String> {
    let question: Value = serde_json::from_slice(&read(&file)?)
        .with_context(|| format!("{} is not JSON", file.display()))?;
    let mut request = ApiRequest::post(&format!("{EXTENSIONS}/what-if")).json(&question);
    // The client sends this header for GET only; `what-if` is a read that uses POST.
    if content.source.local {
        request = request.consistency(Consistency::Local);
    }
    let answer: Outcome<'_, Value> = content.ask(request).await?;
    // The node has accepted the question, so it has this form.
    let asked = WhatIf::deserialize(&question)?;
    let text = described(&asked, &answer);
    let output = &content.source.output;
    output.report(&cell(&answer), NO_ROWS, |_| text)
}

/// A line for each change, and the answer to each question as text.
fn described(asked: &WhatIf<IgnoredAny>, answer: &Outcome<'static, Value>) -> String {
    let mut text = String::new();
    for (change, result) in asked.changes.iter().zip(&answer.changes) {
        let (status, method, path) = (result.status, word(&change.method), word(&change.path));
        text += &format!("{status}  {method} {path}");
        if let Some(message) = message(result.body.as_ref()) {
            text += &format!("  {}", word(message));
        }
        text += "\n";
    }
    for one in &answer.answers {
        let part = match one {
            WhatIfAnswer::Fit(Fit { count, exact, .. }) => {
                let least = if *exact { "exactly" } else { "at least" };
                format!("{least} {count} fit\n")
            }
            WhatIfAnswer::Explain(explanation) => explained(explanation, false),
            WhatIfAnswer::Capacity(report) => summed(report.clone()).table(),
            WhatIfAnswer::Preempt(found) => preempted(found),
        };
        text += &format!("\n{part}");
    }
    text
}

/// The consumers that would have to end, one per line.
fn preempted(found: &Preemption<'_>) -> String {
    let count = counted(found.consumers.len() as u64, "consumer");
    let mut text = match &found.provider {
        None if !found.possible => {
            "no plan was found: the end of such consumers makes no room".to_owned()
        }
        None => "there is room: no consumer has to end".to_owned(),
        Some(host) => format!("the end of {count} makes room on {}", word(&host.name)),
    };
    if !found.complete {
        text += " (not all trees were searched)";
    } else if !found.exact {
        text += " (a plan with fewer consumers may exist)";
    }
    for one in &found.consumers {
        let (uuid, of, project) = (word(&one.uuid), word(&one.r#type), word(&one.project_id));
        text += &format!("\n{uuid}  {of}  project {project}");
    }
    text + "\n"
}

/// The message of an error. Only the last line is specific to this error.
fn message(body: Option<&Value>) -> Option<String> {
    let body = Errors::deserialize(body?).ok()?;
    let detail = body.errors.into_iter().next()?.detail?;
    let last = detail.trim_end().rsplit('\n').next()?;
    Some(last.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_change_and_each_question_has_its_answer() {
        let question = json!({"changes": [{"method": "PUT", "path": "/a"}, {"method": "DELETE", "path": "/b"}]});
        let answer = json!({
            "changes": [{"status": 200, "body": {}},
                        {"status": 409, "body": {"errors": [{"detail": "Conflict.\n\n It is in use.  "}]}}],
            "answers": [
                {"fit": {"count": 12, "exact": false}},
                {"capacity": {"by": "class", "capacity": [{"class": "VCPU", "providers": 1, "capacity": 64, "used": 8,
                                                           "free": 56, "largest_free": 16}]}},
                {"explain": {"verdict": "some", "trees": 1, "with_candidates": 1}},
                {"preempt": {"possible": true, "provider": {"uuid": "1", "name": "cmp-1"}, "complete": true, "exact": true,
                             "consumers": [{"uuid": "c", "type": "BATCH", "project_id": "p"}]}},
                {"preempt": {"possible": false, "complete": true, "exact": true}},
            ],
        });
        let asked = WhatIf::deserialize(question).unwrap();
        let answer = Outcome::deserialize(answer).unwrap();
        let text = described(&asked, &answer);
        let begin =
            "200  PUT /a\n409  DELETE /b  It is in use.\n\nat least 12 fit\n\nCLASS  PROVIDERS";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains("\ncandidates on 1 of 1 tree\n"), "{text}");
        let preempted = "\nthe end of 1 consumer makes room on cmp-1\nc  BATCH  project p\n\n\
                         no plan was found: the end of such consumers makes no room\n";
        assert!(text.ends_with(preempted), "{text}");
    }
}
