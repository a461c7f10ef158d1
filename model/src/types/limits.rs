//! Limits of the usage of projects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ConsumerTypeName, InvalidName, ProjectId, ResourceClassName};

/// The limits of all projects of a partition, as in Keystone's unified limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Limits {
    /// The effect of a limit on a write that exceeds it.
    pub mode: LimitMode,
    /// The consumer types to count, of which `None` is the type of consumers without one.
    pub types: BTreeSet<Option<ConsumerTypeName>>,
    /// The limits of projects that have no limit of their own for a resource. They concern the
    /// usage of one project, without its children.
    pub defaults: ResourceLimits,
    /// Projects with limits of their own or with a parent.
    pub projects: BTreeMap<ProjectId, ProjectLimits>,
}

/// The effect of a limit on a write that exceeds it. A write that does not increase the usage of a
/// project is accepted even above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitMode {
    /// The write is carried out and reported.
    #[default]
    Report,
    /// The write is refused.
    Enforce,
}

/// The limits of one project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct ProjectLimits {
    /// The project whose own limits also apply: to its usage plus that of all projects with this
    /// parent. A parent has no parent.
    pub parent: Option<ProjectId>,
    /// The limits that differ from the defaults.
    pub limits: ResourceLimits,
}

/// The highest usage by resource; `None` is unlimited.
pub type ResourceLimits = BTreeMap<LimitedResource, Option<u64>>;

/// The quantity that a limit concerns. Written as a resource class or `consumers`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum LimitedResource {
    /// The number of consumers with allocations.
    Consumers,
    /// Units of a resource class, which may not exist.
    Class(ResourceClassName),
}

impl LimitedResource {
    /// The name of [`LimitedResource::Consumers`], which is no name of a class: these are in upper
    /// case.
    const CONSUMERS: &str = "consumers";
}

impl TryFrom<String> for LimitedResource {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        if name == Self::CONSUMERS {
            return Ok(Self::Consumers);
        }
        ResourceClassName::try_from(name).map(Self::Class)
    }
}

impl From<LimitedResource> for String {
    fn from(resource: LimitedResource) -> Self {
        resource.to_string()
    }
}

impl fmt::Display for LimitedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consumers => f.write_str(Self::CONSUMERS),
            Self::Class(name) => name.fmt(f),
        }
    }
}

/// A limit that a write exceeds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LimitExcess {
    /// The project that has the limit: a consumer's project or its parent.
    pub project: ProjectId,
    /// The limited resource.
    pub resource: LimitedResource,
    /// The usage before the write.
    pub used: u64,
    /// The usage after the write, which is higher.
    pub requested: u64,
    /// The limit that the usage after the write exceeds.
    pub limit: u64,
}

impl LimitExcess {
    /// The highest number of exceeded limits in a reply.
    pub const MOST: usize = 100;
}
