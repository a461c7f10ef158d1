//! The rule language: `role:admin or (rule:reader and project_id:%(project_id)s)`.
//!
//! A check that cannot be parsed has an unknown value, even inside `not`, so it never grants
//! access. Another operand of an `or` can still grant access.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Target;
use placement_audit::identity::Identity;

/// Maximum nesting of parentheses and negations; deeper rules are treated as unparsable.
const DEPTH_MAX: usize = 64;
/// Maximum nesting of checks during an evaluation, including the rules that checks refer to.
const JUDGED_DEPTH_MAX: usize = 512;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// `@`, or an empty rule.
    True,
    /// `!`.
    False,
    /// A check that cannot be parsed, with the reason.
    NotUnderstood(String),
    /// `not x`.
    Not(Box<Check>),
    /// `x and y`.
    And(Vec<Check>),
    /// `x or y`.
    Or(Vec<Check>),
    /// `role:name`.
    Role(Pattern),
    /// `rule:name`.
    Rule(String),
    /// `attribute:value`: the caller's attribute has this value.
    Attribute(String, Pattern),
    /// `'text':value`: the literal text equals the value.
    Constant(String, Pattern),
}

/// A text in which `%(name)s` is replaced by an attribute of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern(Vec<PatternPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternPart {
    Text(String),
    ProjectId,
    UserId,
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
    /// Parses a rule; an empty one is always true.
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
            _ => Self::NotUnderstood(format!("{text:?} is not a rule")),
        }
    }

    /// Parses a single check, without operators.
    pub(super) fn parse_one(text: &str) -> Self {
        let understood = match text.split_once(':') {
            None if text == "!" => Ok(Self::False),
            None if text == "@" => Ok(Self::True),
            Some(("role", name)) => Pattern::parse(name).map(Self::Role),
            Some(("rule", name)) => Ok(Self::Rule(name.to_owned())),
            Some(("http" | "https", _)) => {
                Err("remote checks (http, https) are not supported".to_owned())
            }
            Some((name, value)) => Self::comparison(name, value),
            None => Err("a check must have the form KIND:VALUE".to_owned()),
        };
        understood.unwrap_or_else(|why| Self::NotUnderstood(format!("{text:?}: {why}")))
    }

    fn comparison(name: &str, value: &str) -> Result<Self, String> {
        let unquoted = |quote| name.strip_prefix(quote)?.strip_suffix(quote);
        let is_constant = matches!(name, "True" | "False" | "None") || name.parse::<f64>().is_ok();
        let constant = (unquoted('\'').or_else(|| unquoted('"'))).or(is_constant.then_some(name));
        if let Some(constant) = constant {
            return Ok(Self::Constant(constant.to_owned(), Pattern::parse(value)?));
        }
        if attribute_is(&Identity::default(), name, "").is_none() {
            return Err(format!("callers have no attribute {name:?}"));
        }
        Ok(Self::Attribute(name.to_owned(), Pattern::parse(value)?))
    }

    /// All checks in it that do not contain other checks.
    pub(super) fn leaves(&self) -> Vec<&Self> {
        match self {
            Self::Not(check) => check.leaves(),
            Self::And(checks) | Self::Or(checks) => checks.iter().flat_map(Self::leaves).collect(),
            leaf => vec![leaf],
        }
    }

    /// As [`Check::leaves`], to replace them.
    pub(super) fn leaves_mut(&mut self) -> Vec<&mut Self> {
        match self {
            Self::Not(check) => check.leaves_mut(),
            Self::And(checks) | Self::Or(checks) => {
                checks.iter_mut().flat_map(Self::leaves_mut).collect()
            }
            leaf => vec![leaf],
        }
    }

    /// The attribute of the target that this check, without those that it contains, compares with.
    pub(super) fn compared_attribute(&self) -> Option<&'static str> {
        match self {
            Self::Role(pattern) | Self::Attribute(_, pattern) | Self::Constant(_, pattern) => {
                pattern.0.iter().find_map(|part| match part {
                    PatternPart::ProjectId => Some("%(project_id)s"),
                    PatternPart::UserId => Some("%(user_id)s"),
                    PatternPart::Text(_) => None,
                })
            }
            _ => None,
        }
    }

    /// The names of the rules that this check refers to.
    pub(super) fn referred(&self) -> impl Iterator<Item = &str> {
        let leaves = self.leaves().into_iter();
        leaves.filter_map(|leaf| match leaf {
            Self::Rule(name) => Some(name.as_str()),
            _ => None,
        })
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(position) = rest.find('%') {
            plain.push_str(&rest[..position]);
            rest = &rest[position + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                plain.push('%');
                rest = after;
                continue;
            }
            let named = rest
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(")s"));
            let (name, after) = named.ok_or("% must be followed by (NAME)s or another %")?;
            parts.push(PatternPart::Text(std::mem::take(&mut plain)));
            parts.push(match name {
                "project_id" => PatternPart::ProjectId,
                "user_id" => PatternPart::UserId,
                _ => return Err(format!("requests have no attribute {name:?}")),
            });
            rest = after;
        }
        plain.push_str(rest);
        parts.push(PatternPart::Text(plain));
        parts.retain(|part| *part != PatternPart::Text(String::new()));
        Ok(Self(parts))
    }

    /// Replaces the names by the target's attributes; `None` if the target lacks one, in which case
    /// the check fails.
    fn fill_in(&self, target: Target<'_>) -> Option<Cow<'_, str>> {
        let text = |part| match part {
            &PatternPart::ProjectId => {
                (target.project_id).map(|project| Cow::Owned(project.to_owned()))
            }
            &PatternPart::UserId => target.user_id.map(|user| Cow::Owned(user.to_owned())),
            PatternPart::Text(text) => Some(Cow::Borrowed(text.as_str())),
        };
        match self.0.as_slice() {
            [part] => text(part),
            parts => (parts.iter().map(text).collect::<Option<_>>()).map(Cow::Owned),
        }
    }
}

