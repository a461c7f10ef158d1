//! Writes the recorded commands as an asciinema cast (version 2 of the format) and as an SVG that
//! plays it. The tutorial shows the SVG. The run that writes the output of the commands into the
//! tutorial also writes the recording, so that both show the same real output.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

const COLUMNS: usize = 110;
const ROWS: usize = 28;
const PROMPT: &str = "$ ";
/// Time between a prompt and its command, in seconds.
const TYPING: f64 = 0.8;
/// Time for which the SVG shows the last screen before it plays, in seconds. So its first frame has
/// content, also on paper and where nothing moves.
const POSTER: f64 = 5.0;

/// Output of a terminal, and its times in seconds.
#[derive(Default)]
pub(super) struct Recording {
    now: f64,
    shown: Vec<(f64, String)>,
}

impl Recording {
    pub(super) fn add(&mut self, command: &str, output: &str, took: Duration) {
        self.show(PROMPT, TYPING);
        self.show(
            &format!("{}\n", command.replace('\n', "\n> ")),
            took.as_secs_f64(),
        );
        // Time to read the output.
        self.show(output, 1.0 + 0.3 * output.lines().count() as f64);
    }

    /// Shows a text and lets time pass.
    fn show(&mut self, text: &str, seconds: f64) {
        if !text.is_empty() {
            self.shown.push((self.now, text.to_owned()));
        }
        self.now += seconds;
    }

    /// Writes both files to this path with their own extensions.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        fs::write(path.with_extension("cast"), self.cast())?;
        fs::write(path.with_extension("svg"), self.svg()?)?;
        Ok(())
    }

    fn cast(&self) -> String {
        let mut cast = format!("{{\"version\": 2, \"width\": {COLUMNS}, \"height\": {ROWS}}}\n");
        for (at, text) in &self.shown {
            let at = (at * 1000.0).round() / 1000.0;
            cast += &format!("{}\n", json!([at, "o", text.replace('\n', "\r\n")]));
        }
        cast
    }

    /// Rows of the screen, each with the time at which it appears.
    fn rows(&self) -> Vec<(f64, String)> {
        let mut rows: Vec<(f64, String)> = Vec::new();
        let mut prompt = "";
        for (at, text) in &self.shown {
            if text == PROMPT {
                prompt = PROMPT;
                continue;
            }
            for line in text.lines() {
                let letters: Vec<char> = prompt.chars().chain(line.chars()).collect();
                prompt = "";
                let wrapped = letters.chunks(COLUMNS);
                rows.extend(wrapped.map(|row| (*at, row.iter().collect())));
                rows.extend(letters.is_empty().then(|| (*at, String::new())));
            }
        }
        rows
    }

    fn svg(&self) -> Result<String, std::fmt::Error> {
        let (width, height) = (COLUMNS * 8 + 20, ROWS * 18 + 20);
        let total = self.now + POSTER;
        let rows = self.rows();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" \
             font-size=\"13.2\">\n<style>text{{fill:#d5d9e0;white-space:pre}}.c{{fill:#8fd19e}}</style>\n\
             <rect x=\"1\" y=\"1\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#171a21\" stroke=\"#5b6270\"/>\n",
            width - 2,
            height - 2
        );
        let animation = |what: &str, values: &[String], times: &[String]| {
            format!(
                "<{what} values=\"{}\" keyTimes=\"{}\" calcMode=\"discrete\" dur=\"{total:.1}s\" \
                 repeatCount=\"indefinite\"/>",
                values.join(";"),
                times.join(";")
            )
        };
        let part = |at: f64| format!("{:.4}", (POSTER + at) / total);
        let place = |row: usize| format!("0,-{}", row * 18);
        let last = place(rows.len().saturating_sub(ROWS));
        let (mut places, mut moves) = (
            vec![last.clone(), place(0)],
            vec!["0".to_owned(), part(0.0)],
        );
        for (at, row) in rows
            .iter()
            .enumerate()
            .skip(ROWS)
            .map(|(nth, row)| (row.0, nth + 1 - ROWS))
        {
            // Only the last of several moves at the same time counts.
            if moves.last() == Some(&part(at)) {
                places.pop();
                moves.pop();
            }
            places.push(place(row));
            moves.push(part(at));
        }
        writeln!(
            svg,
            "<g transform=\"translate({last})\">\n{}",
            animation(
                "animateTransform attributeName=\"transform\" type=\"translate\"",
                &places,
                &moves
            )
        )?;
        for (nth, (at, row)) in rows.iter().enumerate() {
            let row = row.replace('&', "&amp;").replace('<', "&lt;");
            let class = if row.starts_with(PROMPT) {
                " class=\"c\""
            } else {
                ""
            };
            let times = ["0".to_owned(), part(0.0), part(*at)];
            let seen = if *at > 0.0 {
                animation(
                    "animate attributeName=\"visibility\"",
                    &["visible", "hidden", "visible"].map(str::to_owned),
                    &times,
                )
            } else {
                String::new()
            };
            writeln!(
                svg,
                "<text x=\"10\" y=\"{}\"{class}>{row}{seen}</text>",
                nth * 18 + 22
            )?;
        }
        svg += "</g>\n</svg>\n";
        Ok(svg)
    }
}

/// Commands of a cast.
pub(super) fn commands(cast: &str) -> anyhow::Result<Vec<String>> {
    let events: Vec<Value> = cast
        .lines()
        .skip(1)
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let texts: Option<Vec<&str>> = events.iter().map(|event| event[2].as_str()).collect();
    let texts = texts.context("an event has no text")?;
    let commands = texts.windows(2).filter(|pair| pair[0] == PROMPT);
    Ok(commands
        .map(|pair| pair[1].trim_end().replace("\r\n> ", "\n"))
        .collect())
}
