//! Behaviour of the scripts on machines that lack a package: the scripts install it, so that one
//! command builds on a bare Debian. A container per case would take minutes, so each machine is
//! simulated by a folder for the PATH, a folder for the file system, and a fake `apt-get`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use placement_tests::binaries;
use tempfile::TempDir;

/// Programs that exist on every machine on which the scripts run.
const ESSENTIAL: &str = "awk bash cat cut date dirname du env grep install ln mkdir mktemp mv readlink rm sed \
     sha256sum sleep sort tee touch uname";
const ELF_OF_64_BITS: &[u8] = b"\x7fELF\x02\x01\x01";
const MULTIARCH: &str = "usr/lib/x86_64-linux-gnu";
const HEADER: &str = "usr/lib/llvm-14/lib/clang/14.0.6/include/stddef.h";

fn repository() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap()
}

/// A simulated machine with root access, Rust and compilers, but nothing else.
struct Machine {
    directory: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["bin", "home", "root", "tmp"] {
            fs::create_dir(directory.path().join(folder)).unwrap();
        }
        let mut machine = Self {
            directory,
            variables: Vec::new(),
        };
        for name in ESSENTIAL.split_whitespace() {
            machine = machine.with_real(name);
        }
        machine
            .program("id", "echo 0")
            .program("cargo", "echo cargo 1.99.0")
            .program("rustc", "echo rustc 1.99.0")
            .program("cc", "exit 0")
            .program("c++", "exit 0")
            .program("apt-get", r#"echo "$*" >>"$HOME/apt-get""#)
    }

    /// Puts a program of the real machine on the PATH.
    fn with_real(self, name: &str) -> Self {
        let path = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.exists())
            .unwrap_or_else(|| panic!("there is no {name} on the PATH"));
        symlink(real, self.path("bin").join(name)).unwrap();
        self
    }

    /// Puts a script on the PATH.
    fn program(self, name: &str, script: &str) -> Self {
        self.script(&format!("bin/{name}"), script)
    }

    fn script(self, path: &str, script: &str) -> Self {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&file);
        let shebang = format!("#!{}\n{script}\n", self.path("bin/bash").display());
        fs::write(&file, shebang).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Takes a program off the PATH.
    fn without(self, name: &str) -> Self {
        fs::remove_file(self.path("bin").join(name)).unwrap();
        self
    }

    /// Puts a file into the file system.
    fn file(self, path: &str, content: &[u8]) -> Self {
        let file = self.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
        self
    }

    /// Adds libclang and its headers, as Debian's libclang-dev installs them.
    fn with_libclang(self) -> Self {
        self.file("usr/lib/llvm-14/lib/libclang-14.so.1", ELF_OF_64_BITS)
            .file(HEADER, b"")
    }

    fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn root(&self) -> PathBuf {
        self.path("root")
    }

    /// bash with access to nothing of the real machine but this repository.
    fn bash(&self) -> Command {
        let mut command = Command::new(self.path("bin/bash"));
        command
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("ROOT", self.root())
            .envs(self.variables.iter().cloned())
            .current_dir(self.path("home"));
        command
    }

    /// Runs a line of bash after sourcing `build-env.sh`.
    fn run(&self, line: &str) -> Ran {
        let library = repository().join("scripts/lib/build-env.sh");
        let script = format!("set -euo pipefail; . '{}'; {line}", library.display());
        self.bash().args(["-c", &script]).output().unwrap().into()
    }

    /// Runs one of the scripts.
    fn run_script(&self, name: &str, arguments: &[&str]) -> Ran {
        let script = repository().join("scripts").join(name);
        let output = self.bash().arg(script).args(arguments).output();
        output.unwrap().into()
    }

    /// The missing part of libclang, as the scripts report it.
    fn lack(&self) -> String {
        self.run("libclang_lack \"$ROOT\"").succeeds().to_owned()
    }

    /// Packages that apt-get was asked to install.
    fn installed(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.path("home/apt-get")).unwrap_or_default();
        asked
            .lines()
            .filter_map(|line| line.split_once("install -y --no-install-recommends "))
            .map(|(_, packages)| packages.to_owned())
            .collect()
    }
}

