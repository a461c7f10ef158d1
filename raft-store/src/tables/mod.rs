//! One table per noun.
