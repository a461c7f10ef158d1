//! Files import downwards: no circle of files, and no arrow from a lower room to a higher one that is not
//! listed here with its reason. What only tests import does not count.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// A crate's rooms, the roof first. A room is a file or a folder; files of one folder are looked at as
/// rooms of their own where the folder has a list of its own. What a list does not name is a mistake.
const HOUSES: [(&str, &[&[&str]]); 4] = [
    (
        "node/src",
        &[
            &["main.rs"],
            &["program.rs"],
            &["offline", "supervisor.rs"],
            &["node.rs"],
            &["admin", "api_port.rs"],
            &["partitions.rs"],
            &["metrics", "health.rs"],
            &["serve"],
            &["http"],
            &["access.rs", "audit"],
            &["cluster"],
            &["rpc", "bucket", "keystone"],
            &["outgoing.rs", "tls"],
            &["env.rs"],
            &["config"],
            &[
                "topology",
                "logging.rs",
                "disk_space.rs",
                "descriptors.rs",
                "permissions.rs",
            ],
            &["doors.rs"],
            &["world.rs", "tasks.rs", "newest.rs"],
            &["panics.rs"],
        ],
    ),
    (
        "node/src/http",
        &[
            &["service.rs"],
            &["openapi.rs", "routes.rs"],
            &["nouns"],
            &["edge"],
            &["errors"],
            &["wire"],
            &["errors/error.rs", "errors/code.rs"],
        ],
    ),
    (
        "node/src/cluster",
        &[
            &["partition_door.rs"],
            &["write_door.rs", "read_door.rs", "peer_service.rs"],
            &["snapshot_intake.rs"],
            &["alone.rs", "joining.rs"],
            &["sites.rs"],
            &["bootstrap.rs"],
            &["start.rs", "succession.rs"],
            &["autopilot.rs"],
            &["replacement.rs"],
            &["join_tokens.rs"],
            &["description.rs"],
            &[
                "standards_sync.rs",
                "level.rs",
                "divergence.rs",
                "disk_watch.rs",
                "room.rs",
                "snapshots.rs",
                "mirror.rs",
                "membership.rs",
            ],
            &["backups.rs"],
            &["slot.rs"],
            &["running.rs"],
            &["write_path.rs", "standards.rs", "leadership.rs"],
            &["own_past.rs"],
            &["read_index.rs"],
            &["propose.rs", "removal.rs", "round_trips.rs"],
            &["wall_time.rs"],
            &["replica.rs", "stamp.rs", "write_ids.rs"],
            &[
                "freshness.rs",
                "read_metrics.rs",
                "read_quorum.rs",
                "kept_backups.rs",
                "error.rs",
                "deeds.rs",
                "addresses.rs",
                "backlog.rs",
            ],
        ],
    ),
    (
        "raft-store/src",
        &[
            &["skip.rs", "recover.rs", "restore.rs"],
            &["inspect.rs", "archive.rs"],
            &["store.rs", "fixtures.rs"],
            &["metrics.rs"],
            &["log", "machine"],
            &["rocks.rs", "tables"],
            &["options.rs", "simulation.rs"],
            &["data_dir.rs", "observer.rs"],
            &["error.rs", "write_version.rs"],
            &["wire", "types.rs", "logged.rs"],
            &["identity.rs", "applier.rs"],
            &["health.rs", "counters.rs", "runtime.rs", "synced.rs"],
            &["files.rs", "kept_files.rs"],
            &["disk_wait.rs", "coverage.rs", "gate.rs"],
        ],
    ),
];

/// Arrows that run upwards, and why they may.
const UPWARDS: [(&str, &str, &str); 5] = [
    (
        "node/src/config.rs",
        "node/src/http/edge/public_address.rs",
        "what the API is told is defined where it is used; the configuration fills it in",
    ),
    (
        "node/src/config/api_settings.rs",
        "node/src/http/edge/settings.rs",
        "the same",
    ),
    (
        "node/src/config/reads.rs",
        "node/src/http/edge/settings.rs",
        "the same",
    ),
    (
        "node/src/config/partitions.rs",
        "node/src/http/edge/public_address.rs",
        "the same, of each partition",
    ),
    (
        "node/src/config/partitions.rs",
        "node/src/http/edge/settings.rs",
        "the same, of each partition",
    ),
];