/// Splits a rule at white space, and separates parentheses from the beginning and the end of each
/// word.
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
        Some(single_or(alternatives, Check::Or))
    }

    fn all(&mut self) -> Option<Check> {
        let mut conditions = vec![self.one()?];
        while self.next_is(&Token::And) {
            conditions.push(self.one()?);
        }
        Some(single_or(conditions, Check::And))
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

fn single_or(mut checks: Vec<Check>, many: fn(Vec<Check>) -> Check) -> Check {
    match checks.len() {
        1 => checks.remove(0),
        _ => many(checks),
    }
}

/// The rules without repeated conditions: an `and` or `or` keeps only the first of several equal
/// ones. Results are the same. The rule of this service's own routes refers to all of upstream's
/// read rules, most of which are equal, and each request to such a route evaluates it.
pub(super) fn without_repeated_conditions(
    rules: &BTreeMap<String, Check>,
) -> BTreeMap<String, Check> {
    let reduced = |checks: &[Check]| {
        let mut seen = Vec::new();
        let mut kept = Vec::new();
        for check in checks {
            let referred = match check {
                Check::Rule(name) => rules.get(name).unwrap_or(check),
                check => check,
            };
            if !seen.contains(&referred) {
                seen.push(referred);
                kept.push(check.clone());
            }
        }
        kept
    };
    let reduce = |check: &Check| match check {
        Check::And(checks) => Check::And(reduced(checks)),
        Check::Or(checks) => Check::Or(reduced(checks)),
        other => other.clone(),
    };
    let rules = rules.iter();
    rules
        .map(|(name, check)| (name.clone(), reduce(check)))
        .collect()
}

/// Whether the rule of this name holds. A rule that refers to itself does not hold.
pub(super) fn holds(
    rules: &BTreeMap<String, Check>,
    name: &str,
    identity: &Identity,
    target: Target<'_>,
) -> bool {
    let mut evaluation = Evaluation {
        rules,
        identity,
        target,
        judged: BTreeMap::new(),
        depth: 0,
        hopeless: false,
    };
    evaluation.judge(name) == Some(true) && !evaluation.hopeless
}

/// One evaluation, with everything that a rule can refer to.
struct Evaluation<'a> {
    rules: &'a BTreeMap<String, Check>,
    identity: &'a Identity,
    target: Target<'a>,
    /// Results by rule. Each rule is evaluated once, even if several rules refer to it. `None`
    /// while the rule is being evaluated.
    judged: BTreeMap<&'a str, Option<Holds>>,
    /// Current nesting of checks.
    depth: usize,
    /// Whether a rule refers to itself, directly or through others, or is nested too deeply.
    hopeless: bool,
}

