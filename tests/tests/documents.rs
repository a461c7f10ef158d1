//! Checks the documents: commands, flags and files that they mention exist.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use placement_docs::COLUMNS_MAX;
use placement_tests::binaries;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(document: &str) -> String {
    std::fs::read_to_string(repository().join(document)).unwrap()
}

/// The pages of the book.
fn documents() -> Vec<String> {
    let summary = read("docs/SUMMARY.md");
    let links = summary
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    links
        .map(|link| match link.strip_prefix("../") {
            Some(from_root) => from_root.to_owned(),
            None => format!("docs/{link}"),
        })
        .collect()
}

/// All Markdown files below a folder of the repository, except those in hidden folders and in build
/// outputs.
fn markdown_below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{folder}{name}");
        match entry.file_type().unwrap().is_dir() {
            true if name.starts_with('.') || name == "target" => {}
            true => found.extend(markdown_below(&format!("{path}/"))),
            false => found.extend(name.ends_with(".md").then_some(path)),
        }
    }
    found
}

#[test]
fn every_document_is_a_page_of_the_book() {
    let mut pages = documents();
    pages.push("docs/SUMMARY.md".to_owned());
    pages.sort();
    let mut found = markdown_below("");
    found.sort();
    assert_eq!(found, pages);
}

/// Maximum number of lines of a crate's `DESIGN.md`: purpose, modules and invariants. Reasons
/// belong in `docs/decisions/`, or in the doc comment of a module.
const DESIGN_LINES_MAX: usize = 40;

/// Whether a `DESIGN.md` has more lines, or longer lines, than it may have.
fn is_too_long(design: &str) -> bool {
    let is_wide = |line: &str| line.chars().count() > COLUMNS_MAX;
    design.lines().count() > DESIGN_LINES_MAX || design.lines().any(is_wide)
}

#[test]
fn designs_of_crates_are_short() {
    let designs: Vec<_> = (markdown_below("").into_iter())
        .filter(|document| document.ends_with("DESIGN.md"))
        .collect();
    assert!(designs.len() > 10, "only {designs:?} were found");
    for design in designs {
        assert!(
            !is_too_long(&read(&design)),
            "{design} has more than {DESIGN_LINES_MAX} lines, or a line with more than {COLUMNS_MAX} columns"
        );
    }
    assert!(is_too_long(&"a\n".repeat(DESIGN_LINES_MAX + 1)));
    assert!(is_too_long(&"a".repeat(COLUMNS_MAX + 1)));
}

/// Lines of prose that are too long or have several sentences, as number and line.
fn bad_prose(page: &str) -> Vec<String> {
    let wide = |number: usize| {
        let line = page.lines().nth(number - 1);
        line.is_some_and(|line| line.chars().count() > COLUMNS_MAX)
    };
    placement_docs::prose(page)
        .filter(|(number, text)| wide(*number) || placement_docs::sentences(text).len() > 1)
        .map(|(number, text)| format!("{number}: {text}"))
        .collect()
}

#[test]
fn prose_has_one_sentence_per_line() {
    let bad: Vec<_> = markdown_below("")
        .into_iter()
        .flat_map(|document| {
            let bad = bad_prose(&read(&document)).into_iter();
            bad.map(move |line| format!("{document}:{line}"))
        })
        .collect();
    assert!(
        bad.is_empty(),
        "lines with several sentences or more than {COLUMNS_MAX} columns:\n{}",
        bad.join("\n")
    );
    let wide = "a".repeat(COLUMNS_MAX + 1);
    for page in ["One. Two.", "* One.\n  Two. Three.", &wide] {
        assert_eq!(bad_prose(page).len(), 1, "{page}");
    }
    for page in [
        "| One. Two. |",
        "# One. Two.",
        "    One. Two.",
        "One.\nTwo.",
    ] {
        assert!(bad_prose(page).is_empty(), "{page}");
    }
}

