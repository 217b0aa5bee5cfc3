//! What kind of failure a message tells of, in the words of every language.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use serde::{Deserialize, Serialize};

use super::words::WORDS;
use crate::FailureKind;
use crate::text::floor_char;

/// A kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FailurePattern {
    /// Something outside of the machine was to be reached and could not be.
    Network,
    /// A file was to be written where only reading is possible.
    ReadOnly,
    /// The system did not permit it.
    Permission,
    /// There was not enough memory.
    OutOfMemory,
    /// Too many files were open.
    TooManyFiles,
    /// No further process or thread could be started.
    ProcessLimit,
    /// The disk is full.
    DiskFull,
    /// Nothing listens at the address.
    ConnectionRefused,
    /// Something else listens there already.
    AddressInUse,
    /// A program is not installed.
    MissingProgram,
    /// A snapshot differs.
    Snapshot,
    /// Null, nil, None or undefined was used as if it were something.
    Nil,
    /// An index is out of range.
    Index,
    /// A key is missing.
    Key,
    /// A module could not be found or loaded.
    Import,
    /// The runner's configuration or options.
    Config,
    /// Source that does not compile or parse.
    Compile,
    /// A name that is not defined.
    Undefined,
    /// A value of the wrong type, or one that cannot do what is asked of it.
    Type,
    /// Division by zero, overflow.
    Arithmetic,
    /// Two threads at the same data.
    Race,
    /// All wait for each other.
    Deadlock,
    /// A recursion without end.
    StackOverflow,
    /// The process died.
    Crash,
    /// It took too long.
    Timeout,
    /// A file that is not there.
    MissingFile,
    /// A fixture, a hook, or the set-up of a group.
    Setup,
    /// A comparison did not hold.
    Assertion,
    /// A panic of another kind.
    Panic,
    /// The clean-up.
    Teardown,
    /// It passed though it was declared to fail.
    UnexpectedPass,
    /// A dependency could not be resolved.
    Dependency,
    /// A program ended with a bad status, and nothing more is known.
    Exit,
    /// Any other error.
    Error,
}

impl FailurePattern {
    /// Whether the surroundings are to blame, and not what the test is about.
    pub const fn is_environment(self) -> bool {
        matches!(
            self,
            Self::Network
                | Self::ReadOnly
                | Self::Permission
                | Self::OutOfMemory
                | Self::TooManyFiles
                | Self::ProcessLimit
                | Self::DiskFull
                | Self::ConnectionRefused
                | Self::AddressInUse
                | Self::MissingProgram
        )
    }

    /// Whether what its messages quote names the culprit, rather than a value.
    pub(crate) const fn is_named_by_quotes(self) -> bool {
        matches!(
            self,
            Self::Import
                | Self::Compile
                | Self::Undefined
                | Self::MissingProgram
                | Self::Config
                | Self::Dependency
        )
    }

    /// As JSON has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::ReadOnly => "read_only",
            Self::Permission => "permission",
            Self::OutOfMemory => "out_of_memory",
            Self::TooManyFiles => "too_many_files",
            Self::ProcessLimit => "process_limit",
            Self::DiskFull => "disk_full",
            Self::ConnectionRefused => "connection_refused",
            Self::AddressInUse => "address_in_use",
            Self::MissingProgram => "missing_program",
            Self::Snapshot => "snapshot",
            Self::Nil => "nil",
            Self::Index => "index",
            Self::Key => "key",
            Self::Import => "import",
            Self::Config => "config",
            Self::Compile => "compile",
            Self::Undefined => "undefined",
            Self::Type => "type",
            Self::Arithmetic => "arithmetic",
            Self::Race => "race",
            Self::Deadlock => "deadlock",
            Self::StackOverflow => "stack_overflow",
            Self::Crash => "crash",
            Self::Timeout => "timeout",
            Self::MissingFile => "missing_file",
            Self::Setup => "setup",
            Self::Assertion => "assertion",
            Self::Panic => "panic",
            Self::Teardown => "teardown",
            Self::UnexpectedPass => "unexpected_pass",
            Self::Dependency => "dependency",
            Self::Exit => "exit",
            Self::Error => "error",
        }
    }
}

/// What a text says: the most telling pattern, and the line that says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Said<'a> {
    pub pattern: FailurePattern,
    pub line: &'a str,
}

