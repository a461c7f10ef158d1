//! The rule language: `role:admin or (rule:reader and project_id:%(project_id)s)`.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::target::Target;
use crate::http::edge::auth::Identity;

/// Parentheses and negations within each other: deeper is not understood.
const DEPTH_MAX: usize = 64;

/// One rule, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// `@`, or nothing at all.
    True,
    /// `!`, and everything that cannot be understood.
    False,
    /// `not x`.
    Not(Box<Check>),
    /// `x and y`.
    And(Vec<Check>),
    /// `x or y`.
    Or(Vec<Check>),
    /// `role:name`.
    Role(String),
    /// `rule:name`.
    Rule(String),
    /// `attribute:value`: an attribute of the caller, or a quoted constant, has this value.
    Attribute(String, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    And,
    Or,
    Not,
    Check(Check),
    Text,
}

impl Check {
    /// The rule that the text spells. Text that cannot be understood allows nothing.
    pub(super) fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::True;
        }
        let tokens = tokens(text);
        let mut parser = Parser {
            tokens: &tokens,
            depth: 0,
        };
        match parser.any() {
            Some(check) if parser.tokens.is_empty() => check,
            _ => {
                tracing::error!(
                    rule = text,
                    "cannot understand a policy rule; it allows nothing"
                );
                Self::False
            }
        }
    }

    /// One check without operators.
    pub(super) fn parse_one(text: &str) -> Self {
        match text {
            "!" => return Self::False,
            "@" => return Self::True,
            _ => {}
        }
        match text.split_once(':') {
            Some(("role", name)) => Self::Role(name.to_owned()),
            Some(("rule", name)) => Self::Rule(name.to_owned()),
            Some(("http" | "https", _)) | None => {
                tracing::error!(
                    check = text,
                    "a policy check is of no kind known here; it allows nothing"
                );
                Self::False
            }
            Some((attribute, value)) => Self::Attribute(attribute.to_owned(), value.to_owned()),
        }
    }
}

/// Words are separated by white space; parentheses stick to their fronts and backs.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for word in text.split_whitespace() {
        let inner = word.trim_start_matches('(');
        tokens.extend(std::iter::repeat_n(Token::Open, word.len() - inner.len()));
        let clean = inner.trim_end_matches(')');
        let closing = inner.len() - clean.len();
        let quoted = |quote| inner.len() >= 2 && inner.starts_with(quote) && inner.ends_with(quote);
        match clean.to_ascii_lowercase().as_str() {
            "" => {}
            "and" => tokens.push(Token::And),
            "or" => tokens.push(Token::Or),
            "not" => tokens.push(Token::Not),
            _ if quoted('"') || quoted('\'') => tokens.push(Token::Text),
            _ => tokens.push(Token::Check(Check::parse_one(clean))),
        }
        tokens.extend(std::iter::repeat_n(Token::Close, closing));
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [Token],
    depth: usize,
}

impl Parser<'_> {
    fn next_is(&mut self, token: &Token) -> bool {
        let is = self.tokens.first() == Some(token);
        if is {
            self.tokens = &self.tokens[1..];
        }
        is
    }

    fn any(&mut self) -> Option<Check> {
        let mut alternatives = vec![self.all()?];
        while self.next_is(&Token::Or) {
            alternatives.push(self.all()?);
        }
        Some(one_or(alternatives, Check::Or))
    }

    fn all(&mut self) -> Option<Check> {
        let mut conditions = vec![self.one()?];
        while self.next_is(&Token::And) {
            conditions.push(self.one()?);
        }
        Some(one_or(conditions, Check::And))
    }

    fn one(&mut self) -> Option<Check> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let (token, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        let check = match token {
            Token::Not => Check::Not(Box::new(self.one()?)),
            Token::Open => {
                let check = self.any()?;
                self.next_is(&Token::Close).then_some(check)?
            }
            Token::Check(check) => check.clone(),
            _ => return None,
        };
        self.depth -= 1;
        Some(check)
    }
}

