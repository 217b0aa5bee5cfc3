//! Reading runners' output: one parser a format, all behind one trait, all in one table.

mod by_line;
mod catch2_text;
mod catch2_xml;
mod ctest;
mod frames;
mod generic;
mod gradle;
mod gtest;
mod java;
mod junit;
mod junit_console;
mod maven;
mod phpunit;
mod teamcity;
mod trx;
mod wording;
mod xml;

use by_line::ByLine;

use crate::{Framework, Sink};

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
        name: "trx",
        framework: Framework::Dotnet,
        trust: Trust::Report,
        looks_like: trx::looks_like,
        parser: || Box::<trx::Trx>::default(),
    },
    Format {
        name: "catch2-xml",
        framework: Framework::Catch2,
        trust: Trust::Report,
        looks_like: catch2_xml::looks_like,
        parser: || Box::<catch2_xml::Catch2Xml>::default(),
    },
    Format {
        name: "junit",
        framework: Framework::Junit,
        trust: Trust::Interchange,
        looks_like: junit::looks_like,
        parser: || Box::<junit::Junit>::default(),
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

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests;
