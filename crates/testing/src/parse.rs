//! Reading runners' output: one parser a format, all behind one trait, all in one table.

mod ava;
mod bats;
mod bun;
mod busted;
mod by_line;
mod cargo;
mod catch2_text;
mod catch2_xml;
mod ctest;
mod deno;
mod each_stream;
mod exunit;
mod formats;
pub(crate) mod frames;
mod generic;
mod go;
mod gradle;
mod gtest;
mod java;
mod jest_block;
mod jest_json;
mod jest_text;
mod js_failure;
pub(crate) mod json;
mod junit;
mod junit_console;
mod libtest_json;
mod maven;
mod milliseconds;
mod minitest;
mod mocha;
mod nextest;
mod node_dot;
mod node_spec;
mod phpunit;
mod place;
mod pytest_json;
mod pytest_log;
mod pytest_phases;
mod pytest_text;
mod python_crash;
mod python_failure;
mod reporter;
#[cfg(test)]
mod retelling;
mod rspec;
mod ruby_failure;
mod rust_failure;
#[cfg(test)]
mod script_tests;
mod tally;
mod tap;
mod teamcity;
mod test_unit;
mod text_spec;
#[cfg(test)]
mod told;
mod trx;
mod unittest_text;
mod vitest_text;
mod whole;
mod wording;
mod xml;

use crate::{Framework, Sink};
use formats::FORMATS;
use text_spec::TextFormat;

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
/// with its input, but for reports, which have a limit; its time is linear, and nothing makes it panic.
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
    reader: Reader,
}

/// What knows a format.
enum Reader {
    /// A text that begins like this may be of this format, and code of its own reads it.
    Own { looks_like: fn(&Head<'_>) -> bool, parser: fn() -> Box<dyn Parser> },
    /// Its rules.
    Spec(&'static TextFormat),
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
        let is_tap = tap::begins(head.text);
        let fits = |format: &&Self| {
            let by_eye = format.trust == Trust::Text && !matches!(format.framework, Framework::Tap);
            !(is_tap && by_eye) && format.looks_like(head)
        };
        let of_framework = |wanted| FORMATS.iter().filter(move |it| it.framework == wanted);
        let known = framework.and_then(|wanted| of_framework(wanted).find(fits));
        let found = known.or_else(|| FORMATS.iter().find(fits)).unwrap_or(&FORMATS[FORMATS.len() - 1]);
        // The first lines of TAP do not show its dialect; a known runner has its own.
        let dialect = framework.filter(|_| found.is_plain_tap());
        dialect.and_then(|wanted| of_framework(wanted).find(|it| it.name.ends_with("-tap"))).unwrap_or(found)
    }

    /// Whether it is TAP of nobody in particular: what comes next may show whose it is.
    pub(crate) fn is_plain_tap(&self) -> bool {
        self.framework == Framework::Tap && self.trust == Trust::Interchange
    }

    /// What a runner prints for people, if we can read it.
    pub fn text_of(framework: Framework) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.framework == framework && format.trust == Trust::Text)
    }

    /// A new parser of it.
    pub fn parser(&self) -> Box<dyn Parser> {
        match &self.reader {
            Reader::Own { parser, .. } => parser(),
            Reader::Spec(spec) => spec.parser(),
        }
    }

    fn looks_like(&self, head: &Head<'_>) -> bool {
        match &self.reader {
            Reader::Own { looks_like, .. } => looks_like(head),
            Reader::Spec(spec) => spec.looks_like(head),
        }
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests;
