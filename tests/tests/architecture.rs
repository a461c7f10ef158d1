//! The dependencies between the crates run one way. A forbidden edge fails here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize, Clone)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize, Clone)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Named>,
}

#[derive(Deserialize, Clone)]
struct Named {
    name: String,
    rename: Option<String>,
}

#[derive(Deserialize, Clone)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize, Clone)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize, Clone)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize, Clone)]
struct Kind {
    kind: Option<String>,
}

/// Crate, and what of the workspace it may use outside its tests.
const MAY_USE: [(&str, &[&str]); 10] = [
    ("placement-model", &[]),
    ("placement-naive", &["placement-model"]),
    ("placement-witness", &["placement-model", "placement-naive"]),
    ("placement-raft-store", &["placement-model"]),
    (
        "placement-node",
        &["placement-model", "placement-raft-store", "placement-wire"],
    ),
    ("placement-wire", &[]),
    ("placement-client", &["placement-wire"]),
    (
        "placement-tests",
        &[
            "placement-model",
            "placement-raft-store",
            "placement-node",
            "placement-client",
            "placement-witness",
        ],
    ),
    ("placement-bench", &["placement-client", "placement-tests"]),
    (
        "placement-simulations",
        &[
            "placement-model",
            "placement-naive",
            "placement-witness",
            "placement-raft-store",
            "placement-node",
            "placement-client",
        ],
    ),
];

/// Crate, and what must not reach it by any path.
const MUST_NOT_REACH: [(&str, &[&str]); 3] = [
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
    ("placement-raft-store", &["axum", "hyper"]),
    ("placement-client", &["openraft", "rocksdb", "axum"]),
];

/// Only the bench uses the tests' own support.
const NOBODY_USES: [&str; 3] = [
    "placement-tests",
    "placement-bench",
    "placement-simulations",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn metadata() -> Metadata {
    let output = Command::new(std::env::var("CARGO").unwrap_or("cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

struct Graph<'a> {
    names: BTreeMap<&'a str, &'a str>,
    nodes: BTreeMap<&'a str, &'a Node>,
    members: BTreeMap<&'a str, &'a str>,
}

impl<'a> Graph<'a> {
    fn new(metadata: &'a Metadata) -> Self {
        let names: BTreeMap<_, _> = metadata
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let members = metadata
            .workspace_members
            .iter()
            .map(|id| (names[id.as_str()], id.as_str()))
            .collect();
        let nodes = metadata
            .resolve
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), node))
            .collect();
        Self {
            names,
            nodes,
            members,
        }
    }

    /// What a crate uses directly; with its tests or without.
    fn uses(&self, id: &str, with_tests: bool) -> Vec<&'a str> {
        self.nodes[id]
            .deps
            .iter()
            .filter(|dep| with_tests || dep.dep_kinds.iter().any(|kind| kind.kind.is_none()))
            .map(|dep| dep.pkg.as_str())
            .collect()
    }

    /// Everything a crate's library is made of.
    fn reaches(&self, id: &'a str) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            for next in self.uses(id, false) {
                if seen.insert(self.names[next]) {
                    left.push(next);
                }
            }
        }
        seen
    }
}

fn violations(metadata: &Metadata) -> Vec<String> {
    let graph = Graph::new(metadata);
    let mut found = Vec::new();
    for (name, id) in &graph.members {
        let allowed = MAY_USE.iter().find(|(of, _)| of == name);
        let Some((_, allowed)) = allowed else {
            found.push(format!(
                "{name} is a new crate; say in MAY_USE what it may use"
            ));
            continue;
        };
        for used in graph.uses(id, false) {
            let used = graph.names[used];
            if graph.members.contains_key(used) && !allowed.contains(&used) {
                found.push(format!("{name} uses {used}"));
            }
        }
        for used in graph.uses(id, true) {
            let used = graph.names[used];
            let by_bench = (*name, used) == ("placement-bench", "placement-tests");
            if NOBODY_USES.contains(&used) && used != *name && !by_bench {
                found.push(format!("{name} uses {used}, if only in its tests"));
            }
        }
    }
    for (name, forbidden) in MUST_NOT_REACH {
        let reached = graph.reaches(graph.members[name]);
        for forbidden in forbidden.iter().filter(|&name| reached.contains(name)) {
            found.push(format!("{name} reaches {forbidden}"));
        }
    }
    found
}

#[test]
fn dependencies_run_one_way() {
    assert_eq!(violations(&metadata()), Vec::<String>::new());
}

#[test]
fn a_forbidden_edge_would_be_found() {
    let good = metadata();
    for (from, to) in [
        ("placement-model", "tokio"),
        ("placement-model", "placement-client"),
        ("placement-raft-store", "placement-node"),
        ("placement-node", "placement-tests"),
        ("placement-client", "openraft"),
    ] {
        let mut bad = good.clone();
        let id = |name: &str| {
            let package = bad.packages.iter().find(|package| package.name == name);
            package.unwrap().id.clone()
        };
        let (from_id, to_id) = (id(from), id(to));
        let node = bad.resolve.nodes.iter_mut().find(|node| node.id == from_id);
        node.unwrap().deps.push(Dep {
            pkg: to_id,
            dep_kinds: vec![Kind { kind: None }],
        });
        let found = violations(&bad);
        assert!(!found.is_empty(), "{from} may use {to}?");
    }
}

/// The lines of code (not comments) below a directory that hold one of the words.
fn lines_with(directory: &Path, words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(
                std::fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
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

#[test]
fn the_rest_api_knows_two_doors_and_neither_openraft_nor_rocksdb() {
    let http = root().join("node/src/http");
    assert!(http.join("mod.rs").exists());
    let found = lines_with(&http, &["openraft", "rocksdb", "placement_raft_store"]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_model_has_neither_clock_nor_randomness_nor_files() {
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
    // The words are found where they are.
    assert!(!lines_with(&root().join("tests/src"), &["std::fs"]).is_empty());
}

/// The lines of the product that name a bug of the simulations.
fn injected_bugs() -> Vec<String> {
    let crates = ["model/src", "raft-store/src", "node/src", "client/src"];
    let lines = crates.map(|sources| lines_with(&root().join(sources), &["mutant!(\""]));
    lines.concat()
}

/// A program with one of them, compiled as `placementd` is in a release or in a test.
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
fn a_release_has_no_injected_bugs() {
    let has = |program: &[u8], text: &str| {
        let mut places = program.windows(text.len());
        places.any(|place| place == text.as_bytes())
    };
    for text in ["drop-appends", "the bug"] {
        assert!(!has(&program_with_a_bug("off"), text), "{text}");
        assert!(has(&program_with_a_bug("on"), text), "{text}");
    }
    assert!(!injected_bugs().is_empty());
    // So are the binaries of `scripts/install` and `scripts/package` compiled.
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let release = &manifest["profile"]["release"];
    assert_eq!(release["debug-assertions"].as_bool(), Some(false));
    for (package, settings) in release["package"].as_table().unwrap() {
        assert_eq!(settings.get("debug-assertions"), None, "{package}");
    }
}

/// In a table of dependencies only so that a feature or a version is the same in every build; the root says why.
const FOR_FEATURES: [&str; 2] = ["regex-syntax", "idna_adapter"];

#[test]
fn each_crate_names_only_what_it_uses() {
    let metadata = metadata();
    let mut unused = Vec::new();
    let ours = (metadata.packages.iter())
        .filter(|package| metadata.workspace_members.contains(&package.id));
    for package in ours {
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
