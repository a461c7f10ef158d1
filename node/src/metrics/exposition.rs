//! Prometheus' text format (0.0.4), which every scraper, `curl` and `promtool check metrics` read;
//! the library writes only OpenMetrics. Source: Prometheus, "Exposition formats"; OpenMetrics 1.0,
//! "Text format".

/// Converts OpenMetrics text. The relevant differences: a counter is described under the name of
/// its sample, with `_total`; the lines `# UNIT` and `# EOF` are omitted.
pub(super) fn from_openmetrics(text: &str) -> String {
    let mut rewritten = String::with_capacity(text.len());
    let mut help = "";
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(_), words) => help = words.unwrap_or_default(),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let total = if kind == "counter" { "_total" } else { "" };
                rewritten += &format!("# HELP {name}{total} {help}\n# TYPE {name}{total} {kind}\n");
            }
            (Some("#"), ..) => {}
            _ => rewritten.extend([line, "\n"]),
        }
    }
    rewritten
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_by_the_name_of_their_sample() {
        let openmetrics = "# HELP a_seconds Time spent\n# TYPE a_seconds counter\n\
                           # UNIT a_seconds seconds\na_seconds_total 1.5\n\
                           # HELP b What is left\n# TYPE b gauge\nb{db=\"log\"} 2\n# EOF\n";
        assert_eq!(
            from_openmetrics(openmetrics),
            "# HELP a_seconds_total Time spent\n# TYPE a_seconds_total counter\n\
             a_seconds_total 1.5\n# HELP b What is left\n# TYPE b gauge\nb{db=\"log\"} 2\n"
        );
    }
}
