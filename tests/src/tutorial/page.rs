//! Splits the page into text and commands with their output.

const FENCE: &str = "```";
const CONSOLE: &str = "```console";

/// A command with its output.
pub(super) struct Step {
    /// The command without prompts; on the page, lines after the first follow `> `.
    pub(super) command: String,
    /// Empty, or ends with a line break.
    pub(super) output: String,
    /// Whether the command is in the recording.
    pub(super) is_recorded: bool,
}

enum Piece {
    Line(String),
    Step(Step),
}

pub(super) struct Page(Vec<Piece>);

impl Page {
    pub(super) fn read(text: &str) -> Self {
        let mut pieces = Vec::new();
        let mut block: Option<bool> = None;
        for line in text.lines() {
            let step = match pieces.last_mut() {
                Some(Piece::Step(step)) if block.is_some() && line != FENCE => Some(step),
                _ => None,
            };
            if let (Some(is_recorded), Some(command)) = (block, line.strip_prefix("$ ")) {
                pieces.push(Piece::Step(Step {
                    command: command.to_owned(),
                    output: String::new(),
                    is_recorded,
                }));
            } else if let Some(step) = step {
                match line.strip_prefix("> ").filter(|_| step.output.is_empty()) {
                    Some(more) => step.command += &format!("\n{more}"),
                    None => step.output += &format!("{line}\n"),
                }
            } else {
                let opens = line.strip_prefix(CONSOLE);
                block = opens.map(|kind| kind == " recorded");
                pieces.push(Piece::Line(line.to_owned()));
            }
        }
        Self(pieces)
    }

    pub(super) fn steps(&mut self) -> impl Iterator<Item = &mut Step> {
        self.0.iter_mut().filter_map(|piece| match piece {
            Piece::Step(step) => Some(step),
            Piece::Line(_) => None,
        })
    }

    /// The page with the current outputs of its steps.
    pub(super) fn text(&self) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Line(line) => format!("{line}\n"),
            Piece::Step(step) => {
                let command = step.command.replace('\n', "\n> ");
                format!("$ {command}\n{}", step.output)
            }
        });
        pieces.collect()
    }
}
