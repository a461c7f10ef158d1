//! Names from clients cannot send control sequences to an operator's terminal, in any output
//! format.

use std::fs;
use std::process::Command;

use placement_tests::cluster::Cluster;
use placement_tests::{binaries, host, python};
use serde_json::{Value, json};

/// Sets a title, clears the screen with an 8-bit control character, changes the direction of
/// writing, and deletes.
const NAME: &str = "=1+1\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\u{61c}\u{7f}";
/// Runs a program on a terminal of its own.
const TERMINAL: &str = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))";

#[tokio::test]
async fn names_cannot_control_a_terminal_in_any_format() {
    let cluster = Cluster::start(1).await.unwrap();
    host::create(&cluster.client(), NAME).await;
    let on_terminal = |arguments: &str| {
        let mut terminal = Command::new(python::interpreter().get_program());
        terminal.args(["-c", TERMINAL]);
        terminal.arg(binaries::placementctl().unwrap());
        terminal.env("PLACEMENTCTL_ENDPOINT", cluster.place(1).admin());
        let output = terminal.args(arguments.split(' ')).output().unwrap();
        // The terminal turns a line feed into two characters.
        let text = String::from_utf8(output.stdout)
            .unwrap()
            .replace("\r\n", "\n");
        let acts = |c: &char| c.is_control() && *c != '\n' || "\u{202e}\u{61c}".contains(*c);
        assert_eq!(text.chars().find(acts), None, "{arguments}: {text:?}");
        text
    };
    for arguments in [
        "providers list",
        "providers list -o wide",
        "providers list -o csv",
        "providers list -o name",
        "api GET /resource_providers",
        "bulk --kind provider",
    ] {
        let text = on_terminal(arguments);
        assert!(text.contains("owned"), "{text}");
    }
    let json = on_terminal("providers list -o json");
    let answer: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(answer[0]["name"], NAME, "{json}");
    let twice = cluster.directory().join("twice.json");
    fs::write(&twice, json!({ "name": NAME }).to_string()).unwrap();
    let post = format!("api POST /resource_providers --data {}", twice.display());
    let error = on_terminal(&post);
    assert!(error.contains("owned"), "{error}");
    // A program that reads the output gets the original characters.
    let output = cluster.placementctl(&["providers", "list", "-o", "csv", "--columns", "name"]);
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(text, format!("name\n'{NAME}\n"));
}
