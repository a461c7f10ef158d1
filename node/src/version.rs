//! The version of this binary.

/// The version; the rehearsal binary, which tests run next to this one, has another name.
pub(crate) const VERSION: &str = if cfg!(feature = "rehearsal") {
    concat!(env!("CARGO_PKG_VERSION"), "-rehearsal")
} else {
    env!("CARGO_PKG_VERSION")
};
