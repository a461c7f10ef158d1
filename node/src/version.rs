//! What this binary calls itself.

/// Its version. The next one, which tests run next to this one, has another name.
pub(crate) const VERSION: &str = match cfg!(feature = "rehearsal") {
    true => concat!(env!("CARGO_PKG_VERSION"), "-rehearsal"),
    false => env!("CARGO_PKG_VERSION"),
};
