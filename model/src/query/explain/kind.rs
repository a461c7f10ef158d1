//! The kinds of conditions.

/// The kind of a condition, in the order of evaluation: location, properties, free amounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Kind {
    /// The provider must belong to the tree of a given provider.
    InTree,
    /// Aggregates that a provider must, or must not, be a member of.
    MemberOf,
    /// A trait that the root must, or must not, have.
    RootRequired,
    /// The provider must have an inventory of a resource class.
    Inventory,
    /// The provider must have one of these traits.
    Required,
    /// The provider must not have a trait.
    Forbidden,
    /// `min_unit`, `max_unit` and `step_size` must permit the amount.
    Unit,
    /// The amount must be free.
    Room,
    /// All groups must be met at once.
    #[default]
    Together,
}

/// A coarser classification of conditions, by which the reason is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// A host selected by `in_tree`.
    Named,
    /// Part of the cloud, selected by aggregates.
    Where,
    /// Properties of a provider.
    What,
    /// Free amounts of a provider.
    Amount,
}

impl Kind {
    /// The name in answers, logs and metrics.
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

    /// How far a tree that fails a condition of this kind has come. An amount that `max_unit` does
    /// not permit and an amount that is not free are equally far: the shortfall decides.
    pub(super) fn progress(self) -> Self {
        match self {
            Self::Unit => Self::Room,
            kind => kind,
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
