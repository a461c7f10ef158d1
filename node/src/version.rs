//! The version of this binary.

/// The version; the rehearsal binary, which tests run next to this one, has another name.
pub(crate) const VERSION: &str = match cfg!(feature = "rehearsal") {
    true => concat!(env!("CARGO_PKG_VERSION"), "-rehearsal"),
    false => env!("CARGO_PKG_VERSION"),
};