/// Text in backticks, and indented blocks.
fn code(document: &str) -> Vec<String> {
    let text = read(document);
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(block) = line.strip_prefix("    ") {
            found.push(block.trim().to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// Words of a command without its comment and its variable assignments.
fn words(code: &str) -> Vec<String> {
    let command = code.split(" #").next().unwrap_or_default();
    command
        .split_whitespace()
        .skip_while(|word| {
            let is_variable = |name: &str| name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            word.split_once('=')
                .is_some_and(|(name, _)| is_variable(name))
        })
        .map(str::to_owned)
        .collect()
}

fn help_of(program: &Path, subcommands: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(subcommands)
        .arg("--help")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // For an unknown subcommand clap shows the help of its parent.
    let usage = text
        .lines()
        .find(|line| line.trim_start().starts_with("Usage:"));
    let named = usage.is_some_and(|usage| subcommands.iter().all(|word| usage.contains(word)));
    if output.status.success() && named {
        Ok(text)
    } else {
        Err(format!("there is no `{}`", subcommands.join(" ")))
    }
}

/// Flags of a command, without their values.
fn flags(words: &[String]) -> impl Iterator<Item = &str> {
    words
        .iter()
        .filter(|word| word.starts_with("--") && word.len() > 2)
        .map(|word| word.split('=').next().unwrap_or(word))
}

/// The subcommand that the words name, and its help. Its name ends before the first flag, value or
/// placeholder.
fn help_of_subcommand<'a>(
    program: &Path,
    words: &'a [String],
) -> Result<(Vec<&'a str>, String), String> {
    let is_name = |word: &&str| {
        // The subject of `help` is not always a command.
        *word != "help"
            && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
            && !word.starts_with('-')
    };
    let names = words[1..].iter().map(String::as_str).take_while(is_name);
    let (mut help, mut named) = (help_of(program, &[])?, Vec::new());
    for name in names {
        // The overview of `placementctl` has groups of commands.
        let titles = ["\nCommands:\n", "\nContent:\n"];
        if !titles.iter().any(|title| help.contains(title)) {
            break;
        }
        named.push(name);
        help = help_of(program, &named)?;
    }
    Ok((named, help))
}

/// Output of `help flags`, which describes the flags that many commands of `placementctl` share;
/// empty for other programs.
fn shared_flags(program: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.args(["help", "flags"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Whether a command accepts a flag with a value that its help does not list, as those of most
/// settings.
fn accepts(program: &Path, subcommands: &[&str], flag: &str) -> bool {
    let mut command = Command::new(program);
    command.args(subcommands).arg(format!("{flag}=x"));
    command.arg("--help").output().unwrap().status.success()
}

fn check_program(program: &Path, words: &[String]) -> Result<(), String> {
    // Each flag before the subcommand is followed by its value, so it counts as two words.
    let global = words[1..]
        .iter()
        .take_while(|word| word.starts_with("--"))
        .count()
        * 2;
    let (before, after) = words[1..].split_at(global.min(words.len() - 1));
    let rest: Vec<_> = [&words[..1], after].concat();
    let (named, help) = help_of_subcommand(program, &rest)?;
    let help = help + &shared_flags(program);
    for flag in flags(before).chain(flags(&rest)) {
        if !help.contains(flag) && !accepts(program, &named, flag) {
            return Err(format!("`{flag}` is not in its help"));
        }
    }
    Ok(())
}

fn check_script(words: &[String]) -> Result<(), String> {
    let path = repository().join(&words[0]);
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    // The commands of the program describe their own options.
    if words[0] == "scripts/simulate" {
        return check_program(&binaries::tool("simulate").unwrap(), words);
    }
    // The tests do not compile the bench; its script lists all parts and flags.
    let part = words.get(1).filter(|word| !word.starts_with('-'));
    if let ("scripts/bench", Some(part)) = (words[0].as_str(), part)
        && !text.contains(&format!("#   scripts/bench {part} "))
    {
        return Err(format!("`{part}` is not in the script"));
    }
    match flags(words).find(|flag| !text.contains(flag)) {
        Some(flag) => Err(format!("`{flag}` is not in the script")),
        None => Ok(()),
    }
}

/// Checks one of the project's commands; `None` for any other command.
fn check(code: &str) -> Option<Result<(), String>> {
    let words = words(code);
    let known = match words.first()?.as_str() {
        "placementd" => check_program(&binaries::placementd().unwrap(), &words),
        "placementctl" => check_program(&binaries::placementctl().unwrap(), &words),
        script if script.starts_with("scripts/") && !script.ends_with('/') => check_script(&words),
        _ => return None,
    };
    Some(known)
}

#[test]
fn every_command_in_the_documents_exists() {
    let mut checked = 0;
    let mut wrong = BTreeMap::new();
    for document in &documents() {
        for code in code(document) {
            let Some(known) = check(&code) else { continue };
            checked += 1;
            if let Err(reason) = known {
                wrong.insert(format!("{document}: {code}"), reason);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 25, "only {checked} were found");
}

#[test]
fn unknown_commands_are_detected() {
    for code in [
        "placementctl no-such-thing",
        "placementctl members no-such-thing 4",
        "placementctl status --no-such-flag",
        "placementd --no-such-flag",
        "scripts/no-such-script",
        "scripts/run-cluster --no-such-flag",
        "scripts/test --no-such-flag",
        "scripts/bench no-such-part",
    ] {
        assert!(matches!(check(code), Some(Err(_))), "{code}");
    }
}

/// Files in backticks or links.
fn files(document: &str) -> Vec<String> {
    let text = read(document);
    let links = text
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://"))
        .map(|target| target.split('#').next().unwrap_or_default().to_owned());
    let spans = code(document).into_iter().filter(|span| {
        let top = span.split('/').next().unwrap_or_default();
        !top.is_empty()
            && span.contains('/')
            && !span.contains([' ', '*', '{', '…', '<'])
            && repository().join(top).is_dir()
    });
    links.chain(spans).filter(|file| !file.is_empty()).collect()
}

#[test]
fn every_file_in_the_documents_exists() {
    let mut checked = 0;
    for document in &documents() {
        for file in files(document) {
            let sibling = repository().join(document).with_file_name(&file);
            assert!(
                repository().join(&file).exists() || sibling.exists(),
                "{document} names {file}"
            );
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} were found");
}

#[test]
fn events_in_the_documents_are_log_messages() {
    let messages = read("docs/log-messages.md");
    let mut checked = 0;
    for document in &documents() {
        let text = read(document);
        let events = text.split("event=\"").skip(1);
        for event in events.filter_map(|rest| rest.split('"').next()) {
            let row = format!("| `{event}` |");
            assert!(messages.contains(&row), "{document} names {event}");
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} were found");
}

/// Anchors of a document's headings.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let kept = line
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(' ', "-");
            kept.chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
                .collect()
        })
        .collect()
}

/// Phrases that have a plainer wording. `typos.toml` has the single words.
const PHRASES: [&str; 7] = [
    " in words",
    "as it is,",
    "that is none",
    " for ever ",
    " comes of ",
    "bad day",
    " takes no part",
];

#[test]
fn documents_use_plain_wording() {
    for document in &documents() {
        let text = read(document).replace('\n', " ");
        for phrase in PHRASES {
            assert!(!text.contains(phrase), "{document} has {phrase:?}");
        }
    }
}

/// The promises of a document and their tests, as promise, file and name.
fn promises(document: &str) -> Vec<(String, String, String)> {
    let (_, table) = document.split_once("| promise | test |").unwrap();
    let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
    rows.map(|row| {
        let (promise, test) = row.trim_matches('|').rsplit_once(" | ").unwrap();
        let quoted: Vec<&str> = test.split('`').skip(1).step_by(2).collect();
        let [file, name] = quoted[..] else {
            panic!("no file and test: {row}");
        };
        (promise.trim().to_owned(), file.to_owned(), name.to_owned())
    })
    .collect()
}

fn is_test(file: &str, name: &str) -> bool {
    let text = std::fs::read_to_string(repository().join(file)).unwrap_or_default();
    let Some((before, _)) = text.split_once(&format!("fn {name}(")) else {
        return false;
    };
    let attribute = before.rfind("#[").map(|at| &before[at..]);
    // The attribute is right above the function, in a `proptest!` block too.
    attribute.is_some_and(|above| above.contains("test") && above.lines().count() <= 2)
}

#[test]
fn each_promise_of_security_has_its_test() {
    let promises = promises(&read("docs/security.md"));
    assert!(promises.len() > 25, "only {} were found", promises.len());
    for (promise, file, name) in promises {
        assert!(
            is_test(&file, &name),
            "{promise:?}: there is no test {name} in {file}"
        );
    }
    assert!(!is_test("tests/tests/documents.rs", "is_test"));
    assert!(!is_test("tests/tests/documents.rs", "no_such_test"));
}