/// Outcome of a script, and its output.
#[derive(Debug)]
struct Ran {
    succeeded: bool,
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        Self {
            succeeded: output.status.success(),
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Ran {
    #[track_caller]
    fn fails_with(&self, words: &str) {
        assert!(!self.succeeded && self.err.contains(words), "{self:?}");
    }

    /// Asserts success; returns standard output.
    #[track_caller]
    fn succeeds(&self) -> &str {
        assert!(self.succeeded, "{self:?}");
        &self.out
    }

    #[track_caller]
    fn ends_with(&self, succeeded: bool, words: &str) {
        let is_end = self.out.ends_with(words);
        assert!(self.succeeded == succeeded && is_end, "{self:?}");
    }
}

#[test]
fn invalid_libclang_path_is_reported_and_ignored() {
    for value in ["", "/nowhere", "/etc/hostname"] {
        let machine = Machine::new()
            .with_libclang()
            .variable("LIBCLANG_PATH", value);
        assert_eq!(machine.lack(), "there is no libclang");
        let ran = machine.run("ensure_build_packages \"$ROOT\"; echo \"${LIBCLANG_PATH-unset}\"");
        assert!(ran.err.contains("LIBCLANG_PATH is ignored"), "{ran:?}");
        assert_eq!(ran.out, "unset");
        assert_eq!(machine.installed(), Vec::<String>::new());
    }
}

#[test]
fn only_missing_build_packages_are_installed() {
    let complete = Machine::new().with_libclang();
    assert!(complete.run("ensure_build_packages \"$ROOT\"").succeeded);
    assert_eq!(complete.installed(), Vec::<String>::new());

    // LLVM is installed with libclang-cpp, but without libclang.
    let llvm = Machine::new().file(&format!("{MULTIARCH}/libclang-cpp.so.14"), ELF_OF_64_BITS);
    assert!(llvm.run("ensure_build_packages \"$ROOT\"").succeeded);
    assert_eq!(llvm.installed(), ["libclang-dev"]);

    for half in ["echo 'vector: no such file' >&2; exit 1", "exit 127"] {
        let repaired = r#"case "$*" in *install*) for name in cc c++; do
            printf '#!%s/bash\n' "$PATH" >"$PATH/$name"; done ;; esac; echo "$*" >>"$HOME/apt-get""#;
        let machine = Machine::new()
            .with_libclang()
            .program("c++", half)
            .program("apt-get", repaired);
        assert!(machine.run("ensure_build_packages \"$ROOT\"").succeeded);
        assert_eq!(machine.installed(), ["build-essential"]);
    }
    let bare = Machine::new().without("cc").without("c++");
    bare.run("ensure_build_packages \"$ROOT\"")
        .fails_with("do not make a program");
    assert_eq!(bare.installed(), ["build-essential libclang-dev"]);
}

#[test]
fn user_without_privileges_gets_the_command_to_run() {
    let line = "ensure_build_packages \"$ROOT\"";
    let no_root = Machine::new().program("id", "echo 1000");
    no_root
        .run(line)
        .fails_with("not root, and there is no sudo. As root: apt-get install libclang-dev");

    let sudo = Machine::new()
        .program("id", "echo 1000")
        .program("sudo", r#"echo yes >"$HOME/sudo"; "$@""#);
    assert!(sudo.run(line).succeeded);
    assert!(sudo.path("home/sudo").exists());
    assert_eq!(sudo.installed(), ["libclang-dev"]);

    let no_apt = Machine::new().without("apt-get");
    no_apt.run(line).fails_with("There is no apt-get here");
    // The headers may be where the scripts do not look; the compiler reports it if they are
    // missing.
    let elsewhere = Machine::new()
        .without("apt-get")
        .file("usr/lib/libclang.so", ELF_OF_64_BITS);
    assert!(elsewhere.run(line).succeeded);

    let broken = Machine::new().program("apt-get", "exit 100");
    broken
        .run(line)
        .fails_with("apt-get install libclang-dev failed");
    let one_source_is_down = Machine::new().program(
        "apt-get",
        r#"case "$*" in *update*) exit 100 ;; esac; echo "$*" >>"$HOME/apt-get""#,
    );
    assert!(one_source_is_down.run(line).succeeded);
    assert_eq!(one_source_is_down.installed(), ["libclang-dev"]);
}

/// A cargo that fails with `complaint` until apt-get has installed something.
fn complains(complaint: &str) -> String {
    format!(
        "echo run >>\"$HOME/runs\"; [ -e \"$HOME/apt-get\" ] && echo built && exit 0; \
         echo \"{complaint}\" >&2; exit 101"
    )
}

#[test]
fn build_is_retried_after_libclang_is_installed() {
    for complaint in [
        "Unable to find libclang: \\\"couldn't find any valid shared libraries matching: …\\\"",
        "the \\`libclang\\` shared library at /usr/lib/libclang.so could not be opened: …",
        "/usr/include/rocksdb/c.h:66:10: fatal error: 'stdbool.h' file not found",
        "fatal error: 'stddef.h' file not found",
    ] {
        let machine = Machine::new().program("cargo", &complains(complaint));
        let ran = machine.run("compile building cargo build");
        assert_eq!(ran.succeeds(), "built");
        assert!(ran.err.contains("installing libclang-dev"), "{ran:?}");
        assert_eq!(machine.installed(), ["libclang-dev"]);
    }
}

#[test]
fn other_build_failures_are_not_retried() {
    let machine = Machine::new().program("cargo", &complains("error[E0308]: mismatched types"));
    let ran = machine.run("compile building cargo build");
    ran.fails_with("mismatched types");
    assert_eq!(machine.installed(), Vec::<String>::new());
    let runs = fs::read_to_string(machine.path("home/runs"));
    assert_eq!(runs.unwrap(), "run\n");
}

#[test]
fn failed_build_without_libclang_is_explained() {
    let machine = Machine::new().program("cargo", "echo Unable to find libclang >&2; exit 101");
    let ran = machine.run("compile building cargo build");
    ran.fails_with("libclang-dev is installed, and bindgen still does not find");
    assert_eq!(machine.installed(), ["libclang-dev"]);
}

#[test]
fn rust_must_be_installed_and_new_enough() {
    for (tool, does, words) in [
        ("cargo", "", "cargo is not on the PATH"),
        ("rustc", "", "rustc is not on the PATH"),
        (
            "rustc",
            "echo rustc 1.63.0",
            "rustc is version 1.63.0, too old",
        ),
        (
            "cargo",
            "echo cargo 1.9.0",
            "cargo is version 1.9.0, too old",
        ),
        ("cargo", "echo none >&2; exit 1", "cargo does not run"),
    ] {
        let machine = match does {
            "" => Machine::new().without(tool),
            does => Machine::new().program(tool, does),
        };
        let ran = machine.run("ensure_rust");
        ran.fails_with(words);
        ran.fails_with("from https://rustup.rs");
        assert!(ran.err.contains(env!("CARGO_PKG_RUST_VERSION")), "{ran:?}");
    }
    for version in [env!("CARGO_PKG_RUST_VERSION"), "1.100.0", "2.0.0-nightly"] {
        let tell = format!("echo tool {version}");
        let machine = Machine::new()
            .program("cargo", &tell)
            .program("rustc", &tell);
        assert!(machine.run("ensure_rust").succeeded, "{version}");
    }
}

#[test]
fn cargo_of_rustup_replaces_a_missing_or_old_one() {
    for machine in [
        Machine::new().without("cargo").without("rustc"),
        Machine::new().program("rustc", "echo rustc 1.63.0"),
    ] {
        let machine = machine
            .script("home/.cargo/bin/cargo", "echo cargo 1.99.0")
            .script("home/.cargo/bin/rustc", "echo rustc 1.99.0");
        let ran = machine.run("ensure_rust; rustc --version");
        assert_eq!(ran.succeeds(), "rustc 1.99.0");
    }
}

#[test]
fn the_stable_toolchain_is_used_if_the_pinned_one_cannot_be_fetched() {
    let pinned = |tool: &str| format!(r#"[ "$RUSTUP_TOOLCHAIN" = stable ] && echo {tool} 1.99.0"#);
    let machine = Machine::new()
        .program("cargo", &pinned("cargo"))
        .program("rustc", &pinned("rustc"))
        .program("rustup", "exit 1");
    let ran = machine.run("ensure_rust; rustc --version");
    assert_eq!(ran.succeeds(), "rustc 1.99.0");
    let words = "not the one that rust-toolchain.toml names";
    assert!(ran.err.contains(words), "{ran:?}");
}

#[test]
fn rustfmt_and_clippy_are_added_to_a_small_toolchain() {
    let fails = r#"[ -e "$HOME/rustup" ] || exit 1"#;
    let machine = Machine::new().program("cargo", fails);
    machine
        .run("ensure_rust_components fmt clippy")
        .fails_with("there is no `cargo fmt`");
    let machine = machine.program("rustup", r#"echo "$*" >>"$HOME/rustup""#);
    assert!(machine.run("ensure_rust_components fmt clippy").succeeded);
    let asked = fs::read_to_string(machine.path("home/rustup")).unwrap();
    assert_eq!(asked, "component add rustfmt\n");
}

#[test]
fn binaries_are_found_in_the_target_directory_of_cargo() {
    // The target directory follows the configuration of cargo.
    let tells = r#"echo '{"packages":[],"target_directory":"/elsewhere/built","version":1}'"#;
    let machine = Machine::new().program("cargo", tells);
    assert_eq!(machine.run("target_directory").out, "/elsewhere/built");
    // A running cluster can be stopped after cargo was removed.
    let without = Machine::new().without("cargo");
    let usual = repository().join("target");
    assert_eq!(without.run("target_directory").out, usual.to_str().unwrap());
}

#[test]
fn missing_python_venv_is_installed() {
    let good = Machine::new().program("python3", "exit 0");
    assert!(good.run("ensure_python tests \"$ROOT\"").succeeded);
    assert_eq!(good.installed(), Vec::<String>::new());

    // Debian's Python, which apt-get completes.
    let debian = Machine::new().program("python3", r#"[ -e "$HOME/apt-get" ]"#);
    assert!(debian.run("ensure_python tests \"$ROOT\"").succeeded);
    assert_eq!(debian.installed(), ["python3 python3-venv"]);

    // The user's own Python, which hides Debian's and is not changed.
    let hidden = Machine::new()
        .program("python3", "exit 1")
        .script("root/usr/bin/python3", r#"[ -e "$HOME/apt-get" ]"#);
    let ran = hidden.run("ensure_python tests \"$ROOT\"; python_with_venv \"$ROOT\"");
    let found = hidden.path("root/usr/bin/python3");
    assert_eq!(ran.out, found.to_str().unwrap());

    let never = Machine::new().program("python3", "exit 1");
    never
        .run("ensure_python tests \"$ROOT\"")
        .fails_with("needs Python 3.10 or newer");
}

#[test]
fn virtual_environment_without_its_python_is_recreated() {
    let machine = Machine::new().program(
        "python3",
        r#"[ "$1" = -m ] || exit 0
           echo made >>"$HOME/made"; mkdir -p "$4/bin"
           for name in python pip; do cp=$4/bin/$name; printf '#!%s/bash\n' "$PATH" >"$cp"; chmod +x "$cp"; done"#,
    ).with_real("chmod")
        .file("requirements.txt", b"gabbi");
    let make = "python_environment suite \"$ROOT/requirements.txt\" tests";
    let first = machine.run(make);
    assert!(first.succeeded, "{first:?}");
    assert_eq!(machine.run(make).out, first.out);
    fs::remove_file(Path::new(&first.out).join("bin/python")).unwrap();
    assert!(machine.run(make).succeeded);
    let made = fs::read_to_string(machine.path("home/made"));
    assert_eq!(made.unwrap(), "made\nmade\n");
}

#[test]
fn rocksdb_flags_match_the_locked_version() {
    let machine = Machine::new();
    let ran = machine.run(r#"echo "$rocksdb_flags_version $(rocksdb_version)""#);
    let versions: Vec<_> = ran.out.split_whitespace().collect();
    assert_eq!(versions[0], versions[1], "see scripts/lib/rocksdb.sh");
    machine
        .run("rocksdb_flags_version=0.1.0; compile_rocksdb .")
        .fails_with("has the compiler flags of librocksdb-sys 0.1.0");
}

#[test]
fn builds_need_flock() {
    let machine = Machine::new();
    machine.run("ensure_rocksdb \"$HOME/cache\"");
    assert_eq!(machine.installed(), ["util-linux"]);
}

#[test]
fn verify_names_the_package_of_shellcheck() {
    Machine::new()
        .run_script("verify", &[])
        .fails_with("apt-get install shellcheck");
}

#[test]
fn invalid_arguments_are_refused_before_anything_is_built() {
    for (line, words) in [
        ("test --only every", "does not know \"--only every\""),
        ("test --only", "does not know \"--only\""),
        (
            "verify --only fmt,every",
            "does not know \"--only fmt,every\"",
        ),
        ("verify --only ,fmt", "does not know"),
        ("verify fmt", "does not know \"fmt\""),
        ("fix everything", "does not know \"everything\""),
        ("nightly --only x", "does not know \"--only\""),
        ("bench compare --host 5", "does not know \"--host\""),
        ("cloud smoke", "does not know \"smoke\""),
        ("conformance traits --seeds 7", "does not know \"--seeds\""),
        ("schemathesis --case=7 -- --x", "does not know \"--case=7\""),
        ("browser -s", "does not know \"-s\""),
        ("drill --hosts 5 --debug", "does not know \"--debug\""),
        ("install --prefix", "--prefix needs a directory"),
        ("install --prefix --from", "--prefix needs a directory"),
        ("install /usr", "does not know \"/usr\""),
        ("package --to", "--to needs a directory"),
        ("package --release", "does not know \"--release\""),
        ("run-cluster --port 1", "does not know \"--port\""),
        ("torture --hours 1", "does not know \"--hours\""),
        ("simulate --seed 1", "does not know \"--seed 1\""),
        ("book --from a", "does not know \"--from a\""),
        ("book --to /usr", "/usr exists and is not a book"),
        (
            "install --prefix /dev/null",
            "/dev/null/bin cannot be created",
        ),
        ("install --prefix a --from none", "none contains no program"),
    ] {
        let (script, arguments) = line.split_once(' ').unwrap();
        let arguments: Vec<_> = arguments.split(' ').collect();
        let machine = Machine::new();
        let ran = machine.run_script(script, &arguments);
        ran.fails_with(words);
        let is_unknown = words.starts_with("does not know");
        assert!(!is_unknown || ran.code == Some(2), "{ran:?}");
        assert_eq!(machine.installed(), Vec::<String>::new());
    }
}

#[test]
fn scripts_print_their_help_before_anything_is_built() {
    let mut printed = 0;
    for entry in fs::read_dir(repository().join("scripts")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // `env` is sourced.
        if entry.file_type().unwrap().is_dir() || name == "env" {
            continue;
        }
        let machine = Machine::new().program("cargo", "exit 1");
        let ran = machine.run_script(&name, &["--help"]);
        let usage = format!("usage: scripts/{name}");
        assert!(ran.succeeds().contains(&usage), "{ran:?}");
        assert_eq!(machine.installed(), Vec::<String>::new());
        printed += 1;
    }
    assert!(printed > 10, "only {printed} were found");
}

#[test]
fn help_of_a_script_has_the_options_of_its_program() {
    let options = |help: &str| -> BTreeSet<String> {
        let lines = help.lines().map(str::trim_start);
        let options = lines.filter(|line| line.starts_with("--"));
        let names = options.filter_map(|line| line.split(['=', ' ']).next());
        names.map(str::to_owned).collect()
    };
    for name in ["run-cluster", "torture"] {
        let program = binaries::tool(name).unwrap();
        let output = Command::new(program).arg("--help").output().unwrap();
        let help = Machine::new().run_script(name, &["--help"]);
        let of_program = options(Ran::from(output).succeeds());
        assert!(of_program.len() > 4, "{of_program:?}");
        assert_eq!(options(help.succeeds()), of_program);
    }
}

#[test]
fn verify_runs_the_selected_parts_only() {
    let machine =
        Machine::new().program("cargo", r#"echo "cargo 1.99.0"; echo "$*" >>"$HOME/runs""#);
    machine.run_script("verify", &["--only", "fmt"]).succeeds();
    let runs = fs::read_to_string(machine.path("home/runs")).unwrap();
    assert!(runs.contains("fmt --all -- --check"), "{runs}");
    assert!(!runs.contains("clippy"), "{runs}");
}

#[test]
fn readme_and_help_agree_on_the_minutes_of_the_suite() {
    let help = Machine::new().run_script("test", &["--help"]);
    let (before, _) = help.succeeds().split_once(" minutes").unwrap();
    let minutes = before.rsplit(' ').next().unwrap();
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let sentence = format!("`scripts/test` takes {minutes} minutes");
    assert!(readme.contains(&sentence), "{sentence}");
}

#[test]
fn install_puts_both_binaries_in_place_and_says_how_to_start_them() {
    let machine = Machine::new()
        .script("built/placementd", "echo new")
        .script("built/placementctl", "echo new")
        .script("home/prefix/bin/placementd", "echo old");
    let built = machine.path("built");
    // A prefix is relative to the caller's directory.
    let arguments = ["--prefix=prefix", "--from", built.to_str().unwrap()];
    let ran = machine.run_script("install", &arguments);
    let bin = machine.path("home/prefix/bin");
    let mut there: Vec<_> = fs::read_dir(&bin)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    there.sort();
    assert_eq!(there, ["placementctl", "placementd"]);
    let node = Command::new(bin.join("placementd")).output().unwrap();
    assert_eq!(node.stdout, b"new\n");
    let start = format!("{}/placementd --node-id 1", bin.display());
    assert!(ran.succeeds().contains(&start), "{ran:?}");
}

/// Runs these parts, each a name and a shell command, and then the end of `scripts/test`, which
/// counts their tests.
fn closing(machine: &Machine, parts: &[(&str, &str)]) -> Ran {
    let mut line = format!(". '{}/scripts/lib/parts.sh'; ", repository().display());
    for (name, does) in parts {
        line.push_str(&format!(
            "does() {{ {does}; }}; part {name} does; \
             count {name} '^test result: .* ([0-9]+) passed; ([0-9]+) failed.*'; "
        ));
    }
    machine.run(&format!("{line} closing"))
}

const THREE_PASS: &str = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'";

#[test]
fn suite_counts_passed_failed_and_skipped_tests() {
    let machine = Machine::new();
    let ran = closing(&machine, &[("one", THREE_PASS), ("two", THREE_PASS)]);
    ran.ends_with(true, "6 passed, 0 failed, 0 skipped");

    let fails = "echo 'test result: FAILED. 2 passed; 1 failed;'; return 101";
    let ran = closing(&machine, &[("one", fails), ("two", THREE_PASS)]);
    assert!(ran.out.contains("FAILED: one"), "{ran:?}");
    ran.ends_with(false, "5 passed, 1 failed, 0 skipped");

    // A part that fails without a count, and a part that prints nothing.
    for does in ["return 3", "true"] {
        let ran = closing(&machine, &[("one", does), ("two", THREE_PASS)]);
        ran.ends_with(false, "3 passed, 1 failed, 0 skipped");
    }
}

#[test]
fn suite_repeats_skips_and_fails_with_them_in_ci() {
    let skip =
        format!("echo 'test a_full_disk ... SKIPPED: a full disk: no mount' >&2; {THREE_PASS}");
    let ran = closing(&Machine::new(), &[("one", &skip)]);
    let words = "\nSKIPPED: a full disk: no mount\n3 passed, 0 failed, 1 skipped";
    assert!(ran.succeeds().contains(words), "{ran:?}");

    let ci = Machine::new().variable("CI", "true");
    let ran = closing(&ci, &[("one", &skip)]);
    ran.ends_with(false, "3 passed, 1 failed, 1 skipped");
}

#[test]
fn unreachable_sources_are_counted_without_failing() {
    let away = format!("echo '==> UNREACHED: weaknesses: no database' >&2; {THREE_PASS}");
    let ci = Machine::new().variable("CI", "true");
    let ran = closing(&ci, &[("one", &away)]);
    let words = "\nUNREACHED: weaknesses: no database\n3 passed, 0 failed, 1 skipped";
    assert!(ran.succeeds().contains(words), "{ran:?}");
}

#[test]
fn suite_counts_long_output_completely() {
    // More output than a pipe holds, with the count at its end.
    let much = format!("for at in {{1..20000}}; do echo \"line $at\"; done; {THREE_PASS}");
    let ran = closing(&Machine::new(), &[("one", &much)]);
    assert!(
        ran.out.ends_with("3 passed, 0 failed, 0 skipped"),
        "the count is missing"
    );
}

#[test]
fn conformance_run_with_missing_files_or_tests_fails() {
    let shortfall = |files: u32, tests: u32| {
        let ask = format!("import extent; print(extent.shortfall({files}, {tests}))");
        let output = Command::new("python3")
            .args(["-B", "-c", &ask])
            .current_dir(repository().join("conformance"))
            .output();
        Ran::from(output.unwrap()).succeeds().to_owned()
    };
    assert_eq!(shortfall(79, 1316), "None");
    for (files, tests) in [(78, 1316), (79, 1315), (0, 0), (80, 1320)] {
        let lost = shortfall(files, tests);
        let counted = format!("{files} files with {tests} tests were run");
        assert!(lost.contains(&counted), "{lost}");
    }
}

#[test]
#[ignore = "run by the test after it, as a test that has to skip"]
fn skipping_test() {
    placement_tests::skip::skipped("a part of the proof", "this machine\nlacks it");
}

#[test]
fn skip_is_visible_and_fails_in_ci() {
    let run = |ci: &str| -> Ran {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "scripts::skipping_test", "--ignored"])
            .env("CI", ci)
            .output();
        output.unwrap().into()
    };
    let ran = run("");
    assert!(ran.succeeded, "{ran:?}");
    assert_eq!(
        ran.err,
        "SKIPPED: a part of the proof: this machine; lacks it"
    );
    let ran = run("true");
    assert!(
        !ran.succeeded && ran.out.contains("cannot be skipped where CI is set"),
        "{ran:?}"
    );
}
