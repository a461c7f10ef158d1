//! How often the named queries of a node fit: `GET /placementd/v1/fits`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::explain::Position;

/// Response of `GET /placementd/v1/fits`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fits<'a> {
    /// Named queries in the order of the configuration.
    pub fits: Vec<NamedFit<'a>>,
    /// State on which the response is based.
    pub position: Position<'a>,
}

/// How often a named query fits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedFit<'a> {
    /// Name of the query.
    pub name: Cow<'a, str>,
    /// Size of the count.
    pub level: FitLevel,
    /// Whether counting ended because there was no room, not because of a limit. Otherwise the
    /// level and the count are lower bounds.
    pub complete: bool,
    /// Numbers, for callers who may read the capacity.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedFit<'a>>,
}

/// How often a query can be claimed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedFit<'a> {
    /// Number of claims that succeed, at most 10,000.
    pub count: u64,
    /// Whether no order of claims has room for more. Otherwise the count is a lower bound.
    pub exact: bool,
    /// Why the query cannot fit: it names a resource class or trait that does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Cow<'a, str>>,
}

/// Size of a count. Some callers see only this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FitLevel {
    /// The query does not fit.
    #[default]
    None,
    /// The query fits less than 10 times.
    Few,
    /// The query fits less than 100 times.
    Some,
    /// The query fits 100 times or more.
    Many,
}

impl FitLevel {
    /// The smallest count with the highest level.
    pub const MANY: u64 = 100;

    /// The level of a count.
    pub fn of(count: u64) -> Self {
        match count {
            0 => Self::None,
            1..10 => Self::Few,
            10..Self::MANY => Self::Some,
            _ => Self::Many,
        }
    }

    /// The level as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Few => "few",
            Self::Some => "some",
            Self::Many => "many",
        }
    }
}
