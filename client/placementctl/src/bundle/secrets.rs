//! Detects secrets in a text by their form, or by the name before them. Reports the line and kind,
//! never the value.

use std::fmt;
use std::sync::LazyLock;

use percent_encoding::percent_decode_str;
use regex_lite::{Captures, Regex};
use serde::Serialize;

/// A line that seems to contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Suspect {
    /// Line number, from 1.
    pub(crate) line: usize,
    pub(crate) kind: &'static str,
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, kind } = self;
        write!(f, "line {line} is masked: it seems to contain {kind}")
    }
}

/// A value after its name, such as `db_password=…`, `X-Auth-Token: …` or `"apiKey":"…"`, also with
/// escaped quotes. After a colon, unquoted text counts as a value only if it is the last word,
/// since prose contains colons, too.
const NAMED: &str = concat!(
    "(?i)(?P<name>pass(?:word|wd|phrase)s?|(?:admin|user|db)_?pass|secrets?|tokens?",
    "|(?:^|[^a-z0-9])(?:[a-z0-9]+[_.-])*keys?|(?:api|access|private|secret)keys?)",
    r#"(?:(?:\\*["']?\s*=>?|\\*["']\s*:)\s*\[?\s*(?:\\*["']([^"'\\]*)|([^\s"'&,;)}\]]+))"#,
    r#"|\s*:\s*\[?\s*\\*["']([^"'\\]*)"#,
    r#"|\s*:\s*([^\s"',;)}\]\\]+)(?:\\+[rn]|["')}\]]|\s*$))"#,
);

const PRIVATE_KEY: &str = "a private key";

/// Kinds of secrets: name, words, and pattern. Every match of the pattern contains one of the
/// words, so the pattern is not run for the many lines without these words. An unnamed group
/// captures the value, which may be masked already.
const FORMS: [(&str, &str, &str); 11] = [
    (
        "the value of a password, secret, token or key",
        "pass|secret|token|key",
        NAMED,
    ),
    (
        PRIVATE_KEY,
        "private key",
        "-----BEGIN [A-Z0-9 ]*PRIVATE KEY",
    ),
    ("a Fernet token", "gaaaa", "gAAAA[A-Za-z0-9_-]{20,}"),
    (
        "an AWS access key",
        "akia|asia",
        "(?:^|[^A-Z0-9])A[KS]IA[A-Z0-9]{16}(?:[^A-Z0-9]|$)",
    ),
    (
        "a password in a URL",
        "://",
        r#"[A-Za-z]://[^/\s:@"'<>]*:([^/\s@"'<>]+)@"#,
    ),
    (
        "an Authorization header",
        "authorization",
        r"(?i)authorization\W{1,8}[a-z]+\s+([^\s,]{4,})",
    ),
    (
        "a bearer token",
        "bearer",
        r"(?i)bearer\s+[a-z0-9._~+/=-]{16,}",
    ),
    (
        "a JSON web token",
        "eyj",
        r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    (
        "a join token",
        "-",
        "(?:^|[^A-Za-z0-9-])[1-9][0-9]*-[0-9a-f]{64}(?:[^A-Za-z0-9]|$)",
    ),
    ("a Slack token", "xox", "xox[abprs]-[A-Za-z0-9-]{16,}"),
    ("a GitHub token", "gh", "gh[oprsu]_[A-Za-z0-9]{30,}"),
];

static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = FORMS.iter().map(|(.., form)| Regex::new(form));
    patterns
        .map(|pattern| pattern.expect("the constant patterns are valid"))
        .collect()
});

