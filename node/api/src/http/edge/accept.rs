//! The `Accept` header: may we answer JSON, and in which format are errors shown?
//! Source: RFC 7231, section 5.3.2.

use crate::http::errors::Format;

/// What a client accepts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Accept {
    /// No header, an empty one, or `*/*`: JSON.
    Json,
    /// A malformed header, which forbids nothing.
    Unreadable,
    /// What the header lists.
    Ranges(Vec<MediaRange>),
}

/// One entry of the header.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MediaRange {
    main: String,
    sub: String,
    /// Parameters such as `charset=utf-8` ask for more than we name, so they match nothing.
    has_parameters: bool,
    /// 0 to 1000.
    quality_thousandths: u16,
}

impl Accept {
    /// Reads the header.
    pub(crate) fn parse(header: Option<&str>) -> Self {
        let header = header.unwrap_or_default();
        if header.is_empty() || header == "*/*" {
            return Self::Json;
        }
        let entries = split_outside_quotes(header, ',').into_iter();
        let entries: Vec<&str> = entries
            .map(|entry| entry.trim_matches([' ', '\t']))
            .collect();
        // Entries may be empty, but for the first.
        if entries[0].is_empty() && entries.iter().any(|entry| !entry.is_empty()) {
            return Self::Unreadable;
        }
        let ranges = entries
            .into_iter()
            .filter(|entry| !entry.is_empty())
            .map(MediaRange::parse)
            .collect::<Option<Vec<_>>>();
        ranges.map_or(Self::Unreadable, Self::Ranges)
    }

    /// Whether a JSON answer is acceptable.
    pub(crate) fn allows_json(&self) -> bool {
        match self {
            Self::Json | Self::Unreadable => true,
            Self::Ranges(ranges) => quality(ranges, "application", "json") > 0,
        }
    }

    /// The format of an error.
    pub(crate) fn error_format(&self) -> Format {
        match self {
            Self::Json => Format::Json,
            Self::Unreadable => Format::Html,
            Self::Ranges(ranges) => {
                let html = quality(ranges, "text", "html");
                let json = quality(ranges, "application", "json");
                if html == 0 && json == 0 {
                    Format::Plain
                } else if html >= json {
                    Format::Html
                } else {
                    Format::Json
                }
            }
        }
    }
}

impl MediaRange {
    fn parse(entry: &str) -> Option<Self> {
        let mut parts = split_outside_quotes(entry, ';').into_iter();
        let (main, sub) = parts
            .next()?
            .trim_end_matches([' ', '\t'])
            .split_once('/')?;
        if !is_token(main) || !is_token(sub) {
            return None;
        }
        let mut range = Self {
            main: main.to_ascii_lowercase(),
            sub: sub.to_ascii_lowercase(),
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
                // Behind the weight, an extension may stand without a value.
                None if weighed && is_token(part) => {}
                _ => return None,
            }
        }
        Some(range)
    }

    fn specificity(&self, main: &str, sub: &str) -> Option<u8> {
        match (self.main == main, self.sub == sub) {
            _ if self.has_parameters => None,
            (true, true) => Some(3),
            (true, false) if self.sub == "*" => Some(2),
            _ if self.main == "*" && self.sub == "*" => Some(1),
            _ => None,
        }
    }
}

/// The weight of the most specific range that covers a media type; 0 if none does.
fn quality(ranges: &[MediaRange], main: &str, sub: &str) -> u16 {
    let mut best = (0, 0);
    for range in ranges {
        if let Some(specificity) = range.specificity(main, sub)
            && specificity > best.0
        {
            best = (specificity, range.quality_thousandths);
        }
    }
    best.1
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

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(|c| {
        let is_escaped = escaped;
        escaped = quoted && c == '\\' && !is_escaped;
        quoted ^= c == '"' && !is_escaped;
        c == separator && !quoted
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> (bool, Format) {
        let accept = Accept::parse(Some(header));
        (accept.allows_json(), accept.error_format())
    }

    #[test]
    fn json_is_what_clients_get_who_do_not_say() {
        assert_eq!(Accept::parse(None), Accept::Json);
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
    fn what_cannot_be_read_forbids_nothing() {
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