fn one_or(mut checks: Vec<Check>, many: fn(Vec<Check>) -> Check) -> Check {
    if checks.len() == 1 {
        checks.remove(0)
    } else {
        many(checks)
    }
}

/// One question to the rules, with everything a rule can speak of.
pub(super) struct Evaluation<'a> {
    rules: &'a BTreeMap<String, Check>,
    identity: &'a Identity,
    target: Target<'a>,
    /// Each rule is judged once, however many refer to it. `None`: it is being judged.
    judged: RefCell<BTreeMap<&'a str, Option<bool>>>,
    /// Whether a rule was met that refers to itself, directly or through others.
    circular: Cell<bool>,
}

impl<'a> Evaluation<'a> {
    /// Nothing judged yet.
    pub(super) fn new(
        rules: &'a BTreeMap<String, Check>,
        identity: &'a Identity,
        target: Target<'a>,
    ) -> Self {
        Self {
            rules,
            identity,
            target,
            judged: RefCell::default(),
            circular: Cell::new(false),
        }
    }

    /// Whether the rule of this name holds. Rules that go in circles do not.
    pub(super) fn rule(&self, name: &str) -> bool {
        self.judge(name) && !self.circular.get()
    }

    fn judge(&self, name: &str) -> bool {
        let found = self
            .rules
            .get_key_value(name)
            .or_else(|| self.rules.get_key_value("default"));
        let Some((name, check)) = found else {
            return false;
        };
        let known = self.judged.borrow().get(name.as_str()).copied();
        match known {
            Some(Some(holds)) => holds,
            Some(None) => {
                self.circular.set(true);
                false
            }
            None => {
                self.judged.borrow_mut().insert(name, None);
                let holds = self.holds(check);
                self.judged.borrow_mut().insert(name, Some(holds));
                holds
            }
        }
    }

    fn holds(&self, check: &Check) -> bool {
        match check {
            Check::True => true,
            Check::False => false,
            Check::Not(check) => !self.holds(check),
            Check::And(checks) => checks.iter().all(|check| self.holds(check)),
            Check::Or(checks) => checks.iter().any(|check| self.holds(check)),
            Check::Rule(name) => self.judge(name),
            Check::Role(name) => self.fill_in(name).is_some_and(|name| {
                let roles = &self.identity.roles;
                roles.iter().any(|role| is_same_role(role, &name))
            }),
            Check::Attribute(attribute, value) => {
                let value = self.fill_in(value);
                value.is_some_and(|value| self.attribute_is(attribute, &value))
            }
        }
    }

    /// Replaces `%(name)s` by what the target says; `None` if it says nothing of it.
    fn fill_in<'p>(&self, pattern: &'p str) -> Option<Cow<'p, str>> {
        if !pattern.contains('%') {
            return Some(Cow::Borrowed(pattern));
        }
        let mut filled = String::with_capacity(pattern.len());
        let mut rest = pattern;
        while let Some(position) = rest.find('%') {
            filled.push_str(&rest[..position]);
            rest = &rest[position + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                filled.push('%');
                rest = after;
                continue;
            }
            let (name, after) = rest.strip_prefix('(')?.split_once(")s")?;
            let value = match name {
                "project_id" => self.target.project_id,
                "user_id" => self.target.user_id,
                _ => return None,
            };
            filled.push_str(value.unwrap_or("None"));
            rest = after;
        }
        filled.push_str(rest);
        Some(Cow::Owned(filled))
    }

    fn attribute_is(&self, attribute: &str, value: &str) -> bool {
        for quote in ['\'', '"'] {
            let constant = attribute
                .strip_prefix(quote)
                .and_then(|rest| rest.strip_suffix(quote));
            if let Some(constant) = constant {
                return constant == value;
            }
        }
        let optional = |text: &Option<String>| text.as_deref().unwrap_or("None") == value;
        let caller = self.identity;
        match attribute {
            "user_id" => caller.user_id == value,
            "project_id" => optional(&caller.project_id),
            "domain_id" => optional(&caller.domain_id),
            "system_scope" => optional(&caller.system_scope),
            "user_domain_id" => optional(&caller.user_domain_id),
            "project_domain_id" => optional(&caller.project_domain_id),
            "roles" => caller.roles.iter().any(|role| role == value),
            "is_admin_project" => value == "True",
            "True" | "False" | "None" => attribute == value,
            number if number.parse::<f64>().is_ok() => number == value,
            _ => false,
        }
    }
}