/// Replaces each line that seems to contain a secret by its line number and the first matching
/// kind. Also returns these lines.
pub(crate) fn mask(text: &str) -> (String, Vec<Suspect>) {
    let (mut masked, mut suspects) = (String::new(), Vec::new());
    let mut is_in_key = false;
    for (line, words) in (1..).zip(text.split_inclusive('\n')) {
        let of_key = (is_in_key && is_part_of_key(words)).then_some(PRIVATE_KEY);
        let kind = of_key.or_else(|| kind(words)).or_else(|| {
            // URIs encode names and values.
            let is_encoded = words.contains('%');
            is_encoded.then(|| kind(&percent_decode_str(words).decode_utf8_lossy()))?
        });
        is_in_key = kind == Some(PRIVATE_KEY) && !words.contains("-----END");
        let Some(kind) = kind else {
            masked += words;
            continue;
        };
        let suspect = Suspect { line, kind };
        masked += &format!("[{suspect}]\n");
        suspects.push(suspect);
    }
    (masked, suspects)
}

/// Whether a line may be a later line of a PEM private key. Lines with spaces are not. So if a log
/// line contains the first line of a key, the log lines after it are not masked.
fn is_part_of_key(line: &str) -> bool {
    let line = line.trim();
    let is_base64 = |char: char| char.is_ascii_alphanumeric() || "+/=".contains(char);
    let others = ["-----END", "Proc-Type:", "DEK-Info:"];
    line.chars().all(is_base64) || others.iter().any(|other| line.starts_with(other))
}

/// The lines of a text that seem to contain a secret.
pub(crate) fn find(text: &str) -> Vec<Suspect> {
    mask(text).1
}

fn kind(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    let mut forms = FORMS.iter().zip(&*PATTERNS);
    let found = forms.find(|((_, words, _), pattern)| {
        words.split('|').any(|word| lower.contains(word))
            && pattern
                .captures_iter(line)
                .any(|found| !is_harmless(&found))
    });
    found.map(|((kind, ..), _)| *kind)
}