/// Rooms that never see each other, though one stands above the other.
const STRANGERS: [(&str, &str); 3] = [
    ("node/src/http", "node/src/cluster"),
    ("node/src/http", "node/src/rpc"),
    ("node/src/env.rs", "node/src/http"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where an item is imported from, as segments below the crate.
type ItemPath = Vec<String>;

/// A file: its place in the module tree, what it imports, and what it hands on under its own name.
#[derive(Default)]
struct Module {
    file: String,
    imports: BTreeSet<ItemPath>,
    hands_on: BTreeMap<String, ItemPath>,
}

/// All files of a crate, by their place in the module tree.
struct Crate {
    modules: BTreeMap<ItemPath, Module>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let mut modules = BTreeMap::new();
        let mut left = vec![source.to_owned()];
        while let Some(path) = left.pop() {
            if path.is_dir() && path.file_name().is_some_and(|name| name == "bin") {
                // Binaries are crates of their own.
            } else if path.is_dir() {
                left.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|one| one.unwrap().path()),
                );
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path
                    .strip_prefix(source)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                let is_root = file == "main.rs" && !source.join("lib.rs").exists();
                let place = if is_root { Vec::new() } else { place(&file) };
                let text = std::fs::read_to_string(&path).unwrap();
                let mut reader = Reader::at(place.clone());
                reader.visit_file(&syn::parse_file(&text).unwrap());
                reader.module.file = file;
                modules.insert(place, reader.module);
            }
        }
        Self { modules }
    }

    /// The file that an import leads to, through those that only hand on.
    fn leads_to(&self, path: &[String]) -> Option<&Module> {
        let deepest = (0..=path.len())
            .rev()
            .find(|&length| self.modules.contains_key(&path[..length]))?;
        let module = &self.modules[&path[..deepest]];
        match path.get(deepest).and_then(|name| module.hands_on.get(name)) {
            Some(origin) => self.leads_to(origin),
            None => Some(module),
        }
    }

    /// Which file imports which.
    fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for module in self.modules.values() {
            let from = arrows.entry(&module.file).or_default();
            for import in &module.imports {
                if let Some(target) = self.leads_to(import)
                    && target.file != module.file
                {
                    from.insert(&target.file);
                }
            }
        }
        arrows
    }
}

/// The place of a file in the module tree.
fn place(file: &str) -> ItemPath {
    let name = file.trim_end_matches(".rs");
    let name = name.trim_end_matches("/mod");
    if ["lib", "mod"].contains(&name) {
        return Vec::new();
    }
    name.split('/').map(str::to_owned).collect()
}

/// Reads the imports of one file.
struct Reader {
    place: ItemPath,
    module: Module,
}

impl Reader {
    fn at(place: ItemPath) -> Self {
        Self {
            place,
            module: Module::default(),
        }
    }

    /// A path as segments below the crate; `None` for one of another crate.
    fn below_crate(&self, path: &[String]) -> Option<ItemPath> {
        let mut base = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.place.clone(),
            _ => return None,
        };
        for segment in path {
            match segment.as_str() {
                "super" => drop(base.pop()),
                "crate" | "self" => {}
                name => base.push(name.to_owned()),
            }
        }
        Some(base)
    }

    fn import(&mut self, tree: &syn::UseTree, mut path: Vec<String>, handed_on: bool) {
        match tree {
            syn::UseTree::Path(one) => {
                path.push(one.ident.to_string());
                self.import(&one.tree, path, handed_on);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, path.clone(), handed_on);
                }
            }
            syn::UseTree::Name(name) => self.note(path, &name.ident, &name.ident, handed_on),
            syn::UseTree::Rename(name) => self.note(path, &name.ident, &name.rename, handed_on),
            syn::UseTree::Glob(_) => {
                if let Some(found) = self.below_crate(&path) {
                    self.module.imports.insert(found);
                }
            }
        }
    }

    fn note(
        &mut self,
        mut path: Vec<String>,
        name: &syn::Ident,
        alias: &syn::Ident,
        handed_on: bool,
    ) {
        path.push(name.to_string());
        if handed_on {
            // In the face of a folder its own modules are named without `self`.
            let mut from = path.clone();
            if !["crate", "self", "super"].contains(&from[0].as_str()) {
                from.insert(0, "self".to_owned());
            }
            let origin = self.below_crate(&from).expect("it begins with self");
            self.module.hands_on.insert(alias.to_string(), origin);
        } else if let Some(found) = self.below_crate(&path) {
            self.module.imports.insert(found);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    /// Modules within a file are its tests.
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let handed_on = !matches!(item.vis, syn::Visibility::Inherited);
        self.import(&item.tree, Vec::new(), handed_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|one| one.ident.to_string())
            .collect();
        if segments.len() > 1
            && let Some(found) = self.below_crate(&segments)
        {
            self.module.imports.insert(found);
        }
        visit::visit_path(self, path);
    }
}

