//! A parser for output of which only the command is known: what it looks like decides, then what the command is called.

use crate::read::HEAD;
use crate::{DiagnosticParser, Stream, parser_for, strip_ansi, tool_of};

pub(super) struct Recognising {
    /// The tool that the command seems to be.
    named: String,
    state: State,
}

enum State {
    Undecided(Vec<(Stream, Vec<u8>)>, usize),
    Known(Box<dyn DiagnosticParser>),
}

impl Recognising {
    pub(super) fn new(named: impl Into<String>) -> Self {
        Self { named: named.into(), state: State::Undecided(Vec::new(), 0) }
    }

    fn decide(&mut self, take: &mut dyn FnMut(crate::Diagnostic)) {
        let State::Undecided(waiting, _) = &mut self.state else { return };
        let waiting = std::mem::take(waiting);
        let head: Vec<u8> = waiting.iter().flat_map(|(_, bytes)| bytes).copied().take(HEAD).collect();
        let tool = match tool_of(&strip_ansi(&String::from_utf8_lossy(&head))) {
            "generic" => self.named.as_str(),
            recognised => recognised,
        };
        let mut parser = parser_for(tool);
        for (stream, bytes) in waiting {
            parser.feed(stream, &bytes, take);
        }
        self.state = State::Known(parser);
    }
}

impl DiagnosticParser for Recognising {
    fn feed(&mut self, stream: Stream, bytes: &[u8], take: &mut dyn FnMut(crate::Diagnostic)) {
        match &mut self.state {
            State::Known(parser) => parser.feed(stream, bytes, take),
            State::Undecided(waiting, size) => {
                waiting.push((stream, bytes.to_vec()));
                *size += bytes.len();
                if *size >= HEAD {
                    self.decide(take);
                }
            }
        }
    }

    fn finish(&mut self, take: &mut dyn FnMut(crate::Diagnostic)) {
        self.decide(take);
        if let State::Known(parser) = &mut self.state {
            parser.finish(take);
        }
    }
}

/// The tool that a command line calls, as far as its words tell: `npx eslint .`, `python3 -m mypy`, `cargo clippy`.
pub(super) fn tool_of_command(line: &str) -> String {
    const LAUNCHERS: [&str; 22] = [
        "sh", "bash", "env", "npx", "npm", "pnpm", "yarn", "bunx", "bun", "exec", "run", "python", "python3",
        "-m", "uv", "poetry", "pipenv", "bundle", "composer", "dlx", "time", "nice",
    ];
    let words = shlex::split(line).unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
    let mut words = words.iter().map(|word| word.rsplit('/').next().unwrap_or(word)).filter(|word| {
        !word.is_empty() && !LAUNCHERS.contains(word) && (!word.contains('=') || word.starts_with('-'))
    });
    let first = words.next().unwrap_or("sh");
    match (first, words.next()) {
        ("cargo", Some("clippy")) => "clippy".to_owned(),
        ("go", Some("vet")) => "go-vet".to_owned(),
        (program, _) => program.trim_start_matches('-').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_by_the_tool_that_it_calls() {
        for (line, tool) in [
            ("npx eslint .", "eslint"),
            ("CI=1 python3 -m mypy src", "mypy"),
            ("cargo clippy -- -D warnings", "clippy"),
            ("./node_modules/.bin/tsc -p .", "tsc"),
            ("go vet ./...", "go-vet"),
            ("bundle exec rubocop", "rubocop"),
            ("'unclosed quote", "'unclosed"),
            ("", "sh"),
        ] {
            assert_eq!(tool_of_command(line), tool, "{line}");
        }
    }

    #[test]
    fn output_that_looks_like_a_tool_is_read_as_that_tools_whatever_the_command_is_called() {
        let json = r#"[{"filePath":"/p/a.js","messages":[{"ruleId":"no-undef","severity":2,"message":"m","line":1}]}]"#;
        let mut found = Vec::new();
        let mut parser = Recognising::new("make");
        for byte in json.as_bytes() {
            parser.feed(Stream::Out, &[*byte], &mut |it| found.push(it));
        }
        parser.finish(&mut |it| found.push(it));
        assert_eq!((found[0].tool.as_str(), found[0].line), ("eslint", Some(1)));
        assert_eq!(found.len(), 1);
    }
}
