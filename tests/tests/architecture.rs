//! Rules for the crates: forbidden dependencies, declared dependencies that are unused, long tests
//! inside a source file, injected bugs that a release must not contain, and the form of comments.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// Crate, and the crates that it must not depend on, directly or indirectly.
const MUST_NOT_REACH: [(&str, &[&str]); 14] = [
    (
        "placement-model",
        &[
            "tokio",
            "axum",
            "hyper",
            "openraft",
            "rocksdb",
            "serde_json",
        ],
    ),
    (
        "placement-base",
        &["axum", "hyper", "openraft", "rocksdb", "serde_json"],
    ),
    (
        "placement-raft-store",
        &["axum", "hyper", "placement-api", "placement-peer"],
    ),
    (
        "placement-outgoing",
        &["axum", "openraft", "rocksdb", "placement-api"],
    ),
    ("placement-audit", &["openraft", "rocksdb", "placement-api"]),
    (
        "placement-policy",
        &["openraft", "rocksdb", "placement-api"],
    ),
    (
        "placement-peer",
        &["axum", "hyper", "placement-api", "placement-cluster"],
    ),
    (
        "placement-cluster",
        &["axum", "placement-api", "placement-node", "placement-web"],
    ),
    (
        "placement-api",
        &["openraft", "rocksdb", "placement-peer", "placement-cluster"],
    ),
    (
        "placement-transfer",
        &["tokio", "openraft", "rocksdb", "serde_json"],
    ),
    (
        "placement-web",
        &["tokio", "axum", "hyper", "placement-model", "placement-api"],
    ),
    (
        "placement-client",
        &[
            "openraft",
            "rocksdb",
            "axum",
            "clap",
            "placement-model",
            "placement-words",
        ],
    ),
    (
        "placementctl",
        &["openraft", "rocksdb", "axum", "placement-model"],
    ),
    (
        "placement-node",
        &[
            "placement-naive",
            "placement-witness",
            "placement-machine",
            "placement-tests",
            "placement-local",
            "placement-simulations",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Output of a cargo command.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(std::env::var("CARGO").unwrap_or("cargo".into()))
        .args(arguments)
        .arg("--locked")
        .current_dir(root())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// All dependencies of a crate, without its dev-dependencies.
fn reached(name: &str) -> BTreeSet<String> {
    let tree = cargo(&["tree", "--edges", "normal", "--prefix", "none", "-p", name]);
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn crates_have_no_forbidden_dependencies() {
    for (name, forbidden) in MUST_NOT_REACH {
        let reached = reached(name);
        for forbidden in forbidden {
            assert!(!reached.contains(*forbidden), "{name} reaches {forbidden}");
        }
    }
    // The check detects existing dependencies, including indirect ones.
    let node = reached("placement-node");
    for name in ["placement-api", "openraft", "librocksdb-sys"] {
        assert!(node.contains(name), "{name}");
    }
}

/// Files below a directory that meet a condition, except those in hidden folders and in build
/// outputs.
fn files(directory: &Path, condition: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" {
                let entries = std::fs::read_dir(&path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
            }
        } else if condition(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Files with Rust code below a directory.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    files(directory, |path| {
        path.extension().is_some_and(|extension| extension == "rs")
    })
}

/// Lines of code (not comments) below a directory that contain one of the words.
fn lines_with(directory: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in rust_files(directory) {
        let text = std::fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if words.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {line}", path.display(), number + 1));
            }
        }
    }
    found
}

/// Maximum number of lines of an inline `mod tests`. Longer tests belong in a separate file
/// `tests.rs`.
const INLINE_TESTS_LINES_MAX: usize = 150;

/// Number of lines of the module `tests` inside a file; 0 without such a module.
fn inline_tests_lines(text: &str) -> usize {
    let lines = text
        .lines()
        .skip_while(|line| !line.ends_with("mod tests {"));
    lines.take_while(|line| *line != "}").count()
}

#[test]
fn long_tests_have_a_file_of_their_own() {
    let lengths: Vec<_> = rust_files(&root())
        .into_iter()
        .map(|path| {
            let lines = inline_tests_lines(&std::fs::read_to_string(&path).unwrap());
            (path.strip_prefix(root()).unwrap().to_owned(), lines)
        })
        .collect();
    let long = lengths
        .iter()
        .filter(|(_, lines)| *lines > INLINE_TESTS_LINES_MAX)
        .collect::<Vec<_>>();
    assert!(long.is_empty(), "{long:?}");
    // The check detects tests inside source files.
    assert!(lengths.iter().any(|(_, lines)| *lines > 50));
}

#[test]
fn model_uses_no_clock_randomness_or_files() {
    let words = [
        "SystemTime",
        "Instant::now",
        "std::fs",
        "std::net",
        "std::env",
        "new_v4",
        "HashMap",
    ];
    let found = lines_with(&root().join("model/src"), &words);
    assert_eq!(found, Vec::<String>::new());
    // The check detects the words where they exist.
    assert!(!lines_with(&root().join("tests/src"), &["std::fs"]).is_empty());
}

/// The transport does not depend on the meaning of its messages, which `raft/` defines.
#[test]
fn transport_between_nodes_names_neither_openraft_nor_the_model() {
    let peer = root().join("node/peer/src");
    let words = ["openraft", "placement_raft_store", "placement_model"];
    let found = lines_with(&peer.join("transport"), &words);
    assert_eq!(found, Vec::<String>::new());
    // The check detects the words where they exist.
    for word in words {
        assert!(
            !lines_with(&peer.join("raft"), &[word]).is_empty(),
            "{word}"
        );
    }
}

/// Lines of the product where simulations can inject a bug.
fn injected_bugs() -> Vec<String> {
    let crates = [
        "model/src",
        "raft-store/src",
        "node/src",
        "node/base/src",
        "node/outgoing/src",
        "node/peer/src",
        "node/cluster/src",
        "node/api/src",
        "node/transfer/src",
        "node/web/src",
        "client/src",
        "client/placementctl/src",
    ];
    let lines = crates.map(|sources| lines_with(&root().join(sources), &["mutant!(\""]));
    lines.concat()
}

/// Compiles a program that contains an injected bug. Debug assertions are `off` as in a release, or
/// `on` as in a test.
fn program_with_a_bug(debug_assertions: &str) -> Vec<u8> {
    let directory = tempfile::TempDir::new().unwrap();
    let [source, program] = ["main.rs", "program"].map(|name| directory.path().join(name));
    let macros = root().canonicalize().unwrap().join("model/src/mutant.rs");
    let text = format!(
        "#[path = {macros:?}]\npub mod mutant;\n\
         fn main() {{ if crate::mutant!(\"drop-appends\") {{ println!(\"the bug\") }} }}"
    );
    std::fs::write(&source, text).unwrap();
    let output = Command::new(std::env::var("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition=2024", "-Cdebuginfo=0"])
        .arg(format!("-Cdebug-assertions={debug_assertions}"))
        .arg("-o")
        .args([&program, &source])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    std::fs::read(program).unwrap()
}

#[test]
fn release_has_no_injected_bugs() {
    let has = |program: &[u8], text: &str| {
        let mut places = program.windows(text.len());
        places.any(|place| place == text.as_bytes())
    };
    for text in ["drop-appends", "the bug"] {
        assert!(!has(&program_with_a_bug("off"), text), "{text}");
        assert!(has(&program_with_a_bug("on"), text), "{text}");
    }
    assert!(!injected_bugs().is_empty());
    // The binaries of `scripts/install` and `scripts/package` are compiled with these settings.
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml"))
        .unwrap()
        .parse()
        .unwrap();
    let release = &manifest["profile"]["release"];
    assert_eq!(release["debug-assertions"].as_bool(), Some(false));
    for (package, settings) in release["package"].as_table().unwrap() {
        assert_eq!(settings.get("debug-assertions"), None, "{package}");
    }
}

/// Members of each line in JSON, next to which a field of the same name would be lost.
const MEMBERS_OF_LINES: [&str; 6] = ["timestamp", "level", "message", "target", "span", "event"];

/// Names of the catalog of log messages.
fn log_messages() -> BTreeSet<String> {
    let catalog = root().join("node/base/src/log_messages.rs");
    let text = std::fs::read_to_string(catalog).unwrap();
    let messages = text.lines().filter_map(|line| {
        let (name, message) = line.trim().split_once(" = ")?;
        let levels = ["INFO \"", "WARN \"", "ERROR \""];
        let is_message = levels.iter().any(|level| message.starts_with(level));
        is_message.then(|| name.to_owned())
    });
    messages.collect()
}

/// Calls of a macro in a source text, without the name of the macro.
fn calls<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let places = text.match_indices(name);
    places.map(move |(at, _)| text[at + name.len()..].trim_start())
}

/// The name of a log message and the names of its fields.
fn log_fields(call: &str) -> (String, Vec<String>) {
    let call = call.split(");").next().unwrap_or_default();
    let mut arguments = call.split(',').map(str::trim);
    let message = arguments.next().unwrap_or_default().to_owned();
    let fields = arguments.map(|field| {
        let name = field.split_once(" = ").map_or(field, |(name, _)| name);
        name.trim_start_matches(['%', '?']).to_owned()
    });
    (message, fields.collect())
}

/// The product's sources that log, without the catalog itself.
fn sources_with_logs() -> Vec<(PathBuf, String)> {
    let folders = ["node", "raft-store"].map(|folder| rust_files(&root().join(folder)));
    let sources = folders.into_iter().flatten().filter(|path| {
        let below = path.strip_prefix(root()).unwrap();
        let is_source = below.components().any(|part| part.as_os_str() == "src");
        is_source && !path.ends_with("log_messages.rs")
    });
    sources
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path, text)
        })
        .collect()
}

