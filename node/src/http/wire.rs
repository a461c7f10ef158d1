//! Small shapes that several nouns write.

use serde::{Serialize, Serializer};

/// Pairs written as a JSON object, in their order.
pub(super) struct Members<T>(pub(super) T);

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

/// A value written as the text it displays.
pub(super) struct Shown<T>(pub(super) T);

impl<T: std::fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
