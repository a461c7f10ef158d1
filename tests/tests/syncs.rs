//! Compares the table in `docs/syncs.md` with the code: each sync is listed with a test that fails
//! without it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use placement_tests::binaries;
use placement_tests::skip::skipped;
use syn::visit::{self, Visit};

/// Calls that sync files: those of the standard library, of RocksDB and of this project.
const SYNCS: [&str; 19] = [
    "sync_all",
    "sync_data",
    "fsync",
    "fdatasync",
    "syncfs",
    "sync_file_range",
    "set_sync",
    "sync_wal",
    "flush_wal",
    "flush_opt",
    "flush_cf",
    "flush_cf_opt",
    "flush_cfs_opt",
    "sync",
    "sync_dir",
    "sync_open_dir",
    "write_synced",
    "write_durably",
    "make_durably",
];

/// Source folders that write files, and whether `sync` always means a file sync there.
const SOURCES: [(&str, bool); 13] = [
    ("raft-store/src", true),
    ("node/src", false),
    ("node/base/src", false),
    ("node/outgoing/src", false),
    ("node/peer/src", false),
    ("node/cluster/src", false),
    ("node/api/src", false),
    ("node/audit/src", false),
    ("node/policy/src", false),
    ("client/src", false),
    ("client/placementctl/src", false),
    ("model/src", false),
    ("model/naive/src", false),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Number of calls by file, function and call.
type Calls = BTreeMap<(String, String, String), usize>;

struct Found {
    file: String,
    function: String,
    is_ours: bool,
    calls: Calls,
}

impl Found {
    fn note(&mut self, call: &syn::Ident) {
        let call = call.to_string();
        // Another crate has a method `sync` that synchronizes names of traits.
        if SYNCS.contains(&call.as_str()) && (self.is_ours || call != "sync") {
            let place = (self.file.clone(), self.function.clone(), call);
            *self.calls.entry(place).or_default() += 1;
        }
    }

    fn within(&mut self, function: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.function, function.to_string());
        visit(self);
        self.function = outer;
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|one| {
        let words = match &one.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        one.path().is_ident("cfg") && words == "test"
    })
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.within(&function.sig.ident, |found| {
            visit::visit_item_fn(found, function);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.within(&function.sig.ident, |found| {
            visit::visit_impl_item_fn(found, function);
        });
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.within(&function.sig.ident, |found| {
            visit::visit_trait_item_fn(found, function);
        });
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.note(&call.method);
        visit::visit_expr_method_call(self, call);
    }

    // Also counts functions that are passed as values.
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        if let Some(last) = path.path.segments.last() {
            self.note(&last.ident);
        }
        visit::visit_expr_path(self, path);
    }
}

fn in_code() -> Calls {
    let mut calls = Calls::new();
    for (source, is_ours) in SOURCES {
        let mut left = vec![root().join(source)];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let file = path.strip_prefix(root()).unwrap();
            let mut found = Found {
                file: file.to_str().unwrap().to_owned(),
                function: String::new(),
                is_ours,
                calls: Calls::new(),
            };
            found.visit_file(&syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap());
            calls.extend(found.calls);
        }
    }
    calls
}

/// Texts between backticks in a cell.
fn quoted(cell: &str) -> Vec<String> {
    let words = cell.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

/// Rows of the table: the calls, and the tests that fail without them, as file and name. A row
/// without a test has the test that the text before the table names.
fn in_table() -> (Calls, Vec<(String, String)>) {
    let page = fs::read_to_string(root().join("docs/syncs.md")).unwrap();
    let (before, _) = page.split_once("\n| ").unwrap();
    let usual_test = &quoted(before)[..2];
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let (mut calls, mut tests) = (Calls::new(), Vec::new());
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", place, _, test, ""] = cells[..] else {
            panic!("not three cells: {row}");
        };
        let place = quoted(place);
        let [file, function, call] = &place[..] else {
            panic!("not a file, a function and a call: {row}");
        };
        let place = (file.clone(), function.clone(), call.clone());
        *calls.entry(place).or_default() += 1;
        let test = match test {
            "" => usual_test.to_vec(),
            test => quoted(test),
        };
        let [file, name] = &test[..] else {
            panic!("not a file and a test: {row}");
        };
        tests.push((file.clone(), name.clone()));
    }
    (calls, tests)
}

#[test]
fn every_sync_is_in_the_table_with_a_test() {
    let (listed, tests) = in_table();
    assert_eq!(in_code(), listed);
    for (file, name) in tests {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let is_there = text.contains(&format!("fn {name}("));
        assert!(is_there, "there is no test {name} in {file}");
    }
}

/// A node without a cluster has a socket in its data directory, but no store yet.
#[test]
fn directory_of_a_node_without_a_cluster_is_durable() {
    let root = tempfile::tempdir().unwrap();
    let (trace, dir) = (root.path().join("trace"), root.path().join("above/node"));
    // With `-D` the node is the child of this test, which can stop it.
    let watched = Command::new("strace")
        .args(["-D", "-f", "-y", "-qq", "-e", "trace=fsync,bind", "-o"])
        .arg(&trace)
        .arg(binaries::placementd().unwrap())
        .args(["--node-id", "1", "--api-listen", "127.0.0.1:0"])
        .args(["--peer-listen", "127.0.0.1:0", "--data-dir"])
        .arg(&dir)
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut watched) = watched else {
        return skipped("watching for syncs", "there is no strace");
    };
    let started = Instant::now();
    let calls = loop {
        let calls = fs::read_to_string(&trace).unwrap_or_default();
        if calls.contains("admin.new") {
            break calls;
        }
        if watched.try_wait().unwrap().is_some() {
            return skipped("watching for syncs", &calls);
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{calls}");
        std::thread::sleep(Duration::from_millis(20));
    };
    watched.kill().unwrap();
    watched.wait().unwrap();
    let (before, _) = calls.split_once("admin.new").unwrap();
    for synced in [root.path().to_owned(), root.path().join("above")] {
        let name = format!("<{}>)", synced.display());
        assert!(before.contains(&name), "{name} is not synced: {calls}");
    }
}
