//! Limits of the usage of projects: `/placementd/v1/limits`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the limited resource that is no class: the number of consumers with allocations.
pub const CONSUMERS: &str = "consumers";

/// The highest usage by limited resource; `None` is unlimited.
pub type ResourceLimits<'a> = BTreeMap<Cow<'a, str>, Option<u64>>;

/// The limits of all projects of a partition: response of `GET /placementd/v1/limits`, and body of
/// `PUT`. A client that does not know a member would drop it with the next `PUT`, so an unknown
/// member is an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits<'a> {
    /// Increases with each `PUT`, which must have the current one; 0 before the first.
    pub generation: i64,
    /// The effect of a limit on a write that exceeds it.
    #[serde(default)]
    pub mode: LimitMode,
    /// The consumer types that count, `None` for consumers without a type.
    #[serde(default = "types_default")]
    pub types: Vec<Option<Cow<'a, str>>>,
    /// Limits of projects that have no limit of their own for a resource.
    #[serde(default)]
    pub defaults: ResourceLimits<'a>,
    /// Projects with limits of their own or with a parent, by id.
    #[serde(default)]
    pub projects: BTreeMap<Cow<'a, str>, ProjectLimits<'a>>,
    /// Time of the last `PUT`, as RFC 3339; `None` before the first. `PUT` ignores it.
    #[serde(default)]
    pub updated_at: Option<Cow<'a, str>>,
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Self {
            generation: 0,
            mode: LimitMode::default(),
            types: types_default(),
            defaults: ResourceLimits::new(),
            projects: BTreeMap::new(),
            updated_at: None,
        }
    }
}

/// The consumer types that count by default: servers, also those that Nova wrote without a type.
fn types_default<'a>() -> Vec<Option<Cow<'a, str>>> {
    vec![Some(Cow::Borrowed("INSTANCE")), None]
}

/// The effect of a limit on a write that exceeds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitMode {
    /// The write is done, counted and logged.
    #[default]
    Report,
    /// The write is refused.
    Enforce,
}

impl LimitMode {
    /// Name of the mode in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Enforce => "enforce",
        }
    }
}

/// The limits of one project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectLimits<'a> {
    /// Project whose limits also apply: to the usage of all projects with this parent and its own.
    pub parent: Option<Cow<'a, str>>,
    /// Limits that replace the defaults.
    pub limits: ResourceLimits<'a>,
}

/// Response of `PUT /placementd/v1/limits`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsWritten {
    /// The new generation of the limits.
    pub generation: i64,
}

/// A page of `GET /placementd/v1/limits/usage`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitUsagePage<'a> {
    /// Projects with limited resources, sorted by id.
    pub projects: Vec<LimitedProject<'a>>,
    /// Marker for the next page, even if this one is empty; `None` at the end.
    pub next: Option<Cow<'a, str>>,
}

/// A project and the usage of its limited resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitedProject<'a> {
    /// Id of the project.
    pub project_id: Cow<'a, str>,
    /// Project whose limits also apply.
    pub parent: Option<Cow<'a, str>>,
    /// Usage by limited resource.
    pub resources: BTreeMap<Cow<'a, str>, LimitUsage>,
}

/// The usage of a limited resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitUsage {
    /// Usage of the project, plus that of all projects of which it is the parent.
    pub used: u64,
    /// The highest usage.
    pub limit: u64,
}
