//! Reading runners' output: one parser a format, all behind one trait, all in one table.

mod bun;
mod busted;
mod by_line;
mod cargo;
mod deno;
mod each_stream;
mod exunit;
mod generic;
mod js_error;
pub(crate) mod json_elements;
mod libtest_json;
mod milliseconds;
mod minitest;
mod mocha;
mod nextest;
mod node_dot;
mod node_spec;
mod place;
mod rspec;
mod ruby_failure;
mod rust_failure;
#[cfg(test)]
mod script_tests;
mod tally;
mod test_unit;
#[cfg(test)]
mod told;

use crate::{Framework, Sink};
use by_line::ByLine;
use each_stream::EachStream;

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
        name: "generic",
        framework: Framework::Generic,
        trust: Trust::ExitStatus,
        looks_like: |_| true,
        parser: || Box::new(EachStream::<generic::Generic>::default()),
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

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
