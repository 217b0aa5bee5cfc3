//! One failure: a message, what was compared, and frames with an excerpt of the source.

use crate::parse::js_failure;
use crate::parse::place::{is_own, leading, trailing};
use crate::{Place, Problem, ProblemScope};

#[derive(Debug, Default)]
pub(super) struct Block {
    pub message: String,
    pub stack: String,
    pub expected: Option<String>,
    pub actual: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

impl Block {
    pub(super) fn read(text: &str) -> Self {
        let message: Vec<&str> = text
            .lines()
            .take_while(|line| {
                frame(line).is_none() && *line != "- Expected" && !line.starts_with("- Expected  ")
            })
            .collect();
        let frames: Vec<&str> = text.lines().filter(|line| frame(line).is_some()).collect();
        let at = frames.iter().filter_map(|line| frame(line)).find(is_own).or_else(|| named(text));
        Self {
            message: message.join("\n").trim().to_owned(),
            stack: frames.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n"),
            expected: side(text, "- "),
            actual: side(text, "+ "),
            file: at.and_then(|at| at.file).map(str::to_owned),
            line: at.and_then(|at| at.line),
        }
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place { file: self.file.as_deref(), line: self.line }
    }

    pub(super) fn problem(&self, scope: ProblemScope, name: &str, file: Option<&str>) -> Problem {
        Problem::new(scope, name, Some(js_failure::load_kind(&self.message)), self.message.clone())
            .placed(self.file.clone().or_else(|| file.map(str::to_owned)), self.line)
    }
}

/// ` ❯ parse src/cart.ts:8:24`.
fn frame(line: &str) -> Option<Place<'_>> {
    let frame = line.trim().strip_prefix("❯ ")?;
    let place = frame.rsplit(' ').next().unwrap_or(frame);
    trailing(place).filter(|place| place.file.is_some_and(|file| file.contains('.')))
}

/// What a bundler names: `╭─[ test/syntax.test.ts:3:13 ]` or `/p/a.test.ts:3:13: ERROR: x`.
fn named(text: &str) -> Option<Place<'_>> {
    text.lines().find_map(|line| {
        let word =
            line.split([' ', '[', '(']).find(|word| word.contains('.') && word.matches(':').count() >= 2)?;
        leading(word).map(|(place, _)| place).filter(is_own)
    })
}

/// One side of a short comparison: a single line that begins like this below the legend.
fn side(text: &str, mark: &str) -> Option<String> {
    let (_, compared) = text.split_once("- Expected")?;
    let compared = compared.split_once("+ Received").map_or(compared, |(_, rest)| rest);
    let lines = compared.lines().skip(1).take_while(|line| frame(line).is_none());
    let mut of_side = lines.filter_map(|line| line.strip_prefix(mark));
    let only = of_side.next()?;
    of_side.next().is_none().then(|| only.trim().to_owned())
}
