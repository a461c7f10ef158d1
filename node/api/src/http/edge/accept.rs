//! The header `Accept`: whether the client accepts JSON, and the format of errors.

use super::headers::split_outside_quotes;
use crate::http::errors::Format;

/// The media ranges that a client accepts, in the order of the header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Accept<'a>(Vec<MediaRange<'a>>);

/// One entry of the header: a media range with its weight.
#[derive(Debug, Clone, PartialEq)]
struct MediaRange<'a> {
    main: &'a str,
    sub: &'a str,
    /// Whether the range has parameters such as `charset=utf-8`. Such a range matches nothing, as
    /// the content type of answers has no parameters.
    has_parameters: bool,
    /// 0 to 1000: the `q` parameter, in thousandths.
    quality_thousandths: u16,
}

impl<'a> Accept<'a> {
    /// Parses the header. A missing or empty header and `*/*` ask for JSON; a malformed header
    /// excludes nothing.
    pub(crate) fn parse(header: Option<&'a str>) -> Self {
        let header = match header {
            None | Some("" | "*/*") => "application/json",
            Some(header) => header,
        };
        let ranges = Self::ranges(header).or_else(|| Self::ranges("*/*"));
        Self(ranges.unwrap_or_default())
    }

    fn ranges(header: &'a str) -> Option<Vec<MediaRange<'a>>> {
        let entries: Vec<&str> = split_outside_quotes(header, ',')
            .into_iter()
            .map(|entry| entry.trim_matches([' ', '\t']))
            .collect();
        // Entries may be empty, except the first.
        if entries[0].is_empty() && entries.iter().any(|entry| !entry.is_empty()) {
            return None;
        }
        let entries = entries.into_iter().filter(|entry| !entry.is_empty());
        entries.map(MediaRange::parse).collect()
    }

    /// Whether a JSON answer is acceptable.
    pub(crate) fn allows_json(&self) -> bool {
        self.quality("application", "json") > 0
    }

    /// Whether the client prefers server-sent events to lines of JSON.
    pub(crate) fn prefers_events(&self) -> bool {
        self.quality("text", "event-stream") > self.quality("application", "x-ndjson")
    }

    /// The format in which this client gets errors.
    pub(crate) fn error_format(&self) -> Format {
        let html = self.quality("text", "html");
        let json = self.quality("application", "json");
        if html == 0 && json == 0 {
            Format::Plain
        } else if html >= json {
            Format::Html
        } else {
            Format::Json
        }
    }

    /// The weight of the most specific range that covers a media type, or of the first if several
    /// are equally specific; 0 if no range covers it.
    fn quality(&self, main: &str, sub: &str) -> u16 {
        // `max_by_key` returns the last of several equal elements.
        let covering = self
            .0
            .iter()
            .rev()
            .filter_map(|range| Some((range.specificity(main, sub)?, range)));
        let best = covering.max_by_key(|(specificity, _)| *specificity);
        best.map_or(0, |(_, range)| range.quality_thousandths)
    }
}

impl<'a> MediaRange<'a> {
    fn parse(entry: &'a str) -> Option<Self> {
        let mut parts = split_outside_quotes(entry, ';').into_iter();
        let name = parts.next()?.trim_end_matches([' ', '\t']);
        let (main, sub) = name.split_once('/')?;
        if !is_token(main) || !is_token(sub) {
            return None;
        }
        let mut range = Self {
            main,
            sub,
            has_parameters: false,
            quality_thousandths: 1000,
        };
        let mut weighed = false;
        for part in parts {
            let part = part.trim_matches([' ', '\t']);
            match part.split_once('=') {
                Some((name, value)) if !weighed && name.eq_ignore_ascii_case("q") => {
                    range.quality_thousandths = parse_quality(value)?;
                    weighed = true;
                }
                Some((name, value)) if is_token(name) && (is_token(value) || is_quoted(value)) => {
                    range.has_parameters |= !weighed;
                }
                // After the weight, an extension may have no value.
                None if weighed && is_token(part) => {}
                _ => return None,
            }
        }
        Some(range)
    }

    fn specificity(&self, main: &str, sub: &str) -> Option<u8> {
        let is_main = self.main.eq_ignore_ascii_case(main);
        match (is_main, self.sub.eq_ignore_ascii_case(sub)) {
            _ if self.has_parameters => None,
            (true, true) => Some(3),
            (true, false) if self.sub == "*" => Some(2),
            _ if self.main == "*" && self.sub == "*" => Some(1),
            _ => None,
        }
    }
}

fn parse_quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 3 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{fraction:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_quoted(text: &str) -> bool {
    text.len() >= 2 && text.starts_with('"') && text.ends_with('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> (bool, Format) {
        let accept = Accept::parse(Some(header));
        (accept.allows_json(), accept.error_format())
    }

    #[test]
    fn clients_without_preference_get_json() {
        let unasked = Accept::parse(None);
        assert_eq!(
            (unasked.allows_json(), unasked.error_format()),
            (true, Format::Json)
        );
        assert_eq!(read("*/*"), (true, Format::Json));
        for header in [
            "",
            "*/*",
            "application/json",
            "application/*",
            "Application/JSON;q=0.5",
        ] {
            assert!(read(header).0, "{header}");
        }
        assert_eq!(read("application/json"), (true, Format::Json));
    }

    #[test]
    fn a_browser_gets_its_errors_as_html() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(read(browser), (true, Format::Html));
        assert_eq!(read("text/html, */*;q=0.1"), (true, Format::Html));
        assert_eq!(read("text/html"), (false, Format::Html));
        assert_eq!(read("text/plain"), (false, Format::Plain));
        assert_eq!(read("*/json"), (false, Format::Plain));
        assert_eq!(read(","), (false, Format::Plain));
    }

    #[test]
    fn parameters_ask_for_more_than_plain_json() {
        for header in [
            "application/json; charset=utf-8",
            "application/json;version=1",
            "application/json;profile=\"http://x/y\"",
            "application/json;title=\"a, b; \\\" c\"",
        ] {
            assert_eq!(read(header), (false, Format::Plain), "{header}");
        }
        assert!(read("application/json;q=1;version=1").0);
        assert!(!read("application/json;q=0, */*").0);
    }

    #[test]
    fn malformed_header_forbids_nothing() {
        for header in [
            "foo",
            "*",
            ",application/json",
            "application/json;q=2",
            "a/b;c",
            "a/b;c=\"d",
            ";",
        ] {
            assert_eq!(read(header), (true, Format::Html), "{header}");
        }
    }
}
