//! Compares pages of `docs/` that are generated from code with the committed files.

use std::path::Path;

/// Whether tests write the pages instead of comparing them, that is, `PLACEMENT_WRITE_DOCS` is set.
pub fn are_written() -> bool {
    std::env::var_os("PLACEMENT_WRITE_DOCS").is_some()
}

/// Compares the committed page with the generated one. `tests` are the arguments of `cargo test
/// --workspace` that run the calling test; the failure message names them.
///
/// # Panics
/// If the pages differ.
pub fn assert_kept(name: &str, page: &str, tests: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).join(name);
    if are_written() {
        std::fs::write(&path, page).expect("docs/ is part of the repository");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/{name} is out of date. Generate it and review the difference:\n\
         PLACEMENT_WRITE_DOCS=1 cargo test --workspace {tests}"
    );
}
