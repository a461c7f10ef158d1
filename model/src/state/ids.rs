//! The dense integer ids by which rows refer to each other. Apply hands them out in order and never
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
    /// A provider inside this cluster.
    ProviderId
);
dense_id!(
    /// A resource class inside this cluster.
    ResourceClassId
);
dense_id!(
    /// A trait inside this cluster.
    TraitId
);
