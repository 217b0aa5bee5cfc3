//! Reading runners' output: one parser a format, all behind one trait, all in one table.

mod by_line;
mod generic;
mod jest_block;
mod jest_json;
mod jest_text;
mod js_failure;
mod json_elements;
mod place;
mod pytest_json;
mod pytest_log;
mod pytest_phases;
mod pytest_text;
mod python_crash;
mod python_failure;
mod reporter;
mod unittest_text;
mod vitest_text;

use crate::{Framework, Sink};
use by_line::ByLine;

/// Where bytes come from. A structured report (a file, or a descriptor of its own) comes as `Out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output, or the report itself.
    Out,
    /// Standard error.
    Err,
}

/// Reads one format. Bytes are pushed in as they come, in any pieces; the same bytes say the same, however they
/// were cut, and however the two streams were mixed as far as the format allows. A parser's memory does not grow
/// with its input, its time is linear, and nothing makes it panic.
pub trait Parser: Send {
    /// Takes more bytes.
    fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut dyn Sink);

    /// There are no more: says what was held back. A test that began and did not end stays open; whoever knows how
    /// the process ended decides what that means.
    fn finish(&mut self, sink: &mut dyn Sink);
}

/// One format that we read.
pub struct Format {
    /// As users write it.
    pub name: &'static str,
    /// The runner it is of; for a format of many runners, the most general one.
    pub framework: Framework,
    /// How much to believe it.
    pub trust: Trust,
    /// Whether a text that begins like this may be of this format.
    looks_like: fn(&Head<'_>) -> bool,
    parser: fn() -> Box<dyn Parser>,
}

/// How much to believe a format, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Only the exit status means anything.
    ExitStatus,
    /// Made for people's eyes; what a test prints stands between.
    Text,
    /// A common format that runners write in dialects: `JUnit`'s XML, TAP.
    Interchange,
    /// A runner's own report, written at its end.
    Report,
    /// A runner's own stream of events.
    Stream,
}

/// The beginning of a text, to tell its format by.
pub struct Head<'a> {
    /// Its file's name, if it is a file.
    pub file_name: &'a str,
    /// At most 64 KiB, without colours.
    pub text: &'a str,
}

/// The formats, the most telling first: the first that recognises a text gets it. The last recognises all.
static FORMATS: &[Format] = &[
    Format {
        name: "pytest-events",
        framework: Framework::Pytest,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("pytest", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "jest-events",
        framework: Framework::Jest,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("jest", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "vitest-events",
        framework: Framework::Vitest,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("vitest", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "rspec-events",
        framework: Framework::Rspec,
        trust: Trust::Stream,
        looks_like: |head| reporter::is_of("rspec", head),
        parser: || Box::new(reporter::Reporter::default()),
    },
    Format {
        name: "pytest-reportlog",
        framework: Framework::Pytest,
        trust: Trust::Stream,
        looks_like: pytest_log::looks_like,
        parser: || Box::new(pytest_log::PytestLog::default()),
    },
    Format {
        name: "pytest-json-report",
        framework: Framework::Pytest,
        trust: Trust::Report,
        looks_like: pytest_json::looks_like,
        parser: || Box::new(pytest_json::PytestJson::default()),
    },
    Format {
        name: "jest-json",
        framework: Framework::Jest,
        trust: Trust::Report,
        looks_like: jest_json::is_jest,
        parser: || Box::new(jest_json::JestJson::default()),
    },
    Format {
        name: "vitest-json",
        framework: Framework::Vitest,
        trust: Trust::Report,
        looks_like: jest_json::is_vitest,
        parser: || Box::new(jest_json::JestJson::default()),
    },
    Format {
        name: "pytest-text",
        framework: Framework::Pytest,
        trust: Trust::Text,
        looks_like: pytest_text::looks_like,
        parser: || Box::new(ByLine::<pytest_text::PytestText>::default()),
    },
    Format {
        name: "vitest-text",
        framework: Framework::Vitest,
        trust: Trust::Text,
        looks_like: vitest_text::looks_like,
        parser: || Box::new(ByLine::<vitest_text::VitestText>::default()),
    },
    Format {
        name: "jest-text",
        framework: Framework::Jest,
        trust: Trust::Text,
        looks_like: jest_text::looks_like,
        parser: || Box::new(ByLine::<jest_text::JestText>::default()),
    },
    Format {
        name: "unittest-text",
        framework: Framework::Unittest,
        trust: Trust::Text,
        looks_like: unittest_text::looks_like,
        parser: || Box::new(ByLine::<unittest_text::UnittestText>::default()),
    },
    Format {
        name: "generic",
        framework: Framework::Generic,
        trust: Trust::ExitStatus,
        looks_like: |_| true,
        parser: || Box::new(generic::Generic),
    },
];

impl Format {
    /// Every format.
    pub fn all() -> &'static [Self] {
        FORMATS
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// The format of a text; if the runner is known, one of that runner if any fits.
    pub fn of(head: &Head<'_>, framework: Option<Framework>) -> &'static Self {
        let fits = |format: &&Self| (format.looks_like)(head);
        let of_framework =
            framework.and_then(|wanted| FORMATS.iter().filter(|it| it.framework == wanted).find(fits));
        of_framework.or_else(|| FORMATS.iter().find(fits)).unwrap_or(&FORMATS[FORMATS.len() - 1])
    }

    /// What a runner prints for people, if we can read it.
    pub fn text_of(framework: Framework) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.framework == framework && format.trust == Trust::Text)
    }

    /// A new parser of it.
    pub fn parser(&self) -> Box<dyn Parser> {
        (self.parser)()
    }
}

/// Odd numbers are none.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn milliseconds(ms: f64) -> u64 {
    ms.max(0.0).round() as u64
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
