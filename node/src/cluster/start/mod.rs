//! How this node comes into its cluster: it forms one, joins one, or resumes with its data.

pub(crate) mod bootstrap;
pub(crate) mod joining;
pub(crate) mod member;
pub(crate) mod self_description;
