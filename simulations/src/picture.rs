//! A picture of one run over time: who led, who was down, what was broken, how requests ended.

use std::time::Duration;

use svg::node::element::{Line, Rectangle, Text, Title};
use svg::{Document, Node};

use crate::history::{End, Event};
use crate::report::Report;
use crate::story::Life;

/// Pixels.
const MARGIN: f64 = 90.0;
const SECOND: f64 = 120.0;
const ROW: f64 = 26.0;
const GAP: f64 = 4.0;
const LETTER: f64 = 13.0;

const LEADS: &str = "#2f6fb3";
const FOLLOWS: &str = "#d4e3f3";
const DOWN: &str = "#555555";
const FAULT: &str = "#e8b04a";
const DONE: &str = "#3a9d5d";
const REFUSED: &str = "#9a9a9a";
const UNAVAILABLE: &str = "#e07b00";
const LOST: &str = "#c22f2f";

/// The picture of a run, as SVG.
pub fn picture(report: &Report) -> String {
    let mut page = Page::new(report);
    for (node, lives) in &report.story.lives {
        page.row(&format!("node {node}"));
        for (nth, (from, life)) in lives.iter().enumerate() {
            let to = lives.get(nth + 1).map_or(page.end, |next| next.0);
            let (colour, words) = match life {
                Life::Down => (DOWN, "down".to_owned()),
                Life::Follows(term) => (FOLLOWS, format!("follows, vote of term {term}")),
                Life::Leads(term) => (LEADS, format!("leads in term {term}")),
            };
            page.bar(*from, to, colour, &words);
        }
    }
    let mut faults: Vec<(usize, Duration, Duration)> = (report.faults.iter().enumerate())
        .map(|(number, fault)| (number, fault.from, fault.to.min(page.end)))
        .collect();
    let mut nth = 0;
    while !faults.is_empty() {
        nth += 1;
        page.row(&format!("faults {nth}"));
        let mut free = Duration::ZERO;
        faults.retain(|(number, from, to)| {
            if *from < free {
                return true;
            }
            let words = report.faults[*number].fault.to_string();
            page.bar(*from, *to, FAULT, &words);
            free = *to;
            false
        });
    }
    let clients = report.history.events.iter().map(|event| event.client);
    for client in 0..=clients.max().unwrap_or_default() {
        page.row(&format!("client {client}"));
        let events = report.history.events.iter();
        for event in events.filter(|event| event.client == client) {
            page.request(event, report);
        }
    }
    page.finish(report)
}

struct Page {
    document: Document,
    end: Duration,
    /// Where the present row begins.
    top: f64,
}

fn x(at: Duration) -> f64 {
    MARGIN + at.as_secs_f64() * SECOND
}

impl Page {
    fn new(report: &Report) -> Self {
        Self {
            document: Document::new()
                .set("font-family", "sans-serif")
                .set("font-size", 11),
            end: report.counts.simulated,
            top: LETTER * report.story.phases.len() as f64 - ROW,
        }
    }

    fn add(&mut self, node: impl Into<Box<dyn Node>>) {
        self.document.append(node);
    }

    fn row(&mut self, name: &str) {
        self.top += ROW;
        self.words(4.0, self.top + ROW / 2.0, name, "black");
    }

    fn words(&mut self, x: f64, y: f64, words: &str, colour: &str) {
        let text = Text::new(words).set("x", x).set("y", y).set("fill", colour);
        self.add(text);
    }

    fn bar(&mut self, from: Duration, to: Duration, colour: &str, words: &str) {
        let width = (x(to) - x(from)).max(1.0);
        let bar = Rectangle::new()
            .set("x", x(from))
            .set("y", self.top)
            .set("width", width)
            .set("height", ROW - GAP)
            .set("fill", colour)
            .add(Title::new(format!("{words}, {from:.3?} to {to:.3?}")));
        self.add(bar);
        // About as wide as a letter.
        if width > 6.0 * words.len() as f64 {
            let ink = if colour == FOLLOWS || colour == FAULT {
                "black"
            } else {
                "white"
            };
            self.words(x(from) + 3.0, self.top + ROW / 2.0, words, ink);
        }
    }

    fn request(&mut self, event: &Event, report: &Report) {
        let line = event.line();
        let is_wrong = report.violations.iter().any(|one| one.contains(&line));
        let colour = match &event.end {
            _ if is_wrong => "magenta",
            End::Answer(answer) if answer.status < 400 => DONE,
            End::Answer(answer) if answer.status == 503 => UNAVAILABLE,
            End::Answer(_) => REFUSED,
            End::NotSent(_) | End::Lost(_) | End::Open => LOST,
        };
        let to = event.ended.unwrap_or(self.end);
        let bar = Rectangle::new()
            .set("x", x(event.sent))
            .set("y", self.top + if is_wrong { 0.0 } else { 6.0 })
            .set("width", (x(to) - x(event.sent)).max(1.5))
            .set("height", if is_wrong { ROW - GAP } else { 10.0 })
            .set("fill", colour)
            .set("fill-opacity", 0.7)
            .add(Title::new(line));
        self.add(bar);
    }

    fn finish(mut self, report: &Report) -> String {
        let bottom = self.top + ROW;
        let (width, height) = (x(self.end) + 260.0, bottom + 60.0);
        for second in 0..=self.end.as_secs() {
            let x = x(Duration::from_secs(second));
            self.add(upright(x, 0.0, bottom, "#00000022"));
            self.words(x + 2.0, bottom + 10.0, &format!("{second} s"), "#555555");
        }
        // Each has a line of its own, as the last ones follow soon upon each other.
        for (nth, (at, phase)) in report.story.phases.iter().enumerate() {
            let top = LETTER * nth as f64;
            self.add(upright(x(*at), top, bottom, "black"));
            self.words(x(*at) + 3.0, top + LETTER - 2.0, phase, "black");
        }
        let legend = [
            (LEADS, "leads"),
            (FOLLOWS, "follows"),
            (DOWN, "down"),
            (FAULT, "fault"),
            (DONE, "request done"),
            (REFUSED, "refused"),
            (UNAVAILABLE, "503"),
            (LOST, "no answer"),
            ("magenta", "part of what is wrong"),
        ];
        let mut left = MARGIN;
        for (colour, words) in legend {
            let spot = Rectangle::new()
                .set("x", left)
                .set("y", bottom + 26.0)
                .set("width", 12)
                .set("height", 12)
                .set("fill", colour);
            self.add(spot);
            self.words(left + 16.0, bottom + 36.0, words, "black");
            left += 40.0 + 6.5 * words.len() as f64;
        }
        let width = width.max(left);
        let document = self.document.set("viewBox", (0, 0, width, height));
        document
            .set("width", width)
            .set("height", height)
            .to_string()
    }
}

fn upright(x: f64, top: f64, bottom: f64, colour: &str) -> Line {
    Line::new()
        .set("x1", x)
        .set("x2", x)
        .set("y1", top)
        .set("y2", bottom)
        .set("stroke", colour)
}
