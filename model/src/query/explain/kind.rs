//! What conditions are about.

use serde::{Serialize, Serializer};

/// What a condition is about, in the order in which trees are judged: where they are, what they
/// are, what they have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kind {
    /// The provider whose tree is asked for.
    InTree,
    /// Aggregates that a provider must, or must not, be a member of.
    MemberOf,
    /// A trait that the root must, or must not, have.
    RootRequired,
    /// A resource class.
    Inventory,
    /// Traits of which one is required.
    Required,
    /// A trait that is forbidden.
    Forbidden,
    /// `min_unit`, `max_unit` and `step_size` permit the amount.
    Unit,
    /// The amount is free.
    Room,
    /// All groups can be met at once.
    #[default]
    Together,
}

/// What conditions are about, coarsely. Those of one level weigh alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// A host that was asked for by its name.
    Named,
    /// A part of the cloud.
    Where,
    /// What a provider is.
    What,
    /// What it has left.
    Amount,
}

impl Kind {
    /// As answers, logs and metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InTree => "in_tree",
            Self::MemberOf => "member_of",
            Self::RootRequired => "root_required",
            Self::Inventory => "inventory",
            Self::Required => "required",
            Self::Forbidden => "forbidden",
            Self::Unit => "unit",
            Self::Room => "room",
            Self::Together => "together",
        }
    }

    pub(super) fn level(self) -> Level {
        match self {
            Self::InTree => Level::Named,
            Self::MemberOf => Level::Where,
            Self::RootRequired | Self::Inventory | Self::Required | Self::Forbidden => Level::What,
            Self::Unit | Self::Room | Self::Together => Level::Amount,
        }
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
