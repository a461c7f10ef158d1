//! Python programs that tests run with the product, each in its own virtual environment.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use parking_lot::Mutex;

/// Serializes installations: tests that run concurrently may need the same environment.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Folder of the programs of a virtual environment with these packages; created once in
/// `directory`.
pub fn environment(directory: &Path, name: &str, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let _installing = INSTALLING.lock();
    let lock = File::create(directory.join("installing"))?;
    lock.lock()?;
    let venv = directory.join(name);
    let ready = venv.join("ready");
    if !ready.exists() {
        eprintln!("installing {packages:?} into {}", venv.display());
        run(interpreter().args(["-m", "venv", "--clear"]).arg(&venv))?;
        run(Command::new(venv.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(packages))?;
        std::fs::write(ready, "")?;
    }
    Ok(venv.join("bin"))
}

/// Folder of the programs of a Python with keystoneauth and oslo.config; installed once below
/// `installed_in`.
pub fn keystoneauth(installed_in: &Path) -> anyhow::Result<PathBuf> {
    let packages = ["keystoneauth1==5.18.1", "oslo.config==10.7.0"];
    environment(installed_in, "keystoneauth-5.18.1", &packages)
}

/// Folder of the programs of a Python with Nova and OpenStack's client, in the versions of
/// `scripts/cloud`; installed once below `installed_in`.
pub fn nova(installed_in: &Path) -> anyhow::Result<PathBuf> {
    let constraints = concat!(env!("CARGO_MANIFEST_DIR"), "/cloud/constraints.txt");
    let packages = ["nova==34.0.0", "python-openstackclient", "-c", constraints];
    environment(installed_in, "nova-34.0.0", &packages)
}

/// Runs the unit tests of the Python client in `folder` on the package in `package`.
///
/// # Panics
/// If a test fails, or if the folder has no test.
pub fn test_client(installed_in: &Path, folder: &Path, package: &Path) {
    let programs = keystoneauth(installed_in).expect("keystoneauth can be installed");
    unit_tests(&programs, folder, package);
}

/// Runs the unit tests in `folder` of the package for Nova, which is in `package`.
///
/// # Panics
/// If a test fails, or if the folder has no test.
pub fn test_nova(installed_in: &Path, folder: &Path, package: &Path) {
    let programs = nova(installed_in).expect("Nova can be installed");
    unit_tests(&programs, folder, package);
}

/// Ends tests that hang.
const DISCOVER: &str = "
import faulthandler, sys, unittest
faulthandler.dump_traceback_later(600, exit=True)
unittest.main(None, argv=['unittest', 'discover', '-s', sys.argv[1]])
";

fn unit_tests(programs: &Path, folder: &Path, package: &Path) {
    let mut tests = Command::new(programs.join("python"));
    tests.args(["-B", "-W", "ignore", "-c", DISCOVER]);
    tests.arg(folder).env("PYTHONPATH", package);
    let output = tests.env("no_proxy", "*").output().expect("Python starts");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    assert!(!report.contains("Ran 0 tests"), "{report}");
}

/// Command of Python: `PYTHON` as set by `scripts/test`, which can create virtual environments; the
/// default `python3` may not.
pub fn interpreter() -> Command {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    Command::new(python)
}

/// Runs a program to its end and returns its output.
pub fn run(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| {
        format!("{command:?} does not start; it needs python3 and python3-venv")
    })?;
    let [out, err] = [output.stdout, output.stderr].map(String::from_utf8);
    let (out, status) = (out?, output.status);
    ensure!(status.success(), "{command:?}: {status}\n{out}\n{}", err?);
    Ok(out)
}
