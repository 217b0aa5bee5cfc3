//! What a failed Rust test printed, taken apart: panics, returned errors, doctests.

use super::place::{is_own, trailing};
use crate::{Failure, FailureKind, Place};

/// What went wrong, from all that a test of this name printed.
pub(super) fn rust_failure<'a>(name: &'a str, output: &'a str) -> Failure<'a> {
    let mut failure = match panic_of(name, output) {
        Some(panic) => panic.failure(),
        None => without_panic(output),
    };
    if let Some(note) = output.find("note: panic did not contain expected string") {
        failure.message = first_lines(&output[note + "note: ".len()..], 3);
        failure.kind = Some(FailureKind::Assertion);
        failure.expected = value_after(failure.message, "expected substring: ");
        failure.actual = value_after(failure.message, "panic message: ");
    }
    if let Some((file, fence)) = doctest(name) {
        failure.at = doctest_place(file, fence, &failure);
    }
    failure
}

/// A panic as the standard hook prints it.
struct Panic<'a> {
    at: Place<'a>,
    message: &'a str,
    stack: &'a str,
}

impl<'a> Panic<'a> {
    fn failure(&self) -> Failure<'a> {
        let (expected, actual) = sides(self.message);
        Failure {
            kind: Some(kind_of(self.message)),
            message: self.message,
            stack: self.stack,
            at: self.place(),
            expected,
            actual,
        }
    }

    /// Where it panicked, unless that is in a dependency: then the deepest frame in the project.
    fn place(&self) -> Place<'a> {
        if is_own(&self.at) {
            return self.at;
        }
        let frames = self.stack.lines().filter_map(|line| trailing(line.trim().strip_prefix("at ")?));
        frames.into_iter().find(is_own).unwrap_or(self.at)
    }
}

/// Whether a line begins a panic; and of which thread, where, and with what message if that is on the same line.
pub(super) fn panic_header(line: &str) -> Option<(&str, Place<'_>, Option<&str>)> {
    let rest = line.strip_prefix("thread '")?;
    let (thread, said) = rest.split_once("panicked at ")?;
    let thread = thread.rsplit_once('\'').map_or(thread, |(name, _)| name);
    // Up to Rust 1.72 the message stood in quotes before the place.
    if let Some(quoted) = said.strip_prefix('\'') {
        let (message, place) = quoted.rsplit_once("', ")?;
        return Some((thread, trailing(place)?, Some(message)));
    }
    Some((thread, trailing(said)?, None))
}

/// The panic to tell: the last one of the test's own thread, else the last.
fn panic_of<'a>(name: &str, output: &'a str) -> Option<Panic<'a>> {
    let mut best: Option<(bool, Panic<'a>)> = None;
    let mut at = 0;
    for line in output.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some((thread, place, told)) = panic_header(line.trim_end()) else { continue };
        let own = thread == name || thread == "main";
        if own || best.as_ref().is_none_or(|(own, _)| !own) {
            let body = &output[at..];
            let (message, stack) = body_of(body);
            let message = match told {
                Some(told) => &output[start + line.find(told).unwrap_or(0)..][..told.len()],
                None => message,
            };
            best = Some((own, Panic { at: place, message, stack }));
        }
    }
    best.map(|(_, panic)| panic)
}

/// The message and the frames, out of what follows a panic's first line.
fn body_of(body: &str) -> (&str, &str) {
    let mut at = 0;
    let mut message = None;
    let mut frames = None;
    for line in body.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let plain = line.trim_end();
        if plain == "stack backtrace:" {
            message = message.or(Some(&body[..start]));
            frames = Some(at);
        } else if plain.starts_with("note: ")
            || plain.starts_with("thread '") && plain.contains(" panicked at ")
        {
            let stack = frames.map_or("", |from| &body[from..start]);
            return (message.unwrap_or(&body[..start]).trim_end(), stack.trim_end());
        }
    }
    let stack = frames.map_or("", |from| &body[from..]);
    (message.unwrap_or(body).trim_end(), stack.trim_end())
}

fn kind_of(message: &str) -> FailureKind {
    if message.starts_with("snapshot assertion for ") {
        FailureKind::Snapshot
    } else if message.starts_with("assertion ") {
        FailureKind::Assertion
    } else {
        FailureKind::Panic
    }
}

/// The two sides of `assert_eq!`: people write what they got on the left and what they want on the right.
fn sides(message: &str) -> (Option<&str>, Option<&str>) {
    let equal = message.starts_with("assertion `left == right` failed")
        || message.starts_with("assertion failed: `(left == right)`");
    if !equal {
        return (None, None);
    }
    (value_after(message, " right: "), value_after(message, "  left: "))
}

/// What stands after a label, to the end of its line.
fn value_after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| Some(line.split_once(label)?.1))?;
    let value = value.strip_suffix(',').unwrap_or(value);
    Some(value.strip_prefix('`').and_then(|value| value.strip_suffix('`')).unwrap_or(value))
}

