//! Reading runners' output: one parser a format, all behind one trait, all in one table.

mod ava;
mod bats;
mod frames;
mod generic;
mod go;
#[cfg(test)]
mod retelling;
mod tap;

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
        parser: || Box::new(generic::Generic),
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