/// What a failure is, by its structure where that is telling, and else by its words.
pub(crate) fn pattern_of(kind: Option<FailureKind>, message: &str, compared: bool) -> FailurePattern {
    use FailureKind as Kind;
    let said = said(message).map(|said| said.pattern);
    // No structure knows that the surroundings are to blame: there the words win.
    if let Some(pattern) = said.filter(|pattern| pattern.is_environment())
        && !matches!(kind, Some(Kind::Setup) if pattern == FailurePattern::ConnectionRefused)
        && !matches!(kind, Some(Kind::Compile | Kind::Snapshot | Kind::UnexpectedPass))
    {
        return pattern;
    }
    match kind {
        Some(Kind::Assertion) => {
            said.filter(|it| *it == FailurePattern::Snapshot).unwrap_or(FailurePattern::Assertion)
        }
        Some(Kind::NullDeref) => FailurePattern::Nil,
        Some(Kind::Timeout) => FailurePattern::Timeout,
        Some(Kind::Setup) => FailurePattern::Setup,
        Some(Kind::Teardown) => FailurePattern::Teardown,
        Some(Kind::Snapshot) => FailurePattern::Snapshot,
        Some(Kind::UnexpectedPass) => FailurePattern::UnexpectedPass,
        Some(Kind::Import) => FailurePattern::Import,
        Some(Kind::Compile) => FailurePattern::Compile,
        Some(Kind::Config) => FailurePattern::Config,
        Some(Kind::Dependency) => FailurePattern::Dependency,
        Some(Kind::Panic) => said.unwrap_or(FailurePattern::Panic),
        Some(Kind::Crash) => said.unwrap_or(FailurePattern::Crash),
        Some(Kind::Exit) => said.unwrap_or(FailurePattern::Exit),
        Some(Kind::Error) | None if compared => {
            said.filter(|it| *it == FailurePattern::Snapshot).unwrap_or(FailurePattern::Assertion)
        }
        Some(Kind::Error) | None => said.unwrap_or(FailurePattern::Error),
    }
}

/// As much of a text is read: all that a report keeps of one.
const READ: usize = 32 << 10;

/// What a text says, if its words are known.
pub(crate) fn said(text: &str) -> Option<Said<'_>> {
    let text = &text[..floor_char(text, READ)];
    let mut best: Option<(usize, usize)> = None;
    for found in SEARCH.find_overlapping_iter(text) {
        let rank = found.pattern().as_usize();
        if best.is_none_or(|(known, _)| rank < known) && stands_alone(text, found.start(), found.end()) {
            best = Some((rank, found.start()));
        }
    }
    let (rank, at) = best?;
    let line = line_around(text, at);
    let pattern = match RANKS.get(rank).copied()? {
        // Node says the same of a file and of a program.
        FailurePattern::MissingFile if line.contains("spawn ") => FailurePattern::MissingProgram,
        pattern => pattern,
    };
    Some(Said { pattern, line })
}

/// Whether a find is no part of a longer word: `eperm` is not in `deeperminal`.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (first, last) = (text[start..].chars().next(), text[..end].chars().next_back());
    let before = is_word(first) && is_word(text[..start].chars().next_back());
    let after = is_word(last) && is_word(text[end..].chars().next());
    !before && !after
}

fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    text[start..end].trim()
}

static RANKS: LazyLock<Vec<FailurePattern>> =
    LazyLock::new(|| WORDS.iter().flat_map(|(pattern, words)| words.iter().map(|_| *pattern)).collect());

