//! A set of nodes.

use std::fmt;

/// A set of nodes with numbers below 64.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nodes(u64);

impl Nodes {
    /// Whether the set contains the node.
    pub fn contains(self, node: u64) -> bool {
        self.0 & (1 << node) != 0
    }

    /// The nodes in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..64).filter(move |node| self.contains(*node))
    }
}

impl FromIterator<u64> for Nodes {
    fn from_iter<I: IntoIterator<Item = u64>>(nodes: I) -> Self {
        Self(nodes.into_iter().fold(0, |all, node| all | 1 << node))
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.iter().map(|node| node.to_string()).collect();
        f.write_str(&numbers.join(" and "))
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
