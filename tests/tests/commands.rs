//! Generates `docs/commands.md` from the `-h` output of each command of both programs.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use placement_tests::binaries;

fn help(program: &Path, names: &[&str]) -> String {
    // The output must not depend on the user's environment or the terminal's width.
    let mut command = Command::new(program);
    command.args(names).arg("-h").env_clear();
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Adds a section for a command and its subcommands. Settings, and parts that are already on the
/// page, are omitted.
fn add(page: &mut String, seen: &mut HashSet<String>, program: &Path, names: &[&str]) {
    let help = help(program, names);
    let is_setting = |part: &str| part.starts_with("Node:") || part.starts_with('[');
    let parts = help.trim().split("\n\n").filter(|part| !is_setting(part));
    let new: Vec<&str> = parts
        .filter(|part| seen.insert((*part).to_owned()))
        .collect();
    let name = program.file_name().unwrap().to_str().unwrap();
    let level = if names.is_empty() { "##" } else { "###" };
    let title = [&[name], names].concat().join(" ");
    *page += &format!("\n{level} {title}\n\n```text\n{}\n```\n", new.join("\n\n"));
    let (_, commands) = help.split_once("\nCommands:\n").unwrap_or_default();
    let commands = commands
        .lines()
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for command in commands.filter(|name| !name.is_empty() && *name != "help") {
        add(page, seen, program, &[names, &[command]].concat());
    }
}

fn page() -> String {
    let mut page = "# Commands\n\n\
        The output of `-h` for each command; for some commands, `--help` prints more. Options that several commands \
        share are shown only with the first one. [Settings](configuration.md), which most commands of `placementd` \
        accept, are omitted. For usage, see [the pages for operators](operate/README.md) and \
        [placementctl.md](placementctl.md).\n\n\
        Generated: `PLACEMENT_WRITE_DOCS=1 cargo test --workspace --test black_box -- commands::` writes this page.\n"
        .to_owned();
    let mut seen = HashSet::new();
    for program in [binaries::placementctl(), binaries::placementd()] {
        add(&mut page, &mut seen, &program.unwrap(), &[]);
    }
    page
}

#[test]
fn page_is_up_to_date() {
    placement_docs::assert_kept("commands.md", &page());
}