#[expect(clippy::expect_used, reason = "the words are a constant, and a test builds the search from it")]
static SEARCH: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = WORDS.iter().flat_map(|(_, words)| words.iter());
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(words)
        .expect("a few hundred short words fit")
});

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::go_nil(
        "panic: runtime error: invalid memory address or nil pointer dereference",
        FailurePattern::Nil
    )]
    #[case::go_map("panic: assignment to entry in nil map", FailurePattern::Nil)]
    #[case::go_index("panic: runtime error: index out of range [5] with length 3", FailurePattern::Index)]
    #[case::go_type("interface conversion: interface {} is string, not int", FailurePattern::Type)]
    #[case::go_import(
        "cart.go:3:2: no required module provides package example.com/x",
        FailurePattern::Import
    )]
    #[case::go_timeout("panic: test timed out after 1s", FailurePattern::Timeout)]
    #[case::go_race("testing.go:1: race detected during execution of test", FailurePattern::Race)]
    #[case::go_deadlock("fatal error: all goroutines are asleep - deadlock!", FailurePattern::Deadlock)]
    #[case::js_nil("TypeError: Cannot read properties of undefined (reading 'name')", FailurePattern::Nil)]
    #[case::js_type("TypeError: total is not a function", FailurePattern::Type)]
    #[case::js_name("ReferenceError: total is not defined", FailurePattern::Undefined)]
    #[case::js_import("Cannot find module './nope' from 'a.test.js'", FailurePattern::Import)]
    #[case::js_syntax("SyntaxError: Unexpected token (2:5)", FailurePattern::Compile)]
    #[case::jest_esm("SyntaxError: Cannot use import statement outside a module", FailurePattern::Config)]
    #[case::jest_snapshot(
        "expect(received).toMatchSnapshot()\nSnapshot name: `a 1`",
        FailurePattern::Snapshot
    )]
    #[case::jest_timeout("thrown: \"Exceeded timeout of 5000 ms for a test.", FailurePattern::Timeout)]
    #[case::py_nil("AttributeError: 'NoneType' object has no attribute 'name'", FailurePattern::Nil)]
    #[case::py_attribute("AttributeError: 'Cart' object has no attribute 'nmae'", FailurePattern::Type)]
    #[case::py_key("KeyError: 'x'", FailurePattern::Key)]
    #[case::py_import("E   ModuleNotFoundError: No module named 'nope'", FailurePattern::Import)]
    #[case::py_fixture("fixture 'db' not found", FailurePattern::Setup)]
    #[case::py_recursion("RecursionError: maximum recursion depth exceeded", FailurePattern::StackOverflow)]
    #[case::py_assert("AssertionError: 4 != 5", FailurePattern::Assertion)]
    #[case::rust_nil("called `Option::unwrap()` on a `None` value", FailurePattern::Nil)]
    #[case::rust_index("index out of bounds: the len is 3 but the index is 7", FailurePattern::Index)]
    #[case::rust_assert("assertion `left == right` failed: math", FailurePattern::Assertion)]
    #[case::rust_type("error[E0308]: mismatched types", FailurePattern::Type)]
    #[case::java_nil(
        "java.lang.NullPointerException: Cannot invoke \"String.length()\"",
        FailurePattern::Nil
    )]
    #[case::java_assert("math ==> expected: <5> but was: <4>", FailurePattern::Assertion)]
    #[case::java_class("java.lang.ClassCastException: class A cannot be cast", FailurePattern::Type)]
    #[case::ruby_nil("NoMethodError: undefined method `name' for nil:NilClass", FailurePattern::Nil)]
    #[case::php_nil("Error: Call to a member function length() on null", FailurePattern::Nil)]
    #[case::php_zero("DivisionByZeroError: Division by zero", FailurePattern::Arithmetic)]
    #[case::dotnet_nil("System.NullReferenceException : Object reference not set", FailurePattern::Nil)]
    #[case::lua_nil("cart.lua:3: attempt to index a nil value (local 'x')", FailurePattern::Nil)]
    #[case::shell("line 3: jq: command not found", FailurePattern::MissingProgram)]
    #[case::node_spawn("Error: spawn git ENOENT", FailurePattern::MissingProgram)]
    #[case::refused("connect ECONNREFUSED 127.0.0.1:5432", FailurePattern::ConnectionRefused)]
    #[case::segfault("Fatal Python error: Segmentation fault", FailurePattern::Crash)]
    #[case::other("boom", FailurePattern::Error)]
    fn the_words_of_each_language_are_known(#[case] message: &str, #[case] pattern: FailurePattern) {
        assert_eq!(pattern_of(None, message, false), pattern);
    }

    #[rstest]
    #[case::quoted_words(
        Some(FailureKind::Assertion),
        "expected 'index out of range', got ''",
        FailurePattern::Assertion
    )]
    #[case::told_as_timeout(Some(FailureKind::Timeout), "KeyError", FailurePattern::Timeout)]
    #[case::setup(Some(FailureKind::Setup), "connect ECONNREFUSED 127.0.0.1:1", FailurePattern::Setup)]
    #[case::reported_error(
        Some(FailureKind::Assertion),
        "Get: network is unreachable",
        FailurePattern::Network
    )]
    #[case::panicked(Some(FailureKind::Panic), "boom", FailurePattern::Panic)]
    fn structure_goes_before_words_but_not_before_the_surroundings(
        #[case] kind: Option<FailureKind>,
        #[case] message: &str,
        #[case] pattern: FailurePattern,
    ) {
        assert_eq!(pattern_of(kind, message, false), pattern);
    }

    #[test]
    fn a_word_inside_of_another_is_not_meant() {
        assert_eq!(said("the deepermissions and emfiles"), None);
    }

    #[test]
    fn the_name_is_what_json_says() {
        for (pattern, _) in WORDS {
            assert_eq!(serde_json::to_string(pattern).unwrap(), format!("\"{}\"", pattern.name()));
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_asked(text in "\\PC{0,200}") {
            let _ = said(&text);
        }
    }
}
