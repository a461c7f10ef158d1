//! `placementctl what-if`: shows what the cluster would answer after changes.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use placement_client::{ApiRequest, Consistency};
use serde_json::{Value, json};

use crate::capacity::summed;
use crate::content::{Content, EXTENSIONS};
use crate::explain::explained;
use crate::files::read;
use crate::render::{Output, list, phrase, word};

#[derive(Args)]
pub(crate) struct Which {
    /// File with changes and questions in JSON, see docs/placementctl.md; `-` reads standard input.
    file: PathBuf,
}

pub(crate) async fn ask(content: &Content, Which { file }: Which) -> anyhow::Result<String> {
    let question: Value = serde_json::from_slice(&read(&file)?)
        .with_context(|| format!("{} is not JSON", file.display()))?;
    let mut request = ApiRequest::post(&format!("{EXTENSIONS}/what-if")).json(&question);
    // The client sends this header for GET only; `what-if` is a read that uses POST.
    if content.source.local {
        request = request.consistency(Consistency::Local);
    }
    let answer = content.ask(request).await?;
    let text = described(&question, &answer)?;
    content.source.output.report(&answer, None, |_| text)
}

/// A line for each change, and the answer to each question as text.
fn described(question: &Value, answer: &Value) -> anyhow::Result<String> {
    let mut text = String::new();
    let changes = list(&question["changes"]).iter();
    for (change, result) in changes.zip(list(&answer["changes"])) {
        let detail = result["body"]["errors"][0]["detail"].as_str();
        // Only the last line is specific to this error.
        let message = detail.and_then(|detail| detail.trim_end().rsplit('\n').next());
        let message = message.map_or(String::new(), |text| {
            format!("  {}", word(&json!(text.trim())))
        });
        text +=
            &(phrase("{status}", result) + &phrase("  {method} {path}", change) + &message + "\n");
    }
    for one in list(&answer["answers"]) {
        let (fit, explanation) = (&one["fit"], &one["explain"]);
        let part = match (fit.is_object(), explanation.is_object()) {
            (true, _) if fit["exact"] == true => phrase("exactly {count} fit\n", fit),
            (true, _) => phrase("at least {count} fit\n", fit),
            (_, true) => explained(explanation, false),
            _ => Output::default().rows(summed(&one["capacity"]))?,
        };
        text += &format!("\n{part}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
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
            ],
        });
        let text = described(&question, &answer).unwrap();
        let begin =
            "200  PUT /a\n409  DELETE /b  It is in use.\n\nat least 12 fit\n\nCLASS  PROVIDERS";
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains("\n1 of 1 tree with candidates\n"), "{text}");
    }
}