/// Lines of the access log and of searches have targets of their own in place of a name.
#[test]
fn lines_of_the_log_have_names_of_the_catalog() {
    let (mut bad, mut used) = (Vec::new(), BTreeSet::new());
    for (path, text) in sources_with_logs() {
        for level in ["info!(", "warn!(", "error!("] {
            let nameless = calls(&text, level).filter(|call| !call.starts_with("target:"));
            bad.extend(nameless.map(|call| format!("{}: {level}{call:.60}", path.display())));
        }
        for call in calls(&text, "log!(") {
            let (message, fields) = log_fields(call);
            used.insert(message);
            for field in fields
                .iter()
                .filter(|name| MEMBERS_OF_LINES.contains(&name.as_str()))
            {
                bad.push(format!(
                    "{}: the field {field} of {call:.60}",
                    path.display()
                ));
            }
        }
    }
    assert!(bad.is_empty(), "use `log!`:\n{}", bad.join("\n"));
    assert_eq!(used, log_messages());
}

#[test]
fn nameless_lines_and_lost_fields_are_found() {
    let text =
        "tracing::warn!(\n    %error,\n    \"late\"\n);\nlog!(LATE, level = 1, ?by, \"late\");";
    let found: Vec<_> = calls(text, "warn!(").collect();
    assert!(found.len() == 1 && found[0].starts_with("%error"));
    let call = calls(text, "log!(").next().unwrap();
    let fields = ["level", "by", "\"late\""].map(str::to_owned);
    assert_eq!(log_fields(call), ("LATE".to_owned(), fields.to_vec()));
}