/// Whatever the case of their letters.
fn is_same_role(one: &str, other: &str) -> bool {
    match one.is_ascii() && other.is_ascii() {
        true => one.eq_ignore_ascii_case(other),
        false => one.to_lowercase() == other.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(rule: &str, roles: &[&str]) -> bool {
        let mut rules = BTreeMap::new();
        rules.insert("it".to_owned(), Check::parse(rule));
        rules.insert("admin".to_owned(), Check::parse("role:admin"));
        for depth in 0..40 {
            let twice = format!("rule:deep{0} or rule:deep{0}", depth + 1);
            rules.insert(format!("deep{depth}"), Check::parse(&twice));
        }
        rules.insert("not_me".to_owned(), Check::parse("not rule:not_me"));
        rules.insert("loop".to_owned(), Check::parse("rule:loop or rule:loop"));
        let identity = Identity {
            user_id: "u".to_owned(),
            project_id: Some("p".to_owned()),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            ..Identity::default()
        };
        let target = Target {
            project_id: Some("p"),
            user_id: None,
        };
        Evaluation::new(&rules, &identity, target).rule("it")
    }

    #[test]
    fn rules_combine_as_in_any_logic() {
        for (rule, expected) in [
            ("@", true),
            ("", true),
            ("!", false),
            ("role:admin", true),
            ("role:ADMIN", true),
            ("role:reader", false),
            ("rule:admin", true),
            ("rule:nowhere", false),
            ("not role:reader", true),
            ("not not role:admin", true),
            ("role:admin and role:reader", false),
            ("role:reader and role:x or role:admin", true),
            ("role:admin or role:reader and role:x", true),
            ("(role:admin or role:reader) and role:x", false),
            ("( role:admin )", true),
            ("not (role:admin and role:x)", true),
            ("role:admin AND NOT role:x", true),
            ("project_id:%(project_id)s", true),
            ("project_id:q", false),
            ("project_id:%(nothing)s", false),
            ("'x':x", true),
            ("'x':y", false),
            ("user_id:%(user_id)s", false),
            ("roles:admin", true),
            ("True:True", true),
            ("http://somewhere/x", false),
            ("rule:loop", false),
            ("rule:not_me", false),
            ("rule:deep0", false),
        ] {
            assert_eq!(holds(rule, &["admin"]), expected, "{rule}");
        }
    }

    #[test]
    fn what_cannot_be_understood_allows_nothing() {
        for rule in [
            "role:admin or",
            "and",
            "(role:admin",
            "role:admin)",
            "role:admin role:x",
            "'text'",
            "admin",
            "not",
            "project_id:%(project_id",
            "role:%x",
        ] {
            assert!(!holds(rule, &["admin"]), "{rule}");
        }
        assert!(!holds(&"(".repeat(10_000), &["admin"]));
        assert!(!holds(&"not ".repeat(10_000), &["admin"]));
    }

    proptest! {
        #[test]
        fn no_rule_breaks_the_parser(rule in "[()@!a-z:%'\" ]{0,60}") {
            holds(&rule, &["admin"]);
        }

        #[test]
        fn no_text_breaks_the_parser(rule in ".{0,60}") {
            holds(&rule, &["admin"]);
        }
    }
}
