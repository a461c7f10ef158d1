//! Request headers that select the consistency of a read, and response headers with the position
//! and consistency of an answer.
//!
//! | request header | state of the answer |
//! |---|---|
//! | `Placement-Consistency: linearizable` | at or after every acknowledged write |
//! | `Placement-Consistency: session` with `Placement-Min-Index: TOKEN` | at or after the token |
//! | `Placement-Consistency: bounded;max=0.5` | at most that many seconds old |
//! | `Placement-Consistency: local` | the state of this node, of any age |
//!
//! `Placement-Min-Index` alone means `session`.

use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::headers;
use crate::http::errors::ApiError;
use placement_base::backend::{Consistency, PlacementIndex, Position};

const CONSISTENCY: HeaderName = HeaderName::from_static("placement-consistency");
const MIN_INDEX: HeaderName = HeaderName::from_static("placement-min-index");
const INDEX: HeaderName = HeaderName::from_static("placement-index");
const NODE: HeaderName = HeaderName::from_static("placement-node");
const KNOWN_LEADER: HeaderName = HeaderName::from_static("placement-known-leader");
const STALENESS: HeaderName = HeaderName::from_static("placement-staleness");
const EFFECTIVE: HeaderName = HeaderName::from_static("placement-effective-consistency");

/// Maximum of `bounded;max=SECONDS`; larger values are clamped to it.
const BOUND_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Parses the requested consistency; `None` if the request has neither header.
///
/// # Errors
/// 400 if the level, bound or token is malformed, or if `session` comes without a token.
pub(crate) fn parse(headers: &HeaderMap) -> Result<Option<Consistency>, ApiError> {
    let level = headers::text(headers, CONSISTENCY);
    let token = headers::text(headers, MIN_INDEX)
        .map(|text| {
            parse_token(&text).ok_or_else(|| {
                ApiError::bad_consistency(format!(
                    "Placement-Min-Index is {text:?}, which is not a token; send the \
                 Placement-Index of an earlier response, as in \"7.1234\""
                ))
            })
        })
        .transpose()?;
    let Some(level) = level else {
        return Ok(token.map(Consistency::Session));
    };
    let level = level.trim().to_ascii_lowercase();
    Ok(Some(match (level.as_str(), token) {
        ("linearizable", _) => Consistency::Linearizable,
        ("local", _) => Consistency::Local,
        ("session", Some(token)) => Consistency::Session(token),
        ("session", None) => {
            return Err(ApiError::bad_consistency(
                "Placement-Consistency is \"session\" without a token; send the Placement-Index of \
                 an earlier response as Placement-Min-Index",
            ));
        }
        (other, _) => Consistency::Bounded(parse_bounded(other).ok_or_else(|| {
            ApiError::bad_consistency(format!(
                "Placement-Consistency is {other:?}; give \"linearizable\", \"session\", \
                 \"bounded;max=SECONDS\" or \"local\""
            ))
        })?),
    }))
}

fn parse_bounded(text: &str) -> Option<Duration> {
    let (level, parameter) = text.split_once(';')?;
    let (name, value) = parameter.split_once('=')?;
    if level.trim() != "bounded" || name.trim() != "max" {
        return None;
    }
    let seconds: f64 = value.trim().parse().ok()?;
    let bound = Duration::try_from_secs_f64(seconds).ok()?;
    Some(bound.min(BOUND_MAX))
}

pub(crate) fn parse_token(text: &str) -> Option<PlacementIndex> {
    let (epoch, index) = text.trim().split_once('.')?;
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    Some(PlacementIndex {
        epoch: number(epoch)?,
        index: number(index)?,
    })
}

/// The consistency of an answer from this state: `BoundedOrLocal` becomes `Bounded` or `Local`.
pub(crate) fn kept(promised: Consistency, position: &Position) -> Consistency {
    match promised {
        Consistency::BoundedOrLocal(bound) => {
            if position.staleness.is_some_and(|age| age <= bound) {
                Consistency::Bounded(bound)
            } else {
                Consistency::Local
            }
        }
        kept => kept,
    }
}

