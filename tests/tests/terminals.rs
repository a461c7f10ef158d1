//! Names from clients cannot send control sequences to an operator's terminal, in any output
//! format.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use placement_client::ApiRequest;
use placement_tests::cluster::Cluster;
use placement_tests::program::Program;
use placement_tests::{binaries, host, python};
use serde_json::{Value, json};

/// Sets a title, clears the screen with an 8-bit control character, changes the direction of
/// writing, and deletes.
const NAME: &str = "=1+1\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{61c}\u{7f}";
/// Runs a program on a terminal of its own.
const TERMINAL: &str = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))";

/// The program with these arguments on a terminal. The program ends with its terminal.
fn on_terminal(program: &Path, arguments: &str) -> Command {
    let mut terminal = Command::new(python::interpreter().get_program());
    terminal.args(["-c", TERMINAL]).arg(program);
    terminal.args(arguments.split(' '));
    terminal
}

/// What a program has sent to its terminal.
///
/// # Panics
/// If the terminal would act on a character.
fn inert(arguments: &str, output: Vec<u8>) -> String {
    // The terminal turns a line feed into two characters.
    let text = String::from_utf8(output).unwrap().replace("\r\n", "\n");
    let acts = |c: &char| c.is_control() && *c != '\n' || "\u{202e}\u{61c}".contains(*c);
    assert_eq!(text.chars().find(acts), None, "{arguments}: {text:?}");
    text
}

#[tokio::test]
async fn names_cannot_control_a_terminal_in_any_format() {
    let mut cluster = Cluster::start(1).await.unwrap();
    let answer = cluster.client().call(ApiRequest::get("/traits")).await;
    let before = answer.unwrap().position().index.unwrap();
    host::create(&cluster.client(), NAME).await;
    let [ctl, node] = [binaries::placementctl(), binaries::placementd()].map(Result::unwrap);
    let ctl = |arguments: &str| {
        let mut terminal = on_terminal(&ctl, arguments);
        terminal.env("PLACEMENTCTL_ENDPOINT", cluster.place(1).admin());
        terminal
    };
    let shown = |arguments: &str| inert(arguments, ctl(arguments).output().unwrap().stdout);
    for arguments in [
        "providers list",
        "providers list -o wide",
        "providers list -o csv",
        "providers list -o yaml",
        "providers list -o name",
        "api GET /resource_providers",
        "bulk --kind provider",
    ] {
        let text = shown(arguments);
        assert!(text.contains("owned"), "{text}");
    }
    let json = shown("providers list -o json");
    let answer: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(answer[0]["name"], NAME, "{json}");
    let twice = cluster.directory().join("twice.json");
    fs::write(&twice, json!({ "name": NAME }).to_string()).unwrap();
    let post = format!("api POST /resource_providers --data {}", twice.display());
    let error = shown(&post);
    assert!(error.contains("owned"), "{error}");
    // These do not end by themselves. The SQL has the name in hexadecimal digits.
    for (stream, words) in [
        ("watch", "owned"),
        ("watch -o jsonl", "owned"),
        ("events --sql sqlite", "6f776e6564"),
    ] {
        let arguments = format!("{stream} --after {}", before.as_str());
        let mut terminal = ctl(&arguments);
        let mut child = Program(terminal.stdout(Stdio::piped()).spawn().unwrap());
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = Vec::new();
        while !String::from_utf8_lossy(&line).contains(words) {
            line.clear();
            let length = output.read_until(b'\n', &mut line).unwrap();
            assert_ne!(length, 0, "{stream} ended");
        }
        inert(stream, line);
    }
    // A program that reads the output gets the original characters.
    let output = cluster.placementctl(&["providers", "list", "-o", "csv", "--columns", "name"]);
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(text, format!("name\n'{NAME}\n"));

    cluster.kill_9(1);
    let dir = cluster.directory().join("\u{202e}\u{61c}data");
    fs::rename(cluster.data_dir(1), &dir).unwrap();
    for (arguments, words) in [
        ("inspect", "directory"),
        ("inspect --json", "\"dir\""),
        ("inspect log", "SyncStandards"),
        ("inspect log --json", "owned"),
    ] {
        let mut terminal = on_terminal(&node, arguments);
        let output = terminal.arg("--data-dir").arg(&dir).output().unwrap();
        let text = inert(arguments, output.stdout);
        assert!(text.contains(words), "{arguments}: {text}");
    }
    let dump = cluster.directory().join("dump.sql");
    let statement = format!("INSERT INTO users VALUES('a' '{NAME}');");
    fs::write(&dump, format!("BEGIN TRANSACTION;\n{statement}\nCOMMIT;\n")).unwrap();
    let import = format!("import {} --out /nowhere/backup", dump.display());
    let output = on_terminal(&node, &import).output().unwrap();
    let refusal = inert(&import, output.stdout);
    assert!(
        refusal.contains("line 2") && refusal.contains("owned"),
        "{refusal}"
    );
}
