//! `resources=VCPU:2,MEMORY_MB:1024`.

use std::collections::BTreeMap;

use placement_model::types::{Given, ResourceClassName};

use crate::http::errors::ApiError;
use crate::http::wire::spelling;

/// Parses amounts per class. If a class is repeated, its last amount is used. Class names are not
/// validated.
///
/// # Errors
/// 400 for any other form, and for amounts below 1 or beyond 64 bits.
pub(crate) fn parse_resources(
    text: &str,
) -> Result<BTreeMap<Given<ResourceClassName>, u64>, ApiError> {
    if text.trim().is_empty() {
        return Err(badly_formed("empty string"));
    }
    text.split(',')
        .map(|item| {
            let mut parts = item.split(':');
            let (Some(class), Some(amount), None) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(badly_formed(item));
            };
            Ok((Given::from(class), parse_amount(class, amount)?))
        })
        .collect()
}

fn parse_amount(class: &str, text: &str) -> Result<u64, ApiError> {
    const MAX: i128 = i64::MAX as i128;
    let problem = match spelling::integer(text) {
        None => format!("expected positive integer amount. Got: {text}."),
        Some(amount @ ..1) => format!("requires amount >= 1. Got: {amount}."),
        Some(amount) if amount <= MAX => return Ok(amount as u64),
        Some(_) => format!("requires an amount of at most {MAX}. Got: {}.", text.trim()),
    };
    let message = format!("Requested resource {class} {problem}");
    Err(ApiError::bad_request(message))
}

fn badly_formed(got: &str) -> ApiError {
    ApiError::bad_request(format!(
        "Badly formed resources parameter. Expected resources query string parameter in form: \
         ?resources=VCPU:2,MEMORY_MB:1024. Got: {got}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Vec<(String, u64)>> {
        let found = parse_resources(text).ok()?;
        Some(
            found
                .into_iter()
                .map(|(class, amount)| (class.to_string(), amount))
                .collect(),
        )
    }

    #[test]
    fn amounts_are_positive_integers() {
        for (text, amount) in [
            ("VCPU:1", 1),
            ("VCPU:+1", 1),
            ("VCPU: 1", 1),
            ("VCPU:1,VCPU:3", 3),
        ] {
            assert_eq!(
                parse(text),
                Some(vec![("VCPU".to_owned(), amount)]),
                "{text}"
            );
        }
        for text in [
            "",
            " ",
            "VCPU",
            "VCPU:",
            "VCPU:0",
            "VCPU:-2",
            "VCPU:1:2",
            "VCPU:1,",
            "VCPU:1_0",
            "VCPU:\u{661}",
            "VCPU:9223372036854775808",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
