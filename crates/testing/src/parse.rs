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
mod frames;
mod generic;
mod go;
mod gradle;
mod gtest;
mod java;
mod jest_block;
mod jest_json;
mod jest_text;
mod js_failure;
pub(crate) mod json_elements;
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
#[cfg(test)]
mod told;
mod trx;
mod unittest_text;
mod vitest_text;
mod wording;
mod xml;
mod xml_report;

use crate::{Framework, Sink};
use by_line::ByLine;
use each_stream::EachStream;
use xml_report::XmlReport;

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
        name: "go-json",
        framework: Framework::Go,
        trust: Trust::Stream,
        looks_like: go::looks_like_json,
        parser: || Box::new(go::GoJson::default()),
    },
    Format {
        name: "go-text",
        framework: Framework::Go,
        trust: Trust::Text,
        looks_like: go::looks_like_text,
        parser: || Box::new(go::GoText::default()),
    },
    Format {
        name: "trx",
        framework: Framework::Dotnet,
        trust: Trust::Report,
        looks_like: trx::looks_like,
        parser: || Box::<XmlReport<trx::Trx>>::default(),
    },
    Format {
        name: "catch2-xml",
        framework: Framework::Catch2,
        trust: Trust::Report,
        looks_like: catch2_xml::looks_like,
        parser: || Box::<XmlReport<catch2_xml::Catch2Xml>>::default(),
    },
    Format {
        name: "junit",
        framework: Framework::Junit,
        trust: Trust::Interchange,
        looks_like: junit::looks_like,
        parser: || Box::<XmlReport<junit::Junit>>::default(),
    },
    Format {
        name: "teamcity",
        framework: Framework::Phpunit,
        trust: Trust::Stream,
        looks_like: teamcity::looks_like,
        parser: || Box::<ByLine<teamcity::TeamCity>>::default(),
    },
    Format {
        name: "maven",
        framework: Framework::Maven,
        trust: Trust::Text,
        looks_like: maven::looks_like,
        parser: || Box::<ByLine<maven::Maven>>::default(),
    },
    Format {
        name: "gradle",
        framework: Framework::Gradle,
        trust: Trust::Text,
        looks_like: gradle::looks_like,
        parser: || Box::<ByLine<gradle::Gradle>>::default(),
    },
    Format {
        name: "junit-console",
        framework: Framework::Junit,
        trust: Trust::Text,
        looks_like: junit_console::looks_like,
        parser: || Box::<ByLine<junit_console::JunitConsole>>::default(),
    },
    Format {
        name: "phpunit",
        framework: Framework::Phpunit,
        trust: Trust::Text,
        looks_like: phpunit::looks_like,
        parser: || Box::<ByLine<phpunit::Phpunit>>::default(),
    },
    Format {
        name: "ctest",
        framework: Framework::Ctest,
        trust: Trust::Text,
        looks_like: ctest::looks_like,
        parser: || Box::<ByLine<ctest::Ctest>>::default(),
    },
    Format {
        name: "gtest",
        framework: Framework::Gtest,
        trust: Trust::Text,
        looks_like: gtest::looks_like,
        parser: || Box::<ByLine<gtest::Gtest>>::default(),
    },
    Format {
        name: "catch2",
        framework: Framework::Catch2,
        trust: Trust::Text,
        looks_like: catch2_text::looks_like,
        parser: || Box::<ByLine<catch2_text::Catch2Text>>::default(),
    },
    Format {
        name: "nextest-json",
        framework: Framework::Nextest,
        trust: Trust::Stream,
        looks_like: libtest_json::looks_like_nextest,
        parser: || Box::new(ByLine::<libtest_json::LibtestJson>::default()),
    },
    Format {
        name: "libtest-json",
        framework: Framework::CargoTest,
        trust: Trust::Stream,
        looks_like: libtest_json::looks_like,
        parser: || Box::new(ByLine::<cargo::CargoTest>::default()),
    },
    Format {
        name: "mocha-json-stream",
        framework: Framework::Mocha,
        trust: Trust::Stream,
        looks_like: mocha::looks_like_stream,
        parser: || Box::new(mocha::MochaStream::default()),
    },
    Format {
        name: "mocha-json",
        framework: Framework::Mocha,
        trust: Trust::Report,
        looks_like: mocha::looks_like_json,
        parser: || Box::new(mocha::MochaJson::default()),
    },
    Format {
        name: "rspec-json",
        framework: Framework::Rspec,
        trust: Trust::Report,
        looks_like: rspec::looks_like_json,
        parser: || Box::new(rspec::RspecJson::default()),
    },
    Format {
        name: "nextest-text",
        framework: Framework::Nextest,
        trust: Trust::Text,
        looks_like: nextest::looks_like,
        parser: || Box::new(EachStream::<nextest::NextestText>::default()),
    },
    Format {
        name: "cargo-test",
        framework: Framework::CargoTest,
        trust: Trust::Text,
        looks_like: cargo::looks_like,
        parser: || Box::new(ByLine::<cargo::CargoTest>::default()),
    },
    Format {
        name: "bun",
        framework: Framework::Bun,
        trust: Trust::Text,
        looks_like: bun::looks_like,
        parser: || Box::new(EachStream::<bun::Bun>::default()),
    },
    Format {
        name: "deno",
        framework: Framework::Deno,
        trust: Trust::Text,
        looks_like: deno::looks_like,
        parser: || Box::new(EachStream::<deno::Deno>::default()),
    },
    Format {
        name: "mocha",
        framework: Framework::Mocha,
        trust: Trust::Text,
        looks_like: mocha::looks_like_text,
        parser: || Box::new(EachStream::<mocha::MochaText>::default()),
    },
    Format {
        name: "node-dot",
        framework: Framework::NodeTest,
        trust: Trust::Text,
        looks_like: node_dot::looks_like,
        parser: || Box::new(EachStream::<node_dot::NodeDot>::default()),
    },
    Format {
        name: "node-spec",
        framework: Framework::NodeTest,
        trust: Trust::Text,
        looks_like: node_spec::looks_like,
        parser: || Box::new(EachStream::<node_spec::NodeSpec>::default()),
    },
    Format {
        name: "busted",
        framework: Framework::Busted,
        trust: Trust::Text,
        looks_like: busted::looks_like,
        parser: || Box::new(EachStream::<busted::Busted>::default()),
    },
    Format {
        name: "rspec",
        framework: Framework::Rspec,
        trust: Trust::Text,
        looks_like: rspec::looks_like_text,
        parser: || Box::new(EachStream::<rspec::RspecText>::default()),
    },
    Format {
        name: "test-unit",
        framework: Framework::Minitest,
        trust: Trust::Text,
        looks_like: test_unit::looks_like,
        parser: || Box::new(EachStream::<test_unit::TestUnit>::default()),
    },
    Format {
        name: "minitest",
        framework: Framework::Minitest,
        trust: Trust::Text,
        looks_like: minitest::looks_like,
        parser: || Box::new(EachStream::<minitest::Minitest>::default()),
    },
    Format {
        name: "exunit",
        framework: Framework::Exunit,
        trust: Trust::Text,
        looks_like: exunit::looks_like,
        parser: || Box::new(EachStream::<exunit::ExUnit>::default()),
    },
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
        parser: || Box::new(EachStream::<jest_text::JestText>::default()),
    },
    Format {
        name: "unittest-text",
        framework: Framework::Unittest,
        trust: Trust::Text,
        looks_like: unittest_text::looks_like,
        parser: || Box::new(EachStream::<unittest_text::UnittestText>::default()),
    },
    Format {
        name: "bats-text",
        framework: Framework::Bats,
        trust: Trust::Text,
        looks_like: bats::looks_like,
        parser: || Box::new(bats::Bats::default()),
    },
    Format {
        name: "ava-text",
        framework: Framework::Ava,
        trust: Trust::Text,
        looks_like: ava::looks_like,
        parser: || Box::new(ava::Ava::default()),
    },
    Format {
        name: "prove",
        framework: Framework::Tap,
        trust: Trust::Text,
        looks_like: tap::looks_like_prove,
        parser: || Box::new(tap::Prove::default()),
    },
    tap_of("node-test-tap", Framework::NodeTest, tap_dialect!(NodeTest)),
    tap_of("vitest-tap", Framework::Vitest, tap_dialect!(Vitest)),
    tap_of("deno-tap", Framework::Deno, tap_dialect!(Deno)),
    tap_of("ava-tap", Framework::Ava, tap_dialect!(Ava)),
    tap_of("mocha-tap", Framework::Mocha, tap_dialect!(Mocha)),
    tap_of("pytest-tap", Framework::Pytest, tap_dialect!(Pytest)),
    tap_of("busted-tap", Framework::Busted, tap_dialect!(Busted)),
    tap_of("bats-tap", Framework::Bats, tap_dialect!(Bats)),
    tap_of("tap", Framework::Tap, tap_dialect!(Plain)),
    Format {
        name: "generic",
        framework: Framework::Generic,
        trust: Trust::ExitStatus,
        looks_like: |_| true,
        parser: || Box::new(EachStream::<generic::Generic>::default()),
    },
];

type LooksLike = fn(&Head<'_>) -> bool;
type Make = fn() -> Box<dyn Parser>;

/// TAP as one runner writes it.
const fn tap_of(name: &'static str, framework: Framework, (looks_like, parser): (LooksLike, Make)) -> Format {
    Format { name, framework, trust: Trust::Interchange, looks_like, parser }
}

/// How one dialect of TAP is recognised and read. A macro, since a function pointer cannot hold the dialect.
macro_rules! tap_dialect {
    ($dialect:ident) => {
        (
            |head| tap::looks_like(tap::Dialect::$dialect, head),
            || Box::new(tap::Tap::new(tap::Dialect::$dialect)),
        )
    };
}
use tap_dialect;

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
        (self.parser)()
    }
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests;
