//! The patterns of all rules.

use std::borrow::Cow;

use rehearsal_core::{Bounds, Keep, Rewrite};

use super::edge::Edges;
use super::place::Place;
use super::rule::Rule;
use super::{Named, VERBATIM_FIELDS};
use crate::cassette::scan::Secrets;

/// What is looked for, and what it becomes.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) regex: Cow<'static, str>,
    pub(crate) edges: Edges,
    pub(crate) becomes: Becomes,
    /// Whether it must hold a digit: `call_12ab34cd` is an id, `call_function` is not.
    needs_digit: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Becomes {
    /// `⟦kind:n⟧`.
    Number(Named),
    Word(&'static str),
    Nothing,
    /// It stays, and nothing in it is looked at.
    Itself,
    /// It stays up to this mark, and the rest becomes something else.
    AfterFirst(&'static str, Box<Becomes>),
    AfterLast(&'static str, Box<Becomes>),
}

impl Pattern {
    pub(crate) fn accepts(&self, text: &str) -> bool {
        !self.needs_digit || text.bytes().any(|byte| byte.is_ascii_digit())
    }
}

pub(crate) fn for_requests(rules: &[Rule], place: &Place, secrets: &Secrets) -> Vec<Pattern> {
    let mut patterns: Vec<Pattern> = secret_patterns(secrets).collect();
    for rule in rules {
        match rule {
            Rule::Paths => patterns.extend(path_patterns(place)),
            rule => patterns.extend(fixed(*rule)),
        }
    }
    patterns
}

pub(crate) fn for_answers(rules: &[Rule], place: &Place, secrets: &Secrets) -> Vec<Pattern> {
    let mut patterns = vec![pattern(verbatim(), Edges::Any, Becomes::Itself)];
    patterns.extend(secret_patterns(secrets));
    if rules.contains(&Rule::Paths) {
        patterns.extend(directory_patterns(place));
    }
    patterns
}

/// A field, as JSON writes it, that must stay as it is.
pub(crate) fn verbatim() -> String {
    format!(r#""(?:{})"\s*:\s*"[^"]*""#, VERBATIM_FIELDS.join("|"))
}

fn pattern(regex: impl Into<Cow<'static, str>>, edges: Edges, becomes: Becomes) -> Pattern {
    Pattern { regex: regex.into(), edges, becomes, needs_digit: false }
}

fn secret_patterns(secrets: &Secrets) -> impl Iterator<Item = Pattern> {
    secrets.patterns().into_iter().map(|(regex, edges)| pattern(regex, edges, Becomes::Number(Named::Secret)))
}

fn directory_patterns(place: &Place) -> impl Iterator<Item = Pattern> {
    place.texts().into_iter().map(|path| {
        let edges = if path.is_slug { Edges::Word(b"", b"") } else { Edges::Path };
        pattern(literal(&path.text), edges, Becomes::Word(path.placeholder))
    })
}

fn path_patterns(place: &Place) -> impl Iterator<Item = Pattern> {
    directory_patterns(place).chain(temporary_files())
}

/// What `mktemp` and Python call their files.
fn temporary_files() -> impl Iterator<Item = Pattern> {
    let file = || Becomes::AfterFirst("/", Box::new(Becomes::Number(Named::File)));
    let of_mktemp = pattern(r"/tmp\.[A-Za-z0-9]{6,12}", Edges::After(b"_-"), file());
    let of_python = pattern(r"/tmp[a-z0-9_]{8}", Edges::After(b"_-"), file());
    [of_mktemp, Pattern { needs_digit: true, ..of_python }].into_iter()
}

/// A regular expression for just this text.
pub(crate) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if letter.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

const UUID: &str = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
const DAY: &str = r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])";
const CLOCK: &str = r"[0-2]\d:[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?";
const ZONE: &str = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?";
const MONTH: &str = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*";
const WEEKDAY: &str = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*";

fn fixed(rule: Rule) -> Vec<Pattern> {
    match rule {
        Rule::Paths => Vec::new(),
        Rule::Ids => vec![Pattern {
            needs_digit: true,
            ..pattern(
                format!(
                    "(?:toolu|srvtoolu|call|msg|resp|fc|fco|rs|ctc|ctco|item|req|ses|prt|gen|chatcmpl)[_-](?:{UUID}|[A-Za-z0-9]{{8,64}})"
                ),
                Edges::Word(b"_-", b"_-"),
                Becomes::Number(Named::Id),
            )
        }],
        Rule::Uuids => vec![pattern(UUID, Edges::Word(b"", b"-"), Becomes::Number(Named::Uuid))],
        Rule::Commits => commits(),
        Rule::Dates => dates(),
        Rule::Durations => durations(),
        Rule::Ports => vec![pattern(
            r"(?:127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1\]):\d{2,5}",
            Edges::Word(b".", b""),
            after_last(":", "⟦port⟧"),
        )],
        Rule::Colours => vec![
            pattern(r"(?:\x1b|\\u001[bB])\[[0-9;:?]*[A-Za-z]", Edges::Any, Becomes::Nothing),
            pattern(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", Edges::Any, Becomes::Nothing),
        ],
        Rule::Client(client) => client.rewrites.iter().map(of_rewrite).collect(),
    }
}

fn of_rewrite(rewrite: &Rewrite) -> Pattern {
    let edges = match rewrite.bounds {
        Bounds::Any => Edges::Any,
        Bounds::Word => Edges::Word(b"", b""),
    };
    let becomes = match rewrite.keep {
        Keep::UpToFirst(mark) => after_first(mark, rewrite.put),
        Keep::UpToLast(mark) => after_last(mark, rewrite.put),
    };
    pattern(rewrite.find, edges, becomes)
}

fn after_first(mark: &'static str, word: &'static str) -> Becomes {
    Becomes::AfterFirst(mark, Box::new(Becomes::Word(word)))
}

fn after_last(mark: &'static str, word: &'static str) -> Becomes {
    Becomes::AfterLast(mark, Box::new(Becomes::Word(word)))
}

fn commits() -> Vec<Pattern> {
    let commit = || Becomes::Number(Named::Commit);
    let short = pattern("[0-9a-f]{7,12}", Edges::ShortHash, commit());
    vec![pattern("[0-9a-f]{40}", Edges::Word(b"_-", b"_-"), commit()), Pattern { needs_digit: true, ..short }]
}

fn dates() -> Vec<Pattern> {
    let word = Edges::Word(b"-_.", b"");
    let (time, date) = ("⟦time⟧", "⟦date⟧");
    vec![
        pattern(format!("{DAY}[T ]{CLOCK}{ZONE}"), word, Becomes::Word(time)),
        pattern(DAY, word, Becomes::Word(date)),
        // `date`, `git log`, and in words: `Mon Nov 16 04:47:47 UTC 2026 +0000`, `Monday, November 16, 2026`.
        pattern(
            format!(
                r"{WEEKDAY},? {MONTH} +\d{{1,2}},?(?: {CLOCK})?(?: [A-Z]{{3,4}})?,? \d{{4}}(?: [+-]\d{{4}})?"
            ),
            word,
            Becomes::Word(date),
        ),
        pattern(
            format!(r"{WEEKDAY}, \d{{1,2}} {MONTH} \d{{4}}(?: {CLOCK}{ZONE})?"),
            word,
            Becomes::Word(date),
        ),
        // `ls -l`.
        pattern(format!(r"{MONTH} [ \d]\d (?:{CLOCK}| \d{{4}})"), word, Becomes::Word(date)),
        // Milliseconds since 1970, from 2017 to 2033.
        pattern(r"1[5-9]\d{11}", word, Becomes::Word(time)),
    ]
}

/// Only what was measured: a decimal point, or the words around it. `120000ms` in a description says something. A number has
/// an end: in a long word of digits each of them could begin one.
fn durations() -> Vec<Pattern> {
    let word = Edges::Word(b"-_.", b"");
    let duration = "⟦duration⟧";
    vec![
        pattern(r"\d{1,20}m\d{1,20}(?:\.\d{1,20})?s", word, Becomes::Word(duration)),
        pattern(
            r"\d{1,20}\.\d{1,20} ?(?:ns|us|µs|ms|seconds|second|secs|sec|s|minutes|min|m)",
            word,
            Becomes::Word(duration),
        ),
        pattern(r"(?:in|took) \d{1,20} ?(?:ns|us|µs|ms|s)", word, after_first(" ", duration)),
    ]
}