/// The files that can be reached from each other.
fn circles(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> BTreeSet<BTreeSet<String>> {
    let reaches = |start: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut left: Vec<&str> = arrows[start].iter().copied().collect();
        while let Some(file) = left.pop() {
            if seen.insert(file) {
                left.extend(&arrows[file]);
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        arrows.keys().map(|file| (*file, reaches(file))).collect();
    let in_circle = |file: &&&str| reached[**file].contains(**file);
    (arrows.keys().filter(in_circle))
        .map(|file| {
            let others = reached[file]
                .iter()
                .filter(|other| reached[**other].contains(file));
            others.map(|other| (*other).to_owned()).collect()
        })
        .collect()
}

/// The level of the room that a file of a house is in; the roof is 0. A file that is named itself is
/// not where its folder is.
fn level(rooms: &[&[&str]], file: &str) -> Option<usize> {
    let is_in = |room: &str| {
        let folder = room.trim_end_matches(".rs");
        file == format!("{folder}.rs") || file.starts_with(&format!("{folder}/"))
    };
    let rooms = (rooms.iter().enumerate())
        .flat_map(|(level, rooms)| rooms.iter().map(move |room| (room, level)));
    let found = rooms.filter(|(room, _)| is_in(room));
    found
        .max_by_key(|(room, _)| room.len())
        .map(|(_, level)| level)
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for source in [
        "model/src",
        "model/naive/src",
        "raft-store/src",
        "node/src",
        "client/src",
        "client/wire/src",
        "client/src/bin/placementctl",
        "tests/bench/src",
        "simulations/src",
        "simulations/witness/src",
    ] {
        let read = Crate::read(&root().join(source));
        let circles = circles(&read.arrows());
        found.extend(circles.into_iter().map(|circle| (source, circle)));
    }
    assert_eq!(found, Vec::new());
}

#[test]
fn a_circle_would_be_found() {
    let arrows = BTreeMap::from([
        ("a.rs", BTreeSet::from(["b.rs"])),
        ("b.rs", BTreeSet::from(["c.rs"])),
        ("c.rs", BTreeSet::from(["a.rs", "d.rs"])),
        ("d.rs", BTreeSet::new()),
    ]);
    let circle = ["a.rs", "b.rs", "c.rs"].map(str::to_owned);
    assert_eq!(circles(&arrows), BTreeSet::from([BTreeSet::from(circle)]));
}

#[test]
fn rooms_import_only_what_is_below_them() {
    let mut found = Vec::new();
    let mut listed = 0;
    for (house, rooms) in HOUSES {
        let source = if house.starts_with("node") {
            "node/src"
        } else {
            house
        };
        let inside = house.strip_prefix(source).unwrap().trim_start_matches('/');
        let read = Crate::read(&root().join(source));
        let own = |file: &str| {
            let file = Path::new(file).strip_prefix(inside).ok()?;
            Some(file.to_string_lossy().into_owned())
        };
        for (from, targets) in read.arrows() {
            let Some(from) = own(from) else { continue };
            if ["lib.rs", "mod.rs"].contains(&from.as_str()) {
                continue;
            }
            let Some(above) = level(rooms, &from) else {
                found.push(format!("{house}: no level is given for {from}"));
                continue;
            };
            for to in targets.into_iter().filter_map(own) {
                let arrow = (format!("{house}/{from}"), format!("{house}/{to}"));
                if level(rooms, &to).is_none_or(|below| below >= above) {
                    continue;
                }
                if UPWARDS
                    .iter()
                    .any(|(from, to, _)| (*from, *to) == (&arrow.0, &arrow.1))
                {
                    listed += 1;
                } else {
                    found.push(format!(
                        "{} imports {}, which is above it",
                        arrow.0, arrow.1
                    ));
                }
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(listed, UPWARDS.len(), "each listed arrow is there");
}

#[test]
fn rooms_that_are_strangers_do_not_import_each_other() {
    let read = Crate::read(&root().join("node/src"));
    let arrows = read.arrows();
    let mut found = Vec::new();
    for (one, other) in STRANGERS {
        let [one, other] = [one, other].map(|room| room.trim_start_matches("node/src/"));
        for (from, targets) in arrows.iter().filter(|(file, _)| file.starts_with(one)) {
            let seen = targets.iter().filter(|file| file.starts_with(other));
            found.extend(seen.map(|to| format!("{from} imports {to}")));
        }
    }
    assert_eq!(found, Vec::<String>::new());
    // An arrow that there is would be found.
    assert!(
        arrows["node.rs"]
            .iter()
            .any(|file| file.starts_with("cluster"))
    );
}