/// Dependencies that are declared only to unify a feature or a version in every build. The root
/// manifest gives the reasons.
const FOR_FEATURES: [&str; 3] = ["getrandom", "regex-syntax", "idna_adapter"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    rename: Option<String>,
}

#[test]
fn crates_declare_no_unused_dependencies() {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    let metadata: Metadata = serde_json::from_str(&metadata).unwrap();
    let mut unused = Vec::new();
    for package in metadata.packages {
        let directory = package.manifest_path.parent().unwrap();
        for dependency in &package.dependencies {
            let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
            let word = name.replace('-', "_");
            let places = ["src", "tests", "examples", "benches", "build.rs"]
                .map(|place| directory.join(place));
            let uses = |place: &PathBuf| {
                let paths = [
                    format!("{word}::"),
                    format!("use {word}"),
                    format!("{word} as"),
                ];
                let words: Vec<&str> = paths.iter().map(String::as_str).collect();
                place.exists() && !lines_with(place, &words).is_empty()
            };
            if !places.iter().any(uses) && !FOR_FEATURES.contains(&name.as_str()) {
                unused.push(format!("{} names {name}", package.name));
            }
        }
    }
    assert_eq!(unused, Vec::<String>::new());
}

/// The last column that a comment may use, as for code.
const COLUMNS_MAX: usize = 100;

/// Beginnings of a doc comment that lacks a subject.
const WITHOUT_SUBJECT: [&str; 6] = ["Those", "That of", "Of", "By", "So many", "Whose"];

/// The comment on a line, whether or not code precedes it.
fn comment(line: &str) -> Option<&str> {
    if line.trim_start().starts_with("//") {
        return Some(line.trim_start());
    }
    let (_, comment) = line.rsplit_once(" // ")?;
    (!comment.contains('"')).then_some(comment)
}

