//! The commands of `docs/tutorial.md` print the output that the page shows. `tests/packages.rs`
//! runs them where the package is installed.

use std::process::Command;

use placement_tests::{binaries, tutorial};

#[test]
fn tutorial_commands_print_the_output_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let programs = binaries::placementd()
        .unwrap()
        .parent()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("bash");
    shell
        .current_dir(directory.path())
        .env("PATH", format!("{programs}:{path}"));
    tutorial::run(shell).unwrap();
    let (recorded, page) = tutorial::recorded().unwrap();
    assert_eq!(
        recorded, page,
        "the recording has other commands than the page"
    );
    assert!(page.len() > 5, "{page:?}");
}