/// `None`: unknown, as part of the check cannot be parsed.
type Holds = Option<bool>;

impl<'a> Evaluation<'a> {
    fn judge(&mut self, name: &str) -> Holds {
        let found = self.rules.get_key_value(name);
        let (name, check) = found.or_else(|| self.rules.get_key_value("default"))?;
        if let Some(known) = self.judged.get(name.as_str()) {
            self.hopeless |= known.is_none();
            return known.flatten();
        }
        self.judged.insert(name, None);
        let holds = self.holds(check);
        self.judged.insert(name, Some(holds));
        holds
    }

    fn holds(&mut self, check: &'a Check) -> Holds {
        if self.depth == JUDGED_DEPTH_MAX {
            self.hopeless = true;
            return None;
        }
        self.depth += 1;
        let holds = match check {
            Check::True => Some(true),
            Check::False => Some(false),
            Check::NotUnderstood(_) => None,
            Check::Not(check) => self.holds(check).map(|holds| !holds),
            Check::And(checks) => self.first(checks, false),
            Check::Or(checks) => self.first(checks, true),
            Check::Rule(name) => self.judge(name),
            Check::Role(name) => {
                let name = name.fill_in(self.target);
                let roles = &self.identity.roles;
                let has = |name: Cow<'_, str>| roles.iter().any(|role| is_same_role(role, &name));
                Some(name.is_some_and(has))
            }
            Check::Attribute(name, value) => {
                let is = |value: Cow<'_, str>| attribute_is(self.identity, name, &value);
                Some(value.fill_in(self.target).and_then(is) == Some(true))
            }
            Check::Constant(constant, value) => {
                let value = value.fill_in(self.target);
                Some(value.is_some_and(|value| value == *constant))
            }
        };
        self.depth -= 1;
        holds
    }

    /// Returns `decisive` if one of the checks has this value. Otherwise returns the opposite value
    /// if all checks are known, and unknown if one is not.
    fn first(&mut self, checks: &'a [Check], decisive: bool) -> Holds {
        let mut all = Some(!decisive);
        for check in checks {
            match self.holds(check) {
                Some(holds) if holds == decisive => return Some(decisive),
                Some(_) => {}
                None => all = None,
            }
        }
        all
    }
}

/// Whether an attribute of a caller has this value; `None` if callers have no such attribute.
fn attribute_is(caller: &Identity, name: &str, value: &str) -> Option<bool> {
    let optional = |text: &Option<String>| text.as_deref().unwrap_or("None") == value;
    let listed = |roles: &[String]| roles.iter().any(|role| role == value);
    let service = &caller.service;
    Some(match name {
        "user_id" => caller.user_id == value,
        "project_id" => optional(&caller.project_id),
        "domain_id" => optional(&caller.domain_id),
        "system_scope" => optional(&caller.system_scope),
        "user_domain_id" => optional(&caller.user_domain_id),
        "project_domain_id" => optional(&caller.project_domain_id),
        "roles" => listed(&caller.roles),
        "is_admin_project" if caller.is_admin_project => value == "True",
        "is_admin_project" => value == "False",
        // Only callers with a system scope have this attribute.
        "system" => !value.is_empty() && caller.system_scope.as_deref() == Some(value),
        "service_user_id" => optional(&service.user_id),
        "service_user_domain_id" => optional(&service.user_domain_id),
        "service_project_id" => optional(&service.project_id),
        "service_project_domain_id" => optional(&service.project_domain_id),
        "service_roles" => listed(&service.roles),
        _ => return None,
    })
}

/// Compares role names, ignoring case.
fn is_same_role(one: &str, other: &str) -> bool {
    let both_ascii = one.is_ascii() && other.is_ascii();
    one.eq_ignore_ascii_case(other) || (!both_ascii && one.to_lowercase() == other.to_lowercase())
}

#[cfg(test)]
mod tests;
