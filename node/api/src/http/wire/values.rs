//! JSON values that several nouns share.

use serde::{Serialize, Serializer};

/// Pairs serialized as a JSON object, in their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Members<T>(pub(crate) T);

impl<T, K, V> Serialize for Members<T>
where
    T: Clone + IntoIterator<Item = (K, V)>,
    K: Serialize,
    V: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.clone())
    }
}
