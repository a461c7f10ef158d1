//! Generates `docs/commands.md` from the `-h` output of each command of both programs.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use placement_tests::binaries;

/// Titles of the parts of a help that list commands.
const TITLES: [&str; 6] = [
    "Commands:",
    "Content:",
    "Cluster:",
    "Backup:",
    "Certificates:",
    "Tools:",
];

fn help(program: &Path, names: &[&str]) -> String {
    // The output must not depend on the user's environment or the terminal's width.
    let mut command = Command::new(program);
    command.args(names).arg("-h").env_clear();
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Adds a section for a command and its subcommands. Parts that are already on the page are
/// omitted.
fn add(page: &mut String, seen: &mut HashSet<String>, program: &Path, names: &[&str]) {
    let help = help(program, names);
    let parts = help.trim().split("\n\n");
    let new: Vec<&str> = parts
        .filter(|part| seen.insert((*part).to_owned()))
        .collect();
    let name = program.file_name().unwrap().to_str().unwrap();
    let level = if names.is_empty() { "##" } else { "###" };
    let title = [&[name], names].concat().join(" ");
    *page += &format!("\n{level} {title}\n\n```text\n{}\n```\n", new.join("\n\n"));
    let lists = help.split("\n\n").filter_map(|part| {
        let (title, list) = part.split_once('\n')?;
        TITLES.contains(&title).then_some(list)
    });
    let commands = lists
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for command in commands.filter(|name| !name.is_empty() && *name != "help") {
        add(page, seen, program, &[names, &[command]].concat());
    }
}

fn page() -> String {
    let mut page = "# Commands\n\n\
        The output of `-h` for each command; for some commands, `--help` prints more. Options that several commands \
        share are shown only with the first one. Most commands of `placementd` also accept the other \
        [settings](configuration.md) as flags. For usage, see [the pages for operators](operate/README.md) and \
        [placementctl.md](placementctl.md).\n"
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