/// Whether the found value is masked already or cannot be a secret.
fn is_harmless(found: &Captures<'_>) -> bool {
    let name = found
        .name("name")
        .map(|name| name.as_str().to_ascii_lowercase());
    let mut groups = found.iter().skip(1 + usize::from(name.is_some())).flatten();
    let Some(value) = groups.next() else {
        return false;
    };
    let value = value.as_str().trim().to_ascii_lowercase();
    let may_be_number = name.is_none_or(|name| name.contains("pass"));
    let masks = ["(not", "<", "[redacted", "redacted", "hidden"];
    !value.contains(|c: char| c.is_alphanumeric() && c != 'x')
        || ["null", "none", "true", "false", "unset"].contains(&&*value)
        || masks.iter().any(|mask| value.starts_with(mask))
        || !may_be_number && value.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_by_line_and_kind() {
        let named = "the value of a password, secret, token or key";
        let fernet = format!("gAAAAA{}", "Bx7-_".repeat(20));
        let join = format!("the token is 4-{}", "0af3".repeat(16));
        for (line, kind) in [
            ("password=hunter2", named),
            ("password = \"correct horse\"", named),
            ("db_password: hunter2", named),
            ("password = 12345", named),
            ("passwd='x1'", named),
            ("{\"adminPass\": 1}", named),
            ("\"secret\":\"a\"", named),
            ("  \"application_credential_secret\": \"s3cr3t\",", named),
            ("error=\"cannot: \\\"token\\\":\\\"abc\\\"\"", named),
            ("Credentials { name: \"n\", secret: \"abc\" }", named),
            ("secrets = [\"abc\"]", named),
            ("X-Auth-Token: abc123", named),
            ("headers=\"a: b\\r\\nx-subject-token: abc\\r\\n\"", named),
            ("GET /v3?a=b&token=abc&c=d", named),
            ("uri=\"/resource_providers?name=password%3Dhunter2\"", named),
            ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", named),
            ("api_key=abc", named),
            ("\"apiKey\": \"abc\"", named),
            ("key = \"abc\"", named),
            ("password= token=abc", named),
            ("-----BEGIN PRIVATE KEY-----", "a private key"),
            (
                "pem=\"-----BEGIN EC PRIVATE KEY-----\\nMHc\"",
                "a private key",
            ),
            (&fernet, "a Fernet token"),
            ("trait CUSTOM_AKIAIOSFODNN7EXAMPLE", "an AWS access key"),
            ("name=ASIAIOSFODNN7EXAMPLE&x", "an AWS access key"),
            (
                "mysql+pymysql://nova:hunter2@db/nova",
                "a password in a URL",
            ),
            ("http://nova:12345@db", "a password in a URL"),
            ("x=http%3A%2F%2Fnova%3Ahunter2%40db", "a password in a URL"),
            ("Authorization: Basic YTpi", "an Authorization header"),
            (
                "{\"authorization\": \"Basic YTpi\"}",
                "an Authorization header",
            ),
            ("curl -H 'bearer abcdefgh.ijklmnop'", "a bearer token"),
            ("eyJhbGciOiJI.eyJzdWIiOiIx.abc", "a JSON web token"),
            (&join, "a join token"),
            ("xoxb-1234567890-abcdefghijkl", "a Slack token"),
        ] {
            let text = format!("all is well\n{line}\nand here too");
            assert_eq!(find(&text), [Suspect { line: 2, kind }], "{line}");
        }
    }

    #[test]
    fn a_line_with_a_secret_is_masked_and_the_others_stay() {
        let text = "first\nGET /traits?password=hunter2\nlast";
        let (masked, suspects) = mask(text);
        assert_eq!(suspects.len(), 1);
        assert_eq!(
            masked,
            "first\n[line 2 is masked: it seems to contain the value of a password, secret, token or key]\nlast"
        );
    }

    #[test]
    fn a_private_key_is_masked_to_its_last_line() {
        let begin = "-----BEGIN PRIVATE KEY-----\n";
        for (text, after) in [
            (
                format!("{begin}MIG0\nAgEA\n-----END PRIVATE KEY-----\nafter\n"),
                "after\n",
            ),
            (format!("{begin}MIG0\n\nAgEA\n"), ""),
            (
                format!("{begin}INFO answered uri=\"/\"\n"),
                "INFO answered uri=\"/\"\n",
            ),
        ] {
            let (masked, suspects) = mask(&text);
            assert!(
                !masked.contains("MIG0") && !masked.contains("AgEA"),
                "{masked}"
            );
            assert!(
                masked.ends_with(&format!("contain a private key]\n{after}")),
                "{masked}"
            );
            assert_eq!(suspects.len(), masked.matches("is masked").count());
        }
    }

    #[test]
    fn masked_values_and_other_words_are_not_secrets() {
        for line in [
            "password = \"(not shown)\"",
            "password=(not shown)",
            "password = \"\"",
            "password=",
            "\"token\": null,",
            "\"join_tokens\": [",
            "\"join_tokens\":[{\"id\":4,\"state\":\"open\"}]",
            "token_cache_time_s = 300",
            "service_token_roles = [\"service\"]",
            "tls_key_file = \"/etc/placementd/key.pem\"",
            "join_token_file = \"/etc/placementd/token\"",
            "the password of Keystone's user is wrong: it was changed",
            "cannot read the key: No such file or directory (os error 2)",
            "# HELP placement_keystone_tokens_total Tokens: by how they were validated.",
            "placement_keystone_tokens_total{result=\"cached\"} 5",
            "token=***",
            "secret: <hidden>",
            "monkey=banana donkey: 'grey'",
            "\"digest\": \"2.0af30af30af30af30af30af30af30af30af30af30af30af30af30af30af30af3\"",
            "c0000000-0000-4000-8000-000000000001",
            "https://keystone.example:5000/v3",
            "http://[::1]:5000/v3 by nova@example.org",
            "AKIAIOSFODNN7EXAMPLES are no keys",
            "basic authentication and a bearer of news",
        ] {
            assert_eq!(find(line), [], "{line}");
        }
    }
}
