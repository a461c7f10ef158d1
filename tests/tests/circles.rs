//! Neither files nor folders of a crate import each other in a cycle. Imports in tests do not
//! count. Cargo prevents cycles between crates.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Path of an item, as segments below the crate.
type ItemPath = Vec<String>;

/// A file: its place in the module tree, its imports, and its re-exports.
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
            let name = path.file_name().unwrap_or_default();
            if (path.is_dir() && name == "bin") || name == "tests.rs" {
                // Binaries are separate crates; imports in tests do not count.
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

    /// The file that defines an imported item, after following all re-exports.
    fn leads_to(&self, path: &[String]) -> Option<&Module> {
        let deepest = (0..=path.len())
            .rev()
            .find(|&length| self.modules.contains_key(&path[..length]))?;
        let module = &self.modules[&path[..deepest]];
        match path.get(deepest).and_then(|name| module.hands_on.get(name)) {
            // A macro is re-exported by the file that defines it.
            Some(origin) if origin != path => self.leads_to(origin),
            _ => Some(module),
        }
    }

    /// Imports of each file.
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

/// Place of a file in the module tree.
fn place(file: &str) -> ItemPath {
    let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
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

    /// Segments of a path below the crate; `None` for a path in another crate.
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
            // The module file of a folder refers to its modules without `self`.
            let mut from = path.clone();
            if !["crate", "self", "super"].contains(&from[0].as_str()) {
                from.insert(0, "self".to_owned());
            }
            let origin = self.below_crate(&from).expect("the path is in the crate");
            self.module.hands_on.insert(alias.to_string(), origin);
        } else if let Some(found) = self.below_crate(&path) {
            self.module.imports.insert(found);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    /// Inline modules of a file are its tests.
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

/// Groups of files that import each other in a cycle.
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

/// Source folders of crates below `directory`.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(sources(&path));
        } else if ["lib.rs", "main.rs"].contains(&name.as_str()) {
            found.push(directory.to_owned());
        }
    }
    found.dedup();
    found
}

/// Imports between the children of a folder. A file and the folder of its modules are one child.
fn between_children<'a>(
    arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    folder: &str,
) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let child = |file: &'a str| {
        let name = file
            .strip_prefix(folder)?
            .split('/')
            .next()?
            .trim_end_matches(".rs");
        (!["lib", "main", "mod"].contains(&name)).then_some(name)
    };
    let mut between: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, targets) in arrows {
        let Some(from) = child(from) else { continue };
        let targets = targets.iter().filter_map(|to| child(to));
        let others = targets.filter(|to| *to != from);
        between.entry(from).or_default().extend(others);
    }
    for to in between.values().flatten().copied().collect::<Vec<_>>() {
        between.entry(to).or_default();
    }
    between
}

#[test]
fn files_and_folders_have_no_import_cycles() {
    let mut found = BTreeMap::new();
    for source in sources(&root()) {
        let read = Crate::read(&source);
        let arrows = read.arrows();
        let mut note = |place: &str, arrows: &BTreeMap<&str, BTreeSet<&str>>| {
            let circles = circles(arrows);
            if !circles.is_empty() {
                found.insert(source.join(place), circles);
            }
        };
        note("", &arrows);
        let folders: BTreeSet<&str> = (arrows.keys())
            .flat_map(|file| file.match_indices('/').map(|(at, _)| &file[..=at]))
            .chain([""])
            .collect();
        for folder in folders {
            note(folder, &between_children(&arrows, folder));
        }
    }
    assert_eq!(found, BTreeMap::new());
}

#[test]
fn import_cycles_are_detected() {
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
fn children_of_a_folder_are_grouped() {
    let arrows = BTreeMap::from([
        ("a.rs", BTreeSet::from(["b/mod.rs"])),
        ("b/c.rs", BTreeSet::from(["b/d.rs", "a/e.rs"])),
        ("lib.rs", BTreeSet::from(["a.rs"])),
    ]);
    let between = between_children(&arrows, "");
    let circle = ["a", "b"].map(str::to_owned);
    assert_eq!(circles(&between), BTreeSet::from([BTreeSet::from(circle)]));
    assert_eq!(circles(&between_children(&arrows, "b/")), BTreeSet::new());
}
