//! Charts as SVG, styled by attributes and classes since pages have no inline style.

use maud::{Markup, html};

/// Maximum number of bars.
pub(crate) const BARS_MAX: usize = 65;
/// Minimum width of a chart in bars, so that charts have similar bars.
const BARS_MIN: usize = 24;
/// Width of a bar with its gap, and height of a chart, in units of the view box.
const STEP: usize = 10;
const HEIGHT: u128 = 60;

/// A bar for each number; bars of the second list are drawn over them. `label` describes the chart;
/// the page must show the numbers as text, too.
pub(crate) fn bars(label: &str, all: &[u64], over: &[u64]) -> Markup {
    let most = all.iter().max().map_or(1, |most| (*most).max(1));
    let path = |numbers: &[u64]| {
        let bars = numbers
            .iter()
            .take(BARS_MAX)
            .enumerate()
            .filter(|(_, number)| **number > 0);
        let bar = |(at, number): (usize, &u64)| {
            // A number above 0 is always visible.
            let height = (u128::from(*number.min(&most)) * HEIGHT).div_ceil(most.into());
            format!("M{} {HEIGHT}v-{height}h8v{height}z", at * STEP + 1)
        };
        bars.map(bar).collect::<String>()
    };
    let size = format!(
        "0 0 {} {HEIGHT}",
        all.len().clamp(BARS_MIN, BARS_MAX) * STEP
    );
    html! {
        svg class="bars" role="img" aria-label=(label) viewBox=(size) preserveAspectRatio="none" {
            path class="all" d=(path(all)) {}
            @if over.iter().any(|number| *number > 0) { path class="over" d=(path(over)) {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_height_of_their_numbers() {
        let chart = bars("a \"b\"", &[0, 1, 120], &[0, 0, 60]).into_string();
        assert!(chart.contains("aria-label=\"a &quot;b&quot;\""), "{chart}");
        assert!(
            chart.contains("class=\"all\" d=\"M11 60v-1h8v1zM21 60v-60h8v60z\""),
            "{chart}"
        );
        assert!(
            chart.contains("class=\"over\" d=\"M21 60v-30h8v30z\""),
            "{chart}"
        );
        let hostile = bars("", &[u64::MAX; 1000], &[u64::MAX; 1000]).into_string();
        assert!(hostile.len() < 5000, "{}", hostile.len());
    }
}
