//! `go test`: its stream of JSON events, and its text.
//!
//! Both say the same things (a test begins, prints, ends; a package ends) and share what they mean (`packages`), how
//! a failure is found in what a test printed (`log`, `stack`), and how compilers' complaints are read (`build`).

mod build;
mod event;
mod json;
mod log;
mod modules;
mod packages;
mod recorder;
mod stack;
#[cfg(test)]
mod tests;
mod text;

pub(super) use json::GoJson;
pub(super) use text::GoText;

use super::Head;

/// Whether a text is a stream of `go test -json`. Builds and old versions put plain lines before it.
pub(super) fn looks_like_json(head: &Head<'_>) -> bool {
    let is_event = |line: &str| {
        line.starts_with('{')
            && line.contains("\"Action\":")
            && (line.contains("\"Package\":") || line.contains("\"ImportPath\":"))
    };
    let lines = || head.text.lines().map(|line| line.trim_start_matches('\u{feff}'));
    // In text, a test may print what looks like an event; in the stream nothing stands outside of events.
    lines().any(is_event) && !lines().any(is_about_a_test)
}

/// Whether a text is what `go test` prints for people.
pub(super) fn looks_like_text(head: &Head<'_>) -> bool {
    head.text.lines().any(|line| is_about_a_test(line) || text::Outcome::of(line).is_some())
}

fn is_about_a_test(line: &str) -> bool {
    let result = ["--- FAIL: ", "--- PASS: ", "--- SKIP: "].iter().any(|start| line.starts_with(start));
    line.starts_with("=== RUN   ") || (result && line.ends_with("s)"))
}
