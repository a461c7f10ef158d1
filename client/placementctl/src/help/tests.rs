use std::collections::BTreeSet;

use clap::Parser;
use unicode_width::UnicodeWidthStr;

use super::*;

#[test]
fn each_command_is_in_one_group_and_its_line_fits_80_columns() {
    let root = command();
    let all = root.get_subcommands().map(Command::get_name);
    let all: BTreeSet<&str> = all.filter(|name| *name != "help").collect();
    let grouped = GROUPS.iter().flat_map(|(_, names)| names.iter().copied());
    assert_eq!(grouped.clone().count(), all.len());
    assert_eq!(grouped.collect::<BTreeSet<_>>(), all);
    let overview = command().render_help().to_string();
    for line in overview.lines().take_while(|line| *line != "Options:") {
        assert!(line.len() <= WIDTH, "{line}");
    }
    assert!(overview.contains("\nCertificates:\n  tls "), "{overview}");
}

/// The paths of the commands without subcommands.
fn leaves(command: &Command, path: &str, found: &mut BTreeSet<String>) {
    let subs = command.get_subcommands();
    let subs: Vec<_> = subs.filter(|sub| sub.get_name() != "help").collect();
    if subs.is_empty() {
        found.insert(path.to_owned());
    }
    for sub in subs {
        leaves(sub, &path_of(path, sub), found);
    }
}

#[test]
fn each_command_has_an_example_and_each_example_is_a_command() {
    let mut found = BTreeSet::new();
    leaves(&definition(), "", &mut found);
    found.remove("flags");
    let with_example: BTreeSet<_> = EXAMPLES.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(with_example, found);
    for (path, examples) in EXAMPLES {
        for example in *examples {
            assert!(example.starts_with(path), "{example}");
            // A shell would write the output elsewhere.
            let line = example.split(" > ").next().unwrap_or_default();
            let line = line.split(" | ").next().unwrap_or_default();
            let mut words = vec!["placementctl".to_owned()];
            let mut quoted = line.split('\'');
            while let Some(plain) = quoted.next() {
                words.extend(plain.split_whitespace().map(str::to_owned));
                words.extend(quoted.next().map(str::to_owned));
            }
            if let Err(error) = crate::Command::try_parse_from(words) {
                panic!("{example}: {error}");
            }
        }
    }
}

fn help_of(words: &[&str]) -> String {
    let line = ["placementctl"].iter().chain(words).chain(&["--help"]);
    let error = command().try_get_matches_from(line).unwrap_err();
    assert!(!error.use_stderr(), "{error}");
    error.to_string()
}

#[test]
fn a_command_s_help_has_its_own_flags_and_the_names_of_the_others() {
    let help = help_of(&["providers", "list"]);
    let own = help.find("--roots").unwrap();
    let global = help
        .find("Common flags (`placementctl help flags`): ")
        .unwrap();
    assert!(own < global, "{help}");
    assert!(
        help.contains("placementctl providers list --roots"),
        "{help}"
    );
    assert!(!help.contains("PEM file"), "{help}");
    for name in ["--output", "--as-of", "--endpoint", "--cacert"] {
        assert!(help[global..].contains(name), "{name}: {help}");
    }
    let flags = help_of(&["flags"]);
    for text in [
        "Connection:",
        "Source:",
        "Output:",
        "PEM file",
        "--as-of <MOMENT>",
    ] {
        assert!(flags.contains(text), "{text}: {flags}");
    }
}

/// Passes each command, with the words that name it, to `check`.
fn each_command(command: &mut Command, words: &[&str], check: &mut impl FnMut(&mut Command, &str)) {
    check(command, &words.join(" "));
    for sub in command.get_subcommands_mut() {
        let name = sub.get_name().to_owned();
        if name != "help" {
            each_command(sub, &[words, &[&name]].concat(), check);
        }
    }
}

#[test]
fn help_texts_fit_80_columns() {
    each_command(&mut command(), &["placementctl"], &mut |command, name| {
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            for line in help.lines() {
                assert!(line.width() <= WIDTH, "{name}: {line}");
            }
            // A line of an example would be broken.
            let examples = EXAMPLES
                .iter()
                .filter(|(path, _)| format!("placementctl {path}") == name);
            for example in examples.flat_map(|(_, examples)| *examples) {
                let line = format!("  placementctl {example}\n");
                assert!(help.contains(&line), "{name}: {help}");
            }
        }
    });
}

/// The sentences of a help text.
fn sentences(text: &str) -> Vec<String> {
    let text = text.replace("\n", " ");
    let sentences = text.split(". ").map(|one| one.trim().to_owned());
    sentences.filter(|one| !one.is_empty()).collect()
}

/// The subjects of sentences in help texts that end with `s`.
const SUBJECTS: [&str; 8] = [
    "Amounts",
    "Columns",
    "Consumers",
    "Generations",
    "Latencies",
    "Notices",
    "Rates",
    "Requests",
];

/// A sentence tells the reader what to do, or has a subject: it does not begin with a verb such
/// as "Prints".
fn check_style(name: &str, text: &str) {
    for sentence in sentences(text) {
        let first = sentence.split(' ').next().unwrap_or_default();
        let is_word = first.chars().all(char::is_alphabetic) && first.len() > 3;
        let is_verb = is_word && first.ends_with('s') && !SUBJECTS.contains(&first);
        assert!(!is_verb, "{name}: {sentence}");
        assert!(
            !sentence.to_lowercase().contains("be repeated"),
            "{name}: {sentence}"
        );
    }
}

#[test]
fn help_texts_have_one_style() {
    each_command(
        &mut definition(),
        &["placementctl"],
        &mut |command, name| {
            let about = command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert_eq!(sentences(&about).len(), 1, "{name}: {about}");
            let texts = [
                command.get_about(),
                command.get_long_about(),
                command.get_after_help(),
            ];
            for text in texts.into_iter().flatten() {
                check_style(name, &text.to_string());
            }
            for flag in command.get_arguments() {
                let name = format!("{name}, {}", flag.get_id());
                let text = flag
                    .get_long_help()
                    .or(flag.get_help())
                    .unwrap_or_else(|| panic!("{name} has no help"));
                check_style(&name, &text.to_string());
                for value in flag.get_possible_values() {
                    check_style(
                        &name,
                        &value
                            .get_help()
                            .map(ToString::to_string)
                            .unwrap_or_default(),
                    );
                }
            }
        },
    );
}

#[test]
fn words_of_openstack_are_answered_with_a_command() {
    for (word, command) in ELSEWHERE {
        assert!(super::command().find_subcommand(command).is_some());
        let line = ["placementctl", *word, "list"];
        let mut refused = super::command().try_get_matches_from(line).unwrap_err();
        suggest(&mut refused);
        let text = refused.to_string();
        assert!(text.contains(&format!("exists: '{command}'")), "{text}");
    }
}

#[test]
fn the_usage_line_of_an_error_does_not_depend_on_given_flags() {
    let line = ["placementctl", "explain", "--endpoint", "a:1", "--nonsense"];
    let error = command().try_get_matches_from(line).unwrap_err();
    let usage = "Usage: placementctl explain [OPTIONS] <QUERY|REQUEST_ID>...";
    assert!(error.to_string().contains(usage), "{error}");
}
