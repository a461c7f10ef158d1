//! The dense integer ids by which rows refer to each other. Apply assigns them in order and never
//! reuses them.

use serde::{Deserialize, Serialize};

macro_rules! dense_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);
    };
}

dense_id!(
    /// The id of a provider, valid inside one partition.
    ProviderId
);
dense_id!(
    /// The id of a resource class, valid inside one partition.
    ResourceClassId
);
dense_id!(
    /// The id of a trait, valid inside one partition.
    TraitId
);