/// Writes the headers with the position and consistency of an answer. `effective` is `None` if the
/// answer does not depend on the state.
pub(crate) fn write_headers(
    headers: &mut HeaderMap,
    site: &str,
    position: &Position,
    effective: Option<Consistency>,
) {
    let text = |value: String| {
        HeaderValue::try_from(value)
            .expect("numbers and validated settings are valid header values")
    };
    if let Some(index) = position.index {
        headers.insert(INDEX, text(index.to_string()));
    }
    let node = match site {
        "" => HeaderValue::from(position.node),
        site => text(format!("{}{site}", position.node)),
    };
    headers.insert(NODE, node);
    let leader = position
        .known_leader
        .map_or(HeaderValue::from_static("none"), HeaderValue::from);
    headers.insert(KNOWN_LEADER, leader);
    let unknown = HeaderValue::from_static("unknown");
    let age = position.staleness.map_or(unknown, |age| {
        // Rounded up, as it is an upper bound of the state's age.
        let ms = age.as_nanos().div_ceil(1_000_000);
        text(format!("{}.{:03}", ms / 1000, ms % 1000))
    });
    headers.insert(STALENESS, age);
    let effective = match effective {
        None => HeaderValue::from_static("none"),
        Some(Consistency::Linearizable) => HeaderValue::from_static("linearizable"),
        Some(Consistency::Session(_)) => HeaderValue::from_static("session"),
        Some(Consistency::Bounded(bound) | Consistency::BoundedOrLocal(bound)) => {
            text(format!("bounded;max={}", bound.as_secs_f64()))
        }
        Some(Consistency::Local) => HeaderValue::from_static("local"),
    };
    headers.insert(EFFECTIVE, effective);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(HeaderName, &str)]) -> Result<Consistency, ()> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(name, value.parse().unwrap());
        }
        let asked = parse(&headers).map_err(|_| ())?;
        Ok(asked.unwrap_or(Consistency::Linearizable))
    }

    #[test]
    fn an_age_is_never_called_less_than_it_is() {
        for (age, expected) in [
            (0, "0.000"),
            (1, "0.001"),
            (1_000, "0.001"),
            (2_000_001, "2.001"),
        ] {
            let position = Position {
                index: None,
                node: 1,
                known_leader: None,
                staleness: Some(Duration::from_micros(age)),
            };
            let mut headers = HeaderMap::new();
            write_headers(&mut headers, "", &position, None);
            assert_eq!(headers["placement-staleness"], expected);
        }
    }

    #[test]
    fn each_level_can_be_asked_for() {
        let token = PlacementIndex {
            epoch: 7,
            index: 12,
        };
        assert_eq!(ask(&[]), Ok(Consistency::Linearizable));
        assert_eq!(ask(&[(CONSISTENCY, "Local")]), Ok(Consistency::Local));
        assert_eq!(ask(&[(MIN_INDEX, "7.12")]), Ok(Consistency::Session(token)));
        assert_eq!(
            ask(&[(CONSISTENCY, "session"), (MIN_INDEX, " 7.12 ")]),
            Ok(Consistency::Session(token))
        );
        assert_eq!(
            ask(&[(CONSISTENCY, "bounded; max=0.5")]),
            Ok(Consistency::Bounded(Duration::from_millis(500)))
        );
    }

    #[test]
    fn impossible_read_promise_is_refused() {
        for value in [
            "",
            "strong",
            "bounded",
            "bounded;max=",
            "bounded;max=-1",
            "bounded;max=nan",
            "session",
        ] {
            assert!(ask(&[(CONSISTENCY, value)]).is_err(), "{value:?}");
        }
        for token in [
            "",
            "7",
            "7.",
            ".7",
            "a.b",
            "-1.2",
            "+1.2",
            "1.99999999999999999999999",
        ] {
            assert!(ask(&[(MIN_INDEX, token)]).is_err(), "{token:?}");
        }
    }
}
