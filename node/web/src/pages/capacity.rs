//! Capacity and usage by class, providers by free amount, and the number of instances of a flavor
//! that fit.

use maud::{Markup, html};
use placement_wire::capacity::ClassCapacity;
use placement_wire::what_if::Fit;

use super::Content;
use super::candidates::{asked, fields};
use super::lists::CAPACITY;
use crate::ask::{Failure, Questions};
use crate::charts::{BARS_MAX, bars};
use crate::frame::View;
use crate::parts::{RowBudget, cut_to, form, link};
use crate::words::{counted, cut, word};

/// Maximum size of the charts of a page, in bytes.
const CHARTS_BYTES: usize = 20 * 1024;

pub(super) async fn show(questions: &mut Questions<'_>, of: &Content<'_>) -> Result<View, Failure> {
    let answer = match CAPACITY.ask(questions, of).await {
        Ok(answer) => answer,
        Err(refusal) => return CAPACITY.refused(questions, of, refusal).await,
    };
    let fit = fit(questions, of).await;
    let mut view = CAPACITY.view(of, &answer);
    let all: Vec<_> = answer.capacity.iter().filter_map(chart).collect();
    let count = all.len();
    let charts = RowBudget(CHARTS_BYTES).take(all);
    view.body = html! {
        (view.body)
        @if !charts.is_empty() {
            h2 { "Providers by free amount" }
            div class="charts" { @for chart in &charts { (chart) } }
            (cut_to(charts.len(), count))
        }
        h2 { "How many instances of a flavor fit" }
        (form(&of.partition.page("capacity", &[]), &fields(of.target)))
        (fit)
    };
    Ok(view)
}

/// Chart of the number of providers by free units of a class, with the numbers as text.
fn chart(row: &ClassCapacity<'_>) -> Option<Markup> {
    let ranges: Vec<u64> = row.free_ranges.iter().take(BARS_MAX).copied().collect();
    let shown: Vec<String> = (ranges.iter().enumerate())
        .filter(|(_, providers)| **providers > 0)
        .map(|(range, providers)| format!("{} ({providers})", amounts(range)))
        .collect();
    let class = word(&row.class);
    let label = format!("Number of providers by free units of {class}");
    (!shown.is_empty()).then(|| {
        html! {
            figure {
                figcaption { (class) }
                (bars(&label, &ranges, &[]))
                p { "Free units (providers): " (shown.join("; ")) "." }
            }
        }
    })
}

/// Bounds of a range of free units: 0, 1, 2 to 3, 4 to 7, and so on.
fn amounts(range: usize) -> String {
    let least = |range: usize| 1_u128 << range.saturating_sub(1);
    match range {
        0 => "none".to_owned(),
        1 => "1".to_owned(),
        range => format!("{} to {}", least(range), least(range + 1) - 1),
    }
}

/// Number of possible claims of the query in the form.
async fn fit(questions: &mut Questions<'_>, of: &Content<'_>) -> Markup {
    let asked = asked(of.target);
    if asked.is_empty() {
        return html! { p { "Enter the resources of a flavor." } };
    }
    let path = format!("/placementd/v1/what-if?{asked}");
    let fit: Fit = match questions.get(of.partition.api(&path, &[])).await {
        Ok(fit) => fit,
        Err(failure) => return html! { p class="verdict" { (cut(&failure.message)) } },
    };
    let claims = counted(fit.count, "claim");
    let verdict = match (fit.exact, fit.complete) {
        (true, _) => format!("{claims} can be made now."),
        // With nested or sharing providers, another order of claims may fit more.
        (_, true) => format!("At least {claims} can be made now."),
        _ => format!("At least {claims} can be made now; the search stopped at its limit."),
    };
    let candidates = of.partition.page(&format!("candidates?{asked}"), &[]);
    html! {
        p class="verdict" { (verdict) }
        p { (link(&candidates, "Show the candidates, or why the query has no candidates")) }
    }
}