fn without_panic(output: &str) -> Failure<'_> {
    for note in [
        "note: test did not panic as expected",
        "Test executable succeeded, but",
        "Test compiled successfully",
    ] {
        if let Some(line) = output.lines().find(|line| line.trim_start().starts_with(note)) {
            let message = line.trim_start().trim_start_matches("note: ");
            let at = line.rsplit_once(" at ").and_then(|(_, place)| trailing(place)).unwrap_or_default();
            return Failure { kind: Some(FailureKind::UnexpectedPass), message, at, ..Failure::default() };
        }
    }
    if let Some(at) = start_of_line(output, "error[").or_else(|| start_of_line(output, "error: ")) {
        let message = output[at..].lines().next().unwrap_or_default();
        let place = output[at..].lines().find_map(|line| trailing(line.trim_start().strip_prefix("--> ")?));
        return Failure {
            kind: Some(FailureKind::Compile),
            message,
            stack: output[at..].trim_end(),
            at: place.unwrap_or_default(),
            ..Failure::default()
        };
    }
    match start_of_line(output, "Error: ") {
        Some(at) => {
            Failure { kind: Some(FailureKind::Error), message: output[at..].trim_end(), ..Failure::default() }
        }
        None => Failure { message: output.trim(), ..Failure::default() },
    }
}

fn first_lines(text: &str, count: usize) -> &str {
    let length = text.split_inclusive('\n').take(count).map(str::len).sum();
    text[..length].trim_end()
}

fn start_of_line(text: &str, beginning: &str) -> Option<usize> {
    if text.starts_with(beginning) {
        return Some(0);
    }
    text.match_indices(beginning).map(|(at, _)| at).find(|at| text.as_bytes()[at - 1] == b'\n')
}

/// The file of a doctest and the line on which its code block is opened: `src/lib.rs - add (line 9)`.
pub(super) fn doctest(name: &str) -> Option<(&str, u32)> {
    let (file, rest) = name.split_once(" - ")?;
    let (_, line) = rest.rsplit_once("(line ")?;
    Some((file, line.strip_suffix(')')?.parse().ok()?))
}

/// A panic inside a doctest tells the line in the program that rustdoc made of it: two lines stand before the code, and
/// two more if the code names the crate.
fn doctest_place<'a>(file: &'a str, fence: u32, failure: &Failure<'a>) -> Place<'a> {
    match (failure.kind, failure.at.line) {
        (Some(FailureKind::Compile), Some(line)) => Place::new(file, line),
        (_, Some(line)) => {
            let before = if line > 4 { 4 } else { 2 };
            Place::new(file, fence.saturating_add(line.saturating_sub(before).max(1)))
        }
        _ => Place::new(file, fence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panic_of_the_tests_own_thread_is_told() {
        let output = "\nthread '<unnamed>' (7) panicked at src/lib.rs:41:46:\ninner\n\
            note: run with `RUST_BACKTRACE=1`\n\nthread 'tests::thr' (6) panicked at src/lib.rs:43:70:\nouter\nsecond line\n";
        let failure = rust_failure("tests::thr", output);
        assert_eq!((failure.message, failure.at), ("outer\nsecond line", Place::new("src/lib.rs", 43)));
    }

    #[test]
    fn a_panic_inside_a_dependency_is_told_where_the_project_called_it() {
        let output = "thread 't' panicked at /rustc/5980/library/core/src/option.rs:1:2:\nno value\nstack backtrace:\n   \
            0: core::x\n             at /rustc/5980/library/core/src/option.rs:9:5\n   1: shop::first\n             \
            at ./src/lib.rs:21:5\nnote: Some details are omitted\n";
        let failure = rust_failure("t", output);
        assert_eq!((failure.message, failure.at), ("no value", Place::new("./src/lib.rs", 21)));
        assert!(failure.stack.ends_with("at ./src/lib.rs:21:5"), "{}", failure.stack);
    }

    #[test]
    fn both_sides_of_a_comparison_are_told() {
        let new =
            "thread 't' panicked at a.rs:1:2:\nassertion `left == right` failed: sum\n  left: 4\n right: 5\n";
        let failure = rust_failure("t", new);
        assert_eq!((failure.actual, failure.expected), (Some("4"), Some("5")));
        assert_eq!(failure.kind, Some(FailureKind::Assertion));
        let old = "thread 't' panicked at 'boom, bang', src/a.rs:3:9\nnote: run with\n";
        let failure = rust_failure("t", old);
        assert_eq!((failure.message, failure.at), ("boom, bang", Place::new("src/a.rs", 3)));
    }

    #[test]
    fn a_test_that_should_panic_tells_why_it_did_not_count() {
        let failure = rust_failure("t", "note: test did not panic as expected at src/lib.rs:67:8\n");
        assert_eq!(failure.at, Place::new("src/lib.rs", 67));
        assert_eq!(failure.kind, Some(FailureKind::UnexpectedPass));
        let other = "thread 't' (1) panicked at src/lib.rs:36:66:\nxyz\nnote: panic did not contain expected string\n      \
            panic message: \"xyz\"\n expected substring: \"abc\"\n";
        let failure = rust_failure("t", other);
        assert_eq!((failure.expected, failure.actual), (Some("\"abc\""), Some("\"xyz\"")));
        assert_eq!(failure.at, Place::new("src/lib.rs", 36));
    }

    #[test]
    fn a_doctest_is_told_at_its_line_in_the_source() {
        let output = "Test executable failed (exit status: 101).\n\nstderr:\n\nthread 'main' (1) panicked at src/lib.rs:6:1:\nno\n";
        assert_eq!(rust_failure("src/lib.rs - add (line 5)", output).at, Place::new("src/lib.rs", 7));
        let compile = "error[E0308]: mismatched types\n  --> src/lib.rs:16:14\n   |\n";
        let failure = rust_failure("src/lib.rs - add (line 15)", compile);
        assert_eq!((failure.message, failure.at.line), ("error[E0308]: mismatched types", Some(16)));
    }
}
