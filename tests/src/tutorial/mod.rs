//! Runs `docs/tutorial.md` as a script: the commands of its `console` blocks run in one shell, and
//! their output is compared with the page.

mod page;
mod recording;
mod shape;
mod shell;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use self::page::Page;
use self::recording::Recording;
use self::shell::Shell;
use crate::ports::Ports;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tutorial.md");
/// Addresses on the page without their last digit (first of the API, then of traffic between
/// nodes), and for each the index of the ten claimed ports that replace them.
const PORTS: [(&str, u16); 2] = [("127.0.0.1:878", 0), ("127.0.0.1:879", 1)];

/// Runs the page in a shell with its own directory. Returns the time until the first candidate.
///
/// With `PLACEMENT_WRITE_DOCS` set, writes the new output into the page and renews the recording.
///
/// # Errors
/// If the output of a command differs from the page, or the command does not end.
pub fn run(shell: Command) -> anyhow::Result<Duration> {
    let ports = Ports::claim(2);
    let text = fs::read_to_string(PAGE)?;
    let mut page = Page::read(&text);
    ensure!(page.text() == text, "{PAGE} is parsed incompletely");
    let mut shell = Shell::start(shell)?;
    let (mut recording, mut first, mut differences) = (Recording::default(), None, Vec::new());
    let mut took = Duration::ZERO;
    for step in page.steps() {
        let ran = shell.run(&real(&step.command, &ports))?;
        let output = shown(&without_progress(&ran.output), &ports);
        took += ran.took;
        if first.is_none() && step.command.starts_with("placementctl candidates") {
            first = Some(took);
        }
        if step.is_recorded {
            recording.add(&step.command, &output, ran.took);
        }
        if shape::normalize(&output) != shape::normalize(&step.output) {
            differences.push(format!(
                "$ {}\n--- on the page\n{}--- now\n{output}",
                step.command, step.output
            ));
            step.output = output;
        }
    }
    if placement_docs::are_written() {
        fs::write(PAGE, page.text())?;
        recording.write(Path::new(PAGE).with_file_name("first-minute").as_path())?;
    } else {
        ensure!(
            differences.is_empty(),
            "the output of the tutorial has changed; `PLACEMENT_WRITE_DOCS=1 cargo test --workspace --test black_box -- tutorial::` \
             writes the new output:\n{}",
            differences.join("\n")
        );
    }
    first.context("the tutorial has no `placementctl candidates` command")
}

/// Commands of the recording, and the commands that the page marks as recorded.
///
/// # Errors
/// If a file cannot be read.
pub fn recorded() -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let cast = fs::read_to_string(Path::new(PAGE).with_file_name("first-minute.cast"))?;
    let mut page = Page::read(&fs::read_to_string(PAGE)?);
    let steps = page
        .steps()
        .filter(|step| step.is_recorded)
        .map(|step| step.command.clone())
        .collect();
    Ok((recording::commands(&cast)?, steps))
}

/// The output without the lines that a slow machine adds.
fn without_progress(output: &str) -> String {
    let lines = output.split_inclusive('\n');
    let kept = lines.filter(|line| !line.starts_with("placementctl: no answer yet from "));
    kept.collect()
}

fn real(text: &str, ports: &Ports) -> String {
    replaced(text, ports, |on_page, here| (on_page, here))
}

fn shown(text: &str, ports: &Ports) -> String {
    replaced(text, ports, |on_page, here| (here, on_page))
}

fn replaced(
    text: &str,
    ports: &Ports,
    order: impl for<'a> Fn(&'a str, &'a str) -> (&'a str, &'a str),
) -> String {
    PORTS
        .iter()
        .fold(text.to_owned(), |text, (on_page, block)| {
            let here = format!("127.0.0.1:{}", ports.first() / 10 + block);
            let (from, to) = order(on_page, &here);
            text.replace(from, to)
        })
}