/// Languages in which a comment begins with `#`, by the extensions of their files.
const HASH_LANGUAGES: [&str; 5] = ["sh", "py", "yaml", "yml", "toml"];

/// Whether comments in a file begin with `#`. A file without an extension is a script if its first
/// line begins so.
fn has_hash_comments(path: &Path) -> bool {
    match path.extension() {
        Some(extension) => HASH_LANGUAGES.iter().any(|known| extension == *known),
        None => std::fs::read_to_string(path).is_ok_and(|text| text.starts_with('#')),
    }
}

/// Whether a line has a comment that begins with `#`, whether or not code precedes it.
fn has_hash_comment(line: &str) -> bool {
    let follows_code = line.rsplit_once(" # ");
    line.trim_start().starts_with('#')
        || follows_code.is_some_and(|(_, comment)| !comment.contains(['"', '\'']))
}

/// Comments beyond the last column in a script, as line number and line.
fn wide_hash_comments(text: &str) -> Vec<String> {
    let wide = (1..)
        .zip(text.lines())
        .filter(|(_, line)| has_hash_comment(line) && line.chars().count() > COLUMNS_MAX);
    wide.map(|(number, line)| format!("{number}: {line}"))
        .collect()
}

/// Text and kind (`///` or `//!`) of a line of a doc comment.
fn doc(line: &str) -> Option<(&str, &str)> {
    let (kind, text) = line.trim_start().split_at_checked(3)?;
    (["///", "//!"].contains(&kind) && !text.starts_with('/')).then_some((kind, text.trim()))
}

/// Violations of the rules for comments in a source text, as line number and line.
fn bad_comments(text: &str) -> Vec<String> {
    let mut bad = Vec::new();
    let mut before = None;
    for (number, line) in text.lines().enumerate() {
        let is_wide = comment(line).is_some() && line.chars().count() > COLUMNS_MAX;
        let doc = doc(line);
        let is_first = doc.map(|(kind, _)| kind) != before;
        before = doc.map(|(kind, _)| kind);
        let lacks_subject = doc.is_some_and(|(_, text)| {
            let follows = |begin| text.strip_prefix(begin);
            let begins = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
            is_first && WITHOUT_SUBJECT.into_iter().filter_map(follows).any(begins)
        });
        if is_wide || lacks_subject {
            bad.push(format!("{}: {line}", number + 1));
        }
    }
    bad
}

/// Finds the wrong lines of a file.
type Check = fn(&str) -> Vec<String>;

#[test]
fn comments_fit_the_width_and_doc_comments_have_a_subject() {
    let mut bad = Vec::new();
    let root = root().canonicalize().unwrap();
    let rust = rust_files(&root);
    let scripts = files(&root, has_hash_comments);
    for script in ["scripts/test", "scripts/lib/needs.sh", "deny.toml"] {
        assert!(scripts.contains(&root.join(script)), "{script}");
    }
    let checks: [(_, Check); 2] = [(rust, bad_comments), (scripts, wide_hash_comments)];
    for (files, check) in checks {
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            let file = path.strip_prefix(&root).unwrap().display();
            let found = check(&text).into_iter();
            bad.extend(found.map(|line| format!("{file}:{line}")));
        }
    }
    assert!(
        bad.is_empty(),
        "comments beyond column {COLUMNS_MAX}, or doc comments without a subject:\n{}",
        bad.join("\n")
    );
}

#[test]
fn bad_comments_are_found() {
    let wide = format!("let a = 1; // {}", "a".repeat(COLUMNS_MAX));
    let found = |text: &str| bad_comments(text).len();
    for text in [
        "/// Of a node.",
        "    //! So many nodes.",
        &wide,
        &wide[11..],
    ] {
        assert_eq!(found(text), 1, "{text}");
    }
    for text in [
        "/// Often.\n/// By a node.",
        "// Of a node.",
        "let a = \" // b\";",
    ] {
        assert_eq!(found(text), 0, "{text}");
    }
    let found = |text: &str| wide_hash_comments(text).len();
    let long = "a".repeat(COLUMNS_MAX);
    assert_eq!(found(&format!("# {long}\ncode  # {long}")), 2);
    assert_eq!(
        found(&format!("# a\n{long}#{long}\nprint(\" # {long}\")")),
        0
    );
}
