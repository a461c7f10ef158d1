//! Access rules of application credentials: they limit the requests that a token may be used for.
//!
//! Source: keystonemiddleware, `auth_token`, `validate_allowed_request`. keystonemiddleware also
//! rejects a token with access rules if the token's catalog has no placement service. This does not
//! affect the rules and is not checked here.

use serde::Deserialize;

/// Name of this service in access rules.
const SERVICE: &str = "placement";
/// No path of the API is longer, including its prefix: names have at most 255 characters.
const PATH_BYTES_MAX: usize = 1024;
/// Maximum number of rules that are evaluated, since users create them and each costs time per
/// request. Further rules are ignored.
const RULES_MAX: usize = 256;

/// The rules for this service. A request needs a matching one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Rule>")]
pub(crate) struct AccessRules(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Rule {
    service: String,
    method: String,
    path: String,
}

impl From<Vec<Rule>> for AccessRules {
    fn from(mut rules: Vec<Rule>) -> Self {
        rules.retain(|rule| rule.service == SERVICE);
        rules.truncate(RULES_MAX);
        Self(rules)
    }
}

impl AccessRules {
    /// Whether a request with this method and decoded path is allowed.
    pub(crate) fn allow(&self, method: &str, path: &str) -> bool {
        let mut rules = self.0.iter();
        path.len() <= PATH_BYTES_MAX
            && rules.any(|rule| rule.method == method && fits(path.as_bytes(), &rule.path))
    }
}

/// Whether a pattern matches the whole path. `*` and `{name}` match one or more bytes without `/`,
/// and `**` matches any bytes. For any pattern, the time is at most proportional to the product of
/// the lengths: users write the patterns, so no pattern may be slow.
fn fits(path: &[u8], pattern: &str) -> bool {
    // Whether the pattern read so far matches the first `n` bytes of the path, by `n`.
    let mut ends = vec![false; path.len() + 1];
    ends[0] = true;
    let mut rest = pattern.as_bytes();
    while let Some((part, behind)) = PatternElement::first(rest) {
        let mut next = vec![false; path.len() + 1];
        let mut open = false;
        for (at, end) in ends.iter().enumerate() {
            let byte = path.get(at);
            match part {
                PatternElement::Any => {
                    open |= end;
                    next[at] = open;
                }
                PatternElement::Name if byte.is_some() => {
                    open = (open || *end) && byte != Some(&b'/');
                    next[at + 1] = open;
                }
                PatternElement::Byte(own) if byte.is_some() => {
                    next[at + 1] = *end && byte == Some(&own)
                }
                PatternElement::Name | PatternElement::Byte(_) => {}
            }
        }
        if !next.contains(&true) {
            return false;
        }
        (ends, rest) = (next, behind);
    }
    ends[path.len()]
}

/// An element of a pattern.
#[derive(Clone, Copy)]
enum PatternElement {
    Any,
    Name,
    Byte(u8),
}

impl PatternElement {
    /// The first element of a pattern, and the rest of it.
    fn first(pattern: &[u8]) -> Option<(Self, &[u8])> {
        let (first, rest) = pattern.split_first()?;
        let close = pattern.iter().position(|byte| *byte == b'}');
        Some(match (first, close) {
            (b'*', _) => match rest.strip_prefix(b"*") {
                Some(rest) => (Self::Any, rest),
                None => (Self::Name, rest),
            },
            (b'{', Some(close)) => (Self::Name, &pattern[close + 1..]),
            (byte, _) => (Self::Byte(*byte), rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(rules: serde_json::Value) -> AccessRules {
        serde_json::from_value(rules).unwrap()
    }

    #[test]
    fn a_rule_allows_its_method_on_its_path_of_this_service() {
        let rules = rules(json!([
            {"id": "1", "service": "placement", "method": "GET", "path": "/traits"},
            {"id": "2", "service": "placement", "method": "PUT", "path": "/resource_providers/*/inventories"},
            {"id": "3", "service": "compute", "method": "GET", "path": "/usages"},
        ]));
        assert!(rules.allow("GET", "/traits"));
        assert!(rules.allow("PUT", "/resource_providers/u/inventories"));
        for (method, path) in [
            ("PUT", "/traits"),
            ("HEAD", "/traits"),
            ("get", "/traits"),
            ("GET", "/traits/"),
            ("GET", "/traits\n"),
            ("GET", "/usages"),
            ("GET", "/resource_providers/u/inventories"),
        ] {
            assert!(!rules.allow(method, path), "{method} {path:?}");
        }
        let none: AccessRules = serde_json::from_str("[]").unwrap();
        assert!(!none.allow("GET", "/traits"));
    }

    #[test]
    fn a_pattern_fits_whole_paths() {
        for (pattern, path, expected) in [
            ("/a/*", "/a/b", true),
            ("/a/*", "/a/", false),
            ("/a/*", "/a/b/c", false),
            ("/a/{name}/c", "/a/b/c", true),
            ("/a/{name}/c", "/a/b/d/c", false),
            ("/a/{name}", "/a/{name}", true),
            ("/a/{name", "/a/b", false),
            ("/a/x*y", "/a/xzzy", true),
            ("/a/x*y", "/a/xy", false),
            ("/**", "/", true),
            ("/**", "/a/b/c", true),
            ("/a/**/c", "/a//c", true),
            ("/a/**/c", "/a/c", false),
            ("/a/***", "/a/b/c", true),
            ("/a.c", "/abc", false),
            ("/é/*", "/é/ü", true),
            ("", "", true),
            ("", "/a", false),
        ] {
            assert_eq!(fits(path.as_bytes(), pattern), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn number_of_rules_is_limited() {
        let rule = |number: usize| json!({"service": "placement", "method": "GET", "path": format!("/{number}")});
        let elsewhere = json!({"service": "compute", "method": "GET", "path": "/**"});
        let many = (0..=RULES_MAX).flat_map(|number| [elsewhere.clone(), rule(number)]);
        let rules = rules(many.collect());
        assert!(rules.allow("GET", &format!("/{}", RULES_MAX - 1)));
        assert!(!rules.allow("GET", &format!("/{RULES_MAX}")));
    }

    #[test]
    fn pattern_with_many_wildcards_is_matched_quickly() {
        let path = format!("/{}", "a".repeat(PATH_BYTES_MAX - 1));
        let hostile = format!("/{}b", "**a".repeat(40));
        let rule = json!([{"service": "placement", "method": "GET", "path": hostile}]);
        assert!(!rules(rule).allow("GET", &path));
        let all = json!([{"service": "placement", "method": "GET", "path": "/**"}]);
        assert!(rules(all.clone()).allow("GET", &path));
        assert!(
            !rules(all).allow("GET", &format!("{path}a")),
            "the path is too long"
        );
    }
}
