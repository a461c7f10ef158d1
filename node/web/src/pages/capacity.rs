//! What there is of each class, how much of it is left where, and how many of a flavor fit.

use maud::{Markup, html};
use serde_json::Value;

use super::Content;
use super::candidates::{asked, fields};
use super::lists::CAPACITY;
use crate::ask::{Failure, Questions};
use crate::charts::{bars, numbers};
use crate::frame::View;
use crate::parts::{Room, cut_to, form, link};
use crate::words::{count, cut, list, word};

/// The charts of a page may have so many bytes.
const CHARTS_BYTES: usize = 20 * 1024;

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let answer = CAPACITY.ask(questions, of).await?;
    let fit = fit(questions, of).await;
    let mut view = CAPACITY.view(of, &answer);
    let all: Vec<_> = list(&answer["capacity"]).iter().filter_map(chart).collect();
    let count = all.len();
    let charts = Room(CHARTS_BYTES).take(all);
    view.body = html! {
        (view.body)
        @if !charts.is_empty() {
            h2 { "How much providers have left" }
            div class="charts" { @for chart in &charts { (chart) } }
            (cut_to(charts.len(), count))
        }
        h2 { "How many fit" }
        (form(&of.partition.page("capacity", &[]), &fields(of.target)))
        (fit)
    };
    Ok(view)
}

/// The providers of a class by what they have left of it: a number below each bar, and all numbers
/// as a text.
fn chart(row: &Value) -> Option<Markup> {
    let ranges = numbers(&row["free_ranges"]);
    let shown: Vec<String> = (ranges.iter().enumerate())
        .filter(|(_, providers)| **providers > 0)
        .map(|(range, providers)| format!("{}: {providers}", amounts(range)))
        .collect();
    let class = word(&row["class"]);
    let label = format!("Providers by what they have left of {class}");
    (!shown.is_empty()).then(|| {
        html! {
            figure {
                figcaption { (class) }
                (bars(&label, &ranges, &[]))
                p { "Left: " (shown.join("; ")) "." }
            }
        }
    })
}

/// What a range of the API holds: the first one nothing, each other one twice as much as the one
/// before it.
fn amounts(range: usize) -> String {
    let least = |range: usize| 1_u128 << range.saturating_sub(1);
    match range {
        0 => "none".to_owned(),
        1 => "1".to_owned(),
        range => format!("{} to {}", least(range), least(range + 1) - 1),
    }
}

/// How often the request of the form can be claimed now.
async fn fit(questions: &mut Questions<'_>, of: &Content<'_>) -> Markup {
    let asked = asked(of.target);
    if asked.is_empty() {
        return html! { p { "Ask for the resources of a flavor." } };
    }
    let path = format!("/placementd/v1/what-if?{asked}");
    let fit = match questions.get(of.partition.api(&path, &[])).await {
        Ok(fit) => fit,
        Err(failure) => return html! { p class="verdict" { (cut(&failure.message)) } },
    };
    let claims = count(&fit["count"], "claim");
    let verdict = match (fit["exact"] == true, fit["complete"] == true) {
        (true, _) => format!("{claims} can be made now."),
        // Nested providers and shared ones: another order of claims may fit more.
        (_, true) => format!("At least {claims} can be made now."),
        _ => format!("At least {claims} can be made now; not all were tried."),
    };
    let candidates = of.partition.page(&format!("candidates?{asked}"), &[]);
    html! {
        p class="verdict" { (verdict) }
        p { (link(&candidates, &"Candidates, or why there are none".into())) }
    }
}
